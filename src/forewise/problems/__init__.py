"""WHAT is decided: problems, and the scenario program they are brought into.

Knows no solver and no learning. `base` is the contract, `program` the common form, `cones` and
`integers` have the forms of what is not linear or quadratic, `kinds` tells them apart. Built-in
problems are a module each. `modelled` is the user's own problem in CVXPY, in the order in which
the data go: `model_checks`, `rewriting`, `reading`, `canonical`, `presolve`, `affine`, `lifting`,
`recourse`; `naming` has the names and shapes.
"""

from forewise.problems.base import CertaintyEquivalent, Problem
from forewise.problems.certainty import certainty_equivalent
from forewise.problems.cones import ConicProgram
from forewise.problems.integers import IntegerProgram
from forewise.problems.kinds import ProgramKind
from forewise.problems.modelled import CvxpyProblem
from forewise.problems.newsvendor import Newsvendor
from forewise.problems.portfolio import Portfolio
from forewise.problems.program import ScenarioProgram
from forewise.problems.quadratic_newsvendor import QuadraticNewsvendor

__all__ = [
    "CertaintyEquivalent",
    "ConicProgram",
    "CvxpyProblem",
    "IntegerProgram",
    "Newsvendor",
    "Portfolio",
    "Problem",
    "ProgramKind",
    "QuadraticNewsvendor",
    "ScenarioProgram",
    "certainty_equivalent",
]
