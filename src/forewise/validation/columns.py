"""Encoding of a table's columns as numeric features, fitted in training and applied later.

`Columns.from_frame` infers the kind of each column from its dtype and values, unless the user
names it; `encode` makes the matrix. A column of no known kind is an error that says what to do. To
add a kind: a frozen dataclass like these, in `_BY_NAME`, registered with the policies.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

import numpy as np

from forewise.exceptions import ColumnWarning, InputTypeError, InvalidInputError
from forewise.validation import spelling
from forewise.validation.frames import as_frame, listed, require_dense_columns

if TYPE_CHECKING:
    import pandas as pd

_SHOWN = 3  # values that a message quotes
_FEWEST, _MOST = 3, 60  # rows of a category that has a feature; such categories of a column
_FEW = 10  # categories that are never too many
_BROKEN = 0.05  # share of the rows: as few are mistakes among numbers, more are categories


class Column(Protocol):
    """The encoding of one column: its features, and how later values become them."""

    name: str
    kind: ClassVar[str]

    @property
    def features(self) -> list[str]:
        """Names of the features."""

    @property
    def note(self) -> str:
        """A remark for `Columns.frame`: what is filled in, how many categories there are."""

    def encode(self, column: pd.Series, report: list[str]) -> np.ndarray:
        """Features (n_rows, n_features); values not seen in training are reported."""


@dataclass(frozen=True)
class NumberColumn:
    """Numbers, also as text; missing ones become the median, with an indicator if any were."""

    name: str
    fill: float
    missing: bool
    decimal: str = "."  # of numbers that are text
    kind: ClassVar[str] = "number"

    @classmethod
    def from_values(cls, name: str, column: pd.Series) -> Self:
        decimal = "." if _is_numeric(column) else _decimal_of(column)
        values = _numbers(name, column, decimal)
        known = values[~np.isnan(values)]
        fill = float(np.median(known)) if len(known) else 0.0
        return cls(name, fill, bool(len(known) < len(values)), decimal)

    @property
    def features(self) -> list[str]:
        return [self.name, *([f"{self.name}_missing"] if self.missing else [])]

    @property
    def note(self) -> str:
        return f"missing ones become {self.fill:g}, with an indicator" if self.missing else ""

    def encode(self, column: pd.Series, report: list[str]) -> np.ndarray:
        values = _numbers(self.name, column, self.decimal)
        return _filled(self, values, report)


@dataclass(frozen=True)
class BooleanColumn:
    """Yes or no in any spelling, as 1 and 0; missing ones are 0, with an indicator if any were.

    Where "x" is the only value, an empty cell means no (`crosses`).
    """

    name: str
    missing: bool
    crosses: bool = False
    fill: ClassVar[float] = 0.0
    kind: ClassVar[str] = "boolean"

    @classmethod
    def from_values(cls, name: str, column: pd.Series) -> Self:
        values = _booleans(name, column)
        absent = np.isnan(values)
        crosses = bool(absent.any() and (values[~absent] == 1).all())
        return cls(name, bool(absent.any() and not crosses), crosses)

    @property
    def features(self) -> list[str]:
        return [self.name, *([f"{self.name}_missing"] if self.missing else [])]

    @property
    def note(self) -> str:
        return "missing ones are 0, with an indicator" if self.missing else ""

    def encode(self, column: pd.Series, report: list[str]) -> np.ndarray:
        values = _booleans(self.name, column)
        return _filled(self, values, [] if self.crosses else report)


@dataclass(frozen=True)
class CategoryColumn:
    """One feature of 0 and 1 for each frequent category, one for all others, one for missing ones.

    A category that training has not seen counts among the others.
    """

    name: str
    categories: list[str]
    others: int  # categories of training that share a feature, because each has few rows
    missing: bool
    kind: ClassVar[str] = "category"

    @classmethod
    def from_values(cls, name: str, column: pd.Series) -> Self:
        codes, texts = spelling.distinct(column)
        counts: Counter[str] = Counter()
        for text, count in zip(texts, np.bincount(codes, minlength=len(texts)), strict=True):
            if text is not None:
                counts[text] += int(count)
        n_rows = sum(counts.values())
        _refuse_almost_unique(name, column, counts, n_rows)
        frequent = [text for text, count in counts.most_common(_MOST) if count >= _FEWEST]
        return cls(name, sorted(frequent), len(counts) - len(frequent), n_rows < len(column))

    @property
    def features(self) -> list[str]:
        own = [f"{self.name}_{category}" for category in self.categories]
        return [*own, f"{self.name}_other", *([f"{self.name}_missing"] if self.missing else [])]

    @property
    def note(self) -> str:
        rare = f", {self.others} rare ones together" if self.others else ""
        missing = ", missing ones apart" if self.missing else ""
        return f"{len(self.categories)} categories{rare}{missing}"

    def encode(self, column: pd.Series, report: list[str]) -> np.ndarray:
        codes, texts = spelling.distinct(column)
        known = {text: place for place, text in enumerate(self.categories)}
        other, apart = len(known), len(known) + self.missing
        place = np.array([apart if t is None else known.get(t, other) for t in texts])[codes]
        absent = np.array([text is None for text in texts])[codes]
        if absent.any() and not self.missing:
            report.append(f"{self.name!r} is missing in {_rows(absent)}, and never was in training")
        unseen = (place == other) & ~absent
        if unseen.any() and not self.others:
            counts: Counter[str | None] = Counter()
            for code, n_rows in enumerate(np.bincount(codes[unseen]).tolist()):
                if n_rows:
                    counts[texts[code]] += n_rows
            quoted = ", ".join(f"{text!r} {n} times" for text, n in counts.most_common(_SHOWN))
            report.append(
                f"{self.name!r} has values that training has not seen in {_rows(unseen)} ({quoted})"
            )
        return (place[:, None] == np.arange(len(self.features))).astype(np.float64)


@dataclass(frozen=True)
class DateColumn:
    """Weekday, and sine and cosine of the day of the year and, with times, of the hour.

    A date gives no trend: dates of later tables lie outside the range of training.
    """

    name: str
    with_time: bool
    missing: bool
    day_first: bool = False  # in 3/4/2024
    zone: str | None = None  # of times with a dtype of their own; "" where they have none
    kind: ClassVar[str] = "date"

    @classmethod
    def from_values(cls, name: str, column: pd.Series) -> Self:
        texts = [] if _is_moment(column) else spelling.distinct(column)[1]
        order = spelling.slash_order(texts)
        read = moments(name, column, order)
        known = read[~np.isnat(read)]
        with_time = bool((known != known.astype("datetime64[D]")).any())
        zone = str(getattr(column.dtype, "tz", None) or "") if _is_moment(column) else None
        return cls(name, with_time, len(known) < len(read), bool(order), zone)

    @property
    def features(self) -> list[str]:
        week = [f"{self.name}_weekday_{day}" for day in range(7)]
        periods = ["year", "hour"] if self.with_time else ["year"]
        cyclic = [f"{self.name}_{period}_{part}" for period in periods for part in ("sin", "cos")]
        return [*week, *cyclic, *([f"{self.name}_missing"] if self.missing else [])]

    @property
    def note(self) -> str:
        return "weekday and season" + (" and hour" if self.with_time else "")

    def encode(self, column: pd.Series, report: list[str]) -> np.ndarray:
        read = moments(self.name, self._in_zone(column), self.day_first)
        absent = np.isnat(read)
        if absent.any() and not self.missing:
            report.append(f"{self.name!r} is missing in {_rows(absent)}, and never was in training")
        days = np.where(absent, np.datetime64("1970-01-01"), read.astype("datetime64[D]"))
        weekday = (days.astype(np.int64) + 3) % 7
        year = days.astype("datetime64[Y]")
        share = (days - year.astype("datetime64[D]")).astype(float) / 365.2425
        parts = [(weekday[:, None] == np.arange(7)) * 1.0, *_sine_and_cosine(share)]
        if self.with_time:
            seconds = (read - read.astype("datetime64[D]")).astype(float)
            parts += _sine_and_cosine(np.where(absent, 0.0, seconds) / 86400)
        parts = [np.where(absent, 0.0, part.T).T for part in parts]
        if self.missing:
            parts.append(absent * 1.0)
        return np.column_stack(parts)

    def _in_zone(self, column: pd.Series) -> pd.Series:
        """The times in the zone of training: its hours and days are meant."""
        if self.zone is None or not _is_moment(column):
            return column
        own = getattr(column.dtype, "tz", None)
        if bool(self.zone) == (own is None):
            wanted = f"the time zone {self.zone}" if self.zone else "no time zone"
            raise InvalidInputError(
                f"column {self.name!r} must have {wanted}, as in training, but has {own or 'none'}:"
                f" use .dt.tz_localize({self.zone or None!r})"
            )
        return column.dt.tz_convert(self.zone) if self.zone else column


@dataclass(frozen=True)
class IgnoredColumn:
    """A column without features: by the user's choice, or because it is constant text."""

    name: str
    reason: str
    value: str | None = None  # of every row, "" where it is empty; None if it was told to be
    kind: ClassVar[str] = "ignored"

    @property
    def features(self) -> list[str]:
        return []

    @property
    def note(self) -> str:
        return self.reason

    def encode(self, column: pd.Series, report: list[str]) -> np.ndarray:
        if self.value is not None:
            codes, texts = spelling.distinct(column)
            other = np.array([text is not None and text != self.value for text in texts])[codes]
            if other.any():
                report.append(
                    f"{self.name!r} has values that training has not seen in {_rows(other)}, and "
                    f"was {self.reason}"
                )
        return np.empty((len(column), 0))


