"""What a person can choose of a policy: its columns, series and days, and the rows of a day."""

from __future__ import annotations

from typing import Any

import numpy as np

from forewise.planner.policy import PlannerPolicy
from forewise.policy import DirectPolicy
from forewise.problems.base import without_risk
from forewise.problems.cvxpy import CvxpyProblem
from forewise.serving.card import default
from forewise.serving.deciding import Edition, fitted_columns, input_names, kind, plain
from forewise.serving.past import Past
from forewise.serving.reading import RequestError
from forewise.validation.encodings import BooleanColumn, CategoryColumn, NumberColumn

_SERIES = 5000  # that are listed
_CHOICES = 200  # of a category


def form(name: str, edition: Edition) -> dict[str, Any]:
    """The fields of a question to a policy, with values that can be asked at once."""
    policy = edition.policy
    found: dict[str, Any] = {
        "policy": name,
        "version": edition.version,
        "kind": kind(policy),
        "decisions": policy.decision_names,
        "given": [],
        "series": None,
        "days": None,
        "scenarios": not isinstance(policy, DirectPolicy),
        "missing": "",
    }
    if isinstance(policy, PlannerPolicy):
        return plain(found | _planned(edition, policy))
    columns = fitted_columns(policy)
    parts = [] if columns is None else columns.parts
    names = policy.outcome_names or [f"outcome_{i}" for i in range(policy.n_outcomes)]
    fields = [_field(part) for part in parts] or [
        {"name": n, "kind": "number", "value": 0.0} for n in input_names(policy)
    ]
    base, given = without_risk(policy.problem), list[dict[str, Any]]()
    if isinstance(base, CvxpyProblem) and base.needs_given:
        given = [{"name": n, "shape": list(shape)} for n, shape in base.layout.given.items()]
    return plain(found | {"outcomes": names, "columns": fields, "given": given})


def _planned(edition: Edition, policy: PlannerPolicy) -> dict[str, Any]:
    roles, recipe, past = policy.roles, policy.recipe, edition.past
    fields = [_field(part) for part in recipe.fixed.parts]
    known = {field["name"] for field in fields}
    fields += [{"name": n, "kind": "number", "value": 1.0} for n in roles.given if n not in known]
    if roles.closed is not None:
        fields.append({"name": roles.closed, "kind": "boolean", "value": False})
    found: dict[str, Any] = {"outcomes": roles.outcome, "columns": fields}
    if roles.date is None:
        found["columns"] = [_field(part) for part in recipe.series.parts] + fields
    elif past is None:
        found["missing"] = (
            "this policy decides from the days before, and the service was started without them: "
            "start it with --table FILE"
        )
    else:
        first, last = past.days
        ahead = last + np.timedelta64(roles.horizon, "D")
        found["series"] = {"columns": roles.series, "names": past.series[:_SERIES],
                           "count": len(past.series)}  # fmt: skip
        found["days"] = {"column": roles.date, "first": str(first), "last": str(last),
                         "next": str(ahead), "horizon": roles.horizon,
                         "learned": policy.card.last}  # fmt: skip
    return found


def rows_on(edition: Edition, day: str, series: str | None, most: int) -> dict[str, Any]:
    """The rows of all series on a day, or of one of them."""
    past = edition.past
    if past is None:
        raise RequestError(422, "there are no days to pick from: the service has no table of them")
    try:
        wanted = np.datetime64(day, "D")
        if len(day) != 10 or not np.datetime64("1900", "D") < wanted < np.datetime64("2200", "D"):
            raise ValueError
    except ValueError:
        raise RequestError(
            422, f"day must be a day such as 2024-01-31, but is {day[:40]!r}"
        ) from None
    if series is not None and series not in past.series:
        raise RequestError(404, f"the table has no series {series[:80]!r}")
    names = past.series if series is None else [series]
    return plain({"day": str(wanted), "left_out": max(0, len(names) - most),
                  "rows": [_row(past, name, wanted) for name in names[:most]]})  # fmt: skip


def _row(past: Past, name: str, day: np.datetime64) -> dict[str, Any]:
    found = past.on(name, day)
    return {"series": name, "row": found.row, "known": found.known, "outcome": found.outcome}


def _field(part: Any) -> dict[str, Any]:
    """How a column is asked for."""
    found: dict[str, Any] = {"name": part.name, "kind": "text", "value": default(part)}
    if isinstance(part, NumberColumn):
        found["kind"] = "number"
    elif isinstance(part, BooleanColumn):
        found["kind"] = "boolean"
    elif isinstance(part, CategoryColumn):
        found |= {"kind": "category", "choices": part.categories[:_CHOICES]}
    elif part.kind == "date":
        found["kind"] = "date"
    return found
