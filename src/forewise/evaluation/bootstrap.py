"""Bootstrap intervals of mean costs and of their differences, from single rows or from blocks.

Costs of the same week depend on each other, over its days and over all shops on a day. Intervals
from single rows are then far too narrow; `block_bootstrap` resamples weeks with all their rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from forewise.evaluation.costs import as_constant, as_level, chunks
from forewise.exceptions import InvalidInputError
from forewise.validation.parameters import as_generator, require_count
from forewise.validation.tables import check_same_rows

MONDAY = np.datetime64("1970-01-05")
_MAX_ENTRIES = 2**20  # draws in memory at once


@dataclass(frozen=True)
class Interval:
    """A mean with its confidence interval, `lower` to `upper`.

    Examples
    --------
    >>> import pandas as pd
    >>> import forewise as fw
    >>> days = pd.date_range("2024-01-01", periods=84)
    >>> found = fw.metrics.block_bootstrap([float(i % 7) for i in range(84)], days)
    >>> found.estimate, found.n_blocks
    (3.0, 12)
    """

    estimate: float
    lower: float
    upper: float
    level: float
    n_blocks: int  # with fewer than about twenty the interval is too narrow


@dataclass(frozen=True)
class Difference:
    """A difference of means with its confidence interval, `lower` to `upper`.

    Examples
    --------
    >>> import forewise as fw
    >>> a, b = [1.0, 2.0, 3.0, 4.0] * 10, [2.0, 2.0, 4.0, 4.0] * 10
    >>> found = fw.metrics.bootstrap_difference(a, b)
    >>> found.estimate, bool(found.upper < 0)
    (-0.5, True)
    """

    estimate: float
    lower: float
    upper: float
    level: float

    @property
    def significant(self) -> bool:
        """Whether the interval leaves zero out."""
        return self.lower > 0 or self.upper < 0


def bootstrap_difference(
    a: Any,
    b: Any,
    level: float = 0.95,
    n_resamples: int = 2000,
    block_length: int = 1,
    random_state: int | np.random.Generator = 0,
) -> Difference:
    """Paired bootstrap interval of mean(a) − mean(b), for the costs of two methods.

        d_i = a_i − b_i;    every resample's mean is taken over n rows of d, in circular blocks
        of `block_length` that start anywhere;    the interval is between the
        (1 − level)/2 and (1 + level)/2 quantiles of these means

    With fewer than about twenty blocks the interval is too narrow.

    Parameters
    ----------
    a, b : array or tensor (n_rows,)
        Costs (or regrets, or scores) of the two methods on the same rows, in the same order.
    level : float
        Confidence of the interval, between 0 and 1.
    n_resamples : int
        At least 2 / (1 − level), so that a resample lies beyond each end.
    block_length : int
        1 for independent rows; for a time series somewhat longer than its memory. At most half
        the rows.
    random_state : int or numpy.random.Generator

    Examples
    --------
    >>> import numpy as np
    >>> import forewise as fw
    >>> random = np.random.default_rng(0)
    >>> days = random.gamma(2.0, 10.0, size=300)  # good and bad days, the same for both
    >>> found = fw.metrics.bootstrap_difference(0.9 * days, days)
    >>> bool(found.upper < 0)
    True
    """
    level = as_level("level", level)
    first, second = _as_pair(a, b)
    n, length = len(first), require_count("block_length", block_length, 1)
    if length > n // 2:
        raise InvalidInputError(
            f"block_length must be at most half of the {n} rows, but is {length}: too few blocks "
            "are left to tell how they differ"
        )
    difference = first - second
    estimate = float(difference.mean())
    centred = difference - estimate
    n_full, rest = divmod(n, length)
    # The sum of the block that starts at s is totals[s + length] − totals[s], around the end.
    totals = np.concatenate([[0.0], np.cumsum(np.concatenate([centred, centred[:length]]))])
    full = totals[length : length + n] - totals[:n]
    short = totals[rest : rest + n] - totals[:n] if rest else None
    (sums,) = _resampled([full[None]], n_full, level, n_resamples, random_state, short)
    lower, upper = _ends(sums / n, level)
    return Difference(estimate, estimate + lower, estimate + upper, level)


def block_bootstrap(
    costs: Any,
    dates: Any,
    block_days: int = 7,
    level: float = 0.95,
    n_resamples: int = 2000,
    random_state: int | np.random.Generator = 0,
) -> Interval:
    """Bootstrap interval of the mean cost, from blocks of days.

    Every resample draws as many blocks as there are, with replacement, and takes the mean over
    their rows; the interval is between the (1 − level)/2 and (1 + level)/2 quantiles of the means.

    Parameters
    ----------
    costs : array or tensor (n_rows,)
    dates : array or Series of days (n_rows,)
        In any order; many rows may have the same.
    block_days : int
        Length of a block, longer than the memory of the costs; those of 7 days begin on Mondays.
    level, n_resamples, random_state
        As for `bootstrap_difference`.

    Examples
    --------
    Weeks that are all alike leave no doubt about the mean:

    >>> import pandas as pd
    >>> import forewise as fw
    >>> days = pd.date_range("2024-01-01", periods=84)
    >>> found = fw.metrics.block_bootstrap([float(i % 7) for i in range(84)], days)
    >>> found.lower == found.estimate == found.upper
    True
    """
    level = as_level("level", level)
    check_same_rows(costs=costs, dates=dates)
    rows = _as_rows("costs", costs)
    sums, counts = _block_sums(rows[None], dates, block_days)
    n_blocks = counts.shape[1]
    drawn, total = _resampled([sums, counts], n_blocks, level, n_resamples, random_state)
    return Interval(float(rows.mean()), *_ends(drawn / total, level), level, n_blocks)


def block_bootstrap_difference(
    a: Any,
    b: Any,
    dates: Any,
    block_days: int = 7,
    level: float = 0.95,
    n_resamples: int = 2000,
    random_state: int | np.random.Generator = 0,
    *,
    relative: bool = False,
) -> Difference:
    """Paired bootstrap interval of mean(a) − mean(b), from blocks of days.

    Both methods have the same blocks in every resample. With `relative` the interval is that of
    mean(a) / mean(b) − 1: −0.1 means that a costs 10 % less. Other parameters are those of
    `bootstrap_difference` and `block_bootstrap`.

    Examples
    --------
    A saves one unit every day, of a mean of three:

    >>> import pandas as pd
    >>> import forewise as fw
    >>> days = pd.date_range("2024-01-01", periods=84)
    >>> b = [float(i % 7) for i in range(84)]
    >>> a = [cost - 1.0 for cost in b]
    >>> found = fw.metrics.block_bootstrap_difference(a, b, days, relative=True)
    >>> round(found.estimate, 3), bool(found.upper < 0)
    (-0.333, True)
    """
    level = as_level("level", level)
    check_same_rows(a=a, dates=dates)
    first, second = _as_pair(a, b)
    sums, counts = _block_sums(np.stack([first, second]), dates, block_days)
    drawn, total = _resampled([sums, counts], counts.shape[1], level, n_resamples, random_state)
    if not relative:
        estimate = float(first.mean() - second.mean())
        return Difference(estimate, *_ends((drawn[0] - drawn[1]) / total[0], level), level)
    if not (second.mean() > 0 and (drawn[1] > 0).all()):
        raise InvalidInputError(
            "relative=True needs a positive mean of b in every resample, but it is not: take "
            "the difference itself"
        )
    estimate = float(first.mean() / second.mean() - 1)
    return Difference(estimate, *_ends(drawn[0] / drawn[1] - 1, level), level)


def as_days(dates: Any) -> np.ndarray:
    """The day of each row, as datetime64[D] (n_rows,)."""
    import pandas as pd

    column = pd.Series(dates)
    zoned = isinstance(column.dtype, pd.DatetimeTZDtype)
    if zoned or not len(column) or pd.api.types.is_numeric_dtype(column):
        raise InvalidInputError(
            "dates must be days without a time zone, at least one, but are of type "
            f"{column.dtype}, {len(column)} of them"
        )
    try:
        days = np.asarray(pd.to_datetime(column), dtype="datetime64[D]")
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"dates must be days, but are not: {error}") from error
    if np.isnat(days).any():
        raise InvalidInputError("dates must have a day in every row, but some are missing")
    return days


def _block_sums(rows: np.ndarray, dates: Any, block_days: int) -> tuple[np.ndarray, np.ndarray]:
    """Sums (n_kinds, n_blocks) of each block's rows, and their number (1, n_blocks)."""
    length = require_count("block_days", block_days, 1)
    days = as_days(dates)
    if days.shape != rows.shape[1:]:
        raise InvalidInputError(
            f"dates must have one day per row, shape ({rows.shape[1]},), but has shape {days.shape}"
        )
    number = (days - MONDAY).astype(np.int64) // length
    _, block = np.unique(number, return_inverse=True)
    counts = np.bincount(block)
    if len(counts) < 2:
        raise InvalidInputError(
            f"dates must span at least 2 blocks of {length} day(s), but are all in one: nothing "
            "tells how blocks differ"
        )
    return np.stack([np.bincount(block, weights=kind) for kind in rows]), counts[None]


