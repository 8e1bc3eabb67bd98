"""Past outcomes as they came, whatever the context.

May import: scenarios, tables, and its siblings `base`, `weighted_support`.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import torch

from forewise.predictors.base import Predictor
from forewise.predictors.weighted_support import equal_picks, outcome_order
from forewise.scenarios import Scenarios
from forewise.validation.tables import check_training_data


class EmpiricalPredictor(Predictor):
    """Every past outcome is a scenario, equally likely, the same for every context.

    The first thing to compare with: a predictor that reads contexts is worth its trouble only
    where its decisions cost less. Decisions from it are plain SAA,

        z* = argmin_z (1/N) Σ_i f(z, y_i).

    Asked for fewer scenarios than there are outcomes, it returns evenly spread ones: every
    N/M-th outcome in order of value (of the first principal direction for several outcomes),
    from a random start.

    Attributes
    ----------
    outcomes_ : array (n_rows, n_outcomes)
        The training outcomes, in order.

    Examples
    --------
    >>> predictor = EmpiricalPredictor().fit([[0.0], [1.0], [2.0]], [30.0, 10.0, 20.0])
    >>> predictor.sample([[5.0]]).values.flatten()
    tensor([10., 20., 30.], dtype=torch.float64)
    """

    outcomes_: np.ndarray

    def fit(self, X: Any, y: Any) -> Self:
        """Remember the outcomes (n_contexts, n_outcomes)."""
        X, y = check_training_data(self, X, y)
        self.outcomes_ = y[outcome_order(y)]
        return self

    def _scenarios(self, X: np.ndarray, n_scenarios: int, random: np.random.Generator) -> Scenarios:
        picked = self.outcomes_[equal_picks(len(self.outcomes_), n_scenarios, random)]
        # One copy that all contexts look at.
        return Scenarios(torch.from_numpy(picked).expand(len(X), -1, -1))
