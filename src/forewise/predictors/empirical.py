"""Past outcomes as scenarios: all of them, those of a group, those of the nearest contexts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import torch
from scipy.spatial.distance import cdist

from forewise.exceptions import InvalidInputError
from forewise.predictors.base import Predictor
from forewise.predictors.censoring import N_DRAWS, expanded, shared
from forewise.predictors.sampling import (
    equal_picks,
    mean_and_std,
    outcome_order,
    standardise,
    weighted_scenarios,
)
from forewise.predictors.trees import (
    CompletingPredictor,
    draws_beyond,
    evaluated_rows,
    weighted_crps,
)
from forewise.scenarios import Scenarios
from forewise.validation.parameters import require_choice, require_count

# Numbers of neighbours that are compared; fewer than ten would say little of the tails.
_NUMBERS = (10, 14, 20, 30, 40, 60, 80, 120, 160, 240)
_SHOWN = 3  # unseen groups that an error message lists


class EmpiricalPredictor(CompletingPredictor):
    """Every past outcome is a scenario, equally likely, the same for every context.

    The baseline: decisions from it are plain SAA, ``z* = argmin_z (1/N) Σ_i f(z, y_i)``. Asked
    for fewer scenarios than outcomes, it picks evenly spread ones in order of value (of the first
    principal component for several outcomes), from a random start.

    Examples
    --------
    What every other predictor has to beat:

    >>> import forewise as fw
    >>> predictor = fw.EmpiricalPredictor().fit([[0.0], [1.0], [2.0]], [10.0, 20.0, 30.0])
    >>> predictor.sample([[5.0]], 3, random_state=0).values.flatten()
    tensor([10., 20., 30.], dtype=torch.float64)
    """

    def _fit(self, X: np.ndarray, y: np.ndarray) -> None:
        self.outcomes_ = y[outcome_order(y)]

    def _scenarios(self, X: np.ndarray, n_scenarios: int, random: np.random.Generator) -> Scenarios:
        picked = self.outcomes_[equal_picks(len(self.outcomes_), n_scenarios, random.random())]
        # One copy that all contexts share.
        return Scenarios(torch.from_numpy(picked).expand(len(X), -1, -1))


@dataclass(eq=False, repr=False)
class GroupedPredictor(CompletingPredictor):
    """Every past outcome with the same values in some columns is a scenario, equally likely.

    Decisions from it are SAA per weekday, or per shop and weekday:

        z*(x) = argmin_z  mean of f(z, y_i) over the rows i with x_i = x in the columns `by`

    Parameters
    ----------
    by : str, int or sequence of them
        Names or numbers of columns; the first column by default.
    unseen : {"raise", "pool"}
        For a group without a training row: an error, or the outcomes of all groups.

    Examples
    --------
    >>> import pandas as pd
    >>> import forewise as fw
    >>> X = pd.DataFrame({"weekday": ["Mon", "Sat"] * 3})
    >>> predictor = fw.GroupedPredictor(by="weekday").fit(X, [10, 50, 11, 52, 12, 54])
    >>> predictor.sample(pd.DataFrame({"weekday": ["Sat"]}), 3, random_state=0).values.flatten()
    tensor([50., 52., 54.], dtype=torch.float64)
    """

    by: str | int | Sequence[str | int] = 0
    unseen: str = "raise"

    def _fit(self, X: np.ndarray, y: np.ndarray) -> None:
        require_choice("unseen", self.unseen, ("raise", "pool"))
        by: Any = self.by
        names = [by] if isinstance(by, str | Integral) else list(by)
        if not names:
            raise InvalidInputError("by must name at least one column, but is empty")
        self.columns_ = np.concatenate([self._columns(name) for name in names])
        self.groups_, group = np.unique(X[:, self.columns_], axis=0, return_inverse=True)
        order = outcome_order(y)
        order = order[np.argsort(group[order], kind="stable")]
        self.outcomes_ = y[order]
        self.starts_ = np.concatenate([[0], np.bincount(group).cumsum()])

    def _columns(self, name: Any) -> list[int]:
        """Numbers of a column's features: several, where it is text."""
        known = list(getattr(self, "feature_names_in_", []))
        number = isinstance(name, Integral) and not isinstance(name, bool)
        if isinstance(name, str) and name in known:
            place = known.index(name)
        elif number and 0 <= name < self.n_features_in_:
            place = int(name)
        else:
            place = None
        if place is not None:
            return [place] if self.table_columns_ is None else self.table_columns_.places(place)
        named = ", ".join(known) if known else f"numbers 0 to {self.n_features_in_ - 1}, no names"
        raise InvalidInputError(
            f"by must name columns of X, but has {name!r}; the columns of X are: {named}"
        )

    def _scenarios(self, X: np.ndarray, n_scenarios: int, random: np.random.Generator) -> Scenarios:
        wanted, row = np.unique(X[:, self.columns_], axis=0, return_inverse=True)
        members = self._members(wanted)
        # The width must not depend on which groups are asked for together.
        pooled = self.unseen == "pool"
        most = len(self.outcomes_) if pooled else int(np.diff(self.starts_).max())
        width, start = min(n_scenarios, most), random.random()
        values = np.empty((len(wanted), width, self.outcomes_.shape[1]))
        weights = np.zeros((len(wanted), width))
        for i, outcomes in enumerate(members):
            picks = equal_picks(len(outcomes), width, start)
            values[i] = outcomes[picks[-1]]  # padding, of weight 0
            values[i, : len(picks)] = outcomes[picks]
            weights[i, : len(picks)] = 1 / len(picks)
        return Scenarios(values[row], weights[row])

    def _members(self, wanted: np.ndarray) -> list[np.ndarray]:
        """Outcomes of each group (n_wanted, n_by), in order; of all groups for an unseen one."""
        known = {tuple(values): number for number, values in enumerate(self.groups_.tolist())}
        numbers = [known.get(tuple(values)) for values in wanted.tolist()]
        unseen = [wanted[i].tolist() for i, number in enumerate(numbers) if number is None]
        if unseen and self.unseen == "raise":
            more = f" and {len(unseen) - _SHOWN} more" if len(unseen) > _SHOWN else ""
            listed = "; ".join(str(values) for values in unseen[:_SHOWN])
            raise InvalidInputError(
                f"X has groups in the columns {self.by!r} that had no row in training: {listed}"
                f'{more}. Fit on rows of them, or use unseen="pool" for the outcomes of all groups'
            )
        pool = self.outcomes_[outcome_order(self.outcomes_)] if unseen else self.outcomes_
        groups = np.split(self.outcomes_, self.starts_[1:-1])
        return [pool if number is None else groups[number] for number in numbers]


