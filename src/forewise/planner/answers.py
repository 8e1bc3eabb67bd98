"""The rows of a question to a planner's policy, and the columns of its answer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from forewise.planner.certificate import Certificate
from forewise.planner.contexts import Rows


@dataclass(frozen=True, eq=False)
class Question:
    """Rows to decide, and what they are decided by."""

    rows: Rows  # with those of the past that matter
    wanted: np.ndarray  # numbers of the rows to decide
    decided: Rows
    places: np.ndarray  # of `decided`, the rows that are not closed
    contexts: pd.DataFrame  # of these (n_places, n_features)


FIGURES = (
    "expected_cost", "cost_lower", "cost_upper", "perfect_information", "mean_based",
    "monte_carlo_error",
)  # fmt: skip


class Columns:
    """The columns of a result, filled piece by piece."""

    def __init__(self, n_rows: int, n_decisions: int) -> None:
        self.decisions = np.full((n_rows, n_decisions), np.nan)
        self.figures = {name: np.full(n_rows, np.nan) for name in FIGURES}
        self.note = np.full(n_rows, "", dtype=object)

    def fill(self, places: np.ndarray, decisions: np.ndarray, certificate: Certificate) -> None:
        """Decisions and certificates of some rows."""
        self.decisions[places] = decisions
        for name, column in self.figures.items():
            values = getattr(certificate, name)
            column[places] = values if values.ndim == 1 else values.max(axis=1)

    def tell(self, rows: np.ndarray, note: str) -> None:
        """A note for some rows, behind others."""
        for i in np.flatnonzero(rows):
            self.note[i] = f"{self.note[i]}; {note}" if self.note[i] else note


def without_decided(past: Rows, ahead: Rows) -> tuple[Rows, Rows]:
    """The past without rows that are decided, whose outcomes go to these."""
    assert past.days is not None
    assert ahead.days is not None
    place = pd.MultiIndex.from_arrays([ahead.keys, ahead.days.astype("datetime64[s]")])
    own = pd.MultiIndex.from_arrays([past.keys, past.days.astype("datetime64[s]")])
    found = place.get_indexer(own)
    twice = found >= 0
    outcome = ahead.outcome.copy()
    outcome[found[twice]] = past.outcome[twice]
    arrays = vars(ahead) | {"outcome": np.where(ahead.closed[:, None], np.nan, outcome)}
    return past.take(~twice), Rows(**arrays)
