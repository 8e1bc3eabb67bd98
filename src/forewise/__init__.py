"""forewise turns data into decisions that are ready for what the data cannot tell."""

from forewise.exceptions import (
    ForewiseError,
    InvalidInputError,
    MissingDependencyError,
    SolveError,
    UnsupportedProblemError,
)
from forewise.problems import (
    Newsvendor,
    Portfolio,
    Problem,
    QuadraticNewsvendor,
    ScenarioProgram,
)
from forewise.scenarios import Scenarios
from forewise.solvers import (
    AutoSolver,
    Certificate,
    Duals,
    DualSearch,
    InteriorPoint,
    ProgramSolver,
    ReferenceSolver,
    Solution,
    Solver,
    Status,
    WeightedQuantile,
    solve,
    solve_program,
)

__version__ = "0.1.0"

__all__ = [
    "AutoSolver",
    "Certificate",
    "DualSearch",
    "Duals",
    "ForewiseError",
    "InteriorPoint",
    "InvalidInputError",
    "MissingDependencyError",
    "Newsvendor",
    "Portfolio",
    "Problem",
    "ProgramSolver",
    "QuadraticNewsvendor",
    "ReferenceSolver",
    "ScenarioProgram",
    "Scenarios",
    "Solution",
    "SolveError",
    "Solver",
    "Status",
    "UnsupportedProblemError",
    "WeightedQuantile",
    "solve",
    "solve_program",
]