def _resampled(
    tables: list[np.ndarray],
    n_drawn: int,
    level: float,
    n_resamples: int,
    random_state: int | np.random.Generator,
    short: np.ndarray | None = None,
) -> list[np.ndarray]:
    """Sums (n_kinds, n_resamples) over `n_drawn` columns of each table (n_kinds, n_blocks).

    Columns are drawn with replacement, the same ones for all tables. A `short` block (n_blocks,)
    is added where the drawn ones do not fill the rows.
    """
    n_resamples = require_count("n_resamples", n_resamples, 1)
    if n_resamples * (1 - level) / 2 < 1 - 1e-9:
        raise InvalidInputError(
            f"n_resamples must be at least 2 / (1 − level) = {2 / (1 - level):.0f}, but is "
            f"{n_resamples}: no resample would lie beyond the ends of the interval"
        )
    generator, n_blocks = as_generator(random_state), tables[0].shape[1]
    drawn = [np.empty((len(table), n_resamples)) for table in tables]
    for part in chunks(n_resamples, n_drawn, _MAX_ENTRIES, n_resamples):
        size = part.stop - part.start
        picked = generator.integers(n_blocks, size=(size, n_drawn))
        for sums, table in zip(drawn, tables, strict=True):
            sums[:, part] = table[:, picked].sum(axis=2)
        if short is not None:
            drawn[0][:, part] += short[generator.integers(n_blocks, size=size)]
    return drawn


def _ends(resampled: np.ndarray, level: float) -> tuple[float, float]:
    lower, upper = np.quantile(resampled, [(1 - level) / 2, (1 + level) / 2])
    return float(lower), float(upper)


def _as_rows(name: str, value: Any) -> np.ndarray:
    """A vector of at least two finite numbers."""
    rows = as_constant(name, value)
    if rows.ndim != 1 or len(rows) < 2:
        raise InvalidInputError(
            f"{name} must have shape (n_rows,), at least 2 of them, but has shape "
            f"{tuple(rows.shape)}"
        )
    return rows.numpy()


def _as_pair(a: Any, b: Any) -> tuple[np.ndarray, np.ndarray]:
    check_same_rows(a=a, b=b)
    first, second = _as_rows("a", a), _as_rows("b", b)
    if len(first) != len(second):
        raise InvalidInputError(
            f"a and b must be costs of the same rows, but have {len(first)} and {len(second)} rows"
        )
    return first, second
