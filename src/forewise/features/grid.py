"""Series side by side on a calendar without gaps, and checks of the table they come from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from forewise.exceptions import InvalidInputError
from forewise.validation.parameters import require_count

_DAY = np.timedelta64(1, "D")


@dataclass(frozen=True, eq=False)
class Grid:
    """The place of each row of a table, by day and series.

    `days` (n_days,) are all days from the first to the last of the table; `day` and `series`
    (n_rows,) are the numbers of each row's day and series.
    """

    days: pd.DatetimeIndex
    day: np.ndarray
    series: np.ndarray
    n_series: int

    @classmethod
    def from_table(
        cls, table: pd.DataFrame, by: str | Sequence[str], date: str, *, repeated: bool = False
    ) -> Grid:
        """The grid of a table; `repeated`: a day may come more than once in a series."""
        names = as_names(by)
        require_columns(table, [date, *names])
        if not len(table):
            raise InvalidInputError("table must have at least one row, but is empty")
        dates = as_dates(date, table[date])
        day = ((dates - dates.min()) // _DAY).astype(np.intp)
        series = _series_numbers(table, names)
        if not repeated and len(table) > len(pd.unique(series * (day.max() + 1) + day)):
            row = pd.DataFrame({"series": series, "day": day}).duplicated().to_numpy().argmax()
            which = ", ".join(f"{name} {table[name].iloc[row]}" for name in names) or "the table"
            raise InvalidInputError(
                "table must have one row per series and day, but repeats "
                f"{np.datetime_as_string(dates[row], 'D')} of {which}: name in by= all columns "
                "that tell series apart"
            )
        days = pd.date_range(dates.min(), periods=int(day.max()) + 1, freq="D")
        return cls(days, day, series, int(series.max()) + 1)

    def spread(self, column: pd.Series) -> pd.DataFrame:
        """A column as (n_days, n_series), NaN where there is no row."""
        wide = np.full((len(self.days), self.n_series), np.nan)
        wide[self.day, self.series] = as_numbers(column)
        return pd.DataFrame(wide, index=self.days)

    def gather(self, wide: pd.DataFrame) -> np.ndarray:
        """The entry of each row of the table, (n_rows,)."""
        return wide.to_numpy()[self.day, self.series]


def as_names(by: str | Sequence[str]) -> list[str]:
    """Names of columns; one name is a list of one."""
    return [by] if isinstance(by, str) else list(by)


def require_columns(table: Any, names: Iterable[str]) -> None:
    """Raise unless `table` is a data frame with these columns."""
    if not isinstance(table, pd.DataFrame):
        raise InvalidInputError(
            f"table must be a pandas.DataFrame, but is a {type(table).__name__}"
        )
    lacking = [repr(name) for name in names if name not in table]
    if lacking:
        raise InvalidInputError(
            f"table must have the columns {', '.join(lacking)}, but has not; it has "
            f"{', '.join(repr(name) for name in table.columns)}"
        )


def as_dates(name: str, column: Any) -> np.ndarray:
    """Days as datetime64[D]."""
    values = column.array if isinstance(column, pd.Series | pd.Index) else column
    kind = getattr(values, "dtype", None)
    if isinstance(kind, pd.DatetimeTZDtype) or not pd.api.types.is_datetime64_any_dtype(kind):
        raise InvalidInputError(
            f"{name} must be days without a time zone, but is of type {kind}: convert it with "
            "pandas.to_datetime"
        )
    instants = np.asarray(values, dtype="datetime64[s]")
    days = instants.astype("datetime64[D]")
    if np.isnat(days).any():
        raise InvalidInputError(f"{name} must have a day in every row, but has missing ones")
    if (days != instants).any():
        raise InvalidInputError(
            f"{name} must be days, but has times of day; a table of days has one row for each, "
            "with a column for each time of day"
        )
    return days


def as_numbers(column: pd.Series) -> np.ndarray:
    """Numbers or booleans as float64; NaN where missing."""
    try:
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"column {column.name!r} must be numbers, but is of type {column.dtype}"
        ) from error


def as_counts(name: str, value: Any, at_least: int = 1) -> list[int]:
    """Integers of at least `at_least`; one integer is a list of one."""
    counts = list(value) if isinstance(value, Iterable) else [value]
    if not counts:
        raise InvalidInputError(f"{name} must have at least one integer, but is empty")
    return [require_count(name, count, at_least) for count in counts]


def _series_numbers(table: pd.DataFrame, names: list[str]) -> np.ndarray:
    if not names:
        return np.zeros(len(table), dtype=np.intp)
    for name in names:
        missing = int(table[name].isna().sum())
        if missing:
            raise InvalidInputError(
                f"column {name!r} must name the series of every row, but {missing} are missing"
            )
    return table.groupby(names, sort=False).ngroup().to_numpy(dtype=np.intp)
