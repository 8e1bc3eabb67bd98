"""HOW a program is solved, and differentiated.

`auto` has the verbs and `base` the contract. `interior_point` is the general solver, on the
compiled loops of `kernels`; `closed_form` has the exact special ones, `reference` the trusted
slow one. `differentiation` makes solutions differentiable, `optimality` checks them against the
raw data, `polishing` corrects those that just miss, `diagnosis` proves that there is none.
`risk` solves problems with a risk by programs of the mean. `recourse` lends the general solver to
problems whose costs are optima.
"""

from forewise.solvers.auto import AutoSolver, solve, solve_program
from forewise.solvers.base import ProgramSolver, Solver
from forewise.solvers.closed_form import DualSearch, WeightedQuantile
from forewise.solvers.interior_point import InteriorPoint
from forewise.solvers.recourse import solve_recourse as _solve_recourse  # noqa: F401
from forewise.solvers.reference import ReferenceSolver
from forewise.solvers.risk import RiskSolver
from forewise.solvers.solution import Certificate, Duals, Solution, Status

__all__ = [
    "AutoSolver",
    "Certificate",
    "DualSearch",
    "Duals",
    "InteriorPoint",
    "ProgramSolver",
    "ReferenceSolver",
    "RiskSolver",
    "Solution",
    "Solver",
    "Status",
    "WeightedQuantile",
    "solve",
    "solve_program",
]
