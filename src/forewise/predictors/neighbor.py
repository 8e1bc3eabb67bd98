"""Outcomes of the most similar past contexts.

May import: exceptions, scenarios, tables, and its siblings `base`, `parameter_checks`,
`standardise`, `weighted_support`.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.spatial.distance import cdist

from forewise.exceptions import InvalidInputError
from forewise.predictors.base import Predictor
from forewise.predictors.networks.standardise import mean_and_std, standardise
from forewise.predictors.weighted_support import outcome_order, weighted_scenarios
from forewise.scenarios import Scenarios
from forewise.validation.parameters import require_choice, require_count
from forewise.validation.tables import check_training_data

_KERNELS = ("uniform", "epanechnikov")


class NeighborPredictor(Predictor):
    """The outcomes of the k most similar past contexts are the scenarios.

    Prefer it with few context columns (up to five or so) and where people want to see which past
    days a decision rests on; with many columns nothing is near, and `ForestPredictor` chooses
    those that matter. Decisions from it are the weighted SAA of Bertsimas and Kallus (2020),

        z*(x) = argmin_z Σ_i w_i(x) f(z, y_i),   w_i(x) = 1/k if x_i is among the k nearest to x.

    Distances are Euclidean between standardised contexts; a column that never changes does not
    count. Contexts that tie for the last place share its weight, so that the decision does not
    depend on the order of the training rows. All distances are computed: no search structure
    has to be stored or rebuilt, and 2,000 contexts against 4,000 rows take a fraction of a
    second.

    Parameters
    ----------
    n_neighbors : int, optional
        k. The square root of the number of training rows, rounded, by default.
    kernel : {"uniform", "epanechnikov"}
        Equal weights, or weights that fall as ``1 - (distance / distance of the k-th)²``; the
        latter wants a larger k.

    Attributes
    ----------
    n_neighbors_ : int
        The k that is used.
    contexts_ : array (n_rows, n_features)
        The training contexts, standardised, in the order of the outcomes.
    outcomes_ : array (n_rows, n_outcomes)
    context_mean_, context_std_ : arrays (n_features,)
    n_support_ : int
        Most outcomes of a context: k, and more where training contexts repeat.

    Examples
    --------
    >>> predictor = NeighborPredictor(n_neighbors=2)
    >>> predictor = predictor.fit([[0.0], [1.0], [8.0], [9.0]], [1.0, 2.0, 3.0, 4.0])
    >>> predictor.sample([[7.0]]).values.flatten()
    tensor([3., 4.], dtype=torch.float64)
    """

    n_neighbors_: int
    n_support_: int
    contexts_: np.ndarray
    outcomes_: np.ndarray
    context_mean_: np.ndarray
    context_std_: np.ndarray

    def __init__(self, n_neighbors: int | None = None, kernel: str = "uniform") -> None:
        self.n_neighbors = n_neighbors
        self.kernel = kernel

    def fit(self, X: Any, y: Any) -> Self:
        """Remember contexts (n_contexts, n_features) and outcomes (n_contexts, n_outcomes)."""
        X, y = check_training_data(self, X, y)
        require_choice("kernel", self.kernel, _KERNELS)
        self.n_neighbors_ = self._checked_n_neighbors(len(X))
        self.context_mean_, self.context_std_ = mean_and_std(X)
        order = outcome_order(y)
        self.outcomes_ = y[order]
        self.contexts_ = standardise(X[order], self.context_mean_, self.context_std_)
        repeats = np.unique(self.contexts_, axis=0, return_counts=True)[1].max()
        self.n_support_ = min(len(X), self.n_neighbors_ - 1 + int(repeats))
        return self

    def _checked_n_neighbors(self, n_rows: int) -> int:
        if self.n_neighbors is None:
            return round(n_rows**0.5)
        n_neighbors = require_count("n_neighbors", self.n_neighbors, at_least=1)
        if n_neighbors > n_rows:
            raise InvalidInputError(
                f"n_neighbors must be at most the number of training rows, {n_rows}, but is "
                f"{n_neighbors}: lower it, or leave it out for the square root of that number"
            )
        return n_neighbors

    def _scenarios(self, X: np.ndarray, n_scenarios: int, random: np.random.Generator) -> Scenarios:
        contexts = standardise(X, self.context_mean_, self.context_std_)
        width = min(n_scenarios, self.n_support_)
        return weighted_scenarios(self.outcomes_, contexts, self._weights, width, random)

    def _weights(self, contexts: np.ndarray) -> np.ndarray:
        """Weight of each training row, (n_contexts, n_rows); rows sum to one."""
        squared = cdist(contexts, self.contexts_, "sqeuclidean")
        last = np.partition(squared, self.n_neighbors_ - 1, axis=1)[:, self.n_neighbors_ - 1, None]
        nearer, tied = squared < last, squared == last
        left_over = self.n_neighbors_ - nearer.sum(axis=1, keepdims=True)
        shared = left_over / tied.sum(axis=1, keepdims=True)
        uniform = (nearer + tied * shared) / self.n_neighbors_
        if self.kernel == "uniform":
            return uniform
        weights = np.where(nearer, 1 - squared / np.where(last > 0, last, 1.0), 0.0)
        total = weights.sum(axis=1, keepdims=True)
        # Where all neighbours are equally far, none is to be preferred.
        return np.where(total > 0, weights / np.where(total > 0, total, 1.0), uniform)
