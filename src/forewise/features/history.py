"""Values and statistics of earlier days of the same series.

Missing values, and days without a row, are NaN as lags and are left out of statistics. Mask the
zeros of closed days (``table["demand"].where(~table["closed"])``), or they count as demand.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from forewise.exceptions import InvalidInputError
from forewise.features.grid import Grid, as_counts, require_columns
from forewise.validation.parameters import require_count


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
    >>> table = pd.DataFrame({"date": pd.to_datetime(["2024-01-01", "2024-01-03"]), "sold": [5, 6]})
    >>> lag(table, "sold", days=[1, 2])
       sold_lag_1  sold_lag_2
    0         NaN         NaN
    1         NaN         5.0
    """
    grid, wide = _spread(table, column, by, date)
    features = {
        f"{column}_lag_{count}": grid.gather(wide.shift(count)) for count in as_counts("days", days)
    }
    return pd.DataFrame(features, index=table.index)


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
    """
    grid, wide = _spread(table, column, by, date)
    fewest, ahead = require_count("min_values", min_values, 1), require_count("horizon", horizon, 1)
    named = [(_name_of(statistic), statistic) for statistic in statistics]
    features = {}
    for window in as_counts("windows", windows):
        past = wide.shift(ahead).rolling(window, min_periods=min(fewest, window))
        for name, statistic in named:
            moved = past.quantile(statistic) if isinstance(statistic, Real) else past.agg(statistic)
            features[f"{column}_{name}_{window}"] = grid.gather(moved)
    return pd.DataFrame(features, index=table.index)


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
    """
    grid, wide = _spread(table, column, by, date)
    skipped = -(-require_count("horizon", horizon, 1) // 7)  # weeks
    last = pd.DataFrame(np.nan, index=wide.index, columns=wide.columns)
    means = {length: last.copy() for length in as_counts("weeks", weeks)}
    for first in range(min(7, len(wide))):
        past = wide.iloc[first::7].shift(skipped)
        last.iloc[first::7] = past.ffill()
        for length, mean in means.items():
            mean.iloc[first::7] = past.rolling(length, min_periods=1).mean()
    features = {f"{column}_weekday_last": grid.gather(last)}
    for length, mean in means.items():
        features[f"{column}_weekday_mean_{length}"] = grid.gather(mean)
    return pd.DataFrame(features, index=table.index)


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
    """
    grid, wide = _spread(table, column, by, date)
    number = pd.DataFrame(
        np.broadcast_to(np.arange(len(wide), dtype=float)[:, None], wide.shape), index=wide.index
    )
    last = number.where(wide.notna()).shift(require_count("horizon", horizon, 1)).ffill()
    return pd.DataFrame({f"{column}_days_since": grid.gather(number - last)}, index=table.index)


def _spread(
    table: pd.DataFrame, column: str, by: str | Sequence[str], date: str
) -> tuple[Grid, pd.DataFrame]:
    grid = Grid.from_table(table, by, date)
    require_columns(table, [column])
    return grid, grid.spread(table[column])


def _name_of(statistic: Any) -> str:
    if isinstance(statistic, Real) and 0 < float(statistic) < 1:
        return f"q{100 * float(statistic):g}"
    if isinstance(statistic, str) and statistic in ("mean", "std"):
        return statistic
    raise InvalidInputError(
        'statistics must be "mean", "std" or quantile levels between 0 and 1, but has '
        f"{statistic!r}"
    )
