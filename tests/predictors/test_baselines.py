"""The predictors without a network: against brute force, closed forms and scikit-learn."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.linear_model import LinearRegression, PoissonRegressor, Ridge
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

import forewise as fw
from forewise.exceptions import ForewiseError, InvalidInputError, StorageError, UnfittedError
from forewise.predictors import weighted_support
from forewise.predictors.empirical import EmpiricalPredictor
from forewise.predictors.forest import ForestPredictor
from forewise.predictors.gaussian_process import GaussianProcessPredictor
from forewise.predictors.neighbor import NeighborPredictor
from forewise.predictors.residual import ResidualPredictor
from forewise.predictors.weighted_support import (
    equal_picks,
    outcome_order,
    systematic_picks,
    weighted_scenarios,
)

PREDICTORS = [
    EmpiricalPredictor(),
    NeighborPredictor(n_neighbors=20),
    NeighborPredictor(n_neighbors=20, kernel="epanechnikov"),
    ForestPredictor(n_trees=20, min_leaf=5),
    ResidualPredictor(),
    GaussianProcessPredictor(),
]
each_predictor = pytest.mark.parametrize(
    "predictor", PREDICTORS, ids=lambda p: f"{type(p).__name__}-{getattr(p, 'kernel', '')}"
)


def table(n_rows=150, n_outcomes=2, seed=0, n_features=3):
    """Contexts and outcomes that depend on them, in units far from standardised."""
    random = np.random.default_rng(seed)
    X = 50 + 20 * random.standard_normal((n_rows, n_features))
    y = 300 + 4 * X[:, :1] + 10 * np.arange(1, n_outcomes + 1) * np.sin(X[:, -1:] / 10)
    return X, y + 15 * random.standard_normal((n_rows, n_outcomes))


def values_and_weights(scenarios):
    return scenarios.values.numpy(), scenarios.weights.numpy()


def moments(scenarios):
    """Weighted mean and variance of each context, (n_contexts, n_outcomes)."""
    values, weights = values_and_weights(scenarios)
    mean = np.einsum("bm,bmk->bk", weights, values)
    return mean, np.einsum("bm,bmk->bk", weights, (values - mean[:, None]) ** 2)


# --- what every predictor promises -----------------------------------------------------------


@parametrize_with_checks(
    [
        EmpiricalPredictor(),
        NeighborPredictor(),
        NeighborPredictor(kernel="epanechnikov"),
        ForestPredictor(n_trees=5),
        ResidualPredictor(),
        GaussianProcessPredictor(),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@each_predictor
@pytest.mark.parametrize("n_scenarios", [1, 16, 1000])
def test_scenarios_do_not_depend_on_the_other_contexts(predictor, n_scenarios, monkeypatch):
    X, y = table()
    fitted = clone(predictor).fit(X, y)
    contexts = table(30, seed=1)[0]
    values, weights = values_and_weights(fitted.sample(contexts, n_scenarios, random_state=3))
    assert len(values) == 30
    assert values.shape[1] <= n_scenarios
    assert values.shape[2] == 2

    order = np.random.default_rng(0).permutation(30)
    shuffled = values_and_weights(fitted.sample(contexts[order], n_scenarios, random_state=3))
    np.testing.assert_allclose(shuffled[0], values[order], rtol=1e-9)
    np.testing.assert_allclose(shuffled[1], weights[order], rtol=1e-9)
    alone = values_and_weights(fitted.sample(contexts[7:8], n_scenarios, random_state=3))
    np.testing.assert_allclose(alone[0], values[7:8], rtol=1e-9)
    np.testing.assert_allclose(alone[1], weights[7:8], rtol=1e-9)

    monkeypatch.setattr(weighted_support, "_ENTRIES", 400)  # cut into pieces of 2 contexts
    pieces = values_and_weights(fitted.sample(contexts, n_scenarios, random_state=3))
    np.testing.assert_allclose(pieces[0], values, rtol=1e-9)
    np.testing.assert_allclose(pieces[1], weights, rtol=1e-9)


@each_predictor
def test_random_state_decides_the_scenarios(predictor):
    fitted = clone(predictor).fit(*table())
    contexts = table(5, seed=1)[0]
    first = fitted.sample(contexts, 8, random_state=1).values
    assert torch.equal(first, fitted.sample(contexts, 8, random_state=1).values)
    others = [fitted.sample(contexts, 8, random_state=seed).values for seed in range(2, 6)]
    assert any(not torch.equal(first, other) for other in others)


@each_predictor
def test_fewer_scenarios_keep_mean_and_spread(predictor):
    """32 scenarios stand for the whole distribution, without a bias."""
    fitted = clone(predictor).fit(*table(n_outcomes=1))
    contexts = table(10, seed=1)[0]
    mean, variance = moments(fitted.sample(contexts, 4096, random_state=0))
    few = [moments(fitted.sample(contexts, 32, random_state=seed)) for seed in range(20)]
    std = np.sqrt(variance)
    for part in few:
        assert np.abs((part[0] - mean) / std).max() < 0.25
    assert np.abs((np.mean([part[0] for part in few], 0) - mean) / std).max() < 0.05
    assert np.abs(np.mean([part[1] for part in few], 0) / variance - 1).max() < 0.15


@each_predictor
def test_units_of_measure_do_not_matter(predictor):
    """Other units of contexts and outcomes: the same scenarios in those units."""
    X, y = table()
    contexts = table(6, seed=1)[0]
    scale, shift = np.array([8.0, 0.25, 64.0]), np.array([0.0, 2.0, -64.0])
    plain = clone(predictor).fit(X, y).sample(contexts, 500, random_state=0)
    other = clone(predictor).fit(X * scale + shift, y * 4 - 32)
    moved = other.sample(contexts * scale + shift, 500, random_state=0)
    (mean, variance), (moved_mean, moved_variance) = moments(plain), moments(moved)
    np.testing.assert_allclose(moved_mean, 4 * mean - 32, rtol=1e-4)
    np.testing.assert_allclose(moved_variance, 16 * variance, rtol=1e-3)


@each_predictor
def test_fitted_state_is_arrays_numbers_and_text(predictor):
    """No object of another library may be needed to draw scenarios from what was stored."""
    fitted = clone(predictor).fit(*table())
    state = fitted.state()
    plain = np.ndarray | int | float | str | None
    assert all(isinstance(value, plain) for value in state.values()), list(state)
    copy = clone(predictor)
    copy.restore(state)
    contexts = table(4, seed=1)[0]
    drawn, again = (p.sample(contexts, 16, random_state=0) for p in (fitted, copy))
    assert torch.equal(drawn.values, again.values)
    assert torch.equal(drawn.weights, again.weights)


@each_predictor
@pytest.mark.parametrize("n_rows", [1, 2])
def test_tiny_data_and_constant_columns(predictor, n_rows):
    settings = {"n_neighbors": n_rows} if "n_neighbors" in predictor.get_params() else {}
    fitted = clone(predictor).set_params(**settings)
    fitted.fit(np.full((n_rows, 2), 0.1), np.full((n_rows, 1), 0.7))
    values = fitted.sample([[0.1, 0.1], [5.0, -3.0]], 16, random_state=0).values.numpy()
    np.testing.assert_allclose(values, 0.7)


@each_predictor
def test_data_frames_and_vectors(predictor):
    X, y = table(n_outcomes=1)
    frame = pd.DataFrame(X, columns=["day", "price", "rain"])
    fitted = clone(predictor).fit(frame, pd.Series(y[:, 0], name="demand"))
    assert fitted.outcome_names_ == ["demand"]
    plain = clone(predictor).fit(X, y)
    drawn = fitted.sample(frame[:3], 8, random_state=0).values
    assert torch.equal(drawn, plain.sample(X[:3], 8, random_state=0).values)
    again = pickle.loads(pickle.dumps(fitted))
    assert torch.equal(drawn, again.sample(frame[:3], 8, random_state=0).values)


# --- what every predictor refuses ------------------------------------------------------------


@each_predictor
def test_bad_tables_are_refused(predictor):
    X, y = table(20)
    frame = pd.DataFrame(X, columns=["day", "price", "rain"])
    broken = frame.copy()
    broken.loc[3, "price"] = np.nan
    with pytest.raises(InvalidInputError, match=r"X must be finite.*'price' \(1 of 20 rows\)"):
        clone(predictor).fit(broken, y)
    with pytest.raises(InvalidInputError, match=r"numbers in every column, but has 'day'"):
        clone(predictor).fit(frame.assign(day="Monday"), y)
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        clone(predictor).fit(sparse.csr_array(X), y)
    with pytest.raises(InvalidInputError, match="same number of rows"):
        clone(predictor).fit(X, y[:-1])
    with pytest.raises(UnfittedError, match="not fitted yet: call fit"):
        clone(predictor).sample(X)

    with pytest.raises(InvalidInputError, match=r"2 features, but .* is expecting 3"):
        clone(predictor).fit(X, y).sample(X[:, :2])
    fitted = clone(predictor).fit(frame, y)
    with pytest.raises(InvalidInputError, match=r"(?s)feature names.*wind"):
        fitted.sample(frame.rename(columns={"rain": "wind"}))
    for wrong in (0, -1, 2.5, True, "8"):
        with pytest.raises(InvalidInputError, match="n_scenarios must be a whole number"):
            fitted.sample(frame, wrong)


@pytest.mark.parametrize(
    ("predictor", "message"),
    [
        (NeighborPredictor(n_neighbors=21), "at most the number of training rows, 20, but is 21"),
        (NeighborPredictor(n_neighbors=0), "n_neighbors must be a whole number of at least 1"),
        (NeighborPredictor(n_neighbors=2.5), "n_neighbors must be a whole number"),
        (NeighborPredictor(kernel="cosine"), "one of 'uniform', 'epanechnikov', but is 'cosine'"),
        (ForestPredictor(n_trees=0), "n_trees must be a whole number of at least 1, but is 0"),
        (ForestPredictor(min_leaf=True), "min_leaf must be a whole number of at least 1"),
        (ForestPredictor(max_features="all"), "the forest cannot be grown: .*max_features"),
        (ResidualPredictor(n_folds=1), "n_folds must be a whole number of at least 2, but is 1"),
        (ResidualPredictor(LinearRegression), "regressor must be a scikit-learn regressor"),
        (ResidualPredictor("ridge"), "regressor must be a scikit-learn regressor"),
        (GaussianProcessPredictor(n_restarts=-1), "n_restarts must be a whole number"),
        (GaussianProcessPredictor(noise_bounds=(1, 0.1)), "noise_bounds must have its lower end"),
        (GaussianProcessPredictor(noise_bounds=0.1), "noise_bounds must be a pair"),
        (
            GaussianProcessPredictor(length_scale_bounds=(0, 1)),
            "each end of length_scale_bounds must be a finite number above 0, but is 0",
        ),
        (GaussianProcessPredictor(alpha=-1.0), "alpha must be a finite number above 0"),
        (GaussianProcessPredictor(max_rows=0), "max_rows must be a whole number"),
    ],
)
def test_bad_settings_are_refused(predictor, message):
    with pytest.raises(InvalidInputError, match=message):
        predictor.fit(*table(20))


# --- resampling ------------------------------------------------------------------------------


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


# --- empirical -------------------------------------------------------------------------------


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


# --- neighbours ------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["uniform", "epanechnikov"])
@pytest.mark.parametrize("n_neighbors", [1, 7, 150])
def test_neighbours_are_those_of_brute_force(kernel, n_neighbors):
    X, y = table()
    X = np.column_stack([X * [1, 1000, 0.001], np.full(len(X), 0.1)])
    predictor = NeighborPredictor(n_neighbors, kernel).fit(X, y)
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
        mean, second = expected @ y[nearest], expected @ y[nearest] ** 2
        np.testing.assert_allclose(weights @ values, mean)
        np.testing.assert_allclose(weights @ values**2, second)
        kept = values[weights > 0]
        assert len(kept) == (expected > 0).sum()
        assert {tuple(row) for row in kept} == {tuple(row) for row in y[nearest[expected > 0]]}


def test_all_rows_as_neighbours_are_plain_saa():
    X, y = table(80, n_outcomes=1)
    scenarios = NeighborPredictor(n_neighbors=80).fit(X, y).sample(X[:5], 80)
    order = fw.solve(fw.Newsvendor(shortage=3.0, excess=1.0), scenarios).decision
    np.testing.assert_allclose(order, np.quantile(y, 0.75, method="inverted_cdf"))


def test_contexts_that_tie_share_the_last_place():
    """Weekdays as contexts: every past Monday counts, in whatever order the rows came."""
    day = np.repeat(np.arange(7.0), 20)
    demand = 10 * day + np.tile(np.arange(20.0) / 10, 7)
    predictor = NeighborPredictor(n_neighbors=8).fit(day[:, None], demand)
    values, weights = values_and_weights(predictor.sample([[3.0]], 100))
    monday = weights[0] > 0
    np.testing.assert_allclose(np.sort(values[0, monday, 0]), demand[day == 3])
    np.testing.assert_allclose(weights[0, monday], 1 / 20)
    # Half-way between two days: two sets of rows tie, more than a context may have.
    values, weights = values_and_weights(predictor.sample([[3.5]], 100, random_state=0))
    assert predictor.n_support_ == values.shape[1] == 27
    assert abs(weights[0] @ (values[0, :, 0] >= 40) - 0.5) <= 1 / 27
    epanechnikov = NeighborPredictor(8, "epanechnikov").fit(day[:, None], demand)
    mean = moments(epanechnikov.sample([[3.0]], 100))[0]
    np.testing.assert_allclose(mean, demand[day == 3].mean())


def test_default_number_of_neighbours():
    assert NeighborPredictor().fit(*table(150)).n_neighbors_ == 12
    assert NeighborPredictor().fit(*table(1)).n_neighbors_ == 1


# --- forest ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def grown():
    """A forest, its data in the order it keeps them, and scikit-learn's twin of it."""
    X, y = table(300, n_outcomes=2)
    X[:, 0] = np.round(X[:, 0])
    predictor = ForestPredictor(n_trees=30, min_leaf=4, random_state=5).fit(X, y)
    order = outcome_order(y)
    X, y = X[order], y[order]
    twin = RandomForestRegressor(30, min_samples_leaf=4, random_state=5)
    return predictor, X, y, twin.fit(X, (y - y.mean(0)) / y.std(0))


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


