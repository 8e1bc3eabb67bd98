"""What is known of pandas objects, without importing pandas: it is there if one of them came."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import torch

from forewise.exceptions import InputTypeError, InvalidInputError

_SHOWN = 5  # columns that an error message lists


def is_frame(value: Any) -> bool:
    """Whether it is a pandas data frame."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(value, pandas.DataFrame)


def is_series(value: Any) -> bool:
    """Whether it is a pandas series."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(value, pandas.Series)


def as_frame(value: Any) -> Any:
    """A pandas data frame of any data frame (polars, Arrow, ...); None of anything else.

    Column by column through NumPy, so that pandas needs no Arrow for it.
    """
    if is_frame(value):
        return value
    other = other_frame(value)
    if other is None:
        return None
    import pandas as pd

    return pd.DataFrame({name: other[name].to_numpy() for name in other.columns})


def other_frame(value: Any) -> Any:
    """A narwhals frame of a data frame that is not pandas'; None of anything else."""
    if isinstance(value, np.ndarray | torch.Tensor | list | tuple) or is_labelled(value):
        return None
    # What no other library has made is no frame of it.
    if type(value).__module__.partition(".")[0] in ("builtins", "numpy", "scipy", "forewise"):
        return None
    import narwhals

    frame = narwhals.from_native(value, eager_only=True, pass_through=True)
    return frame if isinstance(frame, narwhals.DataFrame) else None


def is_labelled(value: Any) -> bool:
    """Whether its rows have labels: a data frame or a series."""
    return is_frame(value) or is_series(value)


def is_column(value: Any) -> bool:
    """Whether it is a series, an index or an array of pandas."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(
        value, pandas.Series | pandas.Index | pandas.api.extensions.ExtensionArray
    )


def is_missing(value: Any) -> bool:
    """Whether it is None, or what pandas puts where a value is missing."""
    pandas = sys.modules.get("pandas")
    return value is None or (pandas is not None and (value is pandas.NA or value is pandas.NaT))


def row_labels(value: Any) -> list[Any] | None:
    """What messages call the rows of a table: pandas' labels; None where they have numbers."""
    return list(value.index) if is_labelled(value) else None


def column_names(table: Any) -> list[str] | None:
    """Names of a data frame's or series' columns; None where there are none."""
    if is_frame(table):
        return [str(name) for name in table.columns]
    if is_series(table) and table.name is not None:
        return [str(table.name)]
    other = other_frame(table)
    return None if other is None else [str(name) for name in other.columns]


def like(X: Any, values: np.ndarray, columns: list[str]) -> Any:
    """Results in the kind of container that the contexts came in, rows named as theirs."""
    if is_frame(X):
        return type(X)(values, index=X.index, columns=columns)
    if isinstance(X, torch.Tensor):
        return torch.from_numpy(values).to(X.device)
    other = other_frame(X)
    if other is None:
        return values
    parts = dict(zip(columns, values.T, strict=True))
    return type(other).from_dict(parts, backend=other.implementation).to_native()


def take_rows(table: Any, rows: Any) -> Any:
    """Rows of a data frame, series, array, tensor or list, by number."""
    if is_labelled(table):
        return table.iloc[rows]
    if isinstance(table, list | tuple):
        return [table[i] for i in np.arange(len(table))[rows]]
    other = other_frame(table)
    return table[rows] if other is None else other[rows].to_native()


def require_number_columns(name: str, frame: Any, advice: str) -> None:
    """Raise with the columns of a data frame that are not real numbers, and what to do."""
    wrong = [f"{column!r} ({kind})" for column, kind in frame.dtypes.items() if not is_real(kind)]
    if wrong:
        prefix = "Complex data not supported: " if "(complex" in "".join(wrong) else ""
        raise InvalidInputError(
            f"{prefix}{name} must have numbers in every column, but has {listed(wrong)}: {advice}"
        )


def require_dense_columns(name: str, frame: Any) -> None:
    """Raise with the columns of a data frame that pandas holds in a sparse form."""
    import pandas as pd

    sparse = [repr(c) for c, kind in frame.dtypes.items() if isinstance(kind, pd.SparseDtype)]
    if sparse:
        raise InputTypeError(
            f"{name} must be dense, but has sparse data in {listed(sparse)}: pass "
            f"{name}.sparse.to_dense()"
        )


def is_real(kind: Any) -> bool:
    """Whether a dtype of pandas is one of real numbers or truth values."""
    import pandas as pd

    types = pd.api.types
    number = types.is_numeric_dtype(kind) or types.is_bool_dtype(kind)
    category = isinstance(kind, pd.CategoricalDtype)
    return number and not category and not types.is_complex_dtype(kind)


def listed(items: list[str]) -> str:
    """The first few items, and how many more there are."""
    more = f" and {len(items) - _SHOWN} more" if len(items) > _SHOWN else ""
    return ", ".join(items[:_SHOWN]) + more
