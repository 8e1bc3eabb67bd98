"""Bootstrap intervals of rows and of blocks: against brute force, and what they cover."""

from __future__ import annotations

import dataclasses
from itertools import product

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats

import forewise as fw
from forewise import metrics
from forewise.evaluation import Interval, block_bootstrap, block_bootstrap_difference
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
    ("change", "reported"),
    [
        ({"dates": pd.date_range("2024-01-01", periods=3)}, r"one day per row, shape \(63,\)"),
        ({"dates": ["tomorrow"] * 63}, "dates must be days, but are not"),
        ({"dates": pd.to_datetime([None] * 63)}, "dates must have a day in every row"),
        ({"dates": pd.date_range("2024-01-01", periods=63, tz="UTC")}, "days without a time zone"),
        ({"dates": np.arange(63)}, "dates must be days without a time zone, .* of type int64"),
        ({"dates": ["2024-01-01"] * 63}, r"at least 2 blocks of 7 day\(s\), but are all in one"),
        ({"block_days": 0}, "block_days must be .* but is 0"),
        ({"n_resamples": 10}, "n_resamples must be at least 2"),
        ({"level": 95}, "level must lie strictly between 0 and 1"),
        ({"costs": [[1.0]]}, r"costs must have shape \(n_rows,\)"),
        ({"costs": [np.nan] * 63}, "costs must be finite"),
        ({"random_state": "x"}, "random_state must be"),
    ],
)
def test_bad_input_is_named(change, reported):
    costs, dates = weekly(3)
    with pytest.raises(InvalidInputError, match=reported):
        block_bootstrap(**{"costs": costs, "dates": dates, **change})


def test_bad_pairs_are_named():
    costs, dates = weekly(3)
    with pytest.raises(InvalidInputError, match="a and b must be costs of the same rows"):
        block_bootstrap_difference(costs, costs[1:], dates)
    with pytest.raises(fw.ForewiseError, match="relative=True needs a positive mean of b"):
        block_bootstrap_difference(costs, costs - 100, dates, relative=True)


# Rows without dates


def autoregressive(rng, n, memory):
    noise, path = rng.normal(size=n), np.empty(n)
    path[0] = noise[0] / np.sqrt(1 - memory**2)
    for t in range(1, n):
        path[t] = memory * path[t - 1] + noise[t]
    return path


def test_interval_covers_the_true_difference_as_often_as_it_says():
    rng, hits, trials = np.random.default_rng(0), 0, 400
    for trial in range(trials):
        common = 10 * rng.normal(size=100)
        a, b = common + 0.3 + rng.normal(size=100), common + rng.exponential(size=100) - 1
        found = metrics.bootstrap_difference(a, b, 0.9, n_resamples=300, random_state=trial)
        hits += found.lower <= 0.3 <= found.upper
    # Three standard errors of a share of 0.9 are 0.045.
    assert 0.85 <= hits / trials <= 0.94


def test_interval_is_the_normal_one_for_many_rows():
    rng = np.random.default_rng(1)
    a, b = rng.normal(1, 2, 5000), rng.normal(size=5000)
    found = metrics.bootstrap_difference(a, b, level=0.9, n_resamples=4000)
    half_width = stats.norm.ppf(0.95) * (a - b).std() / np.sqrt(5000)
    assert found.estimate == pytest.approx(a.mean() - b.mean())
    assert found.upper - found.estimate == pytest.approx(half_width, rel=0.06)
    assert found.estimate - found.lower == pytest.approx(half_width, rel=0.06)


def test_pairing_matters():
    """Rows differ by far more than the learners do: only pairs distinguish the learners."""
    rng = np.random.default_rng(2)
    common = 100 * rng.normal(size=300)
    a, b = common + 1 + rng.normal(size=300), common + rng.normal(size=300)
    paired, shuffled = (metrics.bootstrap_difference(a, x) for x in (b, rng.permutation(b)))
    assert paired.significant
    assert not shuffled.significant
    assert paired.estimate == pytest.approx(shuffled.estimate)
    assert shuffled.upper - shuffled.lower > 20 * (paired.upper - paired.lower)


