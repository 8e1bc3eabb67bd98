"""Contextual stochastic optimisation with learned distributions.

Learn a distribution of the outcome given the context, draw scenarios, and solve one stochastic
program per context. These are the names for everyday use; the rest is in namespaces such as
`forewise.metrics`, `forewise.solvers` and `forewise.features`.
"""

from __future__ import annotations

from importlib import import_module, metadata
from typing import TYPE_CHECKING, Any

# Where each name comes from. A module is imported when one of its names is first asked for, so
# that nothing is paid for before it is needed.
_HOMES = {
    "forewise.exceptions": "ForewiseError InvalidInputError MissingDataError SolveError",
    "forewise.scenarios": "Scenarios",
    "forewise.validation.given": "Given",
    "forewise.problems": (
        "CVaR Expectation MeanCVaR Newsvendor Portfolio Problem QuadraticNewsvendor "
        "ScenarioProgram SparseBlock WorstCase"
    ),
    "forewise.problems.cvxpy": "CvxpyProblem chance",
    "forewise.solvers": (
        "AutoSolver InteriorPointSolver ReferenceSolver Solution Solver Status solve solve_program"
    ),
    "forewise.predictors": (
        "BayesianPredictor BoostingPredictor EmpiricalPredictor EnsemblePredictor "
        "ForecastPredictor ForestPredictor "
        "GaussianPredictor GaussianProcessPredictor GroupedPredictor MixturePredictor "
        "NeighborPredictor PointPredictor Predictor QuantileBoostingPredictor ResidualPredictor "
        "RelativePredictor StackedPredictor Training"
    ),
    "forewise.learners": "AutoLearner CombinedLearner DecoupledLearner DirectLearner Learner",
    "forewise.policy": "Policy",
    "forewise.tuning": "TunedLearner tune",
    # Through the planner, whose policies are read too.
    "forewise.planner.policy": "PlannerPolicy load_policy",
    "forewise.planner.planner": "Planner",
    "forewise.evaluation": "evaluate_rolling fair_regret regret",
    "forewise.explanation": "Explanation explain",
}
_NAMESPACES = {
    "bulk": "forewise.bulk",
    "datasets": "forewise.datasets",
    "exceptions": "forewise.exceptions",
    "features": "forewise.features",
    "learners": "forewise.learners",
    "metrics": "forewise.evaluation",
    "mlflow": "forewise.mlflow",
    "parallel": "forewise.parallel",
    "plots": "forewise.plots",
    "policy": "forewise.policy",
    "predictors": "forewise.predictors",
    "problems": "forewise.problems",
    "smps": "forewise.smps",
    "solvers": "forewise.solvers",
    "testing": "forewise.testing",
    "tuning": "forewise.tuning",
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names.split()}

__all__ = [*_HOME_OF, *_NAMESPACES]

if TYPE_CHECKING:
    __version__: str
    from forewise import bulk as bulk
    from forewise import datasets as datasets
    from forewise import evaluation as metrics  # noqa: F401
    from forewise import exceptions as exceptions
    from forewise import features as features
    from forewise import learners as learners
    from forewise import mlflow as mlflow
    from forewise import parallel as parallel
    from forewise import plots as plots
    from forewise import policy as policy
    from forewise import predictors as predictors
    from forewise import problems as problems
    from forewise import smps as smps
    from forewise import solvers as solvers
    from forewise import testing as testing
    from forewise import tuning as tuning
    from forewise.evaluation import evaluate_rolling as evaluate_rolling
    from forewise.evaluation import fair_regret as fair_regret
    from forewise.evaluation import regret as regret
    from forewise.exceptions import ForewiseError as ForewiseError
    from forewise.exceptions import InvalidInputError as InvalidInputError
    from forewise.exceptions import MissingDataError as MissingDataError
    from forewise.exceptions import SolveError as SolveError
    from forewise.explanation import Explanation as Explanation
    from forewise.explanation import explain as explain
    from forewise.learners import AutoLearner as AutoLearner
    from forewise.learners import CombinedLearner as CombinedLearner
    from forewise.learners import DecoupledLearner as DecoupledLearner
    from forewise.learners import DirectLearner as DirectLearner
    from forewise.learners import Learner as Learner
    from forewise.planner.planner import Planner as Planner
    from forewise.planner.policy import PlannerPolicy as PlannerPolicy
    from forewise.planner.policy import load_policy as load_policy
    from forewise.policy import Policy as Policy
    from forewise.predictors import BayesianPredictor as BayesianPredictor
    from forewise.predictors import BoostingPredictor as BoostingPredictor
    from forewise.predictors import EmpiricalPredictor as EmpiricalPredictor
    from forewise.predictors import EnsemblePredictor as EnsemblePredictor
    from forewise.predictors import ForecastPredictor as ForecastPredictor
    from forewise.predictors import ForestPredictor as ForestPredictor
    from forewise.predictors import GaussianPredictor as GaussianPredictor
    from forewise.predictors import GaussianProcessPredictor as GaussianProcessPredictor
    from forewise.predictors import GroupedPredictor as GroupedPredictor
    from forewise.predictors import MixturePredictor as MixturePredictor
    from forewise.predictors import NeighborPredictor as NeighborPredictor
    from forewise.predictors import PointPredictor as PointPredictor
    from forewise.predictors import Predictor as Predictor
    from forewise.predictors import QuantileBoostingPredictor as QuantileBoostingPredictor
    from forewise.predictors import RelativePredictor as RelativePredictor
    from forewise.predictors import ResidualPredictor as ResidualPredictor
    from forewise.predictors import StackedPredictor as StackedPredictor
    from forewise.predictors import Training as Training
    from forewise.problems import CVaR as CVaR
    from forewise.problems import Expectation as Expectation
    from forewise.problems import MeanCVaR as MeanCVaR
    from forewise.problems import Newsvendor as Newsvendor
    from forewise.problems import Portfolio as Portfolio
    from forewise.problems import Problem as Problem
    from forewise.problems import QuadraticNewsvendor as QuadraticNewsvendor
    from forewise.problems import ScenarioProgram as ScenarioProgram
    from forewise.problems import SparseBlock as SparseBlock
    from forewise.problems import WorstCase as WorstCase
    from forewise.problems.cvxpy import CvxpyProblem as CvxpyProblem
    from forewise.problems.cvxpy.chance import chance as chance
    from forewise.scenarios import Scenarios as Scenarios
    from forewise.solvers import AutoSolver as AutoSolver
    from forewise.solvers import InteriorPointSolver as InteriorPointSolver
    from forewise.solvers import ReferenceSolver as ReferenceSolver
    from forewise.solvers import Solution as Solution
    from forewise.solvers import Solver as Solver
    from forewise.solvers import Status as Status
    from forewise.solvers import solve as solve
    from forewise.solvers import solve_program as solve_program
    from forewise.tuning import TunedLearner as TunedLearner
    from forewise.tuning import tune as tune
    from forewise.validation.given import Given as Given


def __getattr__(name: str) -> Any:
    if name == "__version__":
        value: Any = metadata.version("forewise")  # pyproject.toml's, and it stands nowhere else
    elif name in _NAMESPACES:
        value = import_module(_NAMESPACES[name])
    elif name in _HOME_OF:
        value = getattr(import_module(_HOME_OF[name]), name)
    else:
        raise AttributeError(f"module 'forewise' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})