# --- residuals -------------------------------------------------------------------------------


def test_residual_scenarios_of_linear_data_are_the_closed_form():
    random = np.random.default_rng(1)
    X = random.standard_normal((2000, 3))
    noise = random.multivariate_normal([0, 0], [[4.0, 3.0], [3.0, 9.0]], size=2000)
    y = X @ [[1.0, 2.0], [3.0, -1.0], [0.0, 5.0]] + [10.0, 20.0] + noise
    predictor = ResidualPredictor().fit(X, y)
    contexts = np.array([[1.0, 0.0, 0.0], [30.0, -10.0, 5.0]])
    drawn = predictor.sample(contexts, 2000)
    mean, variance = moments(drawn)
    np.testing.assert_allclose(mean, contexts @ [[1, 2], [3, -1], [0, 5]] + [10, 20], atol=3)
    np.testing.assert_allclose(mean[0], [11, 22], atol=0.25)
    np.testing.assert_allclose(variance, [[4, 9], [4, 9]], rtol=0.1)
    # The errors of a row stay together.
    assert np.cov(drawn.values[0].numpy().T)[0, 1] == pytest.approx(3.0, rel=0.15)


def test_residuals_are_out_of_fold():
    """With as many folds as rows they are the leave-one-out errors e / (1 - h)."""
    X, y = table(40, n_outcomes=1)
    left_out = ResidualPredictor(n_folds=40).fit(X, y).residuals_
    design = np.column_stack([np.ones(40), X])
    hat = design @ np.linalg.pinv(design)
    expected = (y[:, 0] - hat @ y[:, 0]) / (1 - np.diag(hat))
    np.testing.assert_allclose(left_out[:, 0], np.sort(expected))
    # A tree that remembers every row believes itself only where it is allowed to.
    tree = DecisionTreeRegressor(random_state=0)
    assert np.abs(ResidualPredictor(tree, n_folds=None).fit(X, y).residuals_).max() == 0
    assert np.abs(ResidualPredictor(tree).fit(X, y).residuals_).mean() > 5


