"""The text of a plan: every key with what it means, those that are not used as comments."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from forewise.cli.proposal import Proposal
from forewise.cli.templates import TEMPLATES

_WIDE = 24  # characters of what has its comment beside it
_ROLES = {
    "outcome": "what is uncertain, and is known only after the day",
    "date": "the day; rows are in no order without it",
    "series": "these columns tell series apart; none for a single one",
    "known": "known for the day that is decided, when it is decided",
    "sold_out": "yes: there was none left, so that demand was at least this much",
    "closed": "yes: no decision on this day, and none to learn from",
}
_KINDS = """\
# A column is a number, boolean, category or date by what stands in it. To say so yourself:
# kinds = { store = "category", note = "ignore" }
"""
_PLANNING = """
[planning]
horizon = {horizon}              # days from the decision to its day: 1 is the evening before
{limit}
n_scenarios = 64         # futures that each decision is made for
random_state = 0         # the same number, the same decisions
n_jobs = 1               # processes; -1 is one for every core
"""
OWN_PROBLEM = '''\
"""What is decided: name it as --problem {module}:problem. Change it to what you decide."""

import cvxpy as cp

import forewise as fw

N = {n}  # outcomes of a row: one for each column in outcome of plan.toml

order = cp.Variable(N, nonneg=True, name="order")
demand = cp.Parameter(N, name="demand")
shortage, excess = cp.sum(cp.pos(demand - order)), cp.sum(cp.pos(order - demand))

# Write the problem as if the outcome were known; constraints stand in the list.
problem = fw.CvxpyProblem(
    cp.Minimize(3 * shortage + excess), [order <= 1e6], decision=order, outcome=demand
)
'''


def plan_text(
    proposal: Proposal,
    template: str,
    values: Mapping[str, Any],
    file: str,
    horizon: int = 1,
    time_limit: float | None = None,
) -> str:
    """The whole plan, as TOML with comments."""
    limit = f"time_limit = {time_limit:g}" if time_limit else "# time_limit = 600"
    return "\n".join(
        [
            f"# What the columns of {file} mean, and what is decided. Then:",
            f"#   forewise fit {file} --plan plan.toml -o policy",
            "",
            "[columns]",
            *_columns(proposal),
            "",
            "[problem]",
            *_problem(template, values),
            _PLANNING.format(
                horizon=horizon,
                limit="\n".join(_entry(limit, "seconds for comparing methods")),
            ),
        ]
    )


def _columns(proposal: Proposal) -> list[str]:
    lines = []
    for role, comment in _ROLES.items():
        value = getattr(proposal, role)
        if role == "outcome" and len(value) == 1:
            value = value[0]
        if value:
            lines += _entry(f"{role} = {_toml(value)}", comment)
        else:
            example = {"series": ["store"], "known": ["promotion"]}.get(role, role)
            lines += _entry(f"# {role} = {_toml(example)}", comment)
    if proposal.unused:
        lines.append(f"# Without a role: {', '.join(proposal.unused)}")
    return [*lines, _KINDS.rstrip()]


def _problem(template: str, values: Mapping[str, Any]) -> list[str]:
    kinds = ", ".join(name for name in TEMPLATES if name != template)
    lines = [
        f"# {TEMPLATES[template].title}; other templates: {kinds}",
        f"template = {_toml(template)}",
    ]
    if template == "cvxpy":
        lines.append("# The problem is Python: add --problem problem:problem to forewise fit.")
    for key, what in TEMPLATES[template].keys.items():
        value = _toml(values[key]) if key in values else what.example
        off = "" if what.required or key in values else "# "
        lines += _entry(f"{off}{key} = {value}", what.comment)
    return lines


def _entry(text: str, comment: str) -> list[str]:
    """A line with its comment beside it, or above it where it is long."""
    return [text.ljust(_WIDE) + f" # {comment}"] if len(text) <= _WIDE else [f"# {comment}", text]


def _toml(value: Any) -> str:
    """Text and lists of text and numbers, which TOML writes as JSON does."""
    return json.dumps(value, ensure_ascii=False)
