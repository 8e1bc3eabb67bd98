"""Means over seeds, with 95 % t-intervals, Welch's test, paired differences and slopes.

Fewer than three seeds have no interval: Student's quantile for two is 12.7.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

LEVEL = 0.95
#: Fewer seeds than that have no interval.
FEWEST_SEEDS = 3
#: Runs behind the paper's means and standard deviations.
PAPER_RUNS = 5

BETTER, WORSE, SAME = "better", "worse", "same"


@dataclass(frozen=True)
class Summary:
    """The values of some seeds: mean, standard deviation (n − 1), 95 % t-interval of the mean.

    The interval of fewer than three seeds is NaN, and so is the standard deviation of one.
    """

    n: int
    mean: float
    std: float
    lower: float
    upper: float

    @property
    def has_interval(self) -> bool:
        return self.n >= FEWEST_SEEDS

    @property
    def has_std(self) -> bool:
        return self.n > 1

    @property
    def excuse(self) -> str:
        if self.has_interval:
            return ""
        return f"{'one seed' if self.n == 1 else 'two seeds'}: no interval"


@dataclass(frozen=True)
class PaperValue:
    """A figure of the paper, in the units of its tables; `std` is None where it gives none."""

    mean: float
    std: float | None = None


@dataclass(frozen=True)
class Comparison:
    """Our mean minus the paper's, and the two-sided p-value of Welch's test."""

    difference: float
    p_value: float

    @property
    def verdict(self) -> str:
        """`BETTER` (significantly below the paper), `WORSE` (above) or `SAME`."""
        if self.p_value >= 1 - LEVEL:
            return SAME
        return BETTER if self.difference < 0 else WORSE


def summarise(values: Sequence[float]) -> Summary:
    """The summary of at least one finite value."""
    array = np.asarray(values, dtype=np.float64)
    n, mean = len(array), float(array.mean())
    std = float(array.std(ddof=1)) if n > 1 else math.nan
    half = math.nan
    if n >= FEWEST_SEEDS:
        half = float(stats.t.ppf((1 + LEVEL) / 2, n - 1)) * std / math.sqrt(n)
    return Summary(n, mean, std, mean - half, mean + half)


def compare(ours: Summary, paper: PaperValue, paper_runs: int = PAPER_RUNS) -> Comparison | None:
    """Welch's t-test of our mean against the paper's.

    None where there is nothing to test with: the paper gives no standard deviation, we have fewer
    than three seeds, or neither side varies.
    """
    if paper.std is None or not ours.has_interval or ours.std == paper.std == 0:
        return None
    sides = (ours.mean, ours.std, ours.n), (paper.mean, paper.std, paper_runs)
    found = stats.ttest_ind_from_stats(*sides[0], *sides[1], equal_var=False)
    return Comparison(ours.mean - paper.mean, float(found.pvalue))


def paired_difference(first: Mapping[int, float], second: Mapping[int, float]) -> Summary | None:
    """first − second over the seeds that both have; None if there are none."""
    shared = sorted(first.keys() & second.keys())
    if not shared:
        return None
    return summarise([first[seed] - second[seed] for seed in shared])


def slope_per_doubling(by_size: Mapping[int, Mapping[int, float]]) -> Summary | None:
    """Change of a value when the size doubles: one least-squares slope per seed.

    `by_size` maps size to seed to value; only seeds that every size has are used.
    """
    if len(by_size) < 2:
        return None
    seeds = sorted(set.intersection(*(set(values) for values in by_size.values())))
    if not seeds:
        return None
    sizes = sorted(by_size)
    doublings = np.log2(np.asarray(sizes, dtype=np.float64))
    doublings -= doublings.mean()
    table = np.array([[by_size[size][seed] for size in sizes] for seed in seeds])
    return summarise(list(table @ doublings / (doublings @ doublings)))
