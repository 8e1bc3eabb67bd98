"""Which column of a table is what, and a table read by it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd

from forewise.exceptions import InputTypeError, InvalidInputError
from forewise.validation import spelling
from forewise.validation.cells import moments
from forewise.validation.encodings import BooleanColumn, NumberColumn
from forewise.validation.frames import as_frame, listed
from forewise.validation.parameters import require_count


@dataclass(frozen=True)
class Roles:
    """The columns of a table by what they are; see `Planner` for the meaning of each."""

    outcome: list[str]
    date: str | None
    series: list[str]
    known: list[str]
    given: list[str]
    sold_out: list[str]
    closed: str | None
    horizon: int

    @classmethod
    def from_arguments(
        cls,
        outcome: Any,
        date: Any,
        series: Any,
        known: Any,
        given: Any,
        sold_out: Any,
        closed: Any,
        horizon: Any,
    ) -> Self:
        """Checked: names, each with one role."""
        lists = {
            "outcome": _names("outcome", outcome),
            "series": _names("series", series),
            "known": _names("known", known),
            "given": _names("given", given),
            "sold_out": _names("sold_out", () if sold_out is None else sold_out),
        }
        singles = {"date": date, "closed": closed}
        for role, name in singles.items():
            if name is not None and not isinstance(name, str):
                raise InputTypeError(f"{role} must be the name of a column, but is {name!r}")
        if not lists["outcome"]:
            raise InvalidInputError("outcome must name at least one column, but is empty")
        if len(lists["sold_out"]) not in (0, 1, len(lists["outcome"])):
            raise InvalidInputError(
                "sold_out must name one column, or one for each of the "
                f"{len(lists['outcome'])} outcomes, but names {len(lists['sold_out'])}"
            )
        holders: dict[str, str] = {}
        named = lists | {role: [name] for role, name in singles.items() if name is not None}
        for role, names in named.items():
            for name in names:
                other = holders.setdefault(name, role)
                # What is given to the problem may be known to the forecast as well.
                if other != role and {other, role} != {"known", "given"}:
                    raise InvalidInputError(
                        f"a column must have one role, but {name!r} is named in {other} and {role}"
                    )
        if date is None and require_count("horizon", horizon) != 1:
            raise InvalidInputError("horizon counts days: name the column of days in date")
        found: dict[str, Any] = lists | singles
        return cls(**found, horizon=require_count("horizon", horizon))

    @property
    def needed(self) -> list[str]:
        """Columns that a table of days to decide must have."""
        single = [name for name in (self.date, self.closed) if name is not None]
        return list(dict.fromkeys([*single, *self.series, *self.known, *self.given]))

    def checked(self, table: Any, name: str, needed: Iterable[str]) -> pd.DataFrame:
        """A pandas frame that has the columns, each once."""
        frame = as_frame(table)
        if frame is None:
            raise InputTypeError(
                f"{name} must be a data frame (pandas, polars or Arrow), but is a "
                f"{type(table).__name__}"
            )
        twice = [repr(column) for column in frame.columns[frame.columns.duplicated()].unique()]
        if twice:
            raise InvalidInputError(
                f"{name} must have each column once, but has several called {listed(twice)}: "
                "rename them"
            )
        lacking = [repr(column) for column in needed if column not in frame.columns]
        if lacking:
            raise InvalidInputError(
                f"{name} must have the columns {listed(lacking)}, but has not; it has "
                f"{listed([repr(column) for column in frame.columns])}"
            )
        return frame

    def days(self, frame: pd.DataFrame, name: str, day_first: bool | None) -> np.ndarray:
        """The day of each row, datetime64[D] (n_rows,)."""
        assert self.date is not None
        read = moments(self.date, frame[self.date], day_first)
        days = read.astype("datetime64[D]")
        if np.isnat(read).any():
            row = label(frame, np.isnat(read))
            raise InvalidInputError(
                f"column {self.date!r} of {name} must have a day in every row, but is empty in "
                f"{int(np.isnat(read).sum())}, the first is row {row!r}: fill it in, or leave out "
                "these rows"
            )
        if (days != read).any():
            timed = days != read
            raise InvalidInputError(
                f"column {self.date!r} of {name} must be days, but row {label(frame, timed)!r} has "
                f"the time {read[timed][0]}: make one row for each day, with a column for each time"
            )
        return days

    def keys(self, frame: pd.DataFrame, name: str) -> np.ndarray:
        """The series of each row as text (n_rows,)."""
        texts = [series_text(frame[column]) for column in self.series]
        for column, text in zip(self.series, texts, strict=True):
            missing = text.isna().to_numpy()
            if missing.any():
                raise InvalidInputError(
                    f"column {column!r} of {name} must name the series in every row, but is empty "
                    f"in {int(missing.sum())}, the first is row {label(frame, missing)!r}"
                )
        if not texts:
            return np.full(len(frame), "", dtype=object)
        joined = texts[0]
        for text in texts[1:]:
            joined = joined + ", " + text
        return joined.to_numpy(dtype=object)

    def outcomes(self, frame: pd.DataFrame) -> np.ndarray:
        """Outcomes (n_rows, n_outcomes); NaN where they are empty, or have no column."""
        values = np.full((len(frame), len(self.outcome)), np.nan)
        for j, column in enumerate(self.outcome):
            if column in frame.columns:
                values[:, j] = numbers(frame[column])
        return values

    def flags(self, frame: pd.DataFrame, name: str | None) -> np.ndarray:
        """A column of yes and no (n_rows,); empty cells, and no column, are no."""
        if name is None or name not in frame.columns:
            return np.zeros(len(frame), dtype=bool)
        return BooleanColumn(name, True).encode(frame[name], [])[:, 0] > 0

    def censored(self, frame: pd.DataFrame) -> np.ndarray:
        """Which outcomes are lower bounds, because the day was sold out (n_rows, n_outcomes)."""
        flags = [self.flags(frame, name) for name in self.sold_out]
        flags = flags or [np.zeros(len(frame), dtype=bool)]
        return (
            np.repeat(flags, len(self.outcome), axis=0).T if len(flags) == 1 else np.array(flags).T
        )


def label(frame: pd.DataFrame, rows: np.ndarray) -> Any:
    """What the first of some rows is called."""
    first = int(rows.argmax())
    return frame.index[first : first + 1].tolist()[0]


def numbers(column: pd.Series) -> np.ndarray:
    """Numbers in any spelling, NaN where missing (n_rows,)."""
    decimal = NumberColumn.from_values(str(column.name), column).decimal
    return NumberColumn(str(column.name), np.nan, True, decimal).encode(column, [])[:, 0]


def series_text(column: pd.Series) -> pd.Series:
    """Names of series as text: 3 and 3.0, which files with gaps make of it, are the same."""
    codes, texts = spelling.distinct(column)
    if pd.api.types.is_float_dtype(column.dtype):
        texts = [None if text is None else text.removesuffix(".0") for text in texts]
    return pd.Series(np.array(texts, dtype=object)[codes], index=column.index, name=column.name)


def require_one_row_a_day(
    roles: Roles, labels: pd.Index, days: np.ndarray, keys: np.ndarray, name: str
) -> None:
    """Raise with the first row whose series and day another row has already."""
    pairs = pd.DataFrame({"day": days.astype("datetime64[s]"), "key": keys})
    repeated = pairs.duplicated().to_numpy()
    if not repeated.any():
        return
    row = int(repeated.argmax())
    same = (days[:row] == days[row]) & (keys[:row] == keys[row])
    advice = "add up or leave out one of them"
    if not roles.series:
        advice = "name the columns that tell series apart in series, or " + advice
    names = labels.tolist()
    raise InvalidInputError(
        f"{name} must have one row per series and day, but row {names[row]!r} repeats {days[row]}"
        f"{f' of {keys[row]}' if keys[row] else ''}, which row {names[int(same.argmax())]!r} has "
        f"({int(repeated.sum())} such rows): {advice}"
    )


def _names(role: str, value: Any) -> list[str]:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise InputTypeError(f"{role} must be the name of a column, or several, but is {value!r}")
    if len(set(names)) < len(names):
        raise InvalidInputError(f"{role} must name each column once, but is {list(names)}")
    return list(names)
