"""A point forecast, and the errors it made on data it had not seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

from forewise.exceptions import InvalidInputError, StorageError
from forewise.predictors.boosting import BoostingPredictor
from forewise.predictors.sampling import equal_picks, outcome_order
from forewise.predictors.trees import CompletingPredictor
from forewise.scenarios import Scenarios
from forewise.validation.parameters import as_random_state, require_count

#: Classes of scikit-learn that predict ``X @ coef_ + intercept_``. Others have these attributes too
#: and predict something else (a Poisson regressor its exponential).
_LINEAR = (
    "LinearRegression", "Ridge", "RidgeCV", "Lasso", "LassoCV", "ElasticNet", "ElasticNetCV",
    "BayesianRidge", "ARDRegression", "HuberRegressor", "QuantileRegressor", "SGDRegressor",
    "TheilSenRegressor",
)  # fmt: skip


@dataclass(eq=False, repr=False)
class ResidualPredictor(CompletingPredictor):
    """A regressor's forecast plus each of the errors it made in cross-validation.

        scenario j of x:   ŷ(x) + e_j,     e_i = y_i - ŷ_without_the_fold_of_i(x_i)

    Each row's error is that of a regressor that has not seen it; ŷ itself is fitted on all rows,
    one regressor for each outcome. The errors of one row stay together.

    When to use: a good point forecast exists and its errors look the same in every context, or
    trends must be extrapolated.

    Parameters
    ----------
    regressor : scikit-learn regressor, optional
        Cloned, never fitted itself; `LinearRegression` by default. A policy can be stored if it is
        a linear model or a `BoostingPredictor`. With another that multiplies matrices (a network,
        a kernel), a context's forecast may depend on the other rows by about 1e-15 of its size.
    n_folds : int or None
        At least 2, and at most as many as rows are used. None takes the errors on the fitted rows,
        which are too small.
    shuffle : bool
        False makes a fold a run of consecutive rows, for rows in order of time.

    Examples
    --------
    A line that goes on beyond the data, and the errors it made:

    >>> import numpy as np
    >>> import forewise as fw
    >>> X = np.arange(50.0)[:, None]
    >>> y = 2.0 * X + np.random.default_rng(0).normal(size=X.shape)
    >>> predictor = fw.ResidualPredictor().fit(X, y)
    >>> float(predictor.sample([[100.0]], 50, random_state=0).values.mean().round(decimals=0))
    202.0
    """

    regressor: BaseEstimator | None = None
    n_folds: int | None = 5
    random_state: Any = 0
    shuffle: bool = True

    def _fit(self, X: np.ndarray, y: np.ndarray) -> None:
        if self.n_folds is not None:
            require_count("n_folds", self.n_folds, at_least=2)
        as_random_state(self.random_state)  # or an error
        regressor = _linear_regression() if self.regressor is None else self.regressor
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

    def _folds(self, n_rows: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """Rows to fit on and rows to forecast, of each fold."""
        from sklearn.model_selection import KFold  # imports rich

        rows = np.arange(n_rows)
        if self.n_folds is None or n_rows == 1:
            return [(rows, rows)]
        seed = self.random_state if self.shuffle else None
        folds = KFold(min(self.n_folds, n_rows), shuffle=bool(self.shuffle), random_state=seed)
        return list(folds.split(rows))

    def _scenarios(self, X: np.ndarray, n_scenarios: int, random: np.random.Generator) -> Scenarios:
        picks = equal_picks(len(self.residuals_), n_scenarios, random.random())
        return Scenarios(_predictions(self.regressors_, X)[:, None] + self.residuals_[picks])

    def settings(self) -> dict[str, Any]:
        """Without the regressor: what it was fitted to is in the state."""
        return super().settings() | {"regressor": None}

    def state(self) -> dict[str, Any]:
        """The attributes; linear regressors as their coefficients, boosted ones as they are."""
        state = super().state()
        if all(type(regressor) is BoostingPredictor for regressor in self.regressors_):
            return state
        for regressor in state.pop("regressors_"):
            if not _is_linear(regressor):
                raise StorageError(
                    "a ResidualPredictor can be stored if its regressor is one of "
                    f"{', '.join(_LINEAR)}, BoostingPredictor, but it is a "
                    f"{type(regressor).__name__}: fit it again where it is needed, or use one of "
                    "these"
                )
        state["coefficients_"] = np.stack([np.ravel(r.coef_) for r in self.regressors_])
        state["intercepts_"] = np.concatenate([np.ravel(r.intercept_) for r in self.regressors_])
        return state

    def restore(self, state: dict[str, Any]) -> None:
        """Take back the attributes; linear regressors come back as `LinearRegression`."""
        state = dict(state)
        if "regressors_" not in state:
            state["regressors_"] = []
            coefficients, intercepts = state.pop("coefficients_"), state.pop("intercepts_")
            for coefficient, intercept in zip(coefficients, intercepts, strict=True):
                regressor = _linear_regression()
                regressor.coef_, regressor.intercept_ = coefficient, float(intercept)
                regressor.n_features_in_ = len(coefficient)
                state["regressors_"].append(regressor)
        super().restore(state)


def _linear_regression() -> Any:
    from sklearn.linear_model import LinearRegression  # imports rich

    return LinearRegression()


def _is_linear(regressor: Any) -> bool:
    kind = type(regressor)
    return kind.__module__.startswith("sklearn.linear_model.") and kind.__name__ in _LINEAR


def _fitted(regressor: BaseEstimator, X: np.ndarray, y: np.ndarray) -> list[Any]:
    """A clone for each outcome, fitted."""
    return [clone(regressor).fit(X, outcome) for outcome in y.T.copy()]


def _predictions(regressors: list[Any], X: np.ndarray) -> np.ndarray:
    """Forecasts (n_contexts, n_outcomes)."""
    forecasts = [
        # Not as a product of matrices, which rounds by how many contexts there are.
        (X * np.ravel(regressor.coef_)).sum(axis=1) + regressor.intercept_
        if _is_linear(regressor)
        else np.asarray(regressor.predict(X), dtype=np.float64)
        for regressor in regressors
    ]
    return np.column_stack([forecast.reshape(len(X)) for forecast in forecasts])
