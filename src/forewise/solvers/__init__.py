"""HOW a program is solved, verified and differentiated.

`auto` has the verbs and picks the solver, `base` is the contract, `solution` what is returned.
`interior_point` solves linear and quadratic programs, on the compiled loops of its `core`; `conic`
solves programs with cones and `integer` those with integers. `closed_form` has the exact special
cases, `risk` problems with a risk, `ridge` and `projection` programs with a quadratic term.
`aggregation` merges the scenarios of very large programs, and bounds those of sampled ones.
`reference` is the trusted slow solver, on the `libraries` HiGHS and Clarabel and the `extensive`
form. In `interior_point` and `conic`, solutions are found first, then verified against the raw
data, then made differentiable.
"""

from forewise.solvers.aggregation.sampling import SampledBounds, sampled_bounds
from forewise.solvers.aggregation.solver import AggregatedSolver
from forewise.solvers.auto import AutoSolver, solve, solve_program
from forewise.solvers.base import ProgramSolver, Solver
from forewise.solvers.closed_form import DualSearchSolver, WeightedQuantileSolver
from forewise.solvers.conic.engines import ClarabelEngine, ConicEngine, MoreauEngine
from forewise.solvers.conic.solver import ConicSolver
from forewise.solvers.integer import IntegerSolver
from forewise.solvers.interior_point.solver import InteriorPointSolver
from forewise.solvers.reference import ReferenceSolver
from forewise.solvers.ridge import RidgeSolver
from forewise.solvers.risk import RiskSolver
from forewise.solvers.solution import Certificate, ConeDuals, Duals, Solution, Status

__all__ = [
    "AggregatedSolver",
    "AutoSolver",
    "Certificate",
    "ClarabelEngine",
    "ConeDuals",
    "ConicEngine",
    "ConicSolver",
    "DualSearchSolver",
    "Duals",
    "IntegerSolver",
    "InteriorPointSolver",
    "MoreauEngine",
    "ProgramSolver",
    "ReferenceSolver",
    "RidgeSolver",
    "RiskSolver",
    "SampledBounds",
    "Solution",
    "Solver",
    "Status",
    "WeightedQuantileSolver",
    "sampled_bounds",
    "solve",
    "solve_program",
]
