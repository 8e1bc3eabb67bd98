"""How good decisions and forecasts are: regrets, scores, information values, intervals, rolling.

Pure functions of arrays, problems and scenarios; results carry no gradients.
"""

from forewise.evaluation.blocks import Interval, block_bootstrap, block_bootstrap_difference
from forewise.evaluation.comparison import Difference, bootstrap_difference
from forewise.evaluation.decision_quality import (
    expected_regret,
    expected_regrets,
    fair_regret,
    fair_regrets,
    oracle_decision,
    regret,
    regrets,
    relative_regret,
)
from forewise.evaluation.folds import Fold, rolling_folds
from forewise.evaluation.forecast_scores import (
    CalibrationCurve,
    calibration_curve,
    crps,
    energy_score,
    interval_coverage,
)
from forewise.evaluation.information_value import (
    expected_value_of_perfect_information,
    value_of_stochastic_solution,
)
from forewise.evaluation.replications import Gap, optimality_gap
from forewise.evaluation.rolling import evaluate_rolling
from forewise.evaluation.rolling_comparison import compare_rolling

__all__ = [
    "CalibrationCurve",
    "Difference",
    "Fold",
    "Gap",
    "Interval",
    "block_bootstrap",
    "block_bootstrap_difference",
    "bootstrap_difference",
    "calibration_curve",
    "compare_rolling",
    "crps",
    "energy_score",
    "evaluate_rolling",
    "expected_regret",
    "expected_regrets",
    "expected_value_of_perfect_information",
    "fair_regret",
    "fair_regrets",
    "interval_coverage",
    "optimality_gap",
    "oracle_decision",
    "regret",
    "regrets",
    "relative_regret",
    "rolling_folds",
    "value_of_stochastic_solution",
]