_BY_NAME: dict[str, Any] = {
    part.kind: part for part in (NumberColumn, BooleanColumn, CategoryColumn, DateColumn)
}


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
        if wanted not in _BY_NAME:
            known = ", ".join(repr(kind) for kind in [*_BY_NAME, "ignore"])
            raise InvalidInputError(f"the kind of {name!r} must be {known}, but is {wanted!r}")
        return _BY_NAME[wanted].from_values(name, column)
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
    numbers = spelling.as_numbers(texts, _decimal_of(column))
    others = [text for text in texts if text and text not in numbers]
    broken = np.isin(np.array(texts, dtype=object), others)[codes]
    if len(numbers) > _FEW and broken.sum() < _BROKEN * len(column):
        raise InvalidInputError(
            f"column {name!r} has numbers, but {_cell(column, others)}: correct it, leave it "
            'empty, or make the column a category, .astype("category")'
        )


def _refuse_almost_unique(name: str, column: pd.Series, counts: Counter[str], n_rows: int) -> None:
    """Raise where almost every row has a category of its own, which cannot generalise."""
    if len(counts) <= _FEW or len(counts) <= n_rows / 2:
        return
    others = [text for text in counts if spelling.decimal_mark([text]) is None]
    if len(others) < 0.5 * len(counts):
        raise InvalidInputError(
            f"column {name!r} has numbers, but {_cell(column, others)}: correct it, leave it "
            "empty, or leave the column out"
        )
    quoted = ", ".join(repr(text) for text in list(counts)[:_SHOWN])
    raise InvalidInputError(
        f"column {name!r} is text with {len(counts)} different values in {n_rows} rows ({quoted} "
        "...), a category for almost every row, from which nothing can be learned: leave it out, "
        "or make it a few categories"
    )


