"""Outcomes as multiples of a level that the context has: one model for series of all sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import clone

from forewise.exceptions import InvalidInputError
from forewise.predictors.base import Predictor
from forewise.scenarios import Scenarios
from forewise.validation.frames import is_frame
from forewise.validation.parameters import require_count, require_instance
from forewise.validation.tables import check_training_data


@dataclass(eq=False, repr=False)
class RelativePredictor(Predictor):
    """Learns outcomes in units of a recent level, and gives scenarios in the outcome's own.

        y = exp(x_level) · r,    r ~ the predictor inside, given x

    When to use: one model learns many series of different sizes, or one whose size drifts.
    `features.relative_to` makes such contexts, with the logarithm of the level.

    Parameters
    ----------
    predictor : Predictor
        Cloned, never fitted itself.
    levels : sequence of int
        Number of the column with the logarithm of the level, for each outcome; one for all of them.

    Examples
    --------
    A small and a large shop, learned as multiples of their own levels:

    >>> import numpy as np
    >>> import forewise as fw
    >>> level = np.repeat([10.0, 1000.0], 50)
    >>> X = np.log(level)[:, None]
    >>> y = level * np.random.default_rng(0).uniform(0.8, 1.2, 100)
    >>> predictor = fw.RelativePredictor(fw.EmpiricalPredictor(), levels=[0]).fit(X, y)
    >>> predictor.sample(X[[0, -1]], 20, random_state=0).values.mean(1).flatten().round(decimals=-1)
    tensor([  10., 1020.], dtype=torch.float64)
    """

    predictor: Predictor
    levels: Sequence[int]

    def fit(self, X: Any, y: Any, *, censored: Any = None) -> Self:
        """Fit to contexts (n_contexts, n_features) and outcomes (n_contexts, n_outcomes).

        `censored` goes to the predictor inside.
        """
        require_instance("predictor", self.predictor, Predictor, "ForestPredictor()")
        contexts, outcomes = check_training_data(self, X, y)
        columns = [require_count("each of levels", level, 0) for level in self.levels]
        if len(columns) not in (1, outcomes.shape[1]) or max(columns) >= contexts.shape[1]:
            raise InvalidInputError(
                f"levels must have the number of a column of X for each of the {outcomes.shape[1]} "
                f"outcome(s), or one for all, but is {list(self.levels)} and X has "
                f"{contexts.shape[1]} columns"
            )
        self.level_columns_ = np.array(columns)
        relative = outcomes / np.exp(contexts[:, self.level_columns_])
        if is_frame(y):
            relative = type(y)(relative, index=y.index, columns=y.columns)
        bound = {} if censored is None else {"censored": censored}
        self.part_ = clone(self.predictor).fit(X, relative, **bound)
        return self

    def _scenarios(self, X: np.ndarray, n_scenarios: int, random: np.random.Generator) -> Scenarios:
        drawn = self.part_.sample_checked(X, n_scenarios, int(random.integers(2**31)))
        unit = torch.from_numpy(np.exp(X[:, self.level_columns_]))
        values = drawn.values.to(torch.float64) * unit[:, None]
        return Scenarios(values, None if drawn.equally_weighted else drawn.weights)

    def extrapolates(self, X: np.ndarray) -> np.ndarray:
        """Which checked contexts lie off the support of the predictor inside."""
        return self.part_.extrapolates(X)
