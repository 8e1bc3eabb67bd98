"""What the date itself tells: weekday, season, holidays and the days around them.

May import: exceptions, and its sibling `grid`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from forewise.exceptions import InvalidInputError
from forewise.features.grid import as_counts, as_dates


def calendar(
    dates: pd.Series | pd.DatetimeIndex, holidays: Iterable[Any] | None = None, horizon: int = 7
) -> pd.DataFrame:
    """Weekday, month, season and holidays of each day. All of it is known years before.

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
        `weekday` (0 for Monday), `month` (1 to 12), `year_sin` and `year_cos`, the place in the
        year on a circle; with `holidays` also `holiday` (0 or 1), `days_to_holiday` and
        `days_since_holiday` (0 on a holiday).
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
        (most,) = as_counts("horizon", [horizon])
        known = np.unique(as_dates("holidays", pd.to_datetime(pd.Series(list(holidays)))))
        to, since = _distances(days.astype(np.int64), known.astype(np.int64), most)
        features |= {
            "holiday": (to == 0).astype(float),
            "days_to_holiday": to,
            "days_since_holiday": since,
        }
    rows = dates.index if isinstance(dates, pd.Series) else dates
    return pd.DataFrame(features, index=rows)


def _distances(days: np.ndarray, holidays: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Days to the next holiday and since the last one, at most `most`."""
    # One so far away on each side that there always is a next and a last one.
    padded = np.concatenate([[days.min() - most], holidays, [days.max() + most]])
    padded = np.sort(padded[(padded >= days.min() - most) & (padded <= days.max() + most)])
    to = padded[np.searchsorted(padded, days, side="left")] - days
    since = days - padded[np.searchsorted(padded, days, side="right") - 1]
    return np.minimum(to, most).astype(float), np.minimum(since, most).astype(float)
