"""Decisions for a file of any length: piece by piece, by the part of the past that matters.

What a row is decided by is its own columns and the past of its series, some weeks long. So the
rows of a block are decided series by series in pieces, each with the latest rows of the same
series, and come out in the order of the file, as they would at once. Memory is bounded where the
days of a file do not go back; a file in another order is read whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from forewise import tables
from forewise.exceptions import InvalidInputError
from forewise.planner.batches import by_series
from forewise.planner.roles import numbers

if TYPE_CHECKING:
    from forewise.planner.policy import PlannerPolicy

_BLOCK = 500_000  # rows of the future in memory at a time
_PIECE = 50_000  # rows that are decided at a time
_DAY = np.timedelta64(1, "D")


@contextmanager
def about(file: Path, past: Path | None = None) -> Iterator[None]:
    """Errors about a table name its file; those that speak of `table`, that of the past."""
    try:
        yield
    except InvalidInputError as error:
        text = str(error)
        if str(file) in text or (past is not None and str(past) in text):
            raise
        named = past if past is not None and re.search(r"^table|of table", text) else file
        raise InvalidInputError(f"{named}: {text}") from error


def decisions(
    policy: PlannerPolicy, table: Path | None, future: Path | None, **options: Any
) -> Iterator[pd.DataFrame]:
    """Decisions for the rows of a file, or for the rows of the table without an outcome."""
    if future is None:
        if table is None:
            raise InvalidInputError("there must be rows to decide: name their file in --future")
        past = recent(policy, table, None)
        with about(table):
            yield policy.decide(past, **options)
        return
    if policy.roles.date is None:
        for block in tables.chunks(future, _PIECE):
            with about(future):
                yield policy.decide(None, block, **options)
        return
    if table is None:
        raise InvalidInputError(
            "the past of the days to decide must be there: name the file of the table"
        )
    spans = [(days.min(), days.max()) for days in _days(policy, future)]
    firsts = [first for first, _ in spans]
    past = recent(policy, table, min(firsts))
    # A block is decided by rows of days before it: all of them must have been read by then.
    sorted_ = all(last <= first for (_, last), first in zip(spans, firsts[1:], strict=False))
    blocks = tables.chunks(future, _BLOCK) if sorted_ else [tables.read(future)]
    for number, block in enumerate(blocks, 1):
        with about(future, table):
            yield by_series(policy, past, block, _PIECE, options)
        if sorted_ and number < len(firsts):
            past = _with(past, block, policy, min(firsts[number:]))


def recent(policy: PlannerPolicy, table: Path, first: Any) -> pd.DataFrame:
    """The rows of a table that decisions from day `first` on are made of.

    Without `first` they are those for the rows after the last day whose outcome is known.
    """
    roles = policy.roles
    if roles.date is None:
        return tables.read(table)
    if first is None:
        first = max((day for day in _last_known(policy, table)), default=None)
        first = np.datetime64("1970-01-01") if first is None else first + _DAY
    since = first - policy.recipe.memory * _DAY
    kept = []
    for rows in tables.chunks(table):
        with about(table):
            frame = roles.checked(rows, "table", [*roles.needed, *roles.outcome])
            kept.append(frame[roles.days(frame, "table", policy.recipe.day_first) >= since])
    past = pd.concat(kept)
    with about(table):
        # The decimal mark is that of all rows: a few of them may not tell.
        return past.assign(**{name: numbers(past[name]) for name in roles.outcome})


def _days(policy: PlannerPolicy, file: Path) -> Iterator[np.ndarray]:
    for rows in tables.chunks(file, _BLOCK):
        with about(file):
            frame = policy.roles.checked(rows, "the future", policy.roles.needed)
            yield policy.roles.days(frame, "the future", policy.recipe.day_first)


def _last_known(policy: PlannerPolicy, file: Path) -> Iterator[Any]:
    roles = policy.roles
    for rows in tables.chunks(file):
        with about(file):
            frame = roles.checked(rows, "table", [*roles.needed, *roles.outcome])
            known = ~np.isnan(roles.outcomes(frame)).any(axis=1)
            if known.any():
                yield roles.days(frame, "table", policy.recipe.day_first)[known].max()


def _with(past: pd.DataFrame, block: pd.DataFrame, policy: PlannerPolicy, first: Any) -> Any:
    """The past with the rows of a block, for blocks about days from `first` on."""
    roles, frames = policy.roles, [past, block]
    unknown = {name: np.nan for name in roles.outcome if name not in block.columns}
    frames[1] = block.assign(**unknown).reindex(columns=past.columns)
    frames[1] = frames[1].assign(**{name: numbers(frames[1][name]) for name in roles.outcome})
    since = first - policy.recipe.memory * _DAY
    kept = [f[roles.days(f, "table", policy.recipe.day_first) >= since] for f in frames]
    joined = pd.concat(kept)
    days = roles.days(joined, "table", policy.recipe.day_first).astype("datetime64[s]")
    again = pd.DataFrame({"day": days, "key": roles.keys(joined, "table")}).duplicated()
    return joined[~again.to_numpy()]
