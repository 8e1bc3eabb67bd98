"""Numbers of a problem that could be others: its arguments, and what is given to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any

import torch

from forewise.problems.base import Problem, RiskAverseProblem, without_risk
from forewise.problems.cvxpy import CvxpyProblem

_MOST = 200  # entries


@dataclass(frozen=True, eq=False)
class Parameter:
    """A number, vector or matrix of a problem.

    Attributes
    ----------
    name : str
        Of the problem's argument; "given" for what a context gives.
    kind : "parameter" or "given"
    value : tensor
    entries : list of (name, place)
        The numbers in it that can be moved, such as "shortage[bread]".
    """

    name: str
    kind: str
    value: torch.Tensor
    entries: list[tuple[str, tuple[int, ...]]]


def parameters(problem: Problem, outcome_names: Sequence[str]) -> Iterator[Parameter]:
    """What can be moved in a problem; of a CVXPY problem what is given, as its first row."""
    base = without_risk(problem)
    if isinstance(base, CvxpyProblem):
        if base.given_values is not None:
            names = base.layout.given_names()
            yield Parameter(
                "given",
                "given",
                base.given_values[:1].detach(),
                [(name, (0, i)) for i, name in enumerate(names[:_MOST])],
            )
        return
    for name, value in _arguments(base).items():
        if isinstance(value, torch.Tensor) and value.is_floating_point():
            entries = _entries(name, value, outcome_names)[:_MOST]
            yield Parameter(name, "parameter", value.detach(), entries)


def problem_with(problem: Problem, values: Mapping[str, torch.Tensor]) -> Problem:
    """The problem with other tensors, by the names of its parameters, and the same risk."""
    base = without_risk(problem)
    if isinstance(base, CvxpyProblem):
        other: Problem = base._with_given(values["given"]) if values else base
    else:
        other = type(base)(**{**_arguments(base), **values})
    return other.with_risk(problem.risk) if isinstance(problem, RiskAverseProblem) else other


def _arguments(problem: Problem) -> dict[str, Any]:
    """What the problem was made with; None where it is not kept."""
    return {name: getattr(problem, name, None) for name in signature(type(problem)).parameters}


def _entries(
    name: str, value: torch.Tensor, items: Sequence[str]
) -> list[tuple[str, tuple[int, ...]]]:
    """Entries of a number, a vector, or the diagonal of a matrix, by the names of the items."""
    if value.ndim == 0 or value.numel() == 1:
        return [(name, (0,) * value.ndim)]
    n = len(value)
    labels = items if len(items) == n else [str(i) for i in range(n)]
    return [(f"{name}[{label}]", (i,) * value.ndim) for i, label in enumerate(labels)]
