"""Which outcomes of the past are picked, and how often: all of them, or some that stand for all."""

from __future__ import annotations

import numpy as np
import pytest

import forewise as fw
from forewise.predictors.empirical import EmpiricalPredictor
from forewise.predictors.weighted_support import (
    equal_picks,
    outcome_order,
    systematic_picks,
    weighted_scenarios,
)
from tests.predictors.tables import table, values_and_weights


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


def test_empirical_is_plain_saa():
    X, y = table(90, n_outcomes=1)
    predictor = EmpiricalPredictor().fit(X, y)
    scenarios = predictor.sample(X[:4], 90)
    assert scenarios.equally_weighted
    order = fw.solve(fw.Newsvendor(shortage=100.0, excess=900.0), scenarios).decision
    np.testing.assert_allclose(order, np.quantile(y, 0.1, method="inverted_cdf"))
    few = predictor.sample(X[:4], 9, random_state=0).values[0, :, 0].numpy()
    ranks = np.searchsorted(np.sort(y[:, 0]), few)
    assert (np.diff(ranks) == 10).all(), "one of every ten in order of value"
    assert len(equal_picks(5, 9, np.random.default_rng(0))) == 5
