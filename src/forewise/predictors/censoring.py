"""Outcomes of which only a lower bound is known: redistribution to the right, row by row.

A censored outcome was at least what was seen, as demand on a sold-out day. Given the context, it
must not depend on the bound beyond that: where stock was chosen for reasons that the contexts do
not show, every method here is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from forewise.predictors.sampling import context_slices, outcome_order

N_DRAWS = 8  # that stand for a censored outcome
_REFERENCE_ROWS = 4096  # at most, whose residuals say what lies beyond bounds

Weights = Callable[[np.ndarray], np.ndarray]  # of contexts, (n_contexts, n_rows)


class Neighbourhoods(Protocol):
    """A predictor that weights its training rows, in the order of `outcome_order`."""

    def _fit(self, X: np.ndarray, y: np.ndarray) -> None: ...

    def _weights(self, contexts: np.ndarray) -> np.ndarray: ...


def survival_weights(weights: np.ndarray, censored: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Kaplan–Meier weights (n_contexts, n_rows), and the mass beyond the largest outcome.

        S(t) = Π_{i: y_i ≤ t, known} (1 − w_i / Σ_{k ≥ i} w_k),    weight_i = −ΔS(y_i)

    Rows are in order of value, of equal ones those that are known first. The weight of a censored
    row goes to the larger ones; if the largest is censored itself, what is left is put there
    (Efron's convention), so that the distribution ends too early: the second array (n_contexts,).
    """
    at_risk = weights[:, ::-1].cumsum(axis=1)[:, ::-1]
    known = (weights > 0) & ~censored
    hazard = np.divide(weights, at_risk, out=np.zeros_like(weights), where=known)
    after = (1 - hazard).cumprod(axis=1)
    before = np.concatenate([np.ones_like(after[:, :1]), after[:, :-1]], axis=1)
    mass, left_over = before * hazard, after[:, -1].copy()
    last = weights.shape[1] - 1 - (weights[:, ::-1] > 0).argmax(axis=1)
    mass[np.arange(len(mass)), last] += left_over
    return mass, left_over


@dataclass(frozen=True)
class Completion:
    """The distribution of censored outcomes beyond their bounds, given their contexts.

        y = m(x) + s(x) e,     e ~ Kaplan–Meier estimate of the residuals in the neighbourhood of x

    The mean m and spread s are those of a forest's completed outcomes, the neighbourhoods its
    leaves. Where stock follows demand, bounds and outcomes rise together within a neighbourhood,
    and its Kaplan–Meier estimate is too high; little of that is left in residuals.
    """

    forest: Neighbourhoods
    completed: np.ndarray  # (n_rows, n_outcomes), as all below, in the forest's order
    errors: np.ndarray  # of the mean, on completed outcomes
    residuals: np.ndarray  # of the outcomes and bounds that were seen
    censored: np.ndarray

    @classmethod
    def make(
        cls, forest: Neighbourhoods, X: np.ndarray, y: np.ndarray, censored: np.ndarray
    ) -> Completion:
        """From training rows, of which large tables lend some; the forest is fitted to them.

        It begins with the outcomes themselves in neighbourhoods of what was seen.
        """
        some = np.linspace(0, len(X) - 1, min(len(X), _REFERENCE_ROWS)).astype(int)
        if censored[some].all(axis=0).any():
            some = np.arange(len(X))
        X, y, censored = X[some], y[some], censored[some]
        forest._fit(X, y)
        order, none = outcome_order(y), np.zeros_like(y)
        plain = cls(forest, none, none, y[order], censored[order])
        filled = plain.draws(X, y, censored, 1, seed=0)[0][:, 0]
        forest._fit(X, filled)
        order = outcome_order(filled)
        X, y, filled, censored = X[order], y[order], filled[order], censored[order]
        centred = cls(forest, filled, none, y, censored)
        centred = replace(centred, errors=filled - centred._mean_and_std(X)[0])
        mean, std = centred._mean_and_std(X)
        return replace(centred, residuals=(y - mean) / std)

    def _mean_and_std(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of the outcomes around each context, (n_contexts, n_outcomes); a spread of 0 is 1."""
        parts = [
            self._moments(self.forest._weights(X[part]))
            for part in context_slices(len(X), len(self.censored))
        ]
        mean, std = (np.concatenate(moment) for moment in zip(*parts, strict=True))
        return mean, std

    def _moments(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        std = np.sqrt(weights @ self.errors**2)
        return weights @ self.completed, np.where(std > 0, std, 1.0)

    def draws(
        self, X: np.ndarray, y: np.ndarray, censored: np.ndarray, n_draws: int, seed: int
    ) -> tuple[np.ndarray, float]:
        """Outcomes (n_contexts, n_draws, n_outcomes), y where known; and the undetermined share.

        The second is the share of what was drawn that no known residual lies beyond: it is put at
        the largest residual of the neighbourhood, which is a bound. Draws of a row are stratified.
        """
        filled, random = np.repeat(y[:, None], n_draws, axis=1), np.random.default_rng(seed)
        undetermined = []
        for column, flags in enumerate(censored.T):
            rows = np.flatnonzero(flags)
            within = (random.permutation(len(rows)) + 0.5) / max(1, len(rows))
            strata = random.permuted(np.tile(np.arange(n_draws), (len(rows), 1)), axis=1)
            levels = (strata + within[:, None]) / n_draws
            for part in context_slices(len(rows), len(self.censored)):
                own = rows[part]
                found, share = self._beyond(X[own], y[own, column], levels[part], column)
                filled[own, :, column] = found
                undetermined.append(share)
        return filled, float(np.concatenate(undetermined).mean()) if undetermined else 0.0

    def _beyond(
        self, X: np.ndarray, bounds: np.ndarray, levels: np.ndarray, column: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Outcomes (n_contexts, n_draws) at levels of the tail, and the undetermined share."""
        order = np.lexsort((self.censored[:, column], self.residuals[:, column]))
        residuals = self.residuals[order, column]
        weights = self.forest._weights(X)
        mean, std = (moment[:, column, None] for moment in self._moments(weights))
        mass, left_over = survival_weights(weights[:, order], self.censored[order, column])
        beyond = np.where(residuals >= (bounds[:, None] - mean) / std, mass, 0.0).cumsum(axis=1)
        total = beyond[:, -1:]
        picks = [(beyond < level[:, None] * total).sum(axis=1) for level in levels.T]
        drawn = mean + std * residuals[np.column_stack(picks).clip(0, len(residuals) - 1)]
        some = total > 0
        share = np.divide(left_over[:, None], total, out=np.ones_like(total), where=some)
        drawn = np.where(some, np.maximum(drawn, bounds[:, None]), bounds[:, None])
        return drawn, share.clip(0.0, 1.0)[:, 0]


def expanded(draws: np.ndarray, censored: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Outcomes (n_kept, n_outcomes), one of a known row and all draws of others, and their rows."""
    n_rows, n_draws = draws.shape[:2]
    kept = np.logical_or.outer(censored.any(axis=1), np.arange(n_draws) == 0)
    return draws[kept], np.repeat(np.arange(n_rows), kept.sum(axis=1))


def shared(weights_of: Weights, row_of: np.ndarray | None) -> Weights:
    """Weights of kept outcomes, each with its share of its row's; of rows, where None."""
    if row_of is None:
        return weights_of
    share = 1 / np.bincount(row_of)[row_of]
    return lambda contexts: weights_of(contexts)[:, row_of] * share