def test_regressor_is_not_fitted_itself():
    regressor = Ridge()
    ResidualPredictor(regressor).fit(*table(20))
    assert not [name for name in vars(regressor) if name.endswith("_")]


@pytest.mark.parametrize("regressor", [None, Ridge(2.0), LinearRegression(fit_intercept=False)])
@pytest.mark.parametrize("n_outcomes", [1, 3])
def test_linear_residual_predictor_is_stored_as_arrays(regressor, n_outcomes):
    X, y = table(30, n_outcomes)
    fitted = ResidualPredictor(regressor).fit(pd.DataFrame(X, columns=list("abc")), y)
    restored = ResidualPredictor(regressor)
    restored.restore(fitted.state())
    frame = pd.DataFrame(X[:5], columns=list("abc"))
    drawn, again = (p.sample(frame, 8, random_state=0).values for p in (fitted, restored))
    np.testing.assert_allclose(drawn, again)
    assert restored.state().keys() == fitted.state().keys()


@pytest.mark.parametrize("regressor", [DecisionTreeRegressor(), PoissonRegressor()])
def test_other_residual_predictors_are_not_stored(regressor):
    """Nor those that have coefficients but are not linear in them."""
    X, y = table(30, 1)
    fitted = ResidualPredictor(regressor).fit((X - 50) / 20, y)
    with pytest.raises(
        StorageError, match=f"LinearRegression.*but it is a {type(regressor).__name__}"
    ):
        fitted.state()


