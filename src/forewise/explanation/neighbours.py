"""Past rows that resemble a context, and the smallest change of it that would matter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch

from forewise.exceptions import InvalidInputError
from forewise.explanation.case import Case
from forewise.explanation.parts import Change, Neighbour, Unavailable
from forewise.validation.frames import as_frame, row_labels
from forewise.validation.tables import check_same_rows

_SHOWN = 5  # rows and changes that are listed
_VALUES = 21  # of a column that are tried
_NOTICED = 0.05  # share of a decision that counts as another one

_ABSENT = Unavailable("no past rows were passed: explain(..., past=(X, y, labels))")


class Past(NamedTuple):
    """Past rows: contexts as they came and as the predictor sees them, outcomes, and labels."""

    table: Any
    contexts: np.ndarray  # (n_rows, n_inputs)
    outcome: np.ndarray  # (n_rows, n_outcomes)
    labels: list[Any]

    @classmethod
    def checked(cls, policy: Any, past: Any) -> Past | None:
        """The rows of ``(X, y)`` or ``(X, y, labels)``."""
        if past is None:
            return None
        if not isinstance(past, tuple | list) or len(past) not in (2, 3):
            raise InvalidInputError(
                "past must be (X, y) or (X, y, labels): contexts and outcomes of past rows, and "
                f"what to call them, such as their dates; but is a {type(past).__name__}"
            )
        X, y = past[:2]
        check_same_rows(**{"past X": X, "past y": y})
        contexts = policy.predictor.check_contexts(X)
        frame = as_frame(y)
        outcome = np.asarray(y if frame is None else frame, dtype=np.float64)
        outcome = outcome.reshape(len(outcome), -1)
        labels = past[2] if len(past) == 3 else row_labels(X) or range(len(contexts))
        labels = list(labels)
        lengths = {"X": len(contexts), "y": len(outcome), "labels": len(labels)}
        if len(set(lengths.values())) > 1 or not len(labels):
            raise InvalidInputError(
                f"past must have as many rows in every part, at least one, but has {lengths}"
            )
        if outcome.shape[1] != policy.n_outcomes:
            raise InvalidInputError(
                f"past y must have the policy's {policy.n_outcomes} outcome(s), but has "
                f"{outcome.shape[1]}"
            )
        return cls(X, contexts, outcome, labels)


def neighbours(case: Case, past: Past | None) -> list[Neighbour] | Unavailable:
    """The past rows nearest to the context, in standard deviations of their columns."""
    if past is None:
        return _ABSENT
    std = past.contexts.std(0)
    varies = std > 1e-12 * np.abs(past.contexts).max(0)
    if not varies.any():
        return Unavailable("all past rows have the same context")
    difference = (past.contexts[:, varies] - case.context[:, varies]) / std[varies]
    distance = np.sqrt((difference**2).mean(1))
    nearest = np.argsort(distance, kind="stable")[:_SHOWN]
    outcome = torch.from_numpy(past.outcome[nearest])
    known = outcome.isfinite().all(1)
    cost = torch.full((len(nearest),), torch.nan, dtype=torch.float64)
    if known.any():
        decision = case.decision.expand(int(known.sum()), -1)
        with torch.no_grad():
            cost[known] = case.problem.unchecked_cost(decision, outcome[known])
    return [
        Neighbour(
            past.labels[i],
            float(distance[i]),
            dict(zip(case.outcome_names, past.outcome[i].tolist(), strict=True)),
            float(cost[rank]),
        )
        for rank, i in enumerate(nearest)
    ]


class Alternative(NamedTuple):
    """Another value of one column, and the context (n_inputs,) that it makes.

    `distance` is the share of past rows between the two values; 1 for another category.
    """

    column: str
    now: Any
    then: Any
    distance: float
    context: np.ndarray


def alternatives(case: Case, past: Past) -> list[Alternative]:
    """Past values of each column of the contexts, one column at a time."""
    table, now = as_frame(past.table), as_frame(case.row)
    if table is None or now is None:
        plain = [np.asarray(part, dtype=float) for part in (past.table, case.row)]
        table, now = (pd.DataFrame(part.reshape(len(part), -1)) for part in plain)
    tried = [
        (column, value, distance)
        for column in now.columns
        if column in table.columns
        for value, distance in other_values(table[column], now[column].iloc[0])
    ]
    if not tried:
        return []
    rows = pd.concat([now] * len(tried), ignore_index=True)
    for column in now.columns:
        was = now[column].iloc[0]
        rows[column] = [value if column == name else was for name, value, _ in tried]
    contexts = case.policy.predictor.check_contexts(
        rows if as_frame(case.row) is not None else rows.to_numpy()
    )
    return [
        Alternative(str(column), now[column].iloc[0], value, distance, context)
        for (column, value, distance), context in zip(tried, contexts, strict=True)
    ]


def changes(
    case: Case, tried: Sequence[Alternative] | None, error: np.ndarray
) -> list[Change] | Unavailable:
    """The nearest value of each column, among those tried, that moves a decision noticeably.

    Noticeably is by more than 5 % of it and by more than twice its Monte-Carlo error. Columns
    without such a value are left out; the nearest come first.
    """
    if tried is None:
        return _ABSENT
    if not tried:
        return Unavailable("no column has other values in the past rows")
    decided = case.decisions_at(np.array([other.context for other in tried]))[:, case.explained]
    today = case.decision.numpy()[case.explained]
    scale = np.maximum(np.abs(today), 0.05 * np.abs(today).max())
    threshold = np.maximum(_NOTICED * scale, 2 * error)
    moved = (np.abs(decided - today) > threshold).any(1)
    found: dict[str, Change] = {}
    for i in sorted(np.flatnonzero(moved).tolist(), key=lambda i: tried[i].distance):
        column, now, then, distance, _ = tried[i]
        found.setdefault(column, Change(column, now, then, distance, case.named(decided[i])))
    return list(found.values())[:_SHOWN]


def other_values(column: pd.Series, now: Any) -> list[tuple[Any, float]]:
    """Past values to try in the place of one, and how far each is from it."""
    known = column.dropna()
    numeric = pd.api.types.is_numeric_dtype(known) and not pd.api.types.is_bool_dtype(known)
    if not numeric:
        # By name, so that the order of the rows does not matter where several move as much.
        common = sorted(known.value_counts().index[:_VALUES], key=str)
        return [(value, 1.0) for value in common if value != now]
    if pd.isna(now) or not len(known):
        return []
    ordered = np.sort(known.to_numpy(dtype=float))
    places = np.unique(np.linspace(0, len(ordered) - 1, _VALUES).round().astype(int))
    values = np.unique(ordered[places])

    def rank(value: float) -> float:
        return float(np.searchsorted(ordered, value) + np.searchsorted(ordered, value, "right"))

    here = rank(float(now))
    exact = known.dtype.type if known.dtype.kind in "iu" else float
    return [(exact(v), abs(rank(v) - here) / (2 * len(ordered))) for v in values if v != float(now)]
