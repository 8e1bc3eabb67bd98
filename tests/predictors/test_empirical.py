"""Past outcomes as scenarios: how they are picked, all of them, those of a group, of neighbours."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

import forewise as fw
from forewise.predictors.sampling import (
    equal_picks,
    outcome_order,
    systematic_picks,
    weighted_scenarios,
)
from tests.predictors.tables import moments, order_quantity, table, values_and_weights

# --- systematic resampling ---------------------------------------------------------------------


def test_systematic_picks_keep_the_weights():
    """A column's count is within one of its share; over starts it is its share."""
    random = np.random.default_rng(0)
    weights = random.dirichlet(np.full(40, 0.3), size=7)
    weights[:, ::5] = 0
    weights /= weights.sum(axis=1, keepdims=True)
    n_picks, starts = 25, (np.arange(400) + 0.5) / 400
    counts = np.zeros((400, 7, 40))
    for place, start in enumerate(starts):
        picks = systematic_picks(weights, n_picks, start)
        assert picks.shape == (7, n_picks)
        assert (np.diff(picks, axis=1) >= 0).all()
        for row in range(7):
            counts[place, row] = np.bincount(picks[row], minlength=40)
    assert np.abs(counts - n_picks * weights).max() < 1 + 1e-9
    assert (counts[:, weights == 0] == 0).all()
    np.testing.assert_allclose(counts.mean(axis=0), n_picks * weights, atol=1 / 200)


@pytest.mark.parametrize("start", [0.0, 1e-300, 0.5, np.nextafter(1, 0)])
def test_systematic_picks_lose_none_to_rounding(start):
    weights = np.full((3, 1000), 0.1)
    weights[:, 700:] = 0
    picks = systematic_picks(weights, 7000, start)
    assert picks.max() < 700
    assert np.abs(np.bincount(picks[0]) - 10).max() <= 1


def test_few_outcomes_come_exactly_and_many_are_resampled():
    """In one call: a context of three outcomes keeps them, one of six has four picks."""
    outcomes = np.arange(6.0)[:, None]
    weights = np.array([[0.5, 0, 0.2, 0, 0, 0.3], [0.1, 0.1, 0.1, 0.1, 0.1, 0.5]])
    drawn = weighted_scenarios(
        outcomes, np.zeros((2, 1)), lambda contexts: weights, 4, np.random.default_rng(0)
    )
    values, picked = values_and_weights(drawn)
    np.testing.assert_allclose(values[0, :3, 0], [0, 2, 5])
    np.testing.assert_allclose(picked[0], [0.5, 0.2, 0.3, 0])
    assert values[0, 3, 0] == 5, "what fills up must be an outcome of this context"
    np.testing.assert_allclose(picked[1], 0.25)
    assert (values[1, 2:, 0] == 5).all()


def test_outcomes_are_ordered_by_what_they_share():
    """Two outcomes in different units that rise together: the order is that of their rise."""
    rise = np.random.default_rng(0).permutation(50)
    outcomes = np.column_stack([rise, 1000.0 * rise])
    order = rise[outcome_order(outcomes)]
    assert (np.abs(np.diff(order)) == 1).all()


# --- all outcomes ------------------------------------------------------------------------------


def test_empirical_is_plain_saa():
    X, y = table(90, n_outcomes=1)
    predictor = fw.EmpiricalPredictor().fit(X, y)
    scenarios = predictor.sample(X[:4], 90)
    assert scenarios.equally_weighted
    quantile = np.quantile(y, 0.1, method="inverted_cdf")
    np.testing.assert_allclose(order_quantity(scenarios, 0.1), quantile)
    few = predictor.sample(X[:4], 9, random_state=0).values[0, :, 0].numpy()
    ranks = np.searchsorted(np.sort(y[:, 0]), few)
    assert (np.diff(ranks) == 10).all(), "one of every ten in order of value"
    assert len(equal_picks(5, 9, 0.5)) == 5


# --- groups ------------------------------------------------------------------------------------


def weeks(n_rows=140):
    """Demand by weekday; the last weekday has fewer rows."""
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"rain": random.random(n_rows), "weekday": np.arange(n_rows) % 7})
    demand = 10.0 * frame["weekday"] + random.integers(0, 10, n_rows)
    kept = (frame["weekday"] < 6) | (frame.index < 40)
    return frame[kept], demand[kept].rename("demand")


def test_scenarios_are_the_outcomes_of_the_weekday():
    X, y = weeks()
    scenarios = fw.GroupedPredictor(by="weekday").fit(X, y).sample(X, 64)
    assert scenarios.values.shape == (len(X), 20, 1)
    for row in range(14):
        present = scenarios.weights[row] > 0
        expected = np.sort(y[X["weekday"] == X["weekday"].iloc[row]])
        np.testing.assert_array_equal(scenarios.values[row, present, 0], expected)
        np.testing.assert_allclose(scenarios.weights[row, present], 1 / len(expected))
    quantiles = [np.quantile(y[X["weekday"] == d], 0.75, method="inverted_cdf") for d in range(7)]
    np.testing.assert_allclose(order_quantity(scenarios, 0.75)[:7, 0], quantiles)


def test_few_scenarios_are_spread_over_the_group():
    X, y = weeks()
    few = fw.GroupedPredictor(by="weekday").fit(X, y).sample(X, 5, random_state=1)
    assert few.values.shape == (len(X), 5, 1)
    means = few.values[:7, :, 0].mean(dim=1).numpy()
    np.testing.assert_allclose(means, y.groupby(X["weekday"]).mean(), atol=1.0)


