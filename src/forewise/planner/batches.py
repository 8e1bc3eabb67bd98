"""A planner's decisions for tables of any length, each by the past and its own rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from forewise.policy.batches import arrow, pieces_of
from forewise.validation.frames import is_frame

_PIECE = 50_000  # rows that are decided at a time


@dataclass(frozen=True)
class PlannerDecider:
    """A plain function of data frames that a planner's policy decides; it can be pickled.

    Of a frame it makes one with the columns of `PlannerPolicy.decide`, of an iterator of frames an
    iterator: see `Policy.as_udf`.

    Parameters
    ----------
    policy : PlannerPolicy
    table : data frame or None
        The past.
    options : dict
        Of `PlannerPolicy.decide`.
    """

    policy: Any
    table: Any = None
    options: dict[str, Any] = field(default_factory=dict)

    def __call__(self, frames: Any) -> Any:
        """Decide a frame, or an iterator of frames."""
        if is_frame(frames):
            return by_series(self.policy, self.table, frames, _PIECE, self.options)
        return (self(frame) for frame in frames)


def decided_tables(decider: PlannerDecider, dataset: Iterable[Any]) -> Iterator[Any]:
    """An Arrow table of decisions for each table of the dataset."""
    for table in pieces_of(dataset, None):
        decided = decider(table.to_pandas(ignore_metadata=True, use_threads=False))
        made = arrow().Table.from_pandas(decided, preserve_index=False)
        yield made.replace_schema_metadata(None)


def by_series(
    policy: Any, past: Any, block: pd.DataFrame, piece: int, options: dict[str, Any]
) -> pd.DataFrame:
    """Decisions for a block of rows, some series at a time, in the order of the rows."""
    if len(block) <= piece:
        return policy.decide(past, block, **options)
    if policy.roles.date is None:
        parts = [block[start : start + piece] for start in range(0, len(block), piece)]
        return pd.concat([policy.decide(past, part, **options) for part in parts])
    codes, names = pd.factorize(policy.roles.keys(block, "the future"))
    part = np.cumsum(np.bincount(codes)) // piece  # of each series
    of_row = part[codes]
    place = pd.Index(names).get_indexer(pd.Index(policy.roles.keys(past, "table")))
    of_past = np.where(place >= 0, part[place], -1)
    decided = [
        policy.decide(past[of_past == number], block[of_row == number], **options)
        for number in np.unique(part)
    ]
    return pd.concat(decided).loc[block.index]
