"""A point forecast, and the errors it made on data it had not seen.

May import: exceptions, scenarios, tables, and its siblings `base`, `boosting`,
`parameter_checks`, `weighted_support`.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import (
    ARDRegression,
    BayesianRidge,
    ElasticNet,
    ElasticNetCV,
    HuberRegressor,
    Lasso,
    LassoCV,
    LinearRegression,
    QuantileRegressor,
    Ridge,
    RidgeCV,
    SGDRegressor,
    TheilSenRegressor,
)
from sklearn.model_selection import KFold

from forewise.exceptions import InvalidInputError, StorageError
from forewise.predictors.base import Predictor
from forewise.predictors.boosting import BoostingPredictor
from forewise.predictors.weighted_support import equal_picks, outcome_order
from forewise.scenarios import Scenarios
from forewise.validation.arguments import as_random_state
from forewise.validation.parameters import require_count
from forewise.validation.tables import check_training_data

#: Regressors that predict ``X @ coef_ + intercept_``. Others have these attributes too and
#: predict something else (a Poisson regressor its exponential).
_LINEAR = (
    LinearRegression, Ridge, RidgeCV, Lasso, LassoCV, ElasticNet, ElasticNetCV, BayesianRidge,
    ARDRegression, HuberRegressor, QuantileRegressor, SGDRegressor, TheilSenRegressor,
)  # fmt: skip


class ResidualPredictor(Predictor):
    """A regressor's forecast plus each of the errors it made: any regressor, with its errors.

    Prefer it where a good point forecast exists and its errors look the same in every context
    (no more spread on busy days than on quiet ones), and where trends must be extrapolated.

        scenario j of x:   ŷ(x) + e_j,     e_i = y_i - ŷ_without_the_fold_of_i(x_i)

    The errors come from K-fold cross-validation: each row is forecast by a regressor that has
    not seen it, so that a regressor that overfits is not believed to be exact. ŷ itself is fitted
    on all rows. Each outcome has a regressor of its own; the errors of one row stay together,
    and with them the dependence between outcomes.

    Parameters
    ----------
    regressor : scikit-learn regressor, optional
        Cloned, never fitted itself. `LinearRegression` by default. A policy can be stored if it
        is a linear model or a `BoostingPredictor`; a pipeline or a tree has to be fitted again.
        With a regressor that is none of these and multiplies matrices (a network, a kernel), a
        context's forecast may depend on the other rows by some 1e-15 of its size.
    n_folds : int or None
        K, at least 2; no more than there are rows are used. None takes the errors on the rows
        that were fitted, which are too small.
    random_state : int, RandomState or None
        Shuffles the rows before they are put into folds.
    shuffle : bool
        Without it a fold is a stretch of rows that follow each other. Prefer that for rows in order
        of time: beside rows of the same week a regressor errs less than it will next month.

    Attributes
    ----------
    regressors_ : list of regressors, one for each outcome
    residuals_ : array (n_rows, n_outcomes)
        The errors, in order.

    Examples
    --------
    >>> predictor = ResidualPredictor().fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0])
    >>> predictor.sample([[10.0]]).values.mean().round()
    tensor(21., dtype=torch.float64)
    """

    regressors_: list[Any]
    residuals_: np.ndarray

    def __init__(
        self,
        regressor: BaseEstimator | None = None,
        n_folds: int | None = 5,
        random_state: Any = 0,
        shuffle: bool = True,
    ) -> None:
        self.regressor = regressor
        self.n_folds = n_folds
        self.random_state = random_state
        self.shuffle = shuffle

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the regressors and find their errors."""
        X, y = check_training_data(self, X, y)
        if self.n_folds is not None:
            require_count("n_folds", self.n_folds, at_least=2)
        as_random_state(self.random_state)  # or an error
        regressor = LinearRegression() if self.regressor is None else self.regressor
        if not callable(getattr(regressor, "predict", None)) or isinstance(regressor, type):
            raise InvalidInputError(
                "regressor must be a scikit-learn regressor such as LinearRegression(), but is "
                f"{regressor!r}"
            )
        residuals = np.empty_like(y)
        for fitted, left_out in self._folds(len(X)):
            parts = _fitted(regressor, X[fitted], y[fitted])
            residuals[left_out] = y[left_out] - _predictions(parts, X[left_out])
        self.regressors_ = _fitted(regressor, X, y)
        self.residuals_ = residuals[outcome_order(residuals)]
        return self

    def _folds(self, n_rows: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """Rows to fit on and rows to forecast, of each fold."""
        rows = np.arange(n_rows)
        if self.n_folds is None or n_rows == 1:
            return [(rows, rows)]
        n_folds = min(self.n_folds, n_rows)
        if not self.shuffle:
            return list(KFold(n_folds).split(rows))
        return list(KFold(n_folds, shuffle=True, random_state=self.random_state).split(rows))

    def _scenarios(self, X: np.ndarray, n_scenarios: int, random: np.random.Generator) -> Scenarios:
        picked = self.residuals_[equal_picks(len(self.residuals_), n_scenarios, random)]
        return Scenarios(_predictions(self.regressors_, X)[:, None] + picked)

    def settings(self) -> dict[str, Any]:
        """Without the regressor: what it was fitted to is in the state."""
        return super().settings() | {"regressor": None}

    def state(self) -> dict[str, Any]:
        """The attributes; linear regressors as their coefficients, boosted ones as they are."""
        if all(type(regressor) is BoostingPredictor for regressor in self.regressors_):
            return super().state()
        for regressor in self.regressors_:
            if type(regressor) not in _LINEAR:
                linear = ", ".join(kind.__name__ for kind in (*_LINEAR, BoostingPredictor))
                raise StorageError(
                    f"a ResidualPredictor can be stored if its regressor is one of {linear}, but "
                    f"it is a {type(regressor).__name__}: fit it again where it is needed, or "
                    "use one of these"
                )
        state = super().state()
        del state["regressors_"]
        state["coefficients_"] = np.stack([np.ravel(r.coef_) for r in self.regressors_])
        state["intercepts_"] = np.concatenate([np.ravel(r.intercept_) for r in self.regressors_])
        return state

    def restore(self, state: dict[str, Any]) -> None:
        """Take back the attributes; linear regressors come back as `LinearRegression`."""
        if "regressors_" in state:
            super().restore(state)
            return
        state = dict(state)
        coefficients, intercepts = state.pop("coefficients_"), state.pop("intercepts_")
        super().restore(state)
        self.regressors_ = []
        for coefficient, intercept in zip(coefficients, intercepts, strict=True):
            regressor = LinearRegression()
            regressor.coef_, regressor.intercept_ = coefficient, float(intercept)
            regressor.n_features_in_ = len(coefficient)
            self.regressors_.append(regressor)


def _fitted(regressor: BaseEstimator, X: np.ndarray, y: np.ndarray) -> list[Any]:
    """A clone for each outcome, fitted."""
    return [clone(regressor).fit(X, outcome) for outcome in y.T.copy()]


def _predictions(regressors: list[Any], X: np.ndarray) -> np.ndarray:
    """Forecasts (n_contexts, n_outcomes)."""
    return np.column_stack([_forecast(regressor, X).reshape(len(X)) for regressor in regressors])


def _forecast(regressor: Any, X: np.ndarray) -> np.ndarray:
    if type(regressor) in _LINEAR:
        # Not as a product of matrices, which rounds by how many contexts there are.
        return (X * np.ravel(regressor.coef_)).sum(axis=1) + regressor.intercept_
    return np.asarray(regressor.predict(X), dtype=np.float64)
