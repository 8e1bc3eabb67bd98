"""Intervals, tests and slopes against scipy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from forewise_lab.report.statistics import (
    BETTER,
    SAME,
    WORSE,
    PaperValue,
    compare,
    paired_difference,
    slope_per_doubling,
    summarise,
)

GENERATOR = np.random.default_rng(4)


@pytest.mark.parametrize("n", [3, 5, 30])
def test_summary_agrees_with_scipy(n):
    values = GENERATOR.normal(30, 4, n)
    found = summarise(values)
    expected = stats.t.interval(0.95, n - 1, values.mean(), stats.sem(values))
    assert (found.n, found.mean, found.std) == pytest.approx((n, values.mean(), values.std(ddof=1)))
    assert (found.lower, found.upper) == pytest.approx(expected)


def test_one_seed_has_a_mean_and_no_interval():
    found = summarise([31.0])
    assert found.mean == 31.0
    assert not found.has_interval
    assert math.isnan(found.std)
    assert math.isnan(found.upper)


def test_two_seeds_have_a_spread_and_no_interval():
    found = summarise([31.0, 33.0])
    assert found.has_std
    assert found.std == pytest.approx(math.sqrt(2))
    assert not found.has_interval
    assert math.isnan(found.lower)
    assert "two seeds" in found.excuse
    assert compare(found, PaperValue(33, 7)) is None


@pytest.mark.parametrize("shift", [-9.0, -3.0, 0.0, 2.0, 12.0])
@pytest.mark.parametrize("n", [3, 5, 9])
def test_comparison_agrees_with_scipy(shift, n):
    values = GENERATOR.normal(33 + shift, 2.5, n)
    found = compare(summarise(values), PaperValue(33, 7))
    expected = stats.ttest_ind_from_stats(
        values.mean(), values.std(ddof=1), n, 33, 7, 5, equal_var=False
    )
    assert found.p_value == pytest.approx(expected.pvalue)
    significant = expected.pvalue < 0.05
    assert (found.verdict == SAME) is not significant


def test_verdict_says_which_way():
    below, above = ([v + shift for v in (0.0, 0.5, 1.0)] for shift in (-40, 40))
    assert compare(summarise(below), PaperValue(33, 2)).verdict == BETTER
    assert compare(summarise(above), PaperValue(33, 2)).verdict == WORSE


def test_nothing_is_tested_without_spread():
    assert compare(summarise([1.0, 2.0, 3.0]), PaperValue(3)) is None
    assert compare(summarise([1.0]), PaperValue(3, 1)) is None
    assert compare(summarise([1.0] * 3), PaperValue(3, 0)) is None
    # A method that does not depend on the seed still can be tested.
    assert compare(summarise([1.0] * 3), PaperValue(3, 0.1)).verdict == BETTER


def test_paired_difference_uses_shared_seeds():
    first = {0: 5.0, 1: 7.0, 2: 100.0, 4: 3.0}
    second = {0: 6.0, 1: 9.0, 3: 0.0, 4: 8.0}
    assert paired_difference(first, second) == summarise([-1.0, -2.0, -5.0])
    assert paired_difference(first, {}) is None


def test_slope_agrees_with_least_squares():
    sizes = [8, 16, 32, 64, 250]
    table = {m: {s: 90 - 7 * math.log2(m) + GENERATOR.normal() for s in range(5)} for m in sizes}
    slopes = [np.polyfit(np.log2(sizes), [table[m][s] for m in sizes], 1)[0] for s in range(5)]
    found, expected = slope_per_doubling(table), summarise(slopes)
    assert (found.mean, found.lower, found.upper) == pytest.approx(
        (expected.mean, expected.lower, expected.upper)
    )
    assert slope_per_doubling({8: {0: 1.0}}) is None
    assert slope_per_doubling({8: {0: 1.0}, 16: {1: 1.0}}) is None
