"""The kinds of columns: how each becomes features, fitted in training and applied later.

To add a kind: a frozen dataclass like these that is a `Column`, in `KINDS`, registered with the
policies.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

import numpy as np

from forewise.exceptions import InvalidInputError
from forewise.validation import spelling
from forewise.validation.cells import (
    booleans,
    decimal_of,
    first_cell,
    is_moment,
    is_numeric,
    moments,
    numbers,
)

if TYPE_CHECKING:
    import pandas as pd

_FEW = 10  # categories that are never too many
_SHOWN = 3  # values that a message quotes
_FEWEST, _MOST = 3, 60  # rows of a category that has a feature; such categories of a column


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

    def decode(self, features: np.ndarray) -> list[Any]:
        """The values (n_rows,) behind features, None where missing, rare, or not to be told."""


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
        decimal = "." if is_numeric(column) else decimal_of(column)
        values = numbers(name, column, decimal)
        known = values[~np.isnan(values)]
        fill = float(np.median(known)) if len(known) else 0.0
        return cls(name, fill, bool(len(known) < len(values)), decimal)

    @property
    def features(self) -> list[str]:
        return [self.name, *([f"{self.name}_missing"] if self.missing else [])]

    @property
    def note(self) -> str:
        filled = f"missing ones become {self.fill:g}, with an indicator" if self.missing else ""
        comma = "with decimal commas" if self.decimal == "," else ""
        return "; ".join(filter(None, [comma, filled]))

    def encode(self, column: pd.Series, report: list[str]) -> np.ndarray:
        values = numbers(self.name, column, self.decimal)
        return _filled(self, values, report)

    def decode(self, features: np.ndarray) -> list[Any]:
        known = features[:, 1] == 0 if self.missing else np.ones(len(features), dtype=bool)
        values = features[:, 0].tolist()
        return [value if seen else None for value, seen in zip(values, known, strict=True)]


@dataclass(frozen=True)
class BooleanColumn:
    """Yes or no in any spelling, as 1 and 0; missing ones are 0, with an indicator if any were.

    Where the only value means yes, such as "x", an empty cell means no (`crosses`).
    """

    name: str
    missing: bool
    crosses: bool = False
    fill: ClassVar[float] = 0.0
    kind: ClassVar[str] = "boolean"

    @classmethod
    def from_values(cls, name: str, column: pd.Series) -> Self:
        values = booleans(name, column)
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
        values = booleans(self.name, column)
        return _filled(self, values, [] if self.crosses else report)

    def decode(self, features: np.ndarray) -> list[Any]:
        known = features[:, 1] == 0 if self.missing else np.ones(len(features), dtype=bool)
        values = (features[:, 0] > 0).tolist()
        return [value if seen else None for value, seen in zip(values, known, strict=True)]


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

    def decode(self, features: np.ndarray) -> list[Any]:
        named = [*self.categories, *[None] * (len(self.features) - len(self.categories))]
        return [named[place] for place in features.argmax(axis=1).tolist()]


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
        texts = [] if is_moment(column) else spelling.distinct(column)[1]
        order = spelling.slash_order(texts)
        read = moments(name, column, order)
        known = read[~np.isnat(read)]
        with_time = bool((known != known.astype("datetime64[D]")).any())
        zone = str(getattr(column.dtype, "tz", None) or "") if is_moment(column) else None
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

    def decode(self, features: np.ndarray) -> list[Any]:
        return [None] * len(features)

    def _in_zone(self, column: pd.Series) -> pd.Series:
        """The times in the zone of training: its hours and days are meant."""
        if self.zone is None or not is_moment(column):
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
    value: str | None = None  # of every row, "" where it is empty; None where the user asked for it
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

    def decode(self, features: np.ndarray) -> list[Any]:
        return [None] * len(features)


KINDS: dict[str, Any] = {
    part.kind: part for part in (NumberColumn, BooleanColumn, CategoryColumn, DateColumn)
}


def _refuse_almost_unique(name: str, column: pd.Series, counts: Counter[str], n_rows: int) -> None:
    """Raise where almost every row has a category of its own, which cannot generalise."""
    if len(counts) <= _FEW or len(counts) <= n_rows / 2:
        return
    others = [text for text in counts if spelling.decimal_mark([text]) is None]
    if len(others) < 0.5 * len(counts):
        raise InvalidInputError(
            f"column {name!r} has numbers, but {first_cell(column, others)}: correct it, leave it "
            "empty, or leave the column out"
        )
    quoted = ", ".join(repr(text) for text in list(counts)[:_SHOWN])
    raise InvalidInputError(
        f"column {name!r} is text with {len(counts)} different values in {n_rows} rows ({quoted} "
        "...), a category for almost every row, from which nothing can be learned: leave it out, "
        "or make it a few categories"
    )


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