@dataclass(eq=False, repr=False)
class NeighborPredictor(Predictor):
    """The outcomes of the k most similar past contexts are the scenarios.

    Decisions from it are the weighted SAA of Bertsimas and Kallus (2020):

        z*(x) = argmin_z Σ_i w_i(x) f(z, y_i),   w_i(x) = 1/k if x_i is among the k nearest to x

    Distances are Euclidean between standardised contexts; constant columns do not count. Contexts
    that tie for the last place share its weight, so that the order of the rows does not matter.

    When to use: few context columns (up to about five), and where people want to see the past days
    that a decision rests on. With many columns `ForestPredictor` chooses those that matter.

    Parameters
    ----------
    n_neighbors : int, optional
        k. By default the number from 10 to 240 whose leave-one-out CRPS is lowest: few where
        outcomes follow the context closely, many where they are mostly noise.
    kernel : {"uniform", "epanechnikov"}
        Equal weights, or weights that fall as ``1 - (distance / distance of the k-th)²``.

    Examples
    --------
    >>> import forewise as fw
    >>> X, y = [[15.0], [16.0], [29.0], [31.0]], [20.0, 22.0, 80.0, 90.0]  # temperature, ice cream
    >>> predictor = fw.NeighborPredictor(n_neighbors=2).fit(X, y)
    >>> predictor.sample([[30.0]], 2, random_state=0).values.flatten()
    tensor([80., 90.], dtype=torch.float64)
    """

    n_neighbors: int | None = None
    kernel: str = "uniform"

    def _fit(self, X: np.ndarray, y: np.ndarray) -> None:
        require_choice("kernel", self.kernel, ("uniform", "epanechnikov"))
        if self.n_neighbors is not None:
            require_count("n_neighbors", self.n_neighbors, at_least=1)
            if self.n_neighbors > len(X):
                raise InvalidInputError(
                    f"n_neighbors must be at most the number of training rows, {len(X)}, but is "
                    f"{self.n_neighbors}: lower it, or leave it out for the best number"
                )
        self.context_mean_, self.context_std_ = mean_and_std(X)
        order = outcome_order(y)
        self.outcomes_, self.row_of_ = y[order], None
        self.contexts_ = standardise(X[order], self.context_mean_, self.context_std_)
        self.n_neighbors_ = self.n_neighbors or self._best_number()
        repeats = np.unique(self.contexts_, axis=0, return_counts=True)[1].max()
        self.n_support_ = min(len(X), self.n_neighbors_ - 1 + int(repeats))

    def _fit_censored(self, X: np.ndarray, y: np.ndarray, censored: np.ndarray) -> None:
        draws, self.undetermined_ = draws_beyond(X, y, censored, N_DRAWS)
        self._fit(X, draws[:, 0])
        rows = outcome_order(draws[:, 0])
        outcomes, row_of = expanded(draws[rows], censored[rows])
        order = outcome_order(outcomes)
        self.outcomes_, self.row_of_ = outcomes[order], row_of[order]
        self.n_support_ *= N_DRAWS

    def _scenarios(self, X: np.ndarray, n_scenarios: int, random: np.random.Generator) -> Scenarios:
        contexts = standardise(X, self.context_mean_, self.context_std_)
        width = min(n_scenarios, self.n_support_)
        weights_of = shared(self._weights, self.row_of_)
        return weighted_scenarios(self.outcomes_, contexts, weights_of, width, random)

    def _best_number(self) -> int:
        """The number of neighbours whose scenarios of a row, itself left out, score best."""
        n_rows = len(self.outcomes_)
        rows = evaluated_rows(n_rows)
        squared = self._squared_distances(self.contexts_[rows])
        squared[np.arange(len(rows)), rows] = np.inf
        best, least = min(_NUMBERS[0], n_rows), np.inf
        for k in _NUMBERS:
            if k < n_rows:
                weights = self._weights_of(squared, k)
                loss = weighted_crps(self.outcomes_, weights, self.outcomes_[rows])
                if loss < least:
                    best, least = k, loss
        return best

    def _squared_distances(self, contexts: np.ndarray) -> np.ndarray:
        return cdist(contexts, self.contexts_, "sqeuclidean")

    def _weights(self, contexts: np.ndarray) -> np.ndarray:
        """Weight of each training row, (n_contexts, n_rows); rows sum to one."""
        return self._weights_of(self._squared_distances(contexts), self.n_neighbors_)

    def _weights_of(self, squared: np.ndarray, k: int) -> np.ndarray:
        """The same, from squared distances (n_contexts, n_rows) and a number of neighbours."""
        last = np.partition(squared, k - 1, axis=1)[:, k - 1, None]
        nearer, tied = squared < last, squared == last
        left_over = k - nearer.sum(axis=1, keepdims=True)
        shared = left_over / tied.sum(axis=1, keepdims=True)
        uniform = (nearer + tied * shared) / k
        if self.kernel == "uniform":
            return uniform
        weights = np.where(nearer, 1 - squared / np.where(last > 0, last, 1.0), 0.0)
        total = weights.sum(axis=1, keepdims=True)
        # Where all neighbours are equally far, all count alike.
        return np.where(total > 0, weights / np.where(total > 0, total, 1.0), uniform)
