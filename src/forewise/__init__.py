"""forewise turns data into decisions that are ready for what the data cannot tell."""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from forewise import datasets, features
from forewise.exceptions import (
    ExtrapolationWarning,
    ForewiseError,
    InfeasibleDecisionError,
    InputTypeError,
    InvalidInputError,
    MissingDataError,
    MissingDependencyError,
    ModelError,
    SolveError,
    StorageError,
    UnfittedError,
    UnsupportedProblemError,
)
from forewise.learners import (
    CombinedLearner,
    DecoupledLearner,
    DirectLearner,
    Learner,
    RegretMonitor,
)
from forewise.metrics import (
    block_bootstrap,
    block_bootstrap_difference,
    bootstrap_difference,
    calibration_curve,
    crps,
    energy_score,
    expected_regret,
    expected_value_of_perfect_information,
    fair_regret,
    interval_coverage,
    optimality_gap,
    oracle_decision,
    regret,
    relative_regret,
    value_of_stochastic_solution,
)
from forewise.policy import DirectPolicy, Policy, ScenarioPolicy, load_policy
from forewise.predictors import (
    BayesianPredictor,
    BoostingPredictor,
    Caution,
    CosineSchedule,
    EmpiricalPredictor,
    Encoding,
    EnsemblePredictor,
    ExponentialSchedule,
    ForestPredictor,
    GaussianPredictor,
    GaussianProcessPredictor,
    GroupedPredictor,
    MixturePredictor,
    NeighborPredictor,
    NetworkPredictor,
    PeriodicEncoding,
    PointPredictor,
    Predictor,
    QuantileBoostingPredictor,
    ResidualPredictor,
    Schedule,
    Training,
)
from forewise.problems import (
    CertaintyEquivalent,
    CVaR,
    CvxpyProblem,
    Expectation,
    Given,
    MeanCVaR,
    Newsvendor,
    Portfolio,
    Problem,
    QuadraticNewsvendor,
    Risk,
    RiskAverseProblem,
    ScenarioProgram,
    WorstCase,
    certainty_equivalent,
    chance,
)
from forewise.rolling import compare_rolling, evaluate_rolling, rolling_folds
from forewise.scenarios import Scenarios
from forewise.solvers import (
    AutoSolver,
    Certificate,
    ConicSolver,
    Duals,
    DualSearch,
    IntegerSolver,
    InteriorPoint,
    ProgramSolver,
    ReferenceSolver,
    RidgeSolver,
    RiskSolver,
    Solution,
    Solver,
    Status,
    WeightedQuantile,
    solve,
    solve_program,
)

if TYPE_CHECKING:
    from forewise import distributed as distributed
    from forewise import experiments as experiments
    from forewise import plots as plots
    from forewise import report as report
    from forewise import testing as testing

__version__ = "0.1.0"

__all__ = [
    "AutoSolver",
    "BayesianPredictor",
    "BoostingPredictor",
    "CVaR",
    "Caution",
    "CertaintyEquivalent",
    "Certificate",
    "CombinedLearner",
    "ConicSolver",
    "CosineSchedule",
    "CvxpyProblem",
    "DecoupledLearner",
    "DirectLearner",
    "DirectPolicy",
    "DualSearch",
    "Duals",
    "EmpiricalPredictor",
    "Encoding",
    "EnsemblePredictor",
    "Expectation",
    "ExponentialSchedule",
    "ExtrapolationWarning",
    "ForestPredictor",
    "ForewiseError",
    "GaussianPredictor",
    "GaussianProcessPredictor",
    "Given",
    "GroupedPredictor",
    "InfeasibleDecisionError",
    "InputTypeError",
    "IntegerSolver",
    "InteriorPoint",
    "InvalidInputError",
    "Learner",
    "MeanCVaR",
    "MissingDataError",
    "MissingDependencyError",
    "MixturePredictor",
    "ModelError",
    "NeighborPredictor",
    "NetworkPredictor",
    "Newsvendor",
    "PeriodicEncoding",
    "PointPredictor",
    "Policy",
    "Portfolio",
    "Predictor",
    "Problem",
    "ProgramSolver",
    "QuadraticNewsvendor",
    "QuantileBoostingPredictor",
    "ReferenceSolver",
    "RegretMonitor",
    "ResidualPredictor",
    "RidgeSolver",
    "Risk",
    "RiskAverseProblem",
    "RiskSolver",
    "ScenarioPolicy",
    "ScenarioProgram",
    "Scenarios",
    "Schedule",
    "Solution",
    "SolveError",
    "Solver",
    "Status",
    "StorageError",
    "Training",
    "UnfittedError",
    "UnsupportedProblemError",
    "WeightedQuantile",
    "WorstCase",
    "block_bootstrap",
    "block_bootstrap_difference",
    "bootstrap_difference",
    "calibration_curve",
    "certainty_equivalent",
    "chance",
    "compare_rolling",
    "crps",
    "datasets",
    "energy_score",
    "evaluate_rolling",
    "expected_regret",
    "expected_value_of_perfect_information",
    "fair_regret",
    "features",
    "interval_coverage",
    "load_policy",
    "optimality_gap",
    "oracle_decision",
    "regret",
    "relative_regret",
    "rolling_folds",
    "solve",
    "solve_program",
    "value_of_stochastic_solution",
]

#: Imported when they are first asked for: most programs need none of them, and pictures and pages
#: bring matplotlib along.
_ON_DEMAND = frozenset({"distributed", "experiments", "plots", "report", "testing"})

if not TYPE_CHECKING:  # a checker knows the names above, and shall find misspelt ones

    def __getattr__(name: str) -> ModuleType:
        if name in _ON_DEMAND:
            return import_module(f"forewise.{name}")
        raise AttributeError(f"module 'forewise' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_ON_DEMAND})
