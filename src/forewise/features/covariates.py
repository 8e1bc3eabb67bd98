"""Covariates of a day: calendar, known-future covariates, weather forecasts."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtri

from forewise.exceptions import InvalidInputError
from forewise.features.grid import Grid, as_counts, as_dates, as_names, as_numbers, require_columns
from forewise.validation.parameters import require_count


def calendar(
    dates: pd.Series | pd.DatetimeIndex, holidays: Iterable[Any] | None = None, horizon: int = 7
) -> pd.DataFrame:
    """Weekday, month, season and holidays of each day.

    Parameters
    ----------
    dates : Series or DatetimeIndex (n_rows,)
        Days, in any order, repeated or not.
    holidays : iterable of days, optional
        All of them, also those after the last day of `dates`.
    horizon : int
        Days to and since a holiday are counted up to this many.

    Returns
    -------
    DataFrame (n_rows, 4 or 7)
        `weekday` (0 for Monday), `month` (1 to 12), `year_sin` and `year_cos` (Fourier features
        of the day of the year); with `holidays` also `holiday` (0 or 1), `days_to_holiday` and
        `days_since_holiday` (0 on a holiday).

    Examples
    --------
    >>> import pandas as pd
    >>> import forewise as fw
    >>> days = pd.Series(pd.to_datetime(["2024-12-24", "2024-12-25"]))
    >>> fw.features.calendar(days, holidays=["2024-12-25"]).drop(columns=["year_sin", "year_cos"])
       weekday  month  holiday  days_to_holiday  days_since_holiday
    0      1.0   12.0      0.0              1.0                 7.0
    1      2.0   12.0      1.0              0.0                 0.0
    """
    if not isinstance(dates, pd.Series | pd.DatetimeIndex):
        raise InvalidInputError(
            f"dates must be a pandas Series or DatetimeIndex of days, but is a "
            f"{type(dates).__name__}"
        )
    days = as_dates("dates", dates)
    index = pd.DatetimeIndex(days)
    angle = 2 * np.pi * (index.day_of_year - 1) / (365 + index.is_leap_year)
    features = {
        "weekday": index.day_of_week.to_numpy(dtype=float),
        "month": index.month.to_numpy(dtype=float),
        "year_sin": np.sin(angle).to_numpy(),
        "year_cos": np.cos(angle).to_numpy(),
    }
    if holidays is not None:
        most = require_count("horizon", horizon, 1)
        known = np.unique(as_dates("holidays", pd.to_datetime(pd.Series(list(holidays)))))
        to, since = _distances(days.astype(np.int64), known.astype(np.int64), most)
        features |= {
            "holiday": (to == 0).astype(float),
            "days_to_holiday": to,
            "days_since_holiday": since,
        }
    rows = dates.index if isinstance(dates, pd.Series) else dates
    return pd.DataFrame(features, index=rows)


def known_ahead(
    table: pd.DataFrame,
    columns: str | Sequence[str],
    days: int | Sequence[int] = 0,
    by: str | Sequence[str] = (),
    date: str = "date",
) -> pd.DataFrame:
    """Known-future covariates of the day itself and of days after it: promotions, prices, hours.

    Only for what is settled before the decision; a plan that was changed on the day has to be in
    the table as it was planned.

    Returns columns such as ``promotion_in_1`` for the day after (`days` = 1; 0 is the day itself),
    NaN where that day has no row. `columns` are numbers or booleans; other parameters as for `lag`.

    Examples
    --------
    >>> import pandas as pd
    >>> import forewise as fw
    >>> days = pd.to_datetime(["2024-01-01", "2024-01-02"])
    >>> table = pd.DataFrame({"date": days, "promotion": [False, True]})
    >>> fw.features.known_ahead(table, "promotion", days=[0, 1])
       promotion_in_0  promotion_in_1
    0             0.0             1.0
    1             1.0             NaN
    """
    grid, names = Grid.from_table(table, by, date), as_names(columns)
    require_columns(table, names)
    features = {}
    for name in names:
        wide = grid.spread(table[name])
        for count in as_counts("days", days, at_least=0):
            features[f"{name}_in_{count}"] = grid.gather(wide.shift(-count))
    return pd.DataFrame(features, index=table.index)


def weather_forecast(
    table: pd.DataFrame,
    columns: str | Sequence[str],
    noise: float | Mapping[str, float],
    by: str | Sequence[str] = (),
    date: str = "date",
    *,
    random_state: int = 0,
) -> pd.DataFrame:
    """A surrogate for a weather forecast: the weather of the day before, plus noise.

        forecast of day t = weather of day t − 1 + noise · ε,    ε ~ N(0, 1)

    ε depends on the seed, the column, the series and the date alone, so that a row's forecast does
    not depend on the other rows of the table. Returns columns such as ``temperature_forecast``, NaN
    where the day before is not known.

    *When to use*: there is no archive of real forecasts. The weather of the day itself was not
    known when the decision was made.

    Parameters
    ----------
    table : DataFrame
        In any order. A day may come several times in a series (one row per product of a shop, say)
        if its weather is the same each time.
    columns : str or sequence of str
        Numbers.
    noise : float or mapping of column to float
        Standard deviation, in the units of the column.
    by : str or sequence of str
        Columns that tell places apart; none for a single place.
    random_state : int
        Seed of ε.

    Examples
    --------
    >>> import pandas as pd
    >>> import forewise as fw
    >>> days = pd.to_datetime(["2024-01-01", "2024-01-02"])
    >>> table = pd.DataFrame({"date": days, "temperature": [4.0, 8.0]})
    >>> fw.features.weather_forecast(table, "temperature", noise=0.0)
       temperature_forecast
    0                   NaN
    1                   4.0
    """
    grid, names = Grid.from_table(table, by, date, repeated=True), as_names(columns)
    require_columns(table, names)
    features: dict[str, np.ndarray] = {}
    for name in names:
        wide = grid.spread(table[name])
        if not np.array_equal(grid.gather(wide), as_numbers(table[name]), equal_nan=True):
            raise InvalidInputError(
                f"column {name!r} must be the same in all rows of a place and day, but is not: "
                "name in by= all columns that tell places apart"
            )
        scale = noise.get(name) if isinstance(noise, Mapping) else noise
        if not isinstance(scale, Real) or isinstance(scale, bool) or not 0 <= scale < np.inf:
            raise InvalidInputError(
                f"noise of {name!r} must be a finite standard deviation of at least 0, but is "
                f"{scale!r}"
            )
        error = _standard_normal(table, as_names(by), date, name, random_state)
        features[f"{name}_forecast"] = grid.gather(wide.shift(1)) + float(scale) * error
    return pd.DataFrame(features, index=table.index)


def _distances(days: np.ndarray, holidays: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Days to the next holiday and since the last one, at most `most`."""
    # One so far away on each side that there always is a next and a last one.
    padded = np.concatenate([[days.min() - most], holidays, [days.max() + most]])
    padded = np.sort(padded[(padded >= days.min() - most) & (padded <= days.max() + most)])
    to = padded[np.searchsorted(padded, days, side="left")] - days
    since = days - padded[np.searchsorted(padded, days, side="right") - 1]
    return np.minimum(to, most).astype(float), np.minimum(since, most).astype(float)


def _standard_normal(
    table: pd.DataFrame, by: list[str], date: str, name: str, random_state: int
) -> np.ndarray:
    """One draw per row, a function of the seed, the column's name, the series and the day."""
    if isinstance(random_state, bool) or not isinstance(random_state, int | np.integer):
        raise InvalidInputError(f"random_state must be an integer, but is {random_state!r}")
    state = np.full(len(table), np.uint64(int(random_state) % 2**64))
    state = _mixed(state ^ np.uint64(zlib.crc32(name.encode())))
    for column in by:
        codes, values = pd.factorize(table[column])
        keys = np.array([zlib.crc32(str(value).encode()) for value in values], dtype=np.uint64)
        state = _mixed(state ^ keys[codes])
    days = as_dates(date, table[date]).astype(np.int64).astype(np.uint64)
    state = _mixed(state ^ days)
    # The upper 53 bits, centred, lie strictly between 0 and 1.
    return ndtri(((state >> np.uint64(11)).astype(np.float64) + 0.5) / 2.0**53)


def _mixed(state: np.ndarray) -> np.ndarray:
    """The finaliser of splitmix64: neighbouring numbers become unrelated ones."""
    state = state + np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))
