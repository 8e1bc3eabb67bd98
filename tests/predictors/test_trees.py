"""Trees as arrays: leaves, weights and forecasts are those of scikit-learn."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from scipy.stats import norm
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor

import forewise as fw
from forewise.predictors import ForestPredictor
from forewise.predictors.censoring import shared
from forewise.predictors.sampling import (
    mean_and_std,
    outcome_order,
    standardise,
    weighted_scenarios,
)
from tests.predictors import tables
from tests.predictors.tables import moments, order_quantity


def table(n_rows=400, n_outcomes=2, seed=0):
    """A table in which one of the columns has few values."""
    X, y = tables.table(n_rows, n_outcomes, seed)
    X[:, 1] = np.round(X[:, 1] / 10)
    return X, y


# --- forests -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def grown():
    """A forest, its data in the order it keeps them, and scikit-learn's twin of it."""
    X, y = tables.table(300, n_outcomes=2)
    X[:, 0] = np.round(X[:, 0])
    predictor = fw.ForestPredictor(n_trees=30, min_leaf=4, random_state=5).fit(X, y)
    # The same numbers to the last bit: two splits may be equally good but for rounding.
    scales, order = mean_and_std(y), outcome_order(y)
    X, y = X[order], y[order]
    twin = RandomForestRegressor(30, min_samples_leaf=4, random_state=5)
    return predictor, X, y, twin.fit(X, standardise(y, *scales))


def test_forest_scenarios_are_weighted_by_common_leaves(grown):
    predictor, X, y, twin = grown
    # Halfway between, on, and a rounding error off the thresholds: single precision decides.
    rounded = np.unique(X[:, 0])
    hard = np.repeat(X[:1], 3 * len(rounded), axis=0)
    hard[:, 0] = np.concatenate([rounded + 0.5, rounded + 0.5 + 1e-9, rounded + 0.5 + 1e-5])
    contexts = np.concatenate([X, tables.table(200, seed=1)[0], hard, [[1e30, -1e30, 0.0]]])
    common = twin.apply(contexts)[:, None] == twin.apply(X)[None]
    expected = (common / common.sum(axis=1, keepdims=True)).mean(axis=2)
    drawn = predictor.sample(contexts, 300)
    assert drawn.values.shape == (len(contexts), 300, 2)
    n_positive = (expected > 0).sum(axis=1)
    for row, (values, weights) in enumerate(zip(drawn.values, drawn.weights, strict=True)):
        count = n_positive[row]
        np.testing.assert_allclose(weights[:count], expected[row, expected[row] > 0], atol=1e-15)
        np.testing.assert_array_equal(values[:count], y[expected[row] > 0])
        assert (weights[count:] == 0).all()


def test_forest_uses_the_column_that_matters():
    """Demand depends on the first of ten columns alone; spread within a level is kept."""
    random = np.random.default_rng(0)
    X = random.standard_normal((600, 10))
    y = np.where(X[:, 0] > 0, 100.0, 20.0) + random.uniform(-5, 5, 600)
    predictor = fw.ForestPredictor(n_trees=50, min_leaf=20).fit(X, y)
    contexts = random.standard_normal((50, 10))
    contexts[:, 0] = np.where(np.arange(50) < 25, 0.5, -0.5)
    mean, variance = moments(predictor.sample(contexts, 600))
    np.testing.assert_allclose(mean[:25], 100, atol=1.5)
    np.testing.assert_allclose(mean[25:], 20, atol=1.5)
    np.testing.assert_allclose(variance, 100 / 12, rtol=0.4)


def support(predictor, X):
    """Mean number of past outcomes that a context's weight is spread over."""
    weights = predictor._weights(X)
    return float((1 / (weights**2).sum(axis=1)).mean())


@pytest.mark.parametrize("n_outcomes", [1, 2])
def test_leaves_are_as_large_as_the_noise_asks_for(n_outcomes):
    random = np.random.default_rng(0)
    X = random.uniform(size=(300, 2))
    noise = random.normal(size=(300, n_outcomes))
    curve, nothing = (
        fw.ForestPredictor(n_trees=40).fit(X, y)
        for y in (np.sin(6 * X[:, :1]) + 0.01 * noise, noise)
    )
    assert support(curve, X) < 15
    assert support(nothing, X) > 60


