"""HOW GOOD a decision or a forecast is: pure functions of arrays, problems and scenarios.

`decision_quality` has the regrets, `information_value` what perfect information and stochastic
modelling are worth, `replications` a statistical bound on the distance to the optimum,
`forecast_scores` what scenarios are worth as a forecast, `comparison` whether two learners
differ, `blocks` the same for costs over time. `checks`, `evaluation` and `resampling` serve them:
arguments, solving in parts of bounded size, and what bootstrap intervals share.

Results carry no gradients and are float64 on the processor: one entry per context where there
is one, otherwise Python floats or small frozen dataclasses.

May import: exceptions, arguments, scenarios, problems, solvers. To add a metric: a function in
the module it belongs to, checked through `checks`; export it; test it against brute force.
"""

from forewise.metrics.blocks import Interval, block_bootstrap, block_bootstrap_difference
from forewise.metrics.comparison import Difference, bootstrap_difference
from forewise.metrics.decision_quality import (
    expected_regret,
    expected_regrets,
    fair_regret,
    fair_regrets,
    oracle_decision,
    regret,
    regrets,
    relative_regret,
)
from forewise.metrics.forecast_scores import (
    CalibrationCurve,
    calibration_curve,
    crps,
    energy_score,
    interval_coverage,
)
from forewise.metrics.information_value import (
    expected_value_of_perfect_information,
    value_of_stochastic_solution,
)
from forewise.metrics.replications import Gap, optimality_gap

__all__ = [
    "CalibrationCurve",
    "Difference",
    "Gap",
    "Interval",
    "block_bootstrap",
    "block_bootstrap_difference",
    "bootstrap_difference",
    "calibration_curve",
    "crps",
    "energy_score",
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
    "value_of_stochastic_solution",
]
