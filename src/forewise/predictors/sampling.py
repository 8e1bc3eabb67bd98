"""What predictors share: standard units, contexts in pieces, and few draws that stand for many."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import torch
from scipy.special import ndtri

from forewise.scenarios import Scenarios

_MAX_SOBOL = 21201  # dimensions that the Sobol sequence has
_MAX_ENTRIES = 2**20  # of one (contexts, training rows) array
#: A multiple of what vector instructions take at a time: no row is left over to be done otherwise.
_BLOCK_SIZE = 64


def mean_and_std(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of each column; exactly 0 for a constant column."""
    # The mean of equal numbers may be off by rounding; their spread must not be.
    constant = values.min(axis=0) == values.max(axis=0)
    mean = np.where(constant, values[0], values.mean(axis=0))
    return mean, np.where(constant, 0.0, values.std(axis=0))


def standardise(values: np.ndarray, mean: np.ndarray, std: np.ndarray) -> np.ndarray:
    """``(values - mean) / std``; 0 in a constant column."""
    changes = std > 0
    return np.where(changes, (values - mean) / np.where(changes, std, 1.0), 0.0)


def context_slices(n_contexts: int, n_rows: int) -> Iterator[slice]:
    """Slices of contexts, small enough for one array (contexts, n_rows) at a time."""
    size = max(1, _MAX_ENTRIES // n_rows)
    for begin in range(0, n_contexts, size):
        yield slice(begin, begin + size)


def fixed_blocks(contexts: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
    """Blocks (64, n_features) of contexts, and the slice of the contexts that each begins with.

    Matrix products and vectorised functions round by shape: one row alone is not to the bit that
    row of a larger product. In blocks of one size it is. The last is padded with its first context.
    """
    for start in range(0, len(contexts), _BLOCK_SIZE):
        block = contexts[start : start + _BLOCK_SIZE]
        missing = _BLOCK_SIZE - len(block)
        padded = np.concatenate([block, block[:1].repeat(missing, axis=0)]) if missing else block
        yield slice(start, start + len(block)), padded


def normal_draws(n_draws: int, n_columns: int, random: np.random.Generator) -> np.ndarray:
    """Standard normal draws (n_draws, n_columns) from a scrambled Sobol sequence."""
    from scipy.stats.qmc import Sobol

    if n_columns > _MAX_SOBOL:
        return random.standard_normal((n_draws, n_columns))
    # The sequence is balanced in powers of two only; the first of a longer one will do.
    points = Sobol(n_columns, rng=random).random_base2((n_draws - 1).bit_length())[:n_draws]
    # The middle of each point's cell: no point at 0, whose normal quantile is infinite.
    return ndtri(points * (1 - 2**-30) + 2**-31)


def quantiles_at(scores: np.ndarray, knots: np.ndarray, quantiles: np.ndarray) -> np.ndarray:
    """Quantiles at normal scores (n_scenarios, n_outcomes), (n_contexts, n_scenarios, n_outcomes).

    Sorted quantiles (n_contexts, n_outcomes, n_knots) at the scores `knots` are joined by lines,
    of which the first and the last go on.
    """
    left = np.searchsorted(knots[1:-1], scores)
    share = (scores - knots[left]) / (knots[left + 1] - knots[left])
    outcome = np.arange(quantiles.shape[1])
    low, high = quantiles[:, outcome, left], quantiles[:, outcome, left + 1]
    return low + share * (high - low)


class RowGenerator(torch.Generator):
    """A generator that may draw for more rows than are wanted, and keep those that are.

    So that rows have the same noise whether a batch is one process's or several share it.
    """

    _kept: tuple[slice, int] | None = None

    def keep(self, rows: slice, n_rows: int) -> None:
        """Draw for `n_rows` rows from now on, and keep some."""
        self._kept = None if rows == slice(0, n_rows) else (rows, n_rows)

    def of_rows(
        self, draw: Callable[..., torch.Tensor], shape: tuple[int, ...], dim: int
    ) -> torch.Tensor:
        """Draws of a shape whose dimension `dim` are the rows that are kept."""
        if self._kept is None:
            return draw(shape, generator=self)
        rows, n_rows = self._kept
        whole = draw((*shape[:dim], n_rows, *shape[dim + 1 :]), generator=self)
        return whole.narrow(dim, rows.start, rows.stop - rows.start)


def drawn_by_row(
    draw: Callable[..., torch.Tensor], shape: tuple[int, ...], dim: int, generator: torch.Generator
) -> torch.Tensor:
    """Independent draws for each row along `dim`."""
    if isinstance(generator, RowGenerator):
        return generator.of_rows(draw, shape, dim)
    return draw(shape, generator=generator)


def stratified_normals(
    n_draws: int, n_contexts: int, n_columns: int, generator: torch.Generator
) -> torch.Tensor:
    """Standard normal draws (n_draws, n_contexts, n_columns): a Latin hypercube per context."""
    shape = (n_draws, n_contexts, n_columns)
    parts = drawn_by_row(torch.rand, shape, 1, generator).argsort(0)
    levels = (parts + drawn_by_row(torch.rand, shape, 1, generator)) / n_draws
    return torch.special.ndtri(levels.clamp(1e-7, 1 - 1e-7))


def outcome_order(outcomes: np.ndarray) -> np.ndarray:
    """An order of outcomes (n_rows, n_outcomes) in which neighbours are alike.

    By value for one outcome, so that even steps of the cumulated weight are quantiles; by the
    first principal component of the standardised outcomes for several.
    """
    if outcomes.shape[1] == 1:
        return np.argsort(outcomes[:, 0], kind="stable")
    scaled = standardise(outcomes, *mean_and_std(outcomes))
    direction = np.linalg.eigh(scaled.T @ scaled)[1][:, -1]
    return np.argsort(scaled @ direction, kind="stable")


def systematic_picks(weights: np.ndarray, n_picks: int, start: float) -> np.ndarray:
    """Systematic resampling: columns (n_contexts, n_picks) that stand for each row's weights.

    Pick i is the column where the cumulated weight passes ``(i + start) / n_picks``. With `start`
    uniform on [0, 1) column j is picked n_picks · w_j times on average, give or take less than one.
    The weights (n_contexts, n_columns) are nonnegative, and not all zero in any row.
    """
    columns, weights = _without_zeros(weights)
    cumulated = weights.cumsum(axis=1)
    total = cumulated[:, -1:]
    passed = np.ceil(n_picks * (cumulated / total) - start).clip(0, n_picks).astype(np.intp)
    # Rounding must not lose the last pick.
    passed[cumulated >= total] = n_picks
    counts = np.diff(passed, axis=1, prepend=0)
    return np.repeat(columns.ravel(), counts.ravel()).reshape(len(weights), n_picks)


def _without_zeros(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Columns and weights of the positive entries of each row, in order, zeros behind them.

    Of a forest's weights few are positive, and sums of a few are soon made.
    """
    row, column = np.nonzero(weights)
    counts = np.bincount(row, minlength=len(weights))
    width = int(counts.max())
    if 2 * width > weights.shape[1]:
        return np.broadcast_to(np.arange(weights.shape[1]), weights.shape), weights
    place = np.arange(len(row)) - np.repeat(counts.cumsum() - counts, counts)
    columns, kept = np.zeros((len(weights), width), dtype=np.intp), np.zeros((len(weights), width))
    columns[row, place], kept[row, place] = column, weights[row, column]
    return columns, kept


def equal_picks(n_rows: int, n_picks: int, start: float) -> np.ndarray:
    """Rows that stand for `n_rows` equally likely ones: all of them, or `n_picks`."""
    if n_rows <= n_picks:
        return np.arange(n_rows)
    return systematic_picks(np.ones((1, n_rows)), n_picks, start)[0]


def weighted_scenarios(
    outcomes: np.ndarray,
    contexts: np.ndarray,
    weights_of: Callable[[np.ndarray], np.ndarray],
    width: int,
    random: np.random.Generator,
) -> Scenarios:
    """At most `width` of the outcomes as scenarios of each context.

    A context with no more than `width` outcomes of positive weight gets them all with their
    weights, padded with repetitions of weight zero; any other gets equally weighted picks.
    Outcomes (n_rows, n_outcomes) are in the order of `outcome_order`; `weights_of` gives weights
    (n_contexts, n_rows) of contexts. All contexts share one random start.
    """
    start = random.random()
    values = np.empty((len(contexts), width, outcomes.shape[1]))
    weights = np.empty((len(contexts), width))
    for part in context_slices(len(contexts), len(outcomes)):
        picks, weights[part] = _picks_and_weights(weights_of(contexts[part]), width, start)
        values[part] = outcomes[picks]
    return Scenarios(values, weights)


def _picks_and_weights(
    weights: np.ndarray, width: int, start: float
) -> tuple[np.ndarray, np.ndarray]:
    """Columns (n_contexts, width) and their weights."""
    positive = weights > 0
    n_positive = positive.sum(axis=1)
    many = n_positive > width
    picks = np.empty((len(weights), width), dtype=np.intp)
    picked = np.full(picks.shape, 1 / width)
    if many.any():
        picks[many] = systematic_picks(weights[many], width, start)
    few, place = ~many, np.arange(width)
    if few.any():
        # The k-th column of positive weight; then the last one again, of weight zero.
        order = np.argsort(~positive[few], axis=1, kind="stable")
        last = n_positive[few, None]
        picks[few] = np.take_along_axis(order, np.minimum(place, last - 1), axis=1)
        own = np.take_along_axis(weights[few], picks[few], axis=1)
        picked[few] = np.where(place < last, own, 0.0)
    return picks, picked
