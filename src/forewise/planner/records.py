"""What a planner stores beside what decides: the model card, and the latest rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from forewise.policy import register


@register
@dataclass(frozen=True)
class Card:
    """The model card of a policy: its data, its columns and the comparison of methods.

    Parameters
    ----------
    notes : list of str
        What was read, what was left out, and why.
    verdict : str
        What the comparison of methods came to; empty where there was none.
    columns, leaderboard : dict of lists
        Tables by column, as `Planner.columns_` and `Planner.leaderboard_`.
    n_rows : int
        Rows that were learned from.
    first, last : str
        Their days; empty without a date.
    """

    notes: list[str]
    verdict: str
    columns: dict[str, list[Any]]
    leaderboard: dict[str, list[Any]]
    n_rows: int
    first: str
    last: str


@register
@dataclass(frozen=True, eq=False)
class PastRows:
    """The latest rows that were learned from: what explanations find similar days in.

    Parameters
    ----------
    contexts : array (n_rows, n_features), float32
        In the columns of the recipe's features.
    outcome : array (n_rows, n_outcomes)
    censored : array (n_rows, n_outcomes)
    days : array (n_rows,)
        Days since 1970; empty without a date.
    series : array (n_rows,)
        Number of each row's series in `names`.
    names : list of str
    """

    contexts: np.ndarray
    outcome: np.ndarray
    censored: np.ndarray
    days: np.ndarray
    series: np.ndarray
    names: list[str]

    @property
    def labels(self) -> list[str]:
        """What to call the rows: their series and day."""
        days = self.days.astype("datetime64[D]").astype(str) if len(self.days) else None
        found = []
        for i, number in enumerate(self.series.tolist()):
            parts = [self.names[number], "" if days is None else str(days[i])]
            found.append(" ".join(part for part in parts if part) or f"row {i}")
        return found
