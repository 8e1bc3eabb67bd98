"""Values and statistics of earlier days of the same series.

Missing values, and days without a row, are NaN as lags and are left out of statistics. Mask the
zeros of closed days (``table["demand"].where(~table["closed"])``), or they count as demand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.lib.stride_tricks import sliding_window_view

from forewise.exceptions import InvalidInputError
from forewise.features.grid import Grid, as_counts, as_numbers, require_columns
from forewise.validation.parameters import require_count

_PIECE = 2**20  # numbers in the windows that are looked at together


def lag(
    table: pd.DataFrame,
    column: str,
    days: int | Sequence[int] = 1,
    by: str | Sequence[str] = (),
    date: str = "date",
) -> pd.DataFrame:
    """The value of the same series some days before, by date.

    Parameters
    ----------
    table : DataFrame
        One row per series and day, in any order.
    column : str
        Numbers; may have missing ones.
    days : int or sequence of int
        7 is the same weekday of the week before.
    by : str or sequence of str
        Columns that tell series apart; none for a single series.
    date : str
        Column of days.

    Returns
    -------
    DataFrame (n_rows, len(days))
        Columns such as ``demand_lag_7``; NaN where that day is not known.

    Examples
    --------
    >>> import pandas as pd
    >>> import forewise as fw
    >>> table = pd.DataFrame({"date": pd.to_datetime(["2024-01-01", "2024-01-03"]), "sold": [5, 6]})
    >>> fw.features.lag(table, "sold", days=[1, 2])
       sold_lag_1  sold_lag_2
    0         NaN         NaN
    1         NaN         5.0
    """
    return Past.from_table(table, column, by, date).lag(days)


def rolling(
    table: pd.DataFrame,
    column: str,
    windows: int | Sequence[int] = (7, 28),
    statistics: Sequence[str | float] = ("mean", "std"),
    by: str | Sequence[str] = (),
    date: str = "date",
    *,
    min_values: int = 2,
    horizon: int = 1,
) -> pd.DataFrame:
    """Moving statistics of the days before, up to yesterday, or up to `horizon` days ago.

    Returns columns such as ``demand_mean_28``, ``demand_std_28`` and ``demand_q90_28``.

    Parameters
    ----------
    windows : int or sequence of int
        Lengths in days.
    statistics : sequence
        "mean", "std", or a number between 0 and 1 for that quantile.
    min_values : int
        Fewest known values in a window; NaN below that.
    horizon : int
        Days between the last value that counts and the row's own day; windows end there.
    table, column, by, date
        As for `lag`.

    Examples
    --------
    >>> import pandas as pd
    >>> import forewise as fw
    >>> table = pd.DataFrame({"date": pd.date_range("2024-01-01", periods=4), "sold": [5, 7, 6, 9]})
    >>> fw.features.rolling(table, "sold", windows=2, statistics=["mean", 0.9])
       sold_mean_2  sold_q90_2
    0          NaN         NaN
    1          NaN         NaN
    2          6.0         6.8
    3          6.5         6.9
    """
    past = Past.from_table(table, column, by, date)
    return past.rolling(windows, statistics, min_values=min_values, horizon=horizon)


def same_weekday(
    table: pd.DataFrame,
    column: str,
    weeks: int | Sequence[int] = 4,
    by: str | Sequence[str] = (),
    date: str = "date",
    *,
    horizon: int = 1,
) -> pd.DataFrame:
    """The last known value of the same weekday, and the mean over some weeks.

    Returns ``demand_weekday_last``, however long ago, and columns such as
    ``demand_weekday_mean_4``, the mean of the known values in so many `weeks` before, up to
    `horizon` days ago. Other parameters as for `lag`.

    *When to use*: some days are missing, so that ``lag(..., days=7)`` would be NaN.

    Examples
    --------
    >>> import pandas as pd
    >>> import forewise as fw
    >>> table = pd.DataFrame({"date": pd.date_range("2024-01-01", periods=15), "sold": range(15)})
    >>> fw.features.same_weekday(table, "sold", weeks=2).tail(1)
        sold_weekday_last  sold_weekday_mean_2
    14                7.0                  3.5
    """
    past = Past.from_table(table, column, by, date)
    last, means = past.weekday_last(horizon), past.weekday_means(weeks, horizon=horizon)
    return pd.concat([last, means], axis=1)


def days_since(
    table: pd.DataFrame,
    column: str,
    by: str | Sequence[str] = (),
    date: str = "date",
    *,
    horizon: int = 1,
) -> pd.DataFrame:
    """Days since the last known value, ``demand_days_since``; NaN before the first known value.

    1 if yesterday is known, 2 after a closed day. Values less than `horizon` days ago do not count.
    Other parameters as for `lag`.

    Examples
    --------
    >>> import pandas as pd
    >>> import forewise as fw
    >>> days = pd.to_datetime(["2024-01-01", "2024-01-02", "2024-01-03"])
    >>> table = pd.DataFrame({"date": days, "sold": [5.0, None, 6.0]})
    >>> fw.features.days_since(table, "sold")["sold_days_since"].tolist()
    [nan, 1.0, 2.0]
    """
    return Past.from_table(table, column, by, date).days_since(horizon=horizon)


@dataclass(frozen=True, eq=False)
class Past:
    """Earlier days of a column, for some rows of its table: what features of the past are made of.

    `wide` (n_series, n_days) is NaN where nothing is known; `day` and `series` (n_rows,) are the
    numbers of each row's day and series. The methods return data frames with these rows.
    """

    name: str
    wide: np.ndarray
    day: np.ndarray
    series: np.ndarray
    index: pd.Index

    @classmethod
    def from_table(
        cls, table: pd.DataFrame, column: str, by: str | Sequence[str], date: str
    ) -> Self:
        """Of all rows of a table."""
        grid = Grid.from_table(table, by, date)
        require_columns(table, [column])
        rows = np.arange(len(table))
        return cls.of(column, as_numbers(table[column]), grid, rows, table.index)

    @classmethod
    def of(
        cls, name: str, values: np.ndarray, grid: Grid, rows: np.ndarray, index: pd.Index
    ) -> Self:
        """Of some rows of a table, by number; `values` are those of all of its rows."""
        wide = np.full((grid.n_series, len(grid.days)), np.nan)
        wide[grid.series, grid.day] = values
        return cls(name, wide, grid.day[rows], grid.series[rows], index)

    def lag(self, days: int | Sequence[int]) -> pd.DataFrame:
        """Values of some days before; see `lag`."""
        counts = as_counts("days", days)
        return self._frame({f"lag_{count}": self._at(self.day - count) for count in counts})

    def rolling(
        self,
        windows: int | Sequence[int],
        statistics: Sequence[str | float],
        *,
        min_values: int = 2,
        horizon: int = 1,
    ) -> pd.DataFrame:
        """Moving statistics; see `rolling`."""
        fewest = require_count("min_values", min_values, 1)
        ahead = require_count("horizon", horizon, 1)
        named = [(_name_of(statistic), statistic) for statistic in statistics]
        made: dict[str, np.ndarray] = {}
        for window in as_counts("windows", windows):
            found = np.full((len(named), len(self.day)), np.nan)
            for part, values in self._windows(window, ahead):
                count = np.isfinite(values).sum(axis=1)
                some = count >= min(fewest, window)
                found[:, part][:, some] = _statistics(
                    values[some], count[some], [statistic for _, statistic in named]
                )
            made |= {f"{name}_{window}": found[i] for i, (name, _) in enumerate(named)}
        return self._frame(made)

    def weekday_last(self, horizon: int = 1) -> pd.DataFrame:
        """The last known value of the same weekday, however long ago."""
        week = 7 * _weeks(horizon)
        latest = np.where(np.isnan(self.wide), -1, np.arange(self.wide.shape[1]))
        for first in range(7):
            np.maximum.accumulate(latest[:, first::7], axis=1, out=latest[:, first::7])
        before = self.day - week
        last = np.where(before < 0, -1, latest[self.series, np.maximum(before, 0)])
        return self._frame({"weekday_last": self._at(last)})

    def weekday_means(self, weeks: int | Sequence[int], *, horizon: int = 1) -> pd.DataFrame:
        """Means of the known values of the same weekday over some weeks; see `same_weekday`."""
        lengths = as_counts("weeks", weeks)
        ago = 7 * (_weeks(horizon) + np.arange(max(lengths)))
        values = np.column_stack([self._at(self.day - days) for days in ago])
        made = {}
        for length in lengths:
            own = values[:, :length]
            count, mean = np.isfinite(own).sum(axis=1), np.full(len(own), np.nan)
            mean[count > 0] = _statistics(own[count > 0], count[count > 0], ["mean"])[0]
            made[f"weekday_mean_{length}"] = mean
        return self._frame(made)

    def days_since(self, *, horizon: int = 1) -> pd.DataFrame:
        """Days since the last known value; see `days_since`."""
        before = self.day - require_count("horizon", horizon, 1)
        latest = np.where(np.isnan(self.wide), -1, np.arange(self.wide.shape[1]))
        np.maximum.accumulate(latest, axis=1, out=latest)
        last = np.where(before < 0, -1, latest[self.series, np.maximum(before, 0)])
        return self._frame({"days_since": np.where(last < 0, np.nan, self.day - last)})

    def _at(self, day: np.ndarray) -> np.ndarray:
        """The value of each row's series on a day (n_rows,); NaN before the first one."""
        return np.where(day < 0, np.nan, self.wide[self.series, np.maximum(day, 0)])

    def _windows(self, length: int, ahead: int) -> Iterator[tuple[slice, np.ndarray]]:
        """Values (n_some, length) of the days up to `ahead` days before, of rows by slices."""
        reach = length + ahead - 1
        before = np.full((len(self.wide), max(0, reach - int(self.day.min(initial=reach)))), np.nan)
        windows = sliding_window_view(np.concatenate([before, self.wide], axis=1), length, axis=1)
        start, size = self.day - reach + before.shape[1], max(1, _PIECE // length)
        for first in range(0, len(self.day), size):
            part = slice(first, first + size)
            yield part, windows[self.series[part], start[part]]

    def _frame(self, made: dict[str, np.ndarray]) -> pd.DataFrame:
        named = {f"{self.name}_{name}": values for name, values in made.items()}
        return pd.DataFrame(named, index=self.index)


def _statistics(values: np.ndarray, count: np.ndarray, statistics: Sequence[Any]) -> np.ndarray:
    """Statistics (n_statistics, n_rows) of rows with some finite values (n_rows, n_values).

    Differences to the smallest one are summed: those of equal values are 0 without rounding.
    """
    known = np.isfinite(values)
    least = np.where(known, values, np.inf).min(axis=1, initial=np.inf)
    above = np.where(known, values - least[:, None], 0.0)
    mean = above.sum(axis=1) / count
    found, ranked = [], np.empty(0)
    for statistic in statistics:
        if statistic == "mean":
            found.append(least + mean)
        elif statistic == "std":
            squares = np.where(known, (above - mean[:, None]) ** 2, 0.0).sum(axis=1)
            one = count < 2
            found.append(np.where(one, np.nan, np.sqrt(squares / np.where(one, 1, count - 1))))
        else:
            if not ranked.size:
                ranked = np.sort(np.where(known, values, np.inf), axis=1)
            found.append(_quantile(ranked, count, float(statistic)))
    return np.array(found)


def _quantile(ranked: np.ndarray, count: np.ndarray, level: float) -> np.ndarray:
    """The quantile of the first `count` of ranked values, linear between them (n_rows,)."""
    place, row = level * (count - 1), np.arange(len(ranked))
    low = place.astype(np.intp)
    lower, upper = ranked[row, low], ranked[row, np.minimum(low + 1, count - 1)]
    return lower + (upper - lower) * (place - low)


def _weeks(horizon: int) -> int:
    """Whole weeks that reach back over a horizon."""
    return -(-require_count("horizon", horizon, 1) // 7)


def _name_of(statistic: Any) -> str:
    if isinstance(statistic, Real) and 0 < float(statistic) < 1:
        return f"q{100 * float(statistic):g}"
    if isinstance(statistic, str) and statistic in ("mean", "std"):
        return statistic
    raise InvalidInputError(
        'statistics must be "mean", "std" or quantile levels between 0 and 1, but has '
        f"{statistic!r}"
    )
