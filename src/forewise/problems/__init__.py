"""WHAT is decided: problems, and the scenario program they are brought into.

Knows no solver and no learning. `base` is the contract, `program` the common form, `cones` and
`integers` have the forms of what is not linear or quadratic, `kinds` tells them apart. Built-in
problems are a module each. `modelled` is the user's own problem in CVXPY, in the order in which
the data go: `model_checks`, `rewriting`, `reading`, `canonical`, `presolve`, `affine`, `lifting`,
`form_checks`, `recourse`; `naming` has the names and shapes.
`feasibility`, `constraint_sizes`, `cone_formulas`, `definitions` and `auxiliary` say by how much
decisions break constraints.
`risk` has what can be minimised in the place of the mean, `tail` its programs, `risk_averse` the
problem that another becomes with it.
"""

from forewise.problems.base import CertaintyEquivalent, Problem
from forewise.problems.certainty import certainty_equivalent
from forewise.problems.cones import ConicProgram
from forewise.problems.cvxpy.chance import ChanceConstraint, chance
from forewise.problems.cvxpy.problem import CvxpyProblem
from forewise.problems.integers import IntegerProgram
from forewise.problems.kinds import ProgramKind
from forewise.problems.newsvendor import Newsvendor
from forewise.problems.portfolio import Portfolio
from forewise.problems.program import ScenarioProgram
from forewise.problems.quadratic_newsvendor import QuadraticNewsvendor
from forewise.problems.risk import CVaR, Expectation, MeanCVaR, Risk, WorstCase
from forewise.problems.risk_averse import RiskAverseProblem
from forewise.validation.given import Given

__all__ = [
    "CVaR",
    "CertaintyEquivalent",
    "ChanceConstraint",
    "ConicProgram",
    "CvxpyProblem",
    "Expectation",
    "Given",
    "IntegerProgram",
    "MeanCVaR",
    "Newsvendor",
    "Portfolio",
    "Problem",
    "ProgramKind",
    "QuadraticNewsvendor",
    "Risk",
    "RiskAverseProblem",
    "ScenarioProgram",
    "WorstCase",
    "certainty_equivalent",
    "chance",
]
