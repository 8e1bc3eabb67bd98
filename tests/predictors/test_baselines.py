"""What every predictor without a network promises, and what it refuses."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from forewise.exceptions import InvalidInputError, UnfittedError
from forewise.predictors import weighted_support
from forewise.predictors.empirical import EmpiricalPredictor
from forewise.predictors.forest import ForestPredictor
from forewise.predictors.gaussian_process import GaussianProcessPredictor
from forewise.predictors.neighbor import NeighborPredictor
from forewise.predictors.residual import ResidualPredictor
from tests.predictors.tables import drawn_in_two_units, moments, table, values_and_weights

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
    plain, moved = drawn_in_two_units(predictor, *table(), table(6, seed=1)[0])
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
