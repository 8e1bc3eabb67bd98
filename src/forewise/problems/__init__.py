"""WHAT is decided: problems, and the programs they become. They know no solver and no learning.

`base` is the contract, `programs` the forms that solvers take; built-in problems are a module each.
`cvxpy` is the user's own problem: its cost may need a solver, so that it stands above the solvers.
"""

from forewise.problems.base import (
    CertaintyEquivalent,
    Problem,
    RiskAverseProblem,
    certainty_equivalent,
)
from forewise.problems.newsvendor import Newsvendor
from forewise.problems.portfolio import Portfolio
from forewise.problems.programs import ConicProgram, IntegerProgram, Program, ScenarioProgram
from forewise.problems.quadratic_newsvendor import QuadraticNewsvendor
from forewise.problems.risk import CVaR, Expectation, MeanCVaR, Risk, WorstCase
from forewise.problems.sparse import SparseBlock
from forewise.validation.given import Given

__all__ = [
    "CVaR",
    "CertaintyEquivalent",
    "ConicProgram",
    "Expectation",
    "Given",
    "IntegerProgram",
    "MeanCVaR",
    "Newsvendor",
    "Portfolio",
    "Problem",
    "Program",
    "QuadraticNewsvendor",
    "Risk",
    "RiskAverseProblem",
    "ScenarioProgram",
    "SparseBlock",
    "WorstCase",
    "certainty_equivalent",
]
