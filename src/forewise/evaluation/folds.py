"""Windows of time, and the rows before each. May import: exceptions, metrics."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd

from forewise.evaluation.blocks import as_days
from forewise.exceptions import InvalidInputError

DAY = np.timedelta64(1, "D")
_CALENDAR = {"week": "W-SUN", "month": "M", "quarter": "Q", "year": "Y"}


@dataclass(frozen=True, eq=False)
class Fold:
    """One window of time: what is decided in it, and what was known before.

    Parameters
    ----------
    number : int
        0 for the first.
    start, end : Timestamp
        First day of the window, and the first day after it.
    train, decide : arrays of row numbers
        Rows before the window, and rows of it, both in order of time.
    """

    number: int
    start: pd.Timestamp
    end: pd.Timestamp
    train: np.ndarray
    decide: np.ndarray


def rolling_folds(
    dates: Any,
    window: str | int = "month",
    min_train_days: int = 365,
    max_train_days: int | None = None,
) -> list[Fold]:
    """Windows that follow each other in time, each with the rows before it to train on.

    Parameters
    ----------
    dates : array or Series of days (n_rows,)
        In any order; many rows may have the same.
    window : {"week", "month", "quarter", "year"} or int
        What is decided before training anew: calendar weeks (from Monday), months and so on, or so
        many days, counted from the first day that is decided.
    min_train_days : int
        The first window begins when there are so many days before it.
    max_train_days : int, optional
        Train on no more than so many days before a window: 30 for "one month of data". All days
        before it by default.

    Returns
    -------
    list of Fold
        Windows without rows are left out.
    """
    days = as_days(dates)
    shortest = as_day_count("min_train_days", min_train_days)
    longest = None if max_train_days is None else as_day_count("max_train_days", max_train_days)
    order = np.argsort(days, kind="stable")
    in_order = days[order]
    starts = _starts(in_order[0] + shortest * DAY, in_order[-1], window)
    folds: list[Fold] = []
    for start, end in pairwise(starts):
        oldest = in_order[0] if longest is None else start - longest * DAY
        first, now, after = np.searchsorted(in_order, [oldest, start, end])
        if now == after:
            continue
        if first == now:
            raise InvalidInputError(
                f"there is no row to train on in the {longest} day(s) before {start}: raise "
                "max_train_days, or leave out the rows after the gap"
            )
        folds.append(
            Fold(
                len(folds),
                pd.Timestamp(start),
                pd.Timestamp(end),
                order[first:now],
                order[now:after],
            )
        )
    if not folds:
        span = int((in_order[-1] - in_order[0]) // DAY) + 1
        raise InvalidInputError(
            f"no {window} begins after min_train_days={shortest} days: the dates span {span} "
            f"day(s), from {in_order[0]} to {in_order[-1]}, in {len(days)} row(s). Lower "
            "min_train_days, or learn from more rows (of other shops, say) together"
        )
    return folds


def as_day_count(name: str, value: Any) -> int:
    """A whole number of days, at least 1."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise InvalidInputError(f"{name} must be a whole number of at least 1, but is {value!r}")
    return int(value)


def _starts(first: np.datetime64, last: np.datetime64, window: str | int) -> np.ndarray:
    """First days of all windows from `first` to `last`, and the first day behind them."""
    if isinstance(window, Integral) and not isinstance(window, bool) and window >= 1:
        n_windows = max(0, int((last - first) // DAY) // int(window) + 1)
        return first + np.arange(n_windows + 1) * int(window) * DAY
    if not isinstance(window, str) or window not in _CALENDAR:
        raise InvalidInputError(
            f"window must be one of {', '.join(map(repr, _CALENDAR))} or a whole number of days of "
            f"at least 1, but is {window!r}"
        )
    period = pd.Period(pd.Timestamp(first), freq=_CALENDAR[window])
    # A window that has begun already is left out: what is decided is a whole one.
    period = period if period.start_time == pd.Timestamp(first) else period + 1
    starts = []
    while period.start_time <= pd.Timestamp(last):
        starts.append(period.start_time)
        period += 1
    return np.array([*starts, period.start_time], dtype="datetime64[D]")
