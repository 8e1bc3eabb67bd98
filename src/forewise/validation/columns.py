"""Encoding of a table's columns as numeric features, fitted in training and applied later.

`Columns.from_frame` infers the kind of each column from its dtype and values, unless the user
names it; `encode` makes the matrix. A column of no known kind is an error that says what to do.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from forewise.exceptions import ColumnWarning, InputTypeError, InvalidInputError
from forewise.validation import spelling
from forewise.validation.cells import decimal_of, first_cell
from forewise.validation.encodings import (
    KINDS,
    BooleanColumn,
    CategoryColumn,
    DateColumn,
    IgnoredColumn,
    NumberColumn,
)
from forewise.validation.frames import as_frame, listed, require_dense_columns

if TYPE_CHECKING:
    import pandas as pd

_FEW_NUMBERS = 2  # among text: codes of a category rather than a column of numbers
_BROKEN = 0.05  # share of the rows: as few are mistakes among numbers, more are categories


@dataclass(frozen=True)
class Columns:
    """The columns of a table as features, as they were in training.

    Numbers stay numbers; text that spells numbers, booleans or dates is parsed; other text becomes
    categories. Missing values are imputed, with an indicator feature. `encode` warns
    (`ColumnWarning`) of values that training has not seen, with counts.

    Parameters
    ----------
    parts : list
        The encoding of each column, in the order of the columns. Made by `from_frame`.

    Examples
    --------
    >>> import pandas as pd
    >>> import forewise as fw
    >>> table = pd.DataFrame({"price": ["1,50", "2,00", "2,50"] * 3, "shop": ["a", "b", "c"] * 3})
    >>> columns = fw.features.Columns.from_frame(table)
    >>> columns.encode(table[:2])
    array([[1.5, 1. , 0. , 0. , 0. ],
           [2. , 0. , 1. , 0. , 0. ]])
    """

    parts: list[Any]

    @classmethod
    def from_frame(cls, frame: Any, kinds: Mapping[str, str] | None = None) -> Self:
        """Fit the encoding to a pandas, polars or Arrow table.

        Parameters
        ----------
        frame : data frame (n_rows, n_columns)
        kinds : mapping, optional
            "number", "boolean", "category", "date" or "ignore" for columns whose dtype does not
            say it, such as a number that is a code.
        """
        table = as_frame(frame)
        if table is None:
            raise InputTypeError(f"frame must be a data frame, but is a {type(frame).__name__}")
        require_dense_columns("the table", table)
        kinds = dict(kinds or {})
        unknown = [repr(name) for name in kinds if name not in table.columns]
        if unknown:
            raise InvalidInputError(
                f"kinds must name columns, but {listed(unknown)} are none; there are "
                f"{listed([repr(name) for name in table.columns])}"
            )
        return cls([_column(str(n), column, kinds.get(n)) for n, column in table.items()])

    @property
    def names(self) -> list[str]:
        """Names of the table's columns."""
        return [part.name for part in self.parts]

    @property
    def features(self) -> list[str]:
        """Names of the features, in the order of the matrix."""
        return [feature for part in self.parts for feature in part.features]

    @property
    def are_numbers(self) -> bool:
        """Whether nothing is encoded: all columns are numbers without missing values."""
        return self.features == self.names

    def places(self, column: int) -> list[int]:
        """Indices of the features of a column."""
        counts = [len(part.features) for part in self.parts]
        start = sum(counts[:column])
        return list(range(start, start + counts[column]))

    def encode(self, frame: Any, report: list[str] | None = None) -> np.ndarray:
        """Features (n_rows, n_features) of a table with the same columns, in the same order.

        Values not seen in training are appended to `report`; without one, they give a warning
        (`ColumnWarning`).
        """
        table = as_frame(frame)
        news: list[str] = [] if report is None else report
        columns = [column for _, column in table.items()]
        blocks = [
            part.encode(column, news) for part, column in zip(self.parts, columns, strict=True)
        ]
        if news and report is None:
            warnings.warn("; ".join(news), ColumnWarning, stacklevel=2)
        return np.concatenate([np.empty((len(table), 0)), *blocks], axis=1)

    def frame(self) -> pd.DataFrame:
        """A row per column: its kind, its features, and a note."""
        import pandas as pd

        rows = [(part.kind, ", ".join(part.features), part.note) for part in self.parts]
        index = pd.Index(self.names, name="column")
        return pd.DataFrame(rows, index=index, columns=["kind", "features", "note"])


