"""A table of the past that the service was started with, cut into its series."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from forewise.planner.policy import PlannerPolicy
from forewise.planner.roles import numbers
from forewise.validation.encodings import BooleanColumn, NumberColumn

_SHOWN = 56  # days of a series' history
_WEEK = 7


@dataclass(frozen=True, eq=False)
class Day:
    """A row of a series on a day: as the table has it, or as it may be assumed."""

    row: dict[str, Any]
    known: bool  # whether the table has it
    outcome: dict[str, float | None]


class Past:
    """A table of the past, cut into its series, so that a request reads those it is about."""

    def __init__(self, policy: PlannerPolicy, table: pd.DataFrame) -> None:
        roles = policy.roles
        frame = roles.checked(table, "table", [*roles.needed, *roles.outcome])
        days = roles.days(frame, "table", policy.recipe.day_first).astype("datetime64[s]")
        # Decimal marks and orders of days are found from all rows: a few may not show them.
        read: dict[str, Any] = {name: numbers(frame[name]) for name in roles.outcome}
        frame = frame.assign(**read | {str(roles.date): days}).sort_values(
            str(roles.date), kind="stable"
        )
        self._roles = roles
        self._booleans = {p.name for p in policy.recipe.fixed.parts if isinstance(p, BooleanColumn)}
        self._none = frame.iloc[:0]
        keys = roles.keys(frame, "table")
        self._of_series = {str(key): rows for key, rows in frame.groupby(keys, sort=True)}
        shown = self._readable(policy, frame)
        self._shown = {str(key): rows for key, rows in shown.groupby(keys, sort=True)}

    def _readable(self, policy: PlannerPolicy, frame: pd.DataFrame) -> pd.DataFrame:
        """The columns of a row to decide as a person would type them: a CSV has text alone."""
        roles, parts = self._roles, policy.recipe.fixed.parts
        named = [p.name for p in parts if isinstance(p, NumberColumn)] + roles.given
        read: dict[str, Any] = {name: numbers(frame[name]) for name in named}
        flags = [*self._booleans, *([] if roles.closed is None else [roles.closed])]
        read |= {name: roles.flags(frame, name) for name in flags}
        names = list(dict.fromkeys([*roles.needed, *roles.outcome]))
        return frame[names].assign(**read)

    def of(self, future: pd.DataFrame) -> pd.DataFrame:
        """The past of the series in some rows to decide."""
        frame = self._roles.checked(future, "rows", self._roles.series)
        keys = dict.fromkeys(self._roles.keys(frame, "rows"))
        found = [self._of_series[key] for key in keys if key in self._of_series]
        return pd.concat(found) if found else self._none

    @property
    def series(self) -> list[str]:
        """The series by name."""
        return list(self._of_series)

    @property
    def days(self) -> tuple[np.datetime64, np.datetime64]:
        """The first day of the table, and the last one with an outcome."""
        date, outcome = str(self._roles.date), self._roles.outcome
        firsts, lasts = [], []
        for rows in self._of_series.values():
            days = rows[date].to_numpy().astype("datetime64[D]")
            known = days[rows[outcome].notna().all(axis=1).to_numpy()]
            firsts.append(days[0])
            lasts.append(known[-1] if len(known) else days[0])
        return min(firsts), max(lasts)

    def on(self, key: str, day: np.datetime64) -> Day:
        """The row of a series on a day; what the table does not have is as it was last.

        Days are closed as those a week before were, and columns of yes and no are no.
        """
        roles, rows = self._roles, self._shown[key]
        days = rows[str(roles.date)].to_numpy().astype("datetime64[D]")
        place, found = int(np.searchsorted(days, day)), None
        if place < len(days) and days[place] == day:
            found = rows.iloc[place]
        last = rows.iloc[max(place - 1, 0)] if found is None else found
        row = {name: _cell(last[name]) for name in roles.needed}
        row[str(roles.date)] = str(day)
        if found is not None:
            return Day(row, True, {name: _cell(found[name]) for name in roles.outcome})
        row |= dict.fromkeys(self._booleans, False)
        if roles.closed is not None:
            before = np.flatnonzero(days == day - np.timedelta64(_WEEK, "D"))
            row[roles.closed] = bool(len(before) and rows[roles.closed].iloc[before[0]])
        return Day(row, False, dict.fromkeys(roles.outcome))

    def history(self, key: str, day: np.datetime64) -> dict[str, Any]:
        """Outcomes of a series in the weeks before a day, and on it."""
        roles, rows = self._roles, self._of_series.get(key, self._none)
        days = rows[str(roles.date)].to_numpy().astype("datetime64[D]")
        closed = roles.flags(rows, roles.closed)
        kept = rows[(days <= day) & (days > day - np.timedelta64(_SHOWN, "D")) & ~closed]
        return {
            "days": [str(value) for value in kept[str(roles.date)].to_numpy("datetime64[D]")],
            "outcomes": {name: [_cell(value) for value in kept[name]] for name in roles.outcome},
        }


def _cell(value: Any) -> Any:
    """A cell of the table as JSON has it."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or value is pd.NaT or (isinstance(value, float) and not np.isfinite(value)):
        return None
    return value if isinstance(value, bool | int | float | str) else str(value)
