"""The arguments of the metrics, checked: every message names the argument.

May import: exceptions, arguments, scenarios, problems.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import pandas as pd
import torch

from forewise.exceptions import InvalidInputError
from forewise.problems import Problem
from forewise.problems.feasibility import FEASIBILITY_TOLERANCE, feasible_contexts
from forewise.scenarios import Scenarios
from forewise.validation.arguments import (
    WORKING_DTYPE,
    as_finite,
    as_scalar,
    as_table,
    require_instance,
    row_labels,
)

_SHOWN = 5  # columns that an error message lists


def as_constant(name: str, value: Any) -> torch.Tensor:
    """A finite float64 tensor on the processor, cut off from any gradient."""
    return as_finite(name, value.detach() if isinstance(value, torch.Tensor) else value).cpu()


def as_outcome(value: Any, like: Scenarios | None = None) -> torch.Tensor:
    """The outcomes that were seen, ``(n_contexts, n_outcomes)``, as many as in `like`.

    A vector or a series is one outcome per context.
    """
    outcome = as_constant("outcome", as_table("outcome", value))
    if 0 in outcome.shape:
        raise InvalidInputError(
            "outcome must have shape (n_contexts, n_outcomes), both at least 1, but has shape "
            f"{tuple(outcome.shape)}"
        )
    if like is not None and outcome.shape != (like.n_contexts, like.n_outcomes):
        raise InvalidInputError(
            "outcome must have shape (n_contexts, n_outcomes) = "
            f"{(like.n_contexts, like.n_outcomes)} as the scenarios have, but has shape "
            f"{tuple(outcome.shape)}"
        )
    return outcome


@dataclass(frozen=True, eq=False)
class Judged:
    """Decisions ``(n_contexts, n_decisions)``, and which of them meet the constraints."""

    decision: torch.Tensor
    feasible: torch.Tensor

    def priced(self, costs: torch.Tensor) -> torch.Tensor:
        """The costs, infinite where the decision breaks a constraint."""
        return torch.where(self.feasible, costs, torch.inf)


def as_decision(
    name: str,
    value: Any,
    problem: Problem,
    shape: tuple[int, int],
    like: torch.Tensor | None = None,
    on_infeasible: str = "raise",
    tolerance: float = FEASIBILITY_TOLERANCE,
) -> Judged:
    """Decisions for outcomes of `shape` (n_contexts, n_outcomes), `like` which they are in size.

    Decisions that break the problem's constraints are refused, or counted as infinitely dear.
    """
    n_contexts, n_outcomes = shape
    problem._check_width("outcome", n_outcomes)
    decision = as_table(name, value).detach().to("cpu", WORKING_DTYPE)
    wanted = (n_contexts, problem.n_decisions(n_outcomes))
    if decision.shape != wanted:
        raise InvalidInputError(
            f"{name} must have shape (n_contexts, n_decisions) = {wanted}, but has shape "
            f"{tuple(decision.shape)}"
        )
    _check_order(name, value, problem.decision_names(n_outcomes))
    feasible = feasible_contexts(
        problem.constraints(wanted[1]), decision, like, on_infeasible, tolerance,
        name=name, rows=row_labels(value),
    )  # fmt: skip
    return Judged(decision, feasible)


def _check_order(name: str, value: Any, names: list[str] | None) -> None:
    """Raise if a data frame has the decisions' columns in another order: they go by place."""
    if names is None or not isinstance(value, pd.DataFrame):
        return
    columns = [str(column) for column in value.columns]
    if columns != names and sorted(columns) == sorted(names):
        raise InvalidInputError(
            f"{name} must have its columns in the order of the problem's decisions "
            f"({', '.join(names[:_SHOWN])}{', ...' if len(names) > _SHOWN else ''}), but they come "
            "in another one: reorder them"
        )


def bound_problem(problem: Problem, n_contexts: int, given: Any) -> Problem:
    """The problem of the contexts, if it is one."""
    require_instance("problem", problem, Problem, "Newsvendor(shortage=3, excess=1)")
    return problem.bound_for(n_contexts, given)


def as_scenarios(name: str, value: Any) -> Scenarios:
    """`value`, if it is a `Scenarios`."""
    if not isinstance(value, Scenarios):
        raise InvalidInputError(
            f"{name} must be a forewise.Scenarios, but is a {type(value).__name__}: wrap the "
            "array as Scenarios(values)"
        )
    return value


def as_level(name: str, value: Any) -> float:
    """A probability strictly between 0 and 1."""
    level = as_scalar(name, value).item()
    if not 0 < level < 1:
        raise InvalidInputError(
            f"{name} must lie strictly between 0 and 1, but is {level:g}: 95 % is 0.95"
        )
    return level


def as_count(name: str, value: Any) -> int:
    """A whole number, at least 1."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise InvalidInputError(f"{name} must be a whole number, at least 1, but is {value!r}")
    return int(value)
