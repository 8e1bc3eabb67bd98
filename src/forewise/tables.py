"""From the table a user passed to checked arrays: contexts, outcomes, and results like the input.

Contexts and outcomes come as NumPy arrays, pandas data frames, torch tensors or lists. Every
message names the column that is wrong. May import: exceptions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, check_consistent_length, validate_data

from forewise.exceptions import InputTypeError, InvalidInputError

_SHOWN = 5  # columns or rows that an error message lists


def check_training_data(estimator: BaseEstimator, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
    """Contexts (n_contexts, n_features) and outcomes (n_contexts, n_outcomes), as float64.

    Remembers in the estimator what was fitted: ``n_features_in_``, ``feature_names_in_`` where
    contexts have names, ``n_outcomes_`` and ``outcome_names_``.
    """
    outcomes = check_outcomes(estimator, y)
    contexts = check_contexts(estimator, X, reset=True)
    check_lengths(contexts, outcomes)
    estimator.n_outcomes_ = outcomes.shape[1]
    estimator.outcome_names_ = column_names(y)
    return contexts, outcomes


def check_validation_data(
    estimator: BaseEstimator, X: Any, y: Any
) -> tuple[np.ndarray, np.ndarray] | None:
    """Contexts and outcomes to validate on, in the columns of the fitted ones; None if absent."""
    if (X is None) != (y is None):
        missing = "X_val" if X is None else "y_val"
        raise InvalidInputError(f"X_val and y_val belong together, but {missing} is missing")
    if X is None:
        return None
    contexts = check_contexts(estimator, X, name="X_val")
    outcomes = check_outcomes(estimator, y, name="y_val")
    check_lengths(contexts, outcomes, "X_val and y_val")
    if outcomes.shape[1] != estimator.n_outcomes_:
        raise InvalidInputError(
            f"y_val must have the {estimator.n_outcomes_} outcome(s) of y, but has "
            f"{outcomes.shape[1]}"
        )
    return contexts, outcomes


def check_contexts(
    estimator: BaseEstimator, X: Any, *, reset: bool = False, name: str = "X"
) -> np.ndarray:
    """Contexts (n_contexts, n_features) as float64, in the columns the estimator was fitted on."""
    X = _plain(X, name)
    try:
        return validate_data(estimator, X, reset=reset, dtype=np.float64, order="C")
    except (ValueError, TypeError) as error:
        raise _as_input_error(error, name) from error


def check_outcomes(estimator: BaseEstimator, y: Any, name: str = "y") -> np.ndarray:
    """Outcomes (n_contexts, n_outcomes) as float64; a vector is one outcome per context."""
    if y is None:
        # The words are those that scikit-learn's own estimators use.
        raise InvalidInputError(
            f"{type(estimator).__name__} requires {name} to be passed, but the target {name} is "
            f"None: pass the outcomes, (n_contexts, n_outcomes)"
        )
    y = _plain(y, name)
    try:
        outcomes = check_array(y, dtype=np.float64, ensure_2d=False, input_name=name)
    except (ValueError, TypeError) as error:
        raise _as_input_error(error, name) from error
    if outcomes.ndim not in (1, 2):
        raise InvalidInputError(
            f"{name} must have shape (n_contexts,) or (n_contexts, n_outcomes), but has shape "
            f"{outcomes.shape}"
        )
    # A data frame's own array cannot be written to, of which torch would warn.
    return np.require(outcomes.reshape(len(outcomes), -1), requirements=["C", "W"])


def check_lengths(X: np.ndarray, y: np.ndarray, names: str = "X and y") -> None:
    """One outcome for every context."""
    try:
        check_consistent_length(X, y)
    except ValueError as error:
        raise InvalidInputError(f"{names} must have the same number of rows: {error}") from error


def column_names(table: Any) -> list[str] | None:
    """Names of a data frame's or series' columns; None where there are none."""
    if isinstance(table, pd.DataFrame):
        return [str(name) for name in table.columns]
    if isinstance(table, pd.Series) and table.name is not None:
        return [str(table.name)]
    return None


def like(X: Any, values: np.ndarray, columns: list[str]) -> Any:
    """Results in the kind of container that the contexts came in, rows named as theirs."""
    if isinstance(X, pd.DataFrame):
        return pd.DataFrame(values, index=X.index, columns=columns)
    if isinstance(X, torch.Tensor):
        return torch.from_numpy(values).to(X.device)
    return values


def _plain(table: Any, name: str) -> Any:
    """What scikit-learn can check: text and missing values are told by column here."""
    if isinstance(table, torch.Tensor):
        return table.detach().cpu().numpy()
    if isinstance(table, pd.Series):
        table = table.to_frame(table.name if table.name is not None else name)
        _check_columns(table, name)
        return table.iloc[:, 0]
    if isinstance(table, pd.DataFrame):
        _check_columns(table, name)
    return table


def _check_columns(frame: pd.DataFrame, name: str) -> None:
    text = [
        f"{column!r} ({kind})"
        for column, kind in frame.dtypes.items()
        if not (pd.api.types.is_numeric_dtype(kind) or pd.api.types.is_bool_dtype(kind))
    ]
    if text:
        raise InvalidInputError(
            f"{name} must have numbers in every column, but has {_listed(text)}: "
            "encode text and dates as numbers (for instance with pandas.get_dummies) or drop them"
        )
    wrong = ~np.isfinite(frame.to_numpy(dtype=np.float64, na_value=np.nan))
    if wrong.any():
        counts = [
            f"{column!r} ({count} of {len(frame)} rows)"
            for column, count in zip(frame.columns, wrong.sum(0), strict=True)
            if count
        ]
        raise InvalidInputError(
            f"{name} must be finite, but contains NaN or infinity in {_listed(counts)}: "
            "fill or drop these rows"
        )


def _listed(items: list[str]) -> str:
    more = f" and {len(items) - _SHOWN} more" if len(items) > _SHOWN else ""
    return ", ".join(items[:_SHOWN]) + more


def _as_input_error(error: Exception, name: str) -> Exception:
    """The same words under forewise's base class; scikit-learn's checks look for some of them."""
    message = str(error)
    told = message if name in message else f"{name}: {message}"
    if isinstance(error, TypeError):
        return InputTypeError(told)
    return InvalidInputError(told)
