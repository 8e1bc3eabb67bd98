"""How good decisions and forecasts are; the public namespace is `forewise.metrics`.

`decision_regret`, forecast `scores`, values of `information`, `bootstrap` intervals and `rolling`
evaluation; `costs` serves them. Functions of arrays, problems and scenarios; results carry no
gradients.
"""

from forewise.evaluation.bootstrap import (
    Difference,
    Interval,
    block_bootstrap,
    block_bootstrap_difference,
    bootstrap_difference,
)
from forewise.evaluation.decision_regret import (
    expected_regret,
    expected_regrets,
    fair_regret,
    fair_regrets,
    oracle_decision,
    regret,
    regrets,
    relative_regret,
)
from forewise.evaluation.information import (
    Gap,
    expected_value_of_perfect_information,
    optimality_gap,
    value_of_stochastic_solution,
)
from forewise.evaluation.rolling import Fold, compare_rolling, evaluate_rolling, rolling_folds
from forewise.evaluation.scores import (
    CalibrationCurve,
    calibration_curve,
    crps,
    energy_score,
    interval_coverage,
)

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
