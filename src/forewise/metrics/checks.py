"""The arguments of the metrics, checked: every message names the argument.

May import: exceptions, arguments, scenarios, problems.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any

import torch

from forewise.arguments import as_finite, as_scalar
from forewise.exceptions import InvalidInputError
from forewise.problems import Problem
from forewise.scenarios import Scenarios


def as_constant(name: str, value: Any) -> torch.Tensor:
    """A finite float64 tensor on the processor, cut off from any gradient."""
    return as_finite(name, value.detach() if isinstance(value, torch.Tensor) else value).cpu()


def as_outcome(value: Any, like: Scenarios | None = None) -> torch.Tensor:
    """The outcomes that were seen, ``(n_contexts, n_outcomes)``, as many as in `like`."""
    outcome = as_constant("outcome", value)
    if outcome.ndim != 2 or 0 in outcome.shape:
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


def as_decision(name: str, value: Any, problem: Problem, shape: tuple[int, int]) -> torch.Tensor:
    """A decision for outcomes of `shape` (n_contexts, n_outcomes)."""
    n_contexts, n_outcomes = shape
    problem._check_width("outcome", n_outcomes)
    decision = as_constant(name, value)
    wanted = (n_contexts, problem.n_decisions(n_outcomes))
    if decision.shape != wanted:
        raise InvalidInputError(
            f"{name} must have shape (n_contexts, n_decisions) = {wanted}, but has shape "
            f"{tuple(decision.shape)}"
        )
    return decision


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
