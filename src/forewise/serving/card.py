"""What the service says of a policy: its model card, and a request that it can answer."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

from forewise import __version__
from forewise.planner.policy import PlannerPolicy
from forewise.serving.deciding import Edition, fitted_columns, input_names, kind, plain
from forewise.validation.encodings import BooleanColumn, CategoryColumn, NumberColumn

_DAYS = 3  # of the past in an example


def model_card(name: str, edition: Edition) -> dict[str, Any]:
    """What is decided, from what, and how it was learned."""
    policy = edition.policy
    card: dict[str, Any] = {
        "policy": name,
        "kind": kind(policy),
        "version": edition.version,
        "forewise": __version__,
        "loaded": edition.loaded,
        "problem": repr(policy.problem),
        "decisions": policy.decision_names,
        "example": example(edition),
    }
    if not isinstance(policy, PlannerPolicy):
        outcomes = policy.outcome_names or [f"outcome_{i}" for i in range(policy.n_outcomes)]
        return card | {
            "predictor": repr(policy.fitted),
            "outcomes": outcomes,
            "columns": {"column": input_names(policy)},
            "given": policy.problem.needs_given,
        }
    own, roles, calibration = policy.card, policy.roles, policy.calibration
    past = {"required": roles.date is not None, "stored": edition.past is not None}
    return card | plain(
        {
            "predictor": repr(policy.inner.predictor),
            "outcomes": roles.outcome,
            "roles": vars(roles),
            "columns": own.columns,
            "past": past,
            "learned_from": {"rows": own.n_rows, "first": own.first, "last": own.last},
            "leaderboard": own.leaderboard,
            "verdict": own.verdict,
            "notes": own.notes,
            "n_scenarios": policy.n_scenarios,
            "calibration": vars(calibration),
        }
    )


def example(edition: Edition) -> dict[str, Any] | None:
    """A request that the policy answers; None where values must be given to its problem."""
    policy = edition.policy
    if isinstance(policy, PlannerPolicy):
        return _planner_example(edition, policy)
    if policy.problem.needs_given:
        return None
    columns = fitted_columns(policy)
    if columns is None:
        return {"rows": [dict.fromkeys(input_names(policy), 0.0)]}
    return {"rows": [{part.name: default(part) for part in columns.parts}]}


def _planner_example(edition: Edition, policy: PlannerPolicy) -> dict[str, Any]:
    roles, recipe = policy.roles, policy.recipe
    row: dict[str, Any] = {part.name: default(part) for part in recipe.fixed.parts}
    row |= {part.name: default(part) for part in recipe.series.parts}
    row |= {name: 1.0 for name in roles.given if name not in row}
    if roles.closed is not None:
        row[roles.closed] = False
    if roles.date is None:
        return {"rows": [row]}
    last = date.fromisoformat(policy.card.last)
    future = row | {roles.date: str(last + timedelta(days=roles.horizon))}
    if edition.past is not None:
        return {"rows": [future]}
    past = [
        row | {roles.date: str(last - timedelta(days=k))} | dict.fromkeys(roles.outcome, 1.0 + k)
        for k in range(_DAYS)
    ]
    return {"rows": [future], "past": past}


def default(part: Any) -> Any:
    """A value of a column as it was in training."""
    if isinstance(part, NumberColumn):
        return part.fill
    if isinstance(part, BooleanColumn):
        return False
    if isinstance(part, CategoryColumn):
        return part.categories[0] if part.categories else "other"
    return "2024-01-01" if part.kind == "date" else None
