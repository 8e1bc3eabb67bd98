"""Do two learners differ, or was it luck?

May import: exceptions, and its siblings `checks`, `resampling`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from forewise.evaluation.checks import as_count, as_level
from forewise.evaluation.resampling import (
    as_generator,
    as_paired_rows,
    ends,
    parts,
    require_enough_resamples,
)
from forewise.exceptions import InvalidInputError


@dataclass(frozen=True)
class Difference:
    """A difference of means, and the interval it is likely to lie in.

    Attributes
    ----------
    estimate : float
        Mean of the first minus mean of the second.
    lower, upper : float
        Ends of the confidence interval.
    level : float
        Confidence of the interval.
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
    """Paired bootstrap interval of mean(a) − mean(b), for the costs of two learners.

    Prefer it to comparing two means: both learners face the same rows, and what makes a row
    dear for both cancels in its difference. Rows that follow each other in time need
    `block_length` > 1, or the interval is too narrow.

        d_i = a_i − b_i;    every resample's mean is taken over n rows of d, in circular blocks
        of `block_length` that start anywhere;    the interval is between the
        (1 − level)/2 and (1 + level)/2 quantiles of these means

    The interval assumes that a block has about the dependence of the whole, and that there are
    many blocks: with fewer than some twenty it is too narrow.

    Parameters
    ----------
    a, b : array or tensor (n_rows,)
        Costs (or regrets, or scores) of the two learners on the same rows, in the same order.
    level : float
        Confidence of the interval, between 0 and 1.
    n_resamples : int
        At least 2 / (1 − level), so that a resample lies beyond each end.
    block_length : int
        1 for rows that are independent; for a time series somewhat longer than its memory. At
        most half the rows.
    random_state : int or numpy.random.Generator

    Returns
    -------
    Difference
    """
    level = as_level("level", level)
    first, second = as_paired_rows(a, b)
    n, length = len(first), as_count("block_length", block_length)
    if length > n // 2:
        raise InvalidInputError(
            f"block_length must be at most half of the {n} rows, but is {length}: too few blocks "
            "are left to tell how they differ"
        )
    n_resamples = require_enough_resamples(n_resamples, level)
    difference = first - second
    estimate = float(difference.mean())
    shifts = _resampled_means(
        difference - estimate, length, n_resamples, as_generator(random_state)
    )
    lower, upper = ends(shifts, level)
    return Difference(estimate, estimate + lower, estimate + upper, level)


def _resampled_means(
    centred: np.ndarray, length: int, n_resamples: int, generator: np.random.Generator
) -> np.ndarray:
    """Means of circular block resamples, ``(n_resamples,)``; the last block may be cut short."""
    n = len(centred)
    n_full, rest = divmod(n, length)
    # The sum of the block that starts at s is totals[s + length] − totals[s], around the end.
    totals = np.concatenate([[0.0], np.cumsum(np.concatenate([centred, centred[:length]]))])
    full = totals[length : length + n] - totals[:n]
    cut = totals[rest : rest + n] - totals[:n]
    sums = np.empty(n_resamples)
    for part in parts(n_resamples, n_full):
        size = part.stop - part.start
        sums[part] = full[generator.integers(n, size=(size, n_full))].sum(1)
        if rest:
            sums[part] += cut[generator.integers(n, size=size)]
    return sums / n
