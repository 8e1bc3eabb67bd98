"""The forest: leaves and weights of scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor

from forewise.predictors.forest import ForestPredictor
from forewise.predictors.networks.standardise import mean_and_std, standardise
from forewise.predictors.weighted_support import outcome_order
from tests.predictors.tables import moments, table


@pytest.fixture(scope="module")
def grown():
    """A forest, its data in the order it keeps them, and scikit-learn's twin of it."""
    X, y = table(300, n_outcomes=2)
    X[:, 0] = np.round(X[:, 0])
    predictor = ForestPredictor(n_trees=30, min_leaf=4, random_state=5).fit(X, y)
    # The same numbers to the last bit: two splits may be equally good but for rounding.
    scales, order = mean_and_std(y), outcome_order(y)
    X, y = X[order], y[order]
    twin = RandomForestRegressor(30, min_samples_leaf=4, random_state=5)
    return predictor, X, y, twin.fit(X, standardise(y, *scales))


def test_forest_finds_the_leaves_of_scikit_learn(grown):
    predictor, X, _, twin = grown
    # Halfway between, on, and a rounding error off the thresholds: single precision decides.
    rounded = np.unique(X[:, 0])
    hard = np.repeat(X[:1], 3 * len(rounded), axis=0)
    hard[:, 0] = np.concatenate([rounded + 0.5, rounded + 0.5 + 1e-9, rounded + 0.5 + 1e-5])
    contexts = np.concatenate([X, table(200, seed=1)[0], hard, [[1e30, -1e30, 0.0]]])
    np.testing.assert_array_equal(
        predictor._leaves(contexts) - predictor.roots_, twin.apply(contexts)
    )


def test_forest_weights_are_shares_of_common_leaves(grown):
    predictor, X, y, twin = grown
    contexts = table(25, seed=1)[0]
    common = twin.apply(contexts)[:, None] == twin.apply(X)[None]
    expected = (common / common.sum(axis=1, keepdims=True)).mean(axis=2)
    weights = predictor._weights(contexts)
    np.testing.assert_allclose(weights, expected, atol=1e-15)
    np.testing.assert_allclose(weights.sum(axis=1), 1)
    drawn = predictor.sample(contexts, 300)
    np.testing.assert_allclose(moments(drawn)[0], expected @ y)
    assert drawn.values.shape == (25, 300, 2)


def test_forest_uses_the_column_that_matters():
    """Demand depends on the first of ten columns alone; spread within a level is kept."""
    random = np.random.default_rng(0)
    X = random.standard_normal((600, 10))
    y = np.where(X[:, 0] > 0, 100.0, 20.0) + random.uniform(-5, 5, 600)
    predictor = ForestPredictor(n_trees=50, min_leaf=20).fit(X, y)
    contexts = random.standard_normal((50, 10))
    contexts[:, 0] = np.where(np.arange(50) < 25, 0.5, -0.5)
    mean, variance = moments(predictor.sample(contexts, 600))
    np.testing.assert_allclose(mean[:25], 100, atol=1.5)
    np.testing.assert_allclose(mean[25:], 20, atol=1.5)
    np.testing.assert_allclose(variance, 100 / 12, rtol=0.4)
