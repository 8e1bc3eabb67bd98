"""Every predictor keeps the promises of the contract, scikit-learn's and our own."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.utils.estimator_checks import parametrize_with_checks

import forewise as fw
from forewise.predictors import FourierFeatures, NetworkPredictor, OffSupportFallback
from forewise.testing import check_predictor
from tests.predictors.tables import drawn_in_two_units, moments, table, values_and_weights

BRIEF = {"training": fw.Training(epochs=2, batch_size=16), "random_state": 0}
LINEAR = fw.predictors.LinearEmbedding()
NETWORKS = {
    "bayesian": fw.BayesianPredictor((8,), 2, **BRIEF),
    "bayesian-default-ensemble": fw.EnsemblePredictor(fw.BayesianPredictor((8,), 2, **BRIEF), 2, 0),
    "bayesian-mean-field": fw.BayesianPredictor((8,), 2, fw.predictors.MeanField(), **BRIEF),
    "bayesian-normal": fw.BayesianPredictor(
        (), 3, head=fw.predictors.NormalHead(), embedding=LINEAR, extrapolate=0, **BRIEF
    ),
    "bayesian-off-support": fw.BayesianPredictor((8,), off_support=OffSupportFallback(), **BRIEF),
    "mean-field": fw.predictors.MeanFieldPredictor((8,), n_scenarios=3, **BRIEF),
    "mixture": fw.MixturePredictor(2, (8,), n_scenarios=3, **BRIEF),
    "point": fw.PointPredictor((8,), **BRIEF),
    "gaussian": fw.GaussianPredictor((8,), **BRIEF),
    "factors": fw.GaussianPredictor((8,), n_factors=2, **BRIEF),
    "fourier": fw.GaussianPredictor((8,), encoding=FourierFeatures(3), **BRIEF),
    "off-support": fw.GaussianPredictor((8,), off_support=OffSupportFallback(), **BRIEF),
    "ensemble": fw.EnsemblePredictor(fw.GaussianPredictor((8,), **BRIEF), 3, 0),
    "mean-field-ensemble": fw.EnsemblePredictor(
        fw.predictors.MeanFieldPredictor((8,), 2, **BRIEF), 3, 0
    ),
}
BASELINES = {
    "empirical": fw.EmpiricalPredictor(),
    "neighbor": fw.NeighborPredictor(n_neighbors=20),
    "epanechnikov": fw.NeighborPredictor(n_neighbors=20, kernel="epanechnikov"),
    "forest": fw.ForestPredictor(n_trees=20, min_leaf=5),
    "residual": fw.ResidualPredictor(Ridge()),
    "process": fw.GaussianProcessPredictor(),
}
OTHERS = {
    "grouped": fw.GroupedPredictor(unseen="pool"),
    "boosting": fw.BoostingPredictor(n_trees=20, min_leaf=5),
    "quantiles": fw.QuantileBoostingPredictor((0.1, 0.5, 0.9), n_trees=20, min_leaf=5),
    "boosted-residual": fw.ResidualPredictor(
        fw.BoostingPredictor(n_trees=20, min_leaf=5), shuffle=False
    ),
    "stacked": fw.StackedPredictor(
        [fw.NeighborPredictor(), fw.ForestPredictor(n_trees=20, min_leaf=5)], (1.0, 2.0)
    ),
}
PREDICTORS = NETWORKS | BASELINES | OTHERS
COLUMNS = ["day", "price", "rain"]


def each(predictors):
    return pytest.mark.parametrize("predictor", predictors.values(), ids=predictors.keys())


def without(*names):
    return {name: value for name, value in PREDICTORS.items() if name not in names}


def rows_and_contexts(n_contexts=30):
    """Rows to fit to and other contexts; a column has few values, for groups."""
    (X, y), contexts = table(), table(n_contexts, seed=1)[0]
    X[:, 0], contexts[:, 0] = np.arange(len(X)) % 5, np.arange(n_contexts) % 5
    return X, y, contexts


def same(drawn, values, weights):
    return np.array_equal(drawn.values, values) and np.array_equal(drawn.weights, weights)


# --- what every predictor promises -----------------------------------------------------------


@each(PREDICTORS)
@pytest.mark.parametrize("n_outcomes", [1, 2])
def test_contract(predictor, n_outcomes):
    check_predictor(predictor, *table(60, n_outcomes))


@parametrize_with_checks(
    [
        *NETWORKS.values(),
        fw.EmpiricalPredictor(),
        fw.NeighborPredictor(),
        fw.NeighborPredictor(kernel="epanechnikov"),
        fw.ForestPredictor(n_trees=5),
        fw.ResidualPredictor(),
        fw.GaussianProcessPredictor(),
        fw.GroupedPredictor(),
        fw.GroupedPredictor(unseen="pool"),
        fw.BoostingPredictor(n_trees=3),
        fw.QuantileBoostingPredictor((0.5,), n_trees=3),
        fw.StackedPredictor([fw.EmpiricalPredictor(), fw.NeighborPredictor()]),
    ]
)
def test_scikit_learn(estimator, check):
    check(estimator)


@each(PREDICTORS)
def test_scenarios_do_not_depend_on_the_other_contexts(predictor):
    """To the bit: alone, in another order, and in a table so long that it is cut into pieces."""
    X, y, contexts = rows_and_contexts()
    fitted = clone(predictor).fit(X, y)
    order = np.random.default_rng(0).permutation(30)
    for n_scenarios in (1, 16, 1000):
        values, weights = values_and_weights(fitted.sample(contexts, n_scenarios, random_state=3))
        assert len(values) == 30
        assert values.shape[1] <= n_scenarios
        assert values.shape[2] == 2
        shuffled = fitted.sample(contexts[order], n_scenarios, random_state=3)
        assert same(shuffled, values[order], weights[order])
        alone = fitted.sample(contexts[7:8], n_scenarios, random_state=3)
        assert same(alone, values[7:8], weights[7:8])
    first = values_and_weights(fitted.sample(contexts, 4, random_state=3))
    many = fitted.sample(np.tile(contexts, (300, 1)), 4, random_state=3)
    assert same(many, *(np.tile(part, (300,) + (1,) * (part.ndim - 1)) for part in first))


@each(without("point", "boosting", "quantiles"))  # these have one answer
def test_random_state_decides_the_scenarios(predictor):
    X, y, contexts = rows_and_contexts(5)
    fitted = clone(predictor).fit(X, y)
    first = fitted.sample(contexts, 8, random_state=1).values
    assert torch.equal(first, fitted.sample(contexts, 8, random_state=1).values)
    others = [fitted.sample(contexts, 8, random_state=seed).values for seed in range(2, 6)]
    assert any(not torch.equal(first, other) for other in others)


@each(BASELINES)
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


@each(BASELINES | OTHERS)
def test_units_of_measure_do_not_matter(predictor):
    """Other units of contexts and outcomes: the same scenarios in those units."""
    X, y, contexts = rows_and_contexts(6)
    plain, moved = drawn_in_two_units(predictor, X, y, contexts)
    (mean, variance), (moved_mean, moved_variance) = moments(plain), moments(moved)
    np.testing.assert_allclose(moved_mean, 4 * mean - 32, rtol=1e-4)
    np.testing.assert_allclose(moved_variance, 16 * variance, rtol=1e-3, atol=1e-6)


@each(PREDICTORS)
def test_what_is_fitted_can_be_stored(predictor, tmp_path):
    """As plain values: no object of another library may be needed to draw scenarios from it."""
    X, y, contexts = rows_and_contexts(20)
    learner = fw.DecoupledLearner(fw.Newsvendor(3.0, 1.0), predictor).fit(X, y)
    fitted, copy = learner.policy_.predictor, clone(predictor)
    copy.restore(fitted.state())
    drawn = values_and_weights(fitted.sample(contexts, 16, random_state=0))
    assert same(copy.sample(contexts, 16, random_state=0), *drawn)
    learner.policy_.save(tmp_path / "policy")
    stored = fw.load_policy(tmp_path / "policy")
    assert np.array_equal(stored.decide(contexts), learner.decide(contexts))
    wraps = {"regressors_", "parts_"} & set(fitted.state())
    if not isinstance(fitted, NetworkPredictor) and not wraps:
        plain = np.ndarray | int | float | str | None
        assert all(isinstance(value, plain) for value in fitted.state().values())


@each(PREDICTORS)
@pytest.mark.parametrize("n_rows", [1, 2, 20])
def test_few_rows_and_constant_columns(predictor, n_rows):
    settings = {"n_neighbors": n_rows} if "n_neighbors" in predictor.get_params() else {}
    fitted = clone(predictor).set_params(**settings)
    fitted.fit(np.full((n_rows, 2), 0.1), np.full((n_rows, 1), 0.7))
    values = fitted.sample([[0.1, 0.1], [5.0, -3.0]], 16, random_state=0).values.numpy()
    np.testing.assert_allclose(values, 0.7)
    X, y = table(n_rows)
    assert fitted.fit(X, y).sample(table(5, seed=1)[0], 8, random_state=0).values.isfinite().all()


@each(PREDICTORS)
def test_frames_tensors_and_vectors_are_taken_like_arrays(predictor):
    X, y, contexts = rows_and_contexts(3)
    y = y[:, :1]
    frame, other = (pd.DataFrame(values, columns=COLUMNS) for values in (X, contexts))
    fitted = clone(predictor).fit(frame, pd.Series(y[:, 0], name="demand"))
    assert fitted.outcome_names_ == ["demand"]
    drawn = fitted.sample(other, 8, random_state=0).values
    again = pickle.loads(pickle.dumps(fitted))
    assert torch.equal(drawn, again.sample(other, 8, random_state=0).values)
    for kind in (np.asarray, torch.tensor):
        same_fit = clone(predictor).fit(kind(X), kind(y))
        assert torch.equal(drawn, same_fit.sample(kind(contexts), 8, random_state=0).values)


# --- what every predictor refuses ------------------------------------------------------------


@each(PREDICTORS)
def test_bad_tables_are_refused(predictor):
    X, y = table(30)
    frame = pd.DataFrame(X, columns=COLUMNS)
    sold = pd.DataFrame({"sold": np.r_[np.inf, y[1:, 0]]})
    hole = np.where(np.arange(30)[:, None] == 3, np.nan, X)
    fitted = clone(predictor).fit(frame, y)
    bad_fits = [
        (hole, y, r"X must be finite.*column 1 \(1 of 30 rows"),
        (frame.assign(price=np.inf), y, r"X must be finite.*'price' \(30 of 30 rows"),
        (X, sold, r"y must be finite.*'sold'"),
        (frame.assign(day=[f"day {i}" for i in range(30)]), y, r"'day' is text.*leave it out"),
        (sparse.csr_array(X), y, r"[Ss]parse"),
        (X, y[:-1], "same number of rows"),
        (X, None, "requires y to be passed"),
    ]
    for contexts, outcomes, message in bad_fits:
        with pytest.raises(fw.InvalidInputError, match=message):
            clone(predictor).fit(contexts, outcomes)
    with pytest.raises(fw.exceptions.UnfittedError, match="call fit"):
        clone(predictor).sample(X)
    with pytest.raises(fw.InvalidInputError, match="wind"):
        fitted.sample(frame.rename(columns={"rain": "wind"}))
    with pytest.raises(fw.InvalidInputError, match="rain"):
        fitted.sample(frame[["day", "price"]])
    with pytest.raises(fw.InvalidInputError, match=r"2 features, but .* is expecting 3"):
        clone(predictor).fit(X, y).sample(X[:, :2])
    for wrong in (0, -1, 2.5, True, "8"):
        with pytest.raises(fw.InvalidInputError, match="n_scenarios must be"):
            fitted.sample(frame, wrong)


@each(NETWORKS)
def test_bad_validation_rows_are_refused(predictor):
    X, y = table(30)
    with pytest.raises(fw.InvalidInputError, match="y_val is missing"):
        predictor.fit(X, y, X_val=X)
    with pytest.raises(fw.InvalidInputError, match=r"y_val must have the 2 outcome\(s\) of y"):
        predictor.fit(X, y, X_val=X, y_val=y[:, 0])


GROUPED, NEIGHBOR, FOREST = fw.GroupedPredictor, fw.NeighborPredictor, fw.ForestPredictor
BOOSTING, QUANTILES = fw.BoostingPredictor, fw.QuantileBoostingPredictor
RESIDUAL, PROCESS = fw.ResidualPredictor, fw.GaussianProcessPredictor
BAYESIAN, TABLES = fw.predictors.MeanFieldPredictor, fw.BayesianPredictor
BAD_SETTINGS = [
    (GROUPED(by="month"), "by must name columns of X, but has 'month'; .* day, price, rain"),
    (GROUPED(by=3), "by must name columns of X, but has 3"),
    (GROUPED(by=-1), "by must name columns of X, but has -1"),
    (GROUPED(by=[]), "by must name at least one column"),
    (GROUPED(unseen="zeros"), "unseen must be one of 'raise', 'pool'"),
    (NEIGHBOR(n_neighbors=21), "n_neighbors must be at most .* 20, but is 21"),
    *((NEIGHBOR(n_neighbors=wrong), "n_neighbors must be") for wrong in (0, 2.5)),
    (NEIGHBOR(kernel="cosine"), "kernel must be one of 'uniform', 'epanechnikov'"),
    *((FOREST(n_trees=wrong), "n_trees must be") for wrong in (0, 1.5)),
    (FOREST(min_leaf=True), "min_leaf must be"),
    (FOREST(max_features="all"), "max_features"),
    (FOREST(random_state="a"), "random_state must be"),
    (RESIDUAL(n_folds=1), "n_folds must be"),
    *((RESIDUAL(wrong), "regressor must be") for wrong in (LinearRegression, "ridge")),
    (PROCESS(n_restarts=-1), "n_restarts must be"),
    *((PROCESS(noise_bounds=wrong), "noise_bounds must") for wrong in ((1, 0.1), 0.1)),
    (PROCESS(length_scale_bounds=(0, 1)), "length_scale_bounds must be"),
    (PROCESS(alpha=-1.0), "alpha must be"),
    (PROCESS(max_rows=0), "max_rows must be"),
    (BOOSTING(n_trees=0), "n_trees must be"),
    (BOOSTING(learning_rate=-0.1), "learning_rate must be"),
    (BOOSTING(max_leaves=1), "max_leaves must be"),
    (BOOSTING(min_leaf=0), "min_leaf must be"),
    *((QUANTILES(levels), "levels must be") for levels in ((), (0.5, 0.1), (0.5, 50), 0.5)),
    *((BAYESIAN(hidden_sizes=wrong), "hidden_sizes must be") for wrong in (8, (0,), (2.5,))),
    (BAYESIAN(n_scenarios=0), "n_scenarios must be"),
    (BAYESIAN(n_factors=-1), "n_factors must be"),
    (fw.EnsemblePredictor(fw.GaussianPredictor(n_factors=1.5)), "n_factors must be"),
    (fw.PointPredictor(extrapolate="no"), "extrapolate must be"),
    *((BAYESIAN(kl_weight=wrong), "kl_weight must be") for wrong in (-1, np.nan, "a")),
    (BAYESIAN(prior_std=0), "prior_std must be"),
    (BAYESIAN(initial_std=-1), "initial_std must be"),
    *((BAYESIAN(noise_bounds=wrong), "noise_bounds must") for wrong in ((1, 1), (0, 1), (2, 1))),
    (BAYESIAN(training=3), "training must be"),
    (TABLES(training=3), "training must be"),
    (TABLES(n_members=0), "n_members must be"),
    *((TABLES(extrapolate=wrong), "extrapolate must be") for wrong in (-1, np.nan, "no")),
    *((TABLES(inference=wrong), "inference must be") for wrong in ("laplace", LINEAR)),
    (TABLES(head=fw.predictors.QuantileHead), "head must be .* the class QuantileHead itself"),
    (TABLES(embedding=FourierFeatures()), "embedding must be"),
    (fw.EnsemblePredictor(TABLES(hidden_sizes=3)), "hidden_sizes must be"),
    (fw.MixturePredictor(n_components=0), "n_components must be"),
    (fw.EnsemblePredictor(n_members=0), "n_members must be"),
    *(
        (fw.EnsemblePredictor(wrong), "member must be")
        for wrong in (fw.EnsemblePredictor(), fw.ForestPredictor())
    ),
    (fw.PointPredictor(encoding="waves"), "encoding must be"),
    (fw.ForecastPredictor("mean"), "forecast must be"),
    (fw.ForecastPredictor(fw.predictors.MeanForecast()), "X must have 2 columns"),
    (fw.ForecastPredictor(fw.predictors.MeanForecast(), LinearRegression), "model must be"),
    (fw.GaussianPredictor(off_support=True), "off_support must be .* OffSupportFallback|bool"),
]


@pytest.mark.parametrize(("predictor", "message"), BAD_SETTINGS)
def test_bad_settings_are_refused(predictor, message):
    X, y = table(20)
    with pytest.raises(fw.InvalidInputError, match=message):
        predictor.fit(pd.DataFrame(X, columns=COLUMNS), y)