def _numbers(name: str, column: pd.Series, decimal: str) -> np.ndarray:
    """Numbers as float64, NaN where missing; infinite ones and other text are errors."""
    if _is_numeric(column):
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    else:
        codes, texts = spelling.distinct(column)
        numbers = spelling.as_numbers(texts, decimal)
        others = [text for text in texts if text and text not in numbers]
        if others:
            raise InvalidInputError(
                f"column {name!r} must be numbers, with the decimal mark {decimal!r}, but "
                f"{_cell(column, others)}: correct it, or leave it empty"
            )
        values = _looked_up(texts, numbers, np.nan)[codes]
    infinite = np.isinf(values)
    if infinite.any():
        raise InvalidInputError(
            f"X must be finite, but contains infinity in {name!r} ({infinite.sum()} of "
            f"{len(values)} rows): correct these rows, or leave the cells empty"
        )
    return values


def _decimal_of(column: pd.Series) -> str:
    """The decimal mark of numbers as text: that of most, where some are none."""
    texts = [text for text in spelling.distinct(column)[1] if text]
    commas = sum("," in text for text in texts)
    return spelling.decimal_mark(texts) or ("," if 2 * commas > len(texts) else ".")


def _booleans(name: str, column: pd.Series) -> np.ndarray:
    if _is_numeric(column):
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
            f"column {name!r} must be yes or no, but {_cell(column, others)}: correct it, or leave "
            "it empty"
        )
    return values