# --- Gaussian process ------------------------------------------------------------------------


def scikit_learn_process(X, target, **settings):
    kernel = RBF(1.0, (1e-2, 1e4)) + WhiteKernel(1.0, (0.01, 100.0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return GaussianProcessRegressor(kernel, **settings).fit(X, target)


@pytest.mark.parametrize("alpha", [1e-10, 0.1])
def test_gaussian_process_is_that_of_scikit_learn(alpha):
    X, y = table(80)
    predictor = GaussianProcessPredictor(alpha=alpha).fit(X, y)
    contexts = np.concatenate([table(20, seed=1)[0], X[:5], [[500.0, 0.0, 0.0]]])
    epistemic, aleatoric = predictor.epistemic_aleatoric(contexts)
    mean, variance = predictor._mean_and_variance(contexts)
    scaled, target = (X - X.mean(0)) / X.std(0), (y - y.mean(0)) / y.std(0)
    for outcome in range(2):
        twin = scikit_learn_process(scaled, target[:, outcome], alpha=alpha, random_state=0)
        expected, std = twin.predict((contexts - X.mean(0)) / X.std(0), return_std=True)
        np.testing.assert_allclose(
            mean[:, outcome], y[:, outcome].mean() + y[:, outcome].std() * expected, rtol=1e-6
        )
        total = epistemic[:, outcome] + aleatoric[:, outcome]
        np.testing.assert_allclose(total, (y[:, outcome].std() * std) ** 2, rtol=1e-5)
    np.testing.assert_array_equal(variance, epistemic)
    drawn = moments(predictor.sample(contexts, 4096, random_state=0))
    np.testing.assert_allclose(drawn[0], mean, atol=0.1)
    np.testing.assert_allclose(drawn[1], epistemic + aleatoric, rtol=0.02)


def test_gaussian_process_tells_the_two_uncertainties_apart():
    """Noise of variance 4 everywhere; far from the data the curve is as open as the outcome."""
    random = np.random.default_rng(0)
    X = random.uniform(0, 10, (200, 1))
    y = 20 + 10 * np.sin(X) + 2 * random.standard_normal((200, 1))
    predictor = GaussianProcessPredictor().fit(X, y)
    epistemic, aleatoric = predictor.epistemic_aleatoric([[5.0], [1000.0]])
    np.testing.assert_allclose(aleatoric, 4, rtol=0.25)
    assert epistemic[0, 0] < 0.5
    assert epistemic[1, 0] == pytest.approx(y.var(), rel=1e-6)
    mean = moments(predictor.sample([[5.0], [1000.0]], 256, random_state=0))[0]
    np.testing.assert_allclose(mean[:, 0], [20 + 10 * np.sin(5.0), y.mean()], atol=1)


def test_gaussian_process_takes_at_most_max_rows():
    X, y = table(120)
    predictor = GaussianProcessPredictor(max_rows=50).fit(X, y)
    assert predictor.cholesky_.shape == (2, 50, 50)
    again = GaussianProcessPredictor(max_rows=50).fit(X, y)
    np.testing.assert_array_equal(predictor.contexts_, again.contexts_)
    other = GaussianProcessPredictor(max_rows=50, random_state=1).fit(X, y)
    assert not np.array_equal(predictor.contexts_, other.contexts_)
    assert len(GaussianProcessPredictor(max_rows=None).fit(X, y).contexts_) == 120


def test_gaussian_process_warns_of_failed_searches_only(monkeypatch):
    X, y = table(40)
    smooth = X[:, :1] * [1.0, 2.0]
    at_bound = GaussianProcessPredictor().fit(X, smooth)  # no warning, which would be an error
    np.testing.assert_allclose(at_bound.noise_, 0.01, rtol=1e-3)

    def stopped(self, objective, start, bounds):
        warnings.warn("lbfgs failed to converge", ConvergenceWarning, stacklevel=2)
        return start, objective(start, eval_gradient=False)

    monkeypatch.setattr(GaussianProcessRegressor, "_constrained_optimization", stopped)
    with pytest.warns(ConvergenceWarning, match=r"2 search\(es\) for length scale and noise"):
        GaussianProcessPredictor().fit(X, y)


def test_gaussian_process_that_cannot_be_factorised_says_what_to_do():
    X = np.zeros((60, 1))
    X[0] = 1.0
    predictor = GaussianProcessPredictor(noise_bounds=(1e-30, 1e-30), alpha=1e-30)
    with pytest.raises(ForewiseError, match="cannot be factorised with alpha=1e-30"):
        predictor.fit(X, np.arange(60.0))
