"""Intervals from resampled weeks: against brute force, and what they cover."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import forewise as fw
from forewise import block_bootstrap, block_bootstrap_difference
from forewise.evaluation import Interval
from forewise.exceptions import InvalidInputError


def weekly(n_weeks=52, seed=0, shops=3):
    """Costs of some shops on all days; half of their spread is shared by a whole week."""
    random = np.random.default_rng(seed)
    dates = np.repeat(pd.date_range("2024-01-01", periods=7 * n_weeks), shops)
    week = np.repeat(random.normal(size=n_weeks), 7 * shops)
    return 10 + week + random.normal(size=len(dates)), dates


def test_resamples_are_whole_weeks():
    costs, dates = weekly(12)
    found = block_bootstrap(costs, dates, n_resamples=4000)
    blocks = costs.reshape(12, -1)
    random = np.random.default_rng(5)
    means = np.array([blocks[random.integers(12, size=12)].mean() for _ in range(4000)])
    lower, upper = np.quantile(means, [0.025, 0.975])
    assert found.estimate == pytest.approx(costs.mean())
    assert found.lower == pytest.approx(lower, abs=0.05)
    assert found.upper == pytest.approx(upper, abs=0.05)
    assert (found.level, found.n_blocks) == (0.95, 12)
    assert isinstance(found, Interval)


def test_weeks_begin_on_mondays_and_rows_may_come_in_any_order():
    costs, dates = weekly(12)
    order = np.random.default_rng(1).permutation(len(costs))
    found = block_bootstrap(costs[order], dates[order])
    assert found.n_blocks == 12
    same = block_bootstrap(costs, dates)
    assert (found.lower, found.upper) == pytest.approx((same.lower, same.upper), rel=1e-12)
    assert block_bootstrap(costs, dates + pd.Timedelta(days=1)).n_blocks == 13
    assert block_bootstrap(costs, dates, block_days=28).n_blocks in (3, 4)
    assert block_bootstrap(costs, dates, block_days=1).n_blocks == 84


def test_intervals_cover_the_mean_as_often_as_they_say():
    inside = by_rows = 0
    for seed in range(200):
        costs, dates = weekly(40, seed)
        found = block_bootstrap(costs, dates, level=0.9, n_resamples=300, random_state=seed)
        inside += found.lower <= 10 <= found.upper
        alone = block_bootstrap(costs, dates, 1, level=0.9, n_resamples=300, random_state=seed)
        by_rows += alone.lower <= 10 <= alone.upper
    assert 0.84 <= inside / 200 <= 0.95
    assert by_rows / 200 < 0.65, "single days are not independent here"


def test_more_shops_on_the_same_days_are_no_more_evidence():
    costs, dates = weekly(30)
    once = block_bootstrap(costs, dates)
    often = block_bootstrap(np.tile(costs, 50), np.tile(dates, 50))
    assert (often.lower, often.upper) == pytest.approx((once.lower, once.upper), rel=1e-9)


def test_differences_are_paired():
    costs, dates = weekly(30)
    constant = block_bootstrap_difference(costs + 0.25, costs, dates)
    assert (constant.estimate, constant.lower, constant.upper) == pytest.approx((0.25, 0.25, 0.25))
    assert constant.significant
    share = block_bootstrap_difference(0.8 * costs, costs, dates, relative=True)
    assert (share.estimate, share.lower, share.upper) == pytest.approx((-0.2, -0.2, -0.2))
    noise = np.random.default_rng(3).normal(size=len(costs))
    noise -= noise.mean()
    none = block_bootstrap_difference(costs + noise, costs, dates)
    assert not none.significant
    alone = block_bootstrap(costs, dates)
    assert none.upper - none.lower < 0.5 * (alone.upper - alone.lower)
    swapped = block_bootstrap_difference(costs, costs + noise, dates)
    assert (swapped.lower, swapped.upper) == pytest.approx((-none.upper, -none.lower))


def test_weeks_with_fewer_rows_count_less():
    """The mean is over rows, in the data and in every resample."""
    dates = pd.to_datetime(["2024-01-01"] * 9 + ["2024-01-08"])
    found = block_bootstrap([1.0] * 9 + [11.0], dates, n_resamples=2000)
    assert found.estimate == 2.0
    assert (found.lower, found.upper) == (1.0, 11.0)


def test_seeds_repeat():
    costs, dates = weekly(20)
    assert block_bootstrap(costs, dates, random_state=4) == block_bootstrap(
        costs, dates, random_state=4
    )
    assert block_bootstrap(costs, dates, random_state=4) != block_bootstrap(
        costs, dates, random_state=np.random.default_rng(5)
    )


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"dates": pd.date_range("2024-01-01", periods=3)}, r"one day per row, shape \(63,\)"),
        ({"dates": ["tomorrow"] * 63}, "dates must be days, but are not"),
        ({"dates": pd.to_datetime([None] * 63)}, "dates must have a day in every row"),
        ({"dates": pd.date_range("2024-01-01", periods=63, tz="UTC")}, "days without a time zone"),
        ({"dates": np.arange(63)}, "dates must be days without a time zone, .* of type int64"),
        ({"dates": ["2024-01-01"] * 63}, r"at least 2 blocks of 7 day\(s\), but are all in one"),
        ({"block_days": 0}, "block_days must be a whole number, at least 1, but is 0"),
        ({"n_resamples": 10}, "n_resamples must be at least 2"),
        ({"level": 95}, "level must lie strictly between 0 and 1"),
        ({"costs": [[1.0]]}, r"costs must have shape \(n_rows,\)"),
        ({"costs": [np.nan] * 63}, "costs must be finite"),
        ({"random_state": "x"}, "random_state must be a nonnegative whole number"),
    ],
)
def test_bad_input_is_named(change, told):
    costs, dates = weekly(3)
    with pytest.raises(InvalidInputError, match=told):
        block_bootstrap(**{"costs": costs, "dates": dates, **change})


def test_bad_pairs_are_named():
    costs, dates = weekly(3)
    with pytest.raises(InvalidInputError, match="a and b must be costs of the same rows"):
        block_bootstrap_difference(costs, costs[1:], dates)
    with pytest.raises(fw.ForewiseError, match="relative=True needs a positive mean of b"):
        block_bootstrap_difference(costs, costs - 100, dates, relative=True)
