"""Looking ahead, as far as one can: plans that are known, and weather that is only foretold.

May import: exceptions, and its sibling `grid`.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from numbers import Real

import numpy as np
import pandas as pd
from scipy.special import ndtri

from forewise.exceptions import InvalidInputError
from forewise.features.grid import (
    Grid,
    as_counts,
    as_dates,
    as_names,
    as_numbers,
    require_columns,
)


def known_ahead(
    table: pd.DataFrame,
    columns: str | Sequence[str],
    days: int | Sequence[int] = 0,
    by: str | Sequence[str] = (),
    date: str = "date",
) -> pd.DataFrame:
    """Plans for the day itself and days after it: promotions, prices, opening hours.

    Only for what is truly settled before the decision; a plan that was changed on the day has
    to be in the table as it was planned.

    Parameters
    ----------
    table : DataFrame
        One row per series and day, in any order.
    columns : str or sequence of str
        Numbers or truth values.
    days : int or sequence of int
        0 is the day itself, 1 the day after.
    by, date
        As for `lag`.

    Returns
    -------
    DataFrame (n_rows, len(columns) · len(days))
        Columns such as ``promotion_in_1``; NaN where that day has no row.
    """
    grid = Grid.of(table, by, date)
    names = as_names(columns)
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
    """A stand-in for a weather forecast: the weather of the day before, plus noise.

    Prefer a real archive of forecasts where there is one. The weather of the day itself must not
    be used: nobody knew it when the decision was made.

        forecast of day t = weather of day t − 1 + noise · ε,    ε ~ N(0, 1)

    ε depends on the seed, the column, the series and the date alone: a row's forecast is the same
    whatever other rows the table has.

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
    date : str
        Column of days.
    random_state : int
        Seed of ε.

    Returns
    -------
    DataFrame (n_rows, len(columns))
        Columns such as ``temperature_forecast``; NaN where the day before is not known.
    """
    grid = Grid.of(table, by, date, repeated=True)
    names = as_names(columns)
    require_columns(table, names)
    features = {}
    for name in names:
        wide = grid.spread(table[name])
        values = as_numbers(table[name])
        if not np.array_equal(grid.gather(wide), values, equal_nan=True):
            raise InvalidInputError(
                f"column {name!r} must be the same in all rows of a place and day, but is not: "
                "name in by= all columns that tell places apart"
            )
        scale = _as_scale(noise, name)
        error = _standard_normal(table, as_names(by), date, name, random_state)
        features[f"{name}_forecast"] = grid.gather(wide.shift(1)) + scale * error
    return pd.DataFrame(features, index=table.index)


def _as_scale(noise: float | Mapping[str, float], name: str) -> float:
    scale = noise.get(name) if isinstance(noise, Mapping) else noise
    if isinstance(scale, Real) and not isinstance(scale, bool):
        number = float(scale)
        if np.isfinite(number) and number >= 0:
            return number
    raise InvalidInputError(
        f"noise of {name!r} must be a finite standard deviation of at least 0, but is {scale!r}"
    )


def _standard_normal(
    table: pd.DataFrame, by: list[str], date: str, name: str, random_state: int
) -> np.ndarray:
    """One draw per row, a function of the seed, the column's name, the series and the day."""
    if isinstance(random_state, bool) or not isinstance(random_state, int | np.integer):
        raise InvalidInputError(f"random_state must be a whole number, but is {random_state!r}")
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
