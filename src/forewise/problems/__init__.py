"""WHAT is decided: problems, and the scenario program they are brought into.

Knows no solver and no learning. `base` is the contract, `program` the common form; every
other module is one problem.
"""

from forewise.problems.base import CertaintyEquivalent, Problem
from forewise.problems.certainty import certainty_equivalent
from forewise.problems.newsvendor import Newsvendor
from forewise.problems.portfolio import Portfolio
from forewise.problems.program import ScenarioProgram
from forewise.problems.quadratic_newsvendor import QuadraticNewsvendor

__all__ = [
    "CertaintyEquivalent",
    "Newsvendor",
    "Portfolio",
    "Problem",
    "QuadraticNewsvendor",
    "ScenarioProgram",
    "certainty_equivalent",
]
