"""Forecasts and their errors: closed forms, errors out of fold, what can be stored."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, PoissonRegressor, Ridge
from sklearn.tree import DecisionTreeRegressor

from forewise import ResidualPredictor
from forewise.exceptions import StorageError
from tests.predictors.tables import moments, table


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
    with pytest.raises(StorageError, match=f"regressor .* is a {type(regressor).__name__}"):
        fitted.state()
