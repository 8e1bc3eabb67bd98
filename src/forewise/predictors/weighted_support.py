"""Scenarios that are past outcomes, weighted: all of them, or few that stand for all.

Predictors that weigh the training outcomes share this file: it turns their weights into
scenarios, exactly where the outcomes of positive weight are few enough, and by systematic
resampling where they are not. May import: scenarios, and its sibling `standardise`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from forewise.predictors.networks.standardise import mean_and_std, standardise
from forewise.scenarios import Scenarios

#: Numbers of a (contexts, training rows) array that are held at a time.
_ENTRIES = 2**20


def outcome_order(outcomes: np.ndarray) -> np.ndarray:
    """An order of outcomes (n_rows, n_outcomes) in which neighbours are alike.

    By value for one outcome, so that points at even steps of the cumulated weight are the
    quantiles; by the first principal direction of the standardised outcomes for several.
    """
    if outcomes.shape[1] == 1:
        return np.argsort(outcomes[:, 0], kind="stable")
    scaled = standardise(outcomes, *mean_and_std(outcomes))
    direction = np.linalg.eigh(scaled.T @ scaled)[1][:, -1]
    return np.argsort(scaled @ direction, kind="stable")


def systematic_picks(weights: np.ndarray, n_picks: int, start: float) -> np.ndarray:
    """Columns (n_contexts, n_picks) that stand, equally weighted, for the weights of each row.

    Pick i is the column where the cumulated weight passes ``(i + start) / n_picks``. With
    `start` uniform on [0, 1) column j comes n_picks · w_j times on average, and never more than
    one less or more than that: the lowest variance that whole counts allow.

    Parameters
    ----------
    weights : array (n_contexts, n_columns), nonnegative, not all zero in any row
    n_picks : int
    start : float in [0, 1)
    """
    cumulated = weights.cumsum(axis=1)
    total = cumulated[:, -1:]
    passed = np.ceil(n_picks * (cumulated / total) - start).clip(0, n_picks).astype(np.intp)
    # Rounding must not lose the last pick.
    passed[cumulated >= total] = n_picks
    counts = np.diff(passed, axis=1, prepend=0)
    columns = np.broadcast_to(np.arange(weights.shape[1]), weights.shape)
    return np.repeat(columns.ravel(), counts.ravel()).reshape(len(weights), n_picks)


def weighted_scenarios(
    outcomes: np.ndarray,
    contexts: np.ndarray,
    weights_of: Callable[[np.ndarray], np.ndarray],
    width: int,
    random: np.random.Generator,
) -> Scenarios:
    """At most `width` of the outcomes as scenarios of each context.

    A context with no more outcomes of positive weight gets them all with their weights, and
    repetitions of weight zero to fill up; any other gets `width` equally weighted picks.

    Parameters
    ----------
    outcomes : array (n_rows, n_outcomes), in the order of `outcome_order`
    contexts : array (n_contexts, n_features)
    weights_of : function
        From some contexts to their weights (some contexts, n_rows).
    width : int
    random : numpy Generator
        Asked for one number, shared by all contexts.
    """
    start = random.random()
    values = np.empty((len(contexts), width, outcomes.shape[1]))
    weights = np.empty((len(contexts), width))
    for part in context_slices(len(contexts), len(outcomes)):
        picks, weights[part] = _picks_and_weights(weights_of(contexts[part]), width, start)
        values[part] = outcomes[picks]
    return Scenarios(values, weights)


def equal_picks(n_rows: int, n_scenarios: int, random: np.random.Generator) -> np.ndarray:
    """Rows that stand for `n_rows` equally likely ones: all of them, or `n_scenarios`."""
    start = random.random()
    if n_rows <= n_scenarios:
        return np.arange(n_rows)
    return systematic_picks(np.ones((1, n_rows)), n_scenarios, start)[0]


def context_slices(n_contexts: int, n_rows: int) -> Iterator[slice]:
    """Slices of contexts, small enough for one array (contexts, n_rows) at a time."""
    size = max(1, _ENTRIES // n_rows)
    for begin in range(0, n_contexts, size):
        yield slice(begin, begin + size)


def _picks_and_weights(
    weights: np.ndarray, width: int, start: float
) -> tuple[np.ndarray, np.ndarray]:
    """Columns (n_contexts, width) and their weights; both as `weighted_scenarios` says."""
    positive = weights > 0
    n_positive = positive.sum(axis=1)
    picks = np.empty((len(weights), width), dtype=np.intp)
    picked = np.empty((len(weights), width))

    many = n_positive > width
    if many.any():
        picks[many] = systematic_picks(weights[many], width, start)
        picked[many] = 1 / width

    few = ~many
    if few.any():
        # The k-th positive column of each row; then the last one again, of weight zero.
        row, column = np.nonzero(positive[few])
        counts = n_positive[few]
        ends = counts.cumsum()
        place = np.arange(len(row)) - np.repeat(ends - counts, counts)
        few_picks = np.repeat(column[ends - 1, None], width, axis=1)
        few_weights = np.zeros((len(counts), width))
        few_picks[row, place] = column
        few_weights[row, place] = weights[few][row, column]
        picks[few], picked[few] = few_picks, few_weights
    return picks, picked