def test_trees_that_were_cut_back_are_whole():
    """Every node but the roots is one node's child, and leaves hold each training row once."""
    X, y = tables.table(200, 1)
    predictor = fw.ForestPredictor(n_trees=20).fit(X, y + 50 * np.random.default_rng(0).normal())
    n_nodes = len(predictor.left_)
    inner = predictor.left_ >= 0
    children = np.concatenate([predictor.left_[inner], predictor.right_[inner]])
    assert np.array_equal(np.sort([*children, *predictor.roots_]), np.arange(n_nodes))
    counts = np.diff(predictor.leaf_starts_)
    assert (counts[inner] == 0).all()
    assert (counts[~inner] > 0).all()
    order = np.argsort(np.argsort(predictor.outcomes_[:, 0], kind="stable"))
    leaves = predictor._leaves(X[outcome_order(y)][order])
    assert np.array_equal(np.bincount(leaves.ravel(), minlength=n_nodes), counts)


def test_the_number_of_threads_changes_nothing():
    X, y = tables.table(100, 2)
    one, two = (fw.ForestPredictor(n_trees=10, n_jobs=n).fit(X, y).sample(X) for n in (1, 2))
    np.testing.assert_array_equal(one.values, two.values)


# --- boosting ----------------------------------------------------------------------------------


def test_forecasts_are_those_of_scikit_learn():
    X, y = table()
    contexts = np.concatenate([table(100, seed=1)[0], [[1e30, -1e30, 0.0]]])
    predictor = fw.BoostingPredictor(30, 0.2, max_leaves=8, min_leaf=20).fit(X, y)
    for outcome in range(2):
        mean, std = y[:, outcome].mean(), y[:, outcome].std()
        twin = HistGradientBoostingRegressor(
            max_iter=30, learning_rate=0.2, max_leaf_nodes=8, early_stopping=False
        ).fit(X, (y[:, outcome] - mean) / std)
        np.testing.assert_allclose(
            predictor.predict(contexts)[:, outcome], mean + std * twin.predict(contexts)
        )
    scenarios = predictor.sample(contexts, 64)
    assert scenarios.values.shape == (101, 1, 2)
    np.testing.assert_array_equal(scenarios.values[:, 0], predictor.predict(contexts))


def test_quantiles_cover_what_they_promise():
    """Noise grows with the first column, which a forecast with one set of errors cannot tell."""
    random = np.random.default_rng(0)
    X = random.uniform(0, 1, (6000, 2))
    y = 10 + X[:, 0] * (4 + random.standard_normal(6000)) * 5
    levels = (0.1, 0.25, 0.5, 0.75, 0.9)
    predictor = fw.QuantileBoostingPredictor(
        levels, n_trees=60, learning_rate=0.1, min_leaf=50
    ).fit(X[:4000], y[:4000])
    quantiles = predictor.predict_quantiles(X[4000:])[:, 0]
    assert (np.diff(quantiles) >= 0).all(), "quantiles are in order"
    scenarios = predictor.sample(X[4000:], 500)
    for k, level in enumerate(levels):
        decision = order_quantity(scenarios, level)[:, 0]
        # The nearest of 500 scenarios.
        assert np.abs(decision - quantiles[:, k]).max() < 0.02 * np.ptp(quantiles)
        for part in (X[4000:, 0] < 0.5, X[4000:, 0] >= 0.5):
            assert (y[4000:] <= decision)[part].mean() == pytest.approx(level, abs=0.05)


def test_scenarios_between_levels_are_on_a_line_in_the_normal_score():
    predictor = fw.QuantileBoostingPredictor((0.1, 0.5, 0.9), n_trees=5).fit(*table(n_outcomes=1))
    contexts = table(5, seed=1)[0]
    low, middle, high = predictor.predict_quantiles(contexts)[:, 0].T
    drawn = predictor.sample(contexts, 50).values[:, :, 0].numpy()
    for j in (0, 10, 40, 49):
        score = norm.ppf((j + 0.5) / 50) / norm.ppf(0.9)
        slope = middle - low if score < 0 else high - middle
        np.testing.assert_allclose(drawn[:, j], middle + score * slope, rtol=1e-9)


@pytest.mark.parametrize("n_rows", [1, 2, 20])
@pytest.mark.parametrize("kind", [fw.BoostingPredictor, fw.QuantileBoostingPredictor])
def test_few_rows_are_forecast_by_what_little_there_is(kind, n_rows):
    X, y = table(n_rows)
    drawn = kind(n_trees=20, min_leaf=5).fit(X, y).sample(table(5, seed=1)[0], 8).values
    assert y.min() - 100 <= drawn.min()
    assert drawn.max() <= y.max() + 100


