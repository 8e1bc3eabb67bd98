"""A weighted union of the scenarios of several predictors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from forewise.exceptions import InvalidInputError
from forewise.predictors.base import Predictor
from forewise.scenarios import Scenarios
from forewise.validation.arguments import as_vector, require_nonnegative
from forewise.validation.parameters import require_instance
from forewise.validation.tables import check_training_data


@dataclass(eq=False, repr=False)
class StackedPredictor(Predictor):
    """The scenarios of several predictors together: a mixture of their distributions.

        P(y | x) = Σ_k weight_k P_k(y | x)

    Part k draws a share `weight_k` of the scenarios, which have that weight in the union. Parts
    whose share is less than one scenario are left out, those with the lowest weight first.

    When to use: several predictors are about equally good. A mixture is seldom worse than its best
    part, and robust to the failure of one. `AutoLearner` chooses parts and weights by the cost
    of decisions.

    Parameters
    ----------
    predictors : sequence of Predictor
        The parts; cloned, never fitted themselves.
    weights : sequence of float, optional
        Nonnegative, one for each part; they are scaled to sum to one. Equal by default.

    Examples
    --------
    >>> import numpy as np
    >>> import forewise as fw
    >>> X, y = np.arange(40.0)[:, None], np.arange(40.0)
    >>> parts = [fw.EmpiricalPredictor(), fw.NeighborPredictor(4)]
    >>> predictor = fw.StackedPredictor(parts, weights=[1, 3]).fit(X, y)
    >>> predictor.sample([[20.0]], 16, random_state=0).weights.sum()
    tensor(1., dtype=torch.float64)
    """

    predictors: Sequence[Predictor]
    weights: Sequence[float] | None = None

    @classmethod
    def from_fitted(cls, parts: Sequence[Predictor], weights: Sequence[float]) -> Self:
        """The union of predictors that were fitted to the same table."""
        union = cls([clone(part) for part in parts], [float(weight) for weight in weights])
        union.parts_ = list(parts)
        union.part_weights_ = union._checked_weights()
        fitted = vars(parts[0])
        for part in parts:
            check_is_fitted(part)
            if any(vars(part).get(n) != fitted.get(n) for n in ("n_features_in_", "n_outcomes_")):
                raise InvalidInputError("parts must be fitted to the same table, but have others")
        columns = ("n_features_in_", "feature_names_in_", "table_columns_")
        table = {*columns, "n_outcomes_", "outcome_names_"}
        union.restore({name: part for name, part in fitted.items() if name in table})
        return union

    def fit(self, X: Any, y: Any, *, censored: Any = None) -> Self:
        """Fit every part to contexts (n_contexts, n_features) and outcomes (.., n_outcomes)."""
        self.part_weights_ = self._checked_weights()
        check_training_data(self, X, y)
        # The unchecked table, because a part may need the names of its columns.
        bound = {} if censored is None else {"censored": censored}
        self.parts_ = [clone(part).fit(X, y, **bound) for part in self.predictors]
        return self

    def _checked_weights(self) -> np.ndarray:
        """The weights, summing to one."""
        if not isinstance(self.predictors, Sequence) or not self.predictors:
            raise InvalidInputError(
                "predictors must be a list such as [ForestPredictor(), NeighborPredictor()], but "
                f"is {self.predictors!r}"
            )
        for part in self.predictors:
            require_instance("each of predictors", part, Predictor, "ForestPredictor()")
        count = len(self.predictors)
        if self.weights is None:
            return np.full(count, 1 / count)
        weights = require_nonnegative("weights", as_vector("weights", self.weights, count)).numpy()
        if not weights.any():
            raise InvalidInputError("weights must not all be zero, but they are")
        weights /= weights.max()  # whose sum may be more than a float holds
        return weights / weights.sum()

    def _scenarios(self, X: np.ndarray, n_scenarios: int, random: np.random.Generator) -> Scenarios:
        seeds = random.integers(2**31, size=len(self.parts_))
        values, weights = [], []
        shares = scenario_shares(self.part_weights_, n_scenarios)
        for part, weight, share, seed in zip(
            self.parts_, self.part_weights_, shares, seeds, strict=True
        ):
            if share:
                drawn = part.sample_checked(X, int(share), int(seed))
                values.append(drawn.values.to(torch.float64))
                weights.append(weight * drawn.weights)
        return Scenarios(torch.cat(values, dim=1), torch.cat(weights, dim=1))

    def extrapolates(self, X: np.ndarray) -> np.ndarray:
        """Which checked contexts lie off the support of one of the parts."""
        used = [
            part for part, weight in zip(self.parts_, self.part_weights_, strict=True) if weight > 0
        ]
        return np.any([part.extrapolates(X) for part in used], axis=0)


def scenario_shares(weights: np.ndarray, n_scenarios: int) -> np.ndarray:
    """How many of the scenarios each part draws: proportional, at least one each where they fit."""
    shares = np.zeros(len(weights), dtype=int)
    used = np.flatnonzero(weights)
    if len(used) > n_scenarios:
        heaviest = np.argsort(-weights[used], kind="stable")[:n_scenarios]
        shares[used[heaviest]] = 1
        return shares
    exact = weights[used] / weights[used].sum() * (n_scenarios - len(used))
    shares[used] = 1 + exact.astype(int)
    left_over = n_scenarios - shares.sum()
    shares[used[np.argsort(-(exact % 1), kind="stable")[:left_over]]] += 1
    return shares
