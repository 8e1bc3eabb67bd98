"""HOW a program is solved, and differentiated.

`auto` has the verbs and `base` the contract. `interior_point` is the general solver, on the
compiled loops of `kernels`; `closed_form` has the exact special ones, `conic` and `integer` those
of problems that are not linear or quadratic, `reference` the trusted slow one. `differentiation`
makes solutions differentiable, `optimality` checks them against the raw data, `polishing` corrects
those that just miss, `diagnosis` proves that there is none; what has `conic` or `cone` in its name
does the same for cones. `risk` solves problems with a risk by programs of the mean, `ridge` a
problem with a quadratic term.
"""

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
    "Solution",
    "Solver",
    "Status",
    "WeightedQuantileSolver",
    "solve",
    "solve_program",
]
