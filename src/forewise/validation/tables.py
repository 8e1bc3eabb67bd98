"""Tables of contexts and outcomes as checked arrays: every message names the wrong column."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, validate_data

from forewise.exceptions import InputTypeError, InvalidInputError
from forewise.validation.arguments import as_plain
from forewise.validation.columns import Columns
from forewise.validation.frames import (
    as_frame,
    column_names,
    is_frame,
    is_labelled,
    is_series,
    listed,
    require_dense_columns,
    require_number_columns,
)
from forewise.validation.given import Given

_AS_NUMBERS = {"dtype": np.float64, "order": "C"}
_CONTEXT_ADVICE = "fit on a data frame with text, and it is encoded, or make it numbers"
_OUTCOME_ADVICE = (
    "outcomes are quantities; convert numbers that were read as text with pandas.to_numeric, after "
    ".str.replace(',', '.') if they have decimal commas"
)


def check_training_data(estimator: BaseEstimator, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
    """Contexts (n_contexts, n_features) and outcomes (n_contexts, n_outcomes), as float64.

    Remembers in the estimator what was fitted: ``n_features_in_``, ``feature_names_in_`` where
    contexts have names, ``n_outcomes_`` and ``outcome_names_``.
    """
    outcomes = check_outcomes(estimator, y)
    contexts = check_contexts(estimator, X, reset=True)
    _check_lengths(contexts, outcomes, "X and y")
    check_same_rows(X=X, y=y)
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
    _check_lengths(contexts, outcomes, "X_val and y_val")
    check_same_rows(X_val=X, y_val=y)
    if outcomes.shape[1] != estimator.n_outcomes_:
        raise InvalidInputError(
            f"y_val must have the {estimator.n_outcomes_} outcome(s) of y, but has "
            f"{outcomes.shape[1]}"
        )
    return contexts, outcomes


def check_contexts(
    estimator: BaseEstimator, X: Any, *, reset: bool = False, name: str = "X"
) -> np.ndarray:
    """Contexts (n_contexts, n_inputs) as float64, in the columns the estimator was fitted on.

    Data frames are encoded by their `Columns`, which the estimator keeps as ``table_columns_``.
    """
    frame = as_frame(X)
    columns = getattr(estimator, "table_columns_", None)
    if reset:
        columns = None if frame is None else _columns_of(frame, name)
    encoded = frame is not None and columns is not None
    if not encoded:
        if columns is not None and not columns.are_numbers:
            raise InvalidInputError(
                f"{name} must be a data frame with the columns that were fitted, "
                f"{listed([repr(column) for column in columns.names])}, but came as a "
                f"{type(X).__name__}, in which text and missing values have no place"
            )
        X = _plain(X, name, _CONTEXT_ADVICE)
    try:
        checked = validate_data(
            estimator, X, reset=reset, skip_check_array=encoded, **({} if encoded else _AS_NUMBERS)
        )
    except (ValueError, TypeError) as error:
        raise _as_input_error(error, name) from error
    if reset:
        estimator.table_columns_ = columns
    return columns.encode(frame) if columns is not None and encoded else checked


def _columns_of(frame: Any, name: str) -> Columns:
    if 0 in frame.shape:
        # The words are those that scikit-learn's own estimators use.
        raise InvalidInputError(
            f"{name} must have rows and columns, but is empty: Found array with "
            f"{frame.shape[0]} sample(s) and {frame.shape[1]} feature(s)"
        )
    return Columns.from_frame(frame)


def check_outcomes(estimator: BaseEstimator, y: Any, name: str = "y") -> np.ndarray:
    """Outcomes (n_contexts, n_outcomes) as float64; a vector is one outcome per context."""
    if y is None:
        # The words are those that scikit-learn's own estimators use.
        raise InvalidInputError(
            f"{type(estimator).__name__} requires {name} to be passed, but the target {name} is "
            f"None: pass the outcomes, (n_contexts, n_outcomes)"
        )
    y = _plain(y, name, _OUTCOME_ADVICE)
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


def _check_lengths(X: np.ndarray, y: np.ndarray, names: str) -> None:
    if len(X) != len(y):
        # The words are those that scikit-learn's own estimators use.
        raise InvalidInputError(
            f"{names} must have the same number of rows: Found input variables with inconsistent "
            f"numbers of samples: {[len(X), len(y)]}"
        )


def check_same_rows(**tables: Any) -> None:
    """Raise where labels of two pandas objects say that their rows do not belong together.

    Rows are matched by place, so labels in another order are an error, and so are other labels.
    What has no labels, or another number of rows, is passed over. `tables` are tables, or dicts of
    them, by the names of the arguments.
    """
    labels = dict(_labels(tables))
    for (one, first), (other, second) in combinations(labels.items(), 2):
        if len(first) != len(second) or first.equals(second):
            continue
        if Counter(first) == Counter(second):
            place = next(i for i, (a, b) in enumerate(zip(first, second, strict=True)) if a != b)
            here, there = (labels[name].tolist()[place] for name in (one, other))
            raise InvalidInputError(
                f"{one} and {other} must have their rows in the same order, but have the same "
                f"labels in another one: row {place} is {here!r} in {one} and "
                f"{there!r} in {other}. Align them with {other}.loc[{one}.index]"
                + ("" if first.is_unique else ", or sort both: a label that stands twice is no key")
            )
        missing = [label for label in first if label not in second]
        how = f"{missing[0]!r} of {one} is not in {other}" if missing else "some stand twice"
        raise InvalidInputError(
            f"{one} and {other} must have the same rows, but their labels differ: {how}. Align "
            f"them with {other}.loc[{one}.index], or pass {other}.to_numpy() if rows belong "
            "together by their place"
        )


def _labels(tables: Mapping[str, Any]) -> list[tuple[str, Any]]:
    found = []
    for name, table in tables.items():
        if isinstance(table, Given):
            table = table.parts
        if isinstance(table, Mapping):
            found += _labels({f"{name}[{key!r}]": part for key, part in table.items()})
        elif is_labelled(table):
            found.append((name, table.index))
    return found


def _plain(table: Any, name: str, advice: str) -> Any:
    """What scikit-learn can check: text and missing values are reported by column here."""
    table = table if as_frame(table) is None else as_frame(table)
    if is_series(table) or is_frame(table):
        frame = (
            table if is_frame(table) else table.to_frame(name if table.name is None else table.name)
        )
        require_number_columns(name, frame, advice)
        require_dense_columns(name, frame)
        values = frame.to_numpy(dtype=np.float64, na_value=np.nan)
        _check_finite(values, [repr(column) for column in frame.columns], name)
        return table if is_frame(table) else as_plain(name, table)
    if not isinstance(table, list | tuple | np.ndarray | torch.Tensor):
        return table  # frames of other libraries, say, whose names scikit-learn can read
    plain = as_plain(name, table)
    if isinstance(plain, torch.Tensor):
        plain = plain.detach().to("cpu", torch.float64).numpy()
    if plain.ndim in (1, 2):
        columns = [f"column {i}" for i in range(plain.shape[1])] if plain.ndim == 2 else ["it"]
        _check_finite(plain.reshape(len(plain), len(columns)), columns, name)
    return plain


def _check_finite(values: np.ndarray, columns: list[str], name: str) -> None:
    """Raise with the columns that have missing or infinite values, and how many rows."""
    wrong = ~np.isfinite(values)
    if wrong.any():
        found = zip(columns, wrong.sum(0), strict=True)
        counts = [f"{column} ({n} of {len(values)} rows)" for column, n in found if n]
        raise InvalidInputError(
            f"{name} must be finite, but contains NaN or infinity in {listed(counts)}: "
            "fill or drop these rows"
        )


def _as_input_error(error: Exception, name: str) -> Exception:
    """The same words under forewise's base class; scikit-learn's checks look for some of them."""
    message = str(error)
    kind = InputTypeError if isinstance(error, TypeError) else InvalidInputError
    return kind(message if name in message else f"{name}: {message}")
