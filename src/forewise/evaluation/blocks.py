"""Costs over time, and how sure their mean is: intervals from resampled weeks.

Costs of the same week are alike: of neighbouring days, and of all shops on a day. Taking every row
for an independent one makes intervals far too narrow; here whole weeks are drawn, with all their
rows. May import: exceptions, tables, and its siblings `checks`, `comparison`, `resampling`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from forewise.evaluation.checks import as_count, as_level
from forewise.evaluation.comparison import Difference
from forewise.evaluation.resampling import (
    as_generator,
    as_paired_rows,
    as_rows,
    ends,
    parts,
    require_enough_resamples,
)
from forewise.exceptions import InvalidInputError
from forewise.validation.tables import check_same_rows

_MONDAY = np.datetime64("1970-01-05")


@dataclass(frozen=True)
class Interval:
    """A mean, and the interval it is likely to lie in.

    Attributes
    ----------
    estimate : float
        Mean of all rows.
    lower, upper : float
        Ends of the confidence interval.
    level : float
        Confidence of the interval.
    n_blocks : int
        Blocks that it rests on; with fewer than some twenty it is too narrow.
    """

    estimate: float
    lower: float
    upper: float
    level: float
    n_blocks: int


def block_bootstrap(
    costs: Any,
    dates: Any,
    block_days: int = 7,
    level: float = 0.95,
    n_resamples: int = 2000,
    random_state: int | np.random.Generator = 0,
) -> Interval:
    """Bootstrap interval of the mean cost, from whole weeks.

    Prefer it to an interval from single rows wherever rows have dates. Every resample draws as many
    weeks as there are, with replacement, and takes the mean over all their rows; the interval is
    between the (1 − level)/2 and (1 + level)/2 quantiles of these means.

    Parameters
    ----------
    costs : array or tensor (n_rows,)
    dates : array or Series of days (n_rows,)
        In any order; many rows may have the same.
    block_days : int
        Length of a block; those of 7 days begin on Mondays. Longer than the memory of the costs.
    level : float
        Confidence of the interval, between 0 and 1.
    n_resamples : int
        At least 2 / (1 − level).
    random_state : int or numpy.random.Generator

    Returns
    -------
    Interval
    """
    level = as_level("level", level)
    check_same_rows(costs=costs, dates=dates)
    rows = as_rows("costs", costs)
    sums, counts = _by_block(rows[None], dates, block_days)
    drawn, total = _resampled(sums, counts, level, n_resamples, random_state)
    return Interval(float(rows.mean()), *ends(drawn[0] / total, level), level, len(counts))


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
    """Paired bootstrap interval of mean(a) − mean(b), from whole weeks.

    Both methods have the same weeks in every resample, so that what makes a week dear for both
    cancels. `bootstrap_difference` is the one for rows without dates.

    Parameters
    ----------
    a, b : array or tensor (n_rows,)
        Costs of the two methods on the same rows, in the same order.
    dates, block_days, level, n_resamples, random_state
        As for `block_bootstrap`.
    relative : bool
        Take mean(a) / mean(b) − 1 instead: −0.1 says that a costs 10 % less.

    Returns
    -------
    Difference
    """
    level = as_level("level", level)
    check_same_rows(a=a, dates=dates)
    first, second = as_paired_rows(a, b)
    sums, counts = _by_block(np.stack([first, second]), dates, block_days)
    drawn, total = _resampled(sums, counts, level, n_resamples, random_state)
    estimate = float(first.mean() - second.mean())
    if relative:
        if not (second.mean() > 0 and (drawn[1] > 0).all()):
            raise InvalidInputError(
                "relative=True needs a positive mean of b in every resample, but it is not: take "
                "the difference itself"
            )
        estimate = float(first.mean() / second.mean() - 1)
        shifts = drawn[0] / drawn[1] - 1
    else:
        shifts = (drawn[0] - drawn[1]) / total
    return Difference(estimate, *ends(shifts, level), level)


def _by_block(rows: np.ndarray, dates: Any, block_days: int) -> tuple[np.ndarray, np.ndarray]:
    """Sums (n_kinds, n_blocks) of each block's rows, and their number (n_blocks,)."""
    length = as_count("block_days", block_days)
    days = as_days(dates)
    if days.shape != rows.shape[1:]:
        raise InvalidInputError(
            f"dates must have one day per row, shape ({rows.shape[1]},), but has shape {days.shape}"
        )
    number = (days - _MONDAY).astype(np.int64) // length
    _, block = np.unique(number, return_inverse=True)
    counts = np.bincount(block)
    if len(counts) < 2:
        raise InvalidInputError(
            f"dates must span at least 2 blocks of {length} day(s), but are all in one: nothing "
            "tells how blocks differ"
        )
    return np.stack([np.bincount(block, weights=kind) for kind in rows]), counts


def _resampled(
    sums: np.ndarray,
    counts: np.ndarray,
    level: float,
    n_resamples: int,
    random_state: int | np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """Sums (n_kinds, n_resamples) and numbers of rows (n_resamples,) of blocks drawn anew."""
    n_resamples = require_enough_resamples(n_resamples, level)
    generator, n_blocks = as_generator(random_state), len(counts)
    drawn, total = np.empty((len(sums), n_resamples)), np.empty(n_resamples)
    for part in parts(n_resamples, n_blocks):
        picked = generator.integers(n_blocks, size=(part.stop - part.start, n_blocks))
        drawn[:, part], total[part] = sums[:, picked].sum(axis=2), counts[picked].sum(axis=1)
    return drawn, total


def as_days(dates: Any) -> np.ndarray:
    """The day of each row, as datetime64[D] (n_rows,)."""
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
