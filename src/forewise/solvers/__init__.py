"""HOW a program is solved, and differentiated.

`auto` has the verbs and `base` the contract. `interior_point` is the general solver, on the
compiled loops of `kernels`; `closed_form` has the exact special ones, `conic` and `integer` those
of problems that are not linear or quadratic, `reference` the trusted slow one. `differentiation`
makes solutions differentiable, `optimality` checks them against the raw data, `polishing` corrects
those that just miss, `diagnosis` proves that there is none; what has `conic` or `cone` in its name
does the same for cones. `risk` solves problems with a risk by programs of the mean, `ridge` a
problem with a quadratic term. `recourse` lends solvers to problems whose costs are optima.
"""

from forewise.solvers.auto import AutoSolver, solve, solve_program
from forewise.solvers.base import ProgramSolver, Solver
from forewise.solvers.closed_form import DualSearch, WeightedQuantile
from forewise.solvers.conic import ConicSolver
from forewise.solvers.conic_engines import Clarabel, ConicEngine, Moreau
from forewise.solvers.integer import IntegerSolver
from forewise.solvers.interior_point import InteriorPoint
from forewise.solvers.recourse import solve_recourse as _solve_recourse  # noqa: F401
from forewise.solvers.reference import ReferenceSolver
from forewise.solvers.ridge import RidgeSolver
from forewise.solvers.risk import RiskSolver
from forewise.solvers.solution import Certificate, ConeDuals, Duals, Solution, Status

__all__ = [
    "AutoSolver",
    "Certificate",
    "Clarabel",
    "ConeDuals",
    "ConicEngine",
    "ConicSolver",
    "DualSearch",
    "Duals",
    "IntegerSolver",
    "InteriorPoint",
    "Moreau",
    "ProgramSolver",
    "ReferenceSolver",
    "RidgeSolver",
    "RiskSolver",
    "Solution",
    "Solver",
    "Status",
    "WeightedQuantile",
    "solve",
    "solve_program",
]