def moments(name: str, column: pd.Series, day_first: bool | None) -> np.ndarray:
    """Moments as datetime64[s], without a time zone; NaT where missing."""
    if _is_moment(column):
        if getattr(column.dtype, "tz", None) is not None:
            column = column.dt.tz_localize(None)
        return column.to_numpy(dtype="datetime64[s]")
    codes, texts = spelling.distinct(column)
    days = spelling.as_days(texts, day_first)
    if days is None and any(texts):
        others = [text for text in texts if text and spelling.as_days([text], True) is None]
        what = _cell(column, others) if others else "it is not clear whether day or month is first"
        raise InvalidInputError(f"column {name!r} must be days such as 2024-04-03, but {what}")
    return _looked_up(texts, days, np.datetime64("NaT", "s"))[codes]


def _looked_up(texts: list[str | None], meaning: dict[str, Any] | None, missing: Any) -> np.ndarray:
    """The meaning of each text, and of what is missing."""
    return np.array([missing if text is None else (meaning or {})[text] for text in texts])


def _filled(part: Any, values: np.ndarray, report: list[str]) -> np.ndarray:
    absent = np.isnan(values)
    if absent.any() and not part.missing:
        report.append(
            f"{part.name!r} is missing in {_rows(absent)}, and never was in training: "
            f"{part.fill:g} takes its place"
        )
    filled = np.where(absent, part.fill, values)
    return np.column_stack([filled, absent * 1.0] if part.missing else [filled])


def _sine_and_cosine(share: np.ndarray) -> list[np.ndarray]:
    return [np.sin(2 * np.pi * share), np.cos(2 * np.pi * share)]


def _rows(which: np.ndarray) -> str:
    return f"{which.sum()} of {len(which)} rows"


def _cell(column: pd.Series, texts: list[str]) -> str:
    """The first row with one of the texts, and the text."""
    rows = column.astype(str).str.strip().isin(texts).to_numpy()
    row = int(rows.argmax())
    label = column.index[row : row + 1].tolist()[0]  # a number of Python's, where it is one
    return f"row {label!r} has {str(column.iloc[row]).strip()!r}"


def _is_numeric(column: pd.Series) -> bool:
    from pandas.api import types

    return types.is_numeric_dtype(column.dtype) or types.is_bool_dtype(column.dtype)


def _is_moment(column: pd.Series) -> bool:
    from pandas.api import types

    return types.is_datetime64_any_dtype(column.dtype)


def _category_type() -> type:
    import pandas as pd

    return pd.CategoricalDtype