def _column(name: str, column: pd.Series, wanted: str | None) -> Any:
    """The encoding of a column: the kind that is wanted, or that of its dtype and values."""
    from pandas.api import types

    if wanted == "ignore":
        return IgnoredColumn(name, "left out, as asked")
    if wanted is not None:
        if wanted not in KINDS:
            known = ", ".join(repr(kind) for kind in [*KINDS, "ignore"])
            raise InvalidInputError(f"the kind of {name!r} must be {known}, but is {wanted!r}")
        return KINDS[wanted].from_values(name, column)
    dtype = column.dtype
    if types.is_complex_dtype(dtype):
        raise InvalidInputError(f"Complex data not supported: column {name!r} is of type {dtype}")
    if isinstance(dtype, _category_type()):
        return CategoryColumn.from_values(name, column)
    if types.is_bool_dtype(dtype):
        return BooleanColumn.from_values(name, column)
    if types.is_numeric_dtype(dtype):
        return NumberColumn.from_values(name, column)
    if types.is_datetime64_any_dtype(dtype):
        return DateColumn.from_values(name, column)
    if types.is_timedelta64_dtype(dtype):
        raise InputTypeError(
            f"column {name!r} is a length of time ({dtype}): make it a number, as "
            ".dt.total_seconds() / 3600 for hours"
        )
    return _from_objects(name, column)


def _from_objects(name: str, column: pd.Series) -> Any:
    nested = next((v for v in column if isinstance(v, list | dict | set | np.ndarray)), None)
    if nested is not None:
        raise InputTypeError(
            f"column {name!r} holds a {type(nested).__name__} in a cell: give each part a column"
        )
    texts = spelling.distinct(column)[1]
    present = sorted({text for text in texts if text is not None})
    if spelling.as_booleans(texts) is not None:
        return BooleanColumn.from_values(name, column)
    if len(present) < 2 and not (present and column.isna().any()):
        same = f"the same in every row, {present[0]!r}" if present else "empty in every row"
        return IgnoredColumn(name, f"left out: {same}", present[0] if present else "")
    if spelling.decimal_mark(texts) is not None:
        return NumberColumn.from_values(name, column)
    if spelling.as_days(texts) is not None:
        return DateColumn.from_values(name, column)
    _refuse_misread(name, column)
    return CategoryColumn.from_values(name, column)


def _refuse_misread(name: str, column: pd.Series) -> None:
    """Raise where text is no categories, but days or numbers that cannot be read."""
    codes, texts = spelling.distinct(column)
    if spelling.as_days(texts, day_first=True) is not None:
        raise InvalidInputError(
            f"column {name!r} has days, but none says whether day or month is first, such as "
            f"{next(text for text in texts if text)!r}: pass pandas.to_datetime(..., "
            "dayfirst=True or False)"
        )
    known = spelling.as_numbers(texts, decimal_of(column))
    others = [text for text in texts if text and text not in known]
    broken = np.isin(np.array(texts, dtype=object), others)[codes]
    if len(known) > _FEW_NUMBERS and broken.sum() < _BROKEN * len(column):
        raise InvalidInputError(
            f"column {name!r} has numbers, but {first_cell(column, others)}: correct it, leave it "
            'empty, or say that the column is a category: in kinds, or by .astype("category")'
        )


def _category_type() -> type:
    import pandas as pd

    return pd.CategoricalDtype
