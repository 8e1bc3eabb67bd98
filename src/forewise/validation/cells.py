"""What the cells of a column say: numbers, truth values and moments, whatever their dtype.

A cell that says something else is an error that quotes it, with its row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from forewise.exceptions import InvalidInputError
from forewise.validation import spelling

if TYPE_CHECKING:
    import pandas as pd


def numbers(name: str, column: pd.Series, decimal: str) -> np.ndarray:
    """Numbers as float64, NaN where missing; infinite ones and other text are errors."""
    if is_numeric(column):
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    else:
        codes, texts = spelling.distinct(column)
        known = spelling.as_numbers(texts, decimal)
        others = [text for text in texts if text and text not in known]
        if others:
            raise InvalidInputError(
                f"column {name!r} must be numbers, with the decimal mark {decimal!r}, but "
                f"{first_cell(column, others)}: correct it, or leave it empty"
            )
        values = _looked_up(texts, known, np.nan)[codes]
    infinite = np.isinf(values)
    if infinite.any():
        raise InvalidInputError(
            f"X must be finite, but contains infinity in {name!r} ({infinite.sum()} of "
            f"{len(values)} rows): correct these rows, or leave the cells empty"
        )
    return values


def decimal_of(column: pd.Series) -> str:
    """The decimal mark of numbers as text: that of most, where some are none."""
    texts = [text for text in spelling.distinct(column)[1] if text]
    commas = sum("," in text for text in texts)
    return spelling.decimal_mark(texts) or ("," if 2 * commas > len(texts) else ".")


def booleans(name: str, column: pd.Series) -> np.ndarray:
    """Yes and no as 1.0 and 0.0, NaN where missing; other cells are errors."""
    if is_numeric(column):
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
        others = [str(v) for v in np.unique(values[(values != 0) & (values != 1)]) if v == v]
    else:
        codes, texts = spelling.distinct(column)
        # With "yes" and "no" beside it, since a later table may have only one of the two values.
        read = {text: spelling.as_booleans([text, "yes", "no"]) for text in texts if text}
        others = [text for text, meaning in read.items() if meaning is None]
        known = {text: meaning[text] for text, meaning in read.items() if meaning is not None}
        values = _looked_up(texts, known | dict.fromkeys(others, np.nan), np.nan)[codes]
    if others:
        raise InvalidInputError(
            f"column {name!r} must be yes or no, but {first_cell(column, others)}: correct it, or "
            "leave it empty"
        )
    return values


def moments(name: str, column: pd.Series, day_first: bool | None) -> np.ndarray:
    """Moments as datetime64[s], without a time zone; NaT where missing."""
    if is_moment(column):
        if getattr(column.dtype, "tz", None) is not None:
            column = column.dt.tz_localize(None)
        return column.to_numpy(dtype="datetime64[s]")
    codes, texts = spelling.distinct(column)
    days = spelling.as_days(texts, day_first)
    if days is None and any(texts):
        others = [text for text in texts if text and spelling.as_days([text], True) is None]
        what = "it is not clear whether day or month is first"
        if others:
            what = first_cell(column, others)
        raise InvalidInputError(f"column {name!r} must be days such as 2024-04-03, but {what}")
    return _looked_up(texts, days, np.datetime64("NaT", "s"))[codes]


def _looked_up(texts: list[str | None], meaning: dict[str, Any] | None, missing: Any) -> np.ndarray:
    """The meaning of each text, and of what is missing."""
    return np.array([missing if text is None else (meaning or {})[text] for text in texts])


def first_cell(column: pd.Series, texts: list[str]) -> str:
    """The first row with one of the texts, and the text."""
    rows = column.astype(str).str.strip().isin(texts).to_numpy()
    row = int(rows.argmax())
    label = column.index[row : row + 1].tolist()[0]  # a number of Python's, where it is one
    return f"row {label!r} has {str(column.iloc[row]).strip()!r}"


def is_numeric(column: pd.Series) -> bool:
    """Whether the dtype is one of numbers or of truth values."""
    from pandas.api import types

    return types.is_numeric_dtype(column.dtype) or types.is_bool_dtype(column.dtype)


def is_moment(column: pd.Series) -> bool:
    """Whether the dtype is one of dates."""
    from pandas.api import types

    return types.is_datetime64_any_dtype(column.dtype)