def test_several_columns_by_name_or_number():
    X, y = weeks()
    X = X.assign(shop=np.arange(len(X)) % 2)
    named = fw.GroupedPredictor(by=["shop", "weekday"]).fit(X, y)
    numbered = fw.GroupedPredictor(by=(2, 1)).fit(X, y)
    assert len(named.groups_) == 14
    drawn, again = (p.sample(X, 64).values for p in (named, numbered))
    assert torch.equal(drawn, again)
    mine = (X["shop"] == 1) & (X["weekday"] == 3)
    row = int(np.flatnonzero(mine)[0])
    assert set(drawn[row, :, 0].tolist()) == set(y[mine])
    with pytest.raises(fw.InvalidInputError, match=r"but has 'shop'; .* numbers 0 to 2, no names"):
        fw.GroupedPredictor("shop").fit(X.to_numpy(), y)


def test_an_unseen_group_is_an_error_or_everything():
    X, y = weeks()
    strange = X.iloc[:3].assign(weekday=[9, 1, 8])
    with pytest.raises(fw.InvalidInputError, match=r"'weekday' .*: \[8.0\]; \[9.0\]"):
        fw.GroupedPredictor(by="weekday").fit(X, y).sample(strange)
    pooled = fw.GroupedPredictor(by="weekday", unseen="pool").fit(X, y)
    drawn = pooled.sample(strange, 500)
    np.testing.assert_array_equal(drawn.values[0, :, 0], np.sort(y))
    known = drawn.weights[1] > 0
    np.testing.assert_array_equal(drawn.values[1, known, 0], np.sort(y[X["weekday"] == 1]))
    # Another product at decide: the learner says it as the predictor does.
    learner = fw.DecoupledLearner(fw.Newsvendor(3.0, 1.0), fw.GroupedPredictor("weekday"))
    with pytest.raises(fw.InvalidInputError, match="'weekday'"):
        learner.fit(X, y).decide(strange)


# --- neighbours --------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["uniform", "epanechnikov"])
@pytest.mark.parametrize("n_neighbors", [1, 7, 150])
def test_neighbours_are_those_of_brute_force(kernel, n_neighbors):
    X, y = table()
    X = np.column_stack([X * [1, 1000, 0.001], np.full(len(X), 0.1)])
    predictor = fw.NeighborPredictor(n_neighbors, kernel).fit(X, y)
    contexts = np.column_stack([table(12, seed=1)[0] * [1, 1000, 0.001], np.arange(12.0)])
    drawn = predictor.sample(contexts, 150, random_state=0)
    for context, values, weights in zip(contexts, *values_and_weights(drawn), strict=True):
        scaled = ((X - context) / np.where(X.std(0) > 1e-9, X.std(0), np.inf))[:, :3]
        squared = (scaled**2).sum(axis=1)
        nearest = np.argsort(squared)[:n_neighbors]
        expected = np.ones(n_neighbors)
        if kernel == "epanechnikov" and n_neighbors > 1:
            expected = 1 - squared[nearest] / squared[nearest[-1]]
        expected = expected / expected.sum()
        np.testing.assert_allclose(weights @ values, expected @ y[nearest])
        np.testing.assert_allclose(weights @ values**2, expected @ y[nearest] ** 2)
        kept = values[weights > 0]
        assert len(kept) == (expected > 0).sum()
        assert {tuple(row) for row in kept} == {tuple(row) for row in y[nearest[expected > 0]]}


def test_all_rows_as_neighbours_are_plain_saa():
    X, y = table(80, n_outcomes=1)
    scenarios = fw.NeighborPredictor(n_neighbors=80).fit(X, y).sample(X[:5], 80)
    quantile = np.quantile(y, 0.75, method="inverted_cdf")
    np.testing.assert_allclose(order_quantity(scenarios, 0.75), quantile)


def test_contexts_that_tie_share_the_last_place():
    """Weekdays as contexts: every past Monday counts, in whatever order the rows came."""
    day = np.repeat(np.arange(7.0), 20)
    demand = 10 * day + np.tile(np.arange(20.0) / 10, 7)
    predictor = fw.NeighborPredictor(n_neighbors=8).fit(day[:, None], demand)
    values, weights = values_and_weights(predictor.sample([[3.0]], 100))
    monday = weights[0] > 0
    np.testing.assert_allclose(np.sort(values[0, monday, 0]), demand[day == 3])
    np.testing.assert_allclose(weights[0, monday], 1 / 20)
    # Half-way between two days: two sets of rows tie, more than a context may have.
    values, weights = values_and_weights(predictor.sample([[3.5]], 100, random_state=0))
    assert predictor.n_support_ == values.shape[1] == 27
    assert abs(weights[0] @ (values[0, :, 0] >= 40) - 0.5) <= 1 / 27
    epanechnikov = fw.NeighborPredictor(8, "epanechnikov").fit(day[:, None], demand)
    mean = moments(epanechnikov.sample([[3.0]], 100))[0]
    np.testing.assert_allclose(mean, demand[day == 3].mean())


def test_default_number_of_neighbours_follows_the_noise():
    """Few where the context says it all, many where it says nothing; the order does not matter."""
    X = np.linspace(0, 1, 400)[:, None]
    noise = np.random.default_rng(0).normal(size=(400, 1))
    smooth, noisy = (fw.NeighborPredictor().fit(X, y).n_neighbors_ for y in (np.sin(9 * X), noise))
    assert smooth == 10
    assert noisy >= 60
    order = np.random.default_rng(1).permutation(400)
    assert fw.NeighborPredictor().fit(X[order], noise[order]).n_neighbors_ == noisy
    assert fw.NeighborPredictor().fit(X[:1], noise[:1]).n_neighbors_ == 1
