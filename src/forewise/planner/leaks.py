"""Columns that know the outcome before it can be known, and days that do not fit the rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from forewise import features
from forewise.planner.contexts import Recipe, Rows

_ALIKE = 0.999  # correlation above which a column is the outcome in other units
_AHEAD = 14  # days after the row's own that a column is compared with
_FEWEST = 10  # pairs of values for a correlation
_LAGS, _CLEARLY = 7, 0.3  # by which rows of a file may be alike, and how much they have to be


@dataclass(frozen=True)
class Leak:
    """A column, the outcome it repeats, and how many days after the row that outcome was."""

    column: str
    outcome: str
    correlation: float
    days: int

    def __str__(self) -> str:
        when = "the same row"
        if self.days:
            when = f"{abs(self.days)} day(s) {'later' if self.days > 0 else 'before'}"
        return (
            f"column {self.column!r} knows {self.outcome!r} of {when} (their correlation is "
            f"{self.correlation:.4f}), which is not known when deciding"
        )


def find_leaks(recipe: Recipe, rows: Rows) -> list[Leak]:
    """Columns that repeat an outcome of a day that is not over when deciding.

    Columns that are known ahead must not know the last `horizon` days, nor later ones; those of
    which only the past is used must not know a later day than their own.
    """
    fixed, horizon = recipe.fixed, recipe.roles.horizon
    found = []
    columns = [
        (part.name, rows.fixed[:, fixed.features.index(part.name)], 1 - horizon)
        for part in fixed.parts
        if part.name in fixed.features
    ]
    lagged = zip(recipe.lagged, rows.lagged.T, strict=True)
    columns += [(part.name, values, 1) for part, values in lagged]
    for name, values, first in columns:
        for outcome, seen in zip(recipe.roles.outcome, rows.outcome.T, strict=True):
            leak = _closest(rows, values, seen, first)
            if leak is not None:
                found.append(Leak(name, outcome, *leak))
    return found


def unlike_in_time(rows: Rows) -> bool:
    """Whether rows that follow each other in the table are alike, and days in a row are not."""
    if rows.days is None or len(rows) < 50:
        return False
    values = pd.Series(rows.outcome[:, 0])
    centred = values - values.groupby(rows.keys).transform("mean")
    as_filed = _autocorrelation(centred, rows.keys)
    order = np.argsort(rows.days, kind="stable")
    by_day = _autocorrelation(centred.iloc[order], rows.keys[order])
    return as_filed > _CLEARLY and by_day < as_filed / 2


def _closest(
    rows: Rows, values: np.ndarray, outcome: np.ndarray, first: int
) -> tuple[float, int] | None:
    """Correlation and days of the outcome that a column repeats; None where it does not."""
    pairs = {0: (values, outcome)} if first <= 0 else {}
    if rows.days is not None:
        base = pd.DataFrame(
            {
                "date": rows.days.astype("datetime64[s]"),
                "series": pd.factorize(rows.keys)[0],
                "values": values,
                "outcome": outcome,
            }
        )
        before = features.lag(base, "values", range(1, _AHEAD + 1), "series")
        pairs |= {k + 1: (before.iloc[:, k].to_numpy(), outcome) for k in range(_AHEAD)}
        if first < 0:
            past = features.lag(base, "outcome", range(1, 1 - first), "series")
            pairs |= {-k - 1: (values, past.iloc[:, k].to_numpy()) for k in range(-first)}
    best = max(((abs(_correlation(*pair)), k) for k, pair in pairs.items()), default=(0.0, 0))
    return best if best[0] >= _ALIKE else None


def _correlation(a: np.ndarray, b: np.ndarray) -> float:
    """Of the rows that have both; 0 where they are too few, or constant."""
    both = np.isfinite(a) & np.isfinite(b)
    if both.sum() < _FEWEST:
        return 0.0
    first, second = a[both] - a[both].mean(), b[both] - b[both].mean()
    sizes = float(np.linalg.norm(first)), float(np.linalg.norm(second))
    return float(first @ second / (sizes[0] * sizes[1])) if min(sizes) > 0 else 0.0


def _autocorrelation(values: pd.Series, keys: np.ndarray) -> float:
    """The largest correlation with the rows of the same series just before."""
    grouped = values.groupby(keys)
    return max(
        _correlation(values.to_numpy(), grouped.shift(lag).to_numpy())
        for lag in range(1, _LAGS + 1)
    )
