"""What a report is made of: a planner's policy, its evaluation, decisions, and an explanation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from forewise.exceptions import InvalidInputError
from forewise.explanation import Explanation
from forewise.planner.evaluation import Evaluation
from forewise.planner.policy import PlannerPolicy
from forewise.validation.frames import as_frame

_METHOD = "planner"  # what the policy is called in an evaluation


@dataclass(frozen=True, eq=False)
class Content:
    """All that a page shows."""

    policy: PlannerPolicy
    evaluation: Evaluation | None
    decisions: pd.DataFrame | None
    explanation: Explanation | None
    outcome: pd.DataFrame | None  # of the decided rows of the evaluation, in its order

    @classmethod
    def checked(
        cls,
        policy: PlannerPolicy,
        table: Any,
        evaluation: Evaluation | None,
        decisions: Any,
        explanation: Explanation | None,
    ) -> Content:
        """Look up what happened on the days of the evaluation."""
        decided = None if decisions is None else as_frame(decisions)
        if decisions is not None and decided is None:
            raise InvalidInputError(
                "decisions must be the data frame that decide returns, but is a "
                f"{type(decisions).__name__}"
            )
        outcome = None if evaluation is None else _outcomes(policy, table, evaluation)
        return cls(policy, evaluation, decided, explanation, outcome)

    @property
    def method_cost(self) -> str:
        """Column of the policy's costs in an evaluation."""
        return f"cost_{_METHOD}"

    @property
    def method(self) -> str:
        """What the policy is called in an evaluation."""
        return _METHOD

    @property
    def series_of(self) -> pd.Series:
        """What each row of the evaluation is about: its series in one text."""
        assert self.evaluation is not None
        costs, names = self.evaluation.costs, list(self.policy.roles.series)
        if not names:
            return pd.Series("", index=costs.index)
        return costs[names].astype(str).agg(" · ".join, axis=1)

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Decisions and the outcomes beside which they can be shown."""
        decisions, outcomes = self.policy.decision_names, list(self.policy.roles.outcome)
        if len(decisions) != len(outcomes):
            return []
        return list(zip(decisions, outcomes, strict=True))


def _outcomes(policy: PlannerPolicy, table: Any, evaluation: Evaluation) -> pd.DataFrame:
    """Outcomes ``(n_decided, n_outcomes)`` of the evaluation's rows, whose index counts rows."""
    frame = as_frame(table)
    names = list(policy.roles.outcome)
    if frame is None or not set(names) <= set(map(str, frame.columns)):
        raise InvalidInputError(
            f"table must be the data frame that was evaluated, with the column(s) {names}, but is "
            f"a {type(table).__name__}" + ("" if frame is None else f" with {list(frame.columns)}")
        )
    places = evaluation.costs.index.to_numpy()
    if len(places) and places.max() >= len(frame):
        raise InvalidInputError(
            f"table must be the one that was evaluated, with at least {places.max() + 1} rows, but "
            f"has {len(frame)}"
        )
    chosen = frame[names].iloc[places].apply(pd.to_numeric, errors="coerce")
    return chosen.set_axis(evaluation.costs.index).astype(np.float64)