def test_residuals_are_those_of_stretches_of_time():
    """Each fold is forecast from the rows before and after it, never from its own."""
    X, y = table(100, n_outcomes=1)
    regressor = fw.BoostingPredictor(n_trees=10, min_leaf=5)
    found = fw.ResidualPredictor(regressor, n_folds=4, shuffle=False).fit(X, y).residuals_
    errors = []
    for first in range(0, 100, 25):
        fold = np.zeros(100, dtype=bool)
        fold[first : first + 25] = True
        errors += [y[fold] - clone(regressor).fit(X[~fold], y[~fold]).predict(X[fold])]
    np.testing.assert_allclose(np.sort(np.concatenate(errors), axis=0), found)


def test_trees_that_are_stored_otherwise_are_noticed(monkeypatch):
    """The arrays come from private parts of scikit-learn: a change there must not go unseen."""
    original = HistGradientBoostingRegressor.predict
    monkeypatch.setattr(
        HistGradientBoostingRegressor, "predict", lambda self, X: original(self, X) + 1e-6
    )
    with pytest.raises(fw.exceptions.ForewiseError, match="scikit-learn stores boosted trees"):
        fw.BoostingPredictor(n_trees=2).fit(*table())


def test_outer_quantiles_cover_what_they_promise_on_new_rows():
    """Uncalibrated ones fit the training rows and cover far less."""
    random = np.random.default_rng(0)
    X, new = random.uniform(-1, 1, (1600, 4)), random.uniform(-1, 1, (4000, 4))

    def outcomes(x):
        return 10 * x[:, 0] + (1 + x[:, 1]) * random.normal(size=len(x))

    y, seen = outcomes(X), outcomes(new)
    covered = {}
    for share in (0.25, 0.0):
        fitted = fw.QuantileBoostingPredictor(calibration_share=share).fit(X, y)
        quantiles = fitted.predict_quantiles(new)[:, 0]
        covered[share] = np.mean((quantiles[:, 0] <= seen) & (seen <= quantiles[:, -1]))
    assert covered[0.25] == pytest.approx(0.9, abs=0.05)
    assert covered[0.0] < 0.8
    # Only the outer levels move, whatever the outcome's unit.
    small = fw.QuantileBoostingPredictor().fit(X, 1e-8 * y).predict_quantiles(new)[:, 0]
    large = fw.QuantileBoostingPredictor().fit(X, 1e8 * y).predict_quantiles(new)[:, 0]
    np.testing.assert_allclose(1e16 * small, large, rtol=1e-6, atol=1e-6 * np.abs(large).max())
    plain = fw.QuantileBoostingPredictor(calibration_share=0.0).fit(X, y).predict_quantiles(new)
    fitted = fw.QuantileBoostingPredictor().fit(X, y).predict_quantiles(new)
    np.testing.assert_array_equal(fitted[:, 0, 2:5], plain[:, 0, 2:5])


@pytest.mark.parametrize("width", [3, 64, 1000])
@pytest.mark.parametrize("censored", [False, True])
def test_scenarios_are_the_weights_of_leaves_resampled(width, censored):
    """The compiled pass against the weights themselves, to the bit."""
    random = np.random.default_rng(0)
    X = random.normal(size=(150, 4)).round(1)
    y = random.gamma(4.0, np.exp(0.5 * X[:, :1]))
    bound = {"censored": random.random(150) < 0.3} if censored else {}
    forest = ForestPredictor(20, random_state=0).fit(X, y, **bound)
    new = random.normal(size=(70, 4))
    weights_of = shared(forest._weights, forest.row_of_)
    count = min(width, len(forest.outcomes_))
    seed = np.random.default_rng(5)
    expected = weighted_scenarios(forest.outcomes_, new, weights_of, count, seed)
    found = forest._scenarios(new, width, np.random.default_rng(5))
    assert torch.equal(found.values, expected.values)
    assert torch.equal(found.weights, expected.weights)
    alone = forest._scenarios(new[7:8], width, np.random.default_rng(5))
    assert torch.equal(alone.values[0], found.values[7])


def test_trees_that_are_damaged_are_refused():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(60, 2)), random.normal(size=(60, 1))
    forest = ForestPredictor(3, random_state=0).fit(X, y)
    for name, value in (("left_", 0), ("feature_", 9), ("leaf_rows_", 60), ("roots_", -1)):
        damaged = copy.deepcopy(forest)
        getattr(damaged, name)[0] = value
        with pytest.raises(ValueError, match="must"):
            damaged.sample(X[:2], 4)