def test_blocks_widen_the_interval_of_a_series_with_memory():
    rng, width = np.random.default_rng(3), {1: [], 40: []}
    hits = {1: 0, 40: 0}
    for trial in range(150):
        difference = autoregressive(rng, 1000, 0.8)
        for length in width:
            found = metrics.bootstrap_difference(
                difference, np.zeros(1000), 0.9, 300, length, random_state=trial
            )
            width[length].append(found.upper - found.lower)
            hits[length] += found.lower <= 0 <= found.upper
    # The standard error of the mean is √((1 + 0.8) / (1 − 0.8)) = 3 times that of independent rows.
    assert 2.3 <= np.mean(width[40]) / np.mean(width[1]) <= 3.1
    assert hits[1] < 0.6 * 150
    assert hits[40] > 0.78 * 150


def test_blocks_hold_neighbours_together_around_the_end():
    """Blocks of two from an alternating row sum to nothing, wherever they start."""
    rows = np.tile([1.0, -1.0], 10)
    found = metrics.bootstrap_difference(rows, np.zeros(20), block_length=2)
    assert (found.lower, found.upper) == pytest.approx((0, 0), abs=1e-15)


def test_a_resample_has_as_many_rows_as_the_data():
    """Blocks of three in eleven rows: three whole ones and one of two, all starts alike."""
    rows = np.random.default_rng(4).normal(size=11)
    starts = np.arange(11)
    sums = [sum(rows[(starts + k) % 11] for k in range(length)) for length in (3, 2)]
    means = [sum(blocks) / 11 for blocks in product(sums[0], sums[0], sums[0], sums[1])]
    found = metrics.bootstrap_difference(
        rows, np.zeros(11), 0.9, n_resamples=100_000, block_length=3, random_state=5
    )
    exact = np.quantile(means, [0.05, 0.95])
    assert (found.lower, found.upper) == pytest.approx(tuple(exact), abs=0.01)


def test_signs_sizes_and_seeds():
    rng = np.random.default_rng(6)
    a, b = rng.normal(1, 1, 80), rng.normal(0, 1, 80)
    found = metrics.bootstrap_difference(a, b)
    assert found == metrics.bootstrap_difference(a.tolist(), torch.tensor(b, requires_grad=True))
    assert found != metrics.bootstrap_difference(a, b, random_state=1)
    assert found == metrics.bootstrap_difference(a, b, random_state=np.random.default_rng(0))
    tenfold = metrics.bootstrap_difference(10 * a, 10 * b)
    assert tenfold.lower == pytest.approx(10 * found.lower)
    assert metrics.bootstrap_difference(b, a).estimate == -found.estimate
    assert found.significant
    assert metrics.bootstrap_difference(b, a).significant
    assert not metrics.bootstrap_difference(a, a).significant
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.level = 0.5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"b": np.ones(9)}, "same rows, but have 10 and 9"),
        ({"a": np.ones((10, 1))}, r"a must have shape \(n_rows,\).*\(10, 1\)"),
        ({"a": [1.0], "b": [1.0]}, "at least 2 of them"),
        ({"a": 3.0}, r"a must have shape .*\(\)"),
        ({"b": np.full(10, np.nan)}, "b must be finite"),
        ({"level": 1.0}, "level must lie strictly between 0 and 1, but is 1"),
        ({"block_length": 6}, "at most half of the 10 rows, but is 6"),
        ({"block_length": 0}, "block_length must be .* but is 0"),
        ({"block_length": 1.5}, "block_length must be"),
        ({"n_resamples": True}, "n_resamples must be .* but is True"),
        ({"n_resamples": 39}, r"at least 2 / \(1 − level\) = 40, but is 39"),
        ({"random_state": -1}, "random_state must be"),
        ({"random_state": "now"}, "random_state must be"),
    ],
)
def test_bad_costs_of_rows_are_named(arguments, message):
    with pytest.raises(fw.InvalidInputError, match=message):
        metrics.bootstrap_difference(**{"a": np.ones(10), "b": np.ones(10), **arguments})


def test_the_fewest_resamples_are_allowed():
    assert metrics.bootstrap_difference(np.ones(10), np.zeros(10), n_resamples=40).significant
