"""The rows of a table that are learned from: all of them, or the latest of a very long one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from forewise import tables
from forewise.cli import screen
from forewise.cli.stream import about
from forewise.planner.roles import Roles

MOST = 1_000_000  # rows that are learned from; many more would not fit into memory


def rows_to_learn_from(table: Path, roles: Roles) -> pd.DataFrame:
    """The rows of a table, in memory for some multiples of `MOST`.

    Of a longer one the days that come last are kept, at most `MOST` rows; without days every
    second row, or every fourth, and so on. What is left out is told.
    """
    kept: list[pd.DataFrame] = []
    held, total, step = 0, 0, 1
    for rows in tables.chunks(table):
        total += len(rows)
        kept.append(rows if roles.date else rows[rows.index.to_numpy() % step == 0])
        held += len(kept[-1])
        if held > 2 * MOST:
            step *= 2
            kept = [_thinned(pd.concat(kept), table, roles, step)]
            held = len(kept[0])
    if held > MOST:
        kept = [_thinned(pd.concat(kept), table, roles, 2 * step)]
        held = len(kept[0])
    if held < total:
        which = "those of the last days" if roles.date else "evenly spread"
        screen.note(
            f"{table} has {total:,} rows, more than {MOST:,}: {held:,} are learned from, {which}"
        )
    return pd.concat(kept)


def _thinned(frame: pd.DataFrame, table: Path, roles: Roles, step: int) -> pd.DataFrame:
    if roles.date is None:
        return frame[frame.index.to_numpy() % step == 0]
    with about(table):
        days = roles.days(roles.checked(frame, "table", [roles.date]), "table", None)
    # The first of the days that fit; the last day is kept however many rows it has.
    ranked = np.sort(days)
    first = ranked[-MOST - 1] + np.timedelta64(1, "D") if len(days) > MOST else ranked[0]
    return frame[days >= min(first, ranked[-1])]
