"""A bakery and an electricity market so small that whole cases can be run on them."""

from __future__ import annotations

from datetime import date

import numpy as np

from forewise_lab.experiments.cases import CaseRows
from forewise_lab.experiments.configuration import CaseTable

TEXT = """
[methods.saa]
learner = { kind = "decoupled" }
predictor = { kind = "grouped", by = ["series"] }
title = "Plain"

[methods.weekday]
learner = { kind = "decoupled" }
predictor = { kind = "grouped", by = ["series", "weekday"] }
rolling = { trials = [{ rolling = { history_days = 200 } }, { rolling = { history_days = 100 } }] }

[methods.residual]
learner = { kind = "decoupled" }
predictor = { kind = "residual", shuffle = false, regressor = { kind = "boosting", n_trees = 5 } }

[methods.bnn]
title = "Bayesian"
learner = { kind = "decoupled" }
predictor = { kind = "bayesian", n_scenarios = 2 }
[methods.bnn.rolling]
relative = true
trials = [{ training = { epochs = 1 } }, { training = { epochs = 8 } }]

[methods.bnn-each]
like = "bnn"
rolling = { each = "series" }

[methods.c-bnn]
like = "bnn"
learner = { kind = "combined" }

[methods.foresight]
learner = { kind = "foresight" }

[methods.negative]
learner = { kind = "constant", decision = [-5.0] }
rolling = { trials = [{ m = [2] }, { m = [3] }] }

[experiments.shops]
evaluation = "rolling"
title = "Shops"
source = { name = "bakery-series" }
decision = { name = "newsvendor", levels = [0.25, 0.9] }
first_day = 2020-08-01
last_day = 2020-09-15
window = "month"
tuning_days = 30
stopping_days = 20
m = 8
m_train = 4
methods = ["saa", "weekday", "residual", "bnn", "bnn-each", "c-bnn"]

[experiments.shops.network]
hidden_sizes = [8]
training = { epochs = 2, batch_size = 32, learning_rate = 0.01 }
"""


def shops(n_days: int = 260, n_series: int = 3) -> CaseRows:
    """Demand with a week and a size of each shop's own."""
    random = np.random.default_rng(0)
    days = np.repeat(np.datetime64("2020-01-01") + np.arange(n_days), n_series)
    series = np.tile(np.arange(n_series), n_days)
    weekday = (days.astype(int) + 3) % 7
    size = 20.0 * (1 + series)
    mean = size * (1 + 0.5 * (weekday == 5))
    X = np.column_stack([np.eye(n_series)[series], np.eye(7)[weekday], size])
    return CaseRows(
        X,
        random.poisson(mean)[:, None].astype(float),
        days,
        series,
        size,
        {"series": tuple(range(n_series)), "weekday": tuple(range(n_series, n_series + 7))},
        tuple(f"shop {s}" for s in range(n_series)),
    )


def load_made_up(source: object, data_dir: object, sized_before: date) -> CaseRows:
    """What stands in for `load_case`."""
    return shops()


def case_of(settings) -> CaseTable:
    return settings.cases["shops"]
