"""How the decision and its cost move with the numbers that the problem knows."""

from __future__ import annotations

import numpy as np
import torch

from forewise.exceptions import InvalidInputError
from forewise.explanation.case import Case
from forewise.explanation.parameters import Parameter, parameters, problem_with
from forewise.explanation.parts import Sensitivity, Unavailable
from forewise.problems.base import Problem, without_risk

_STEP = 0.05  # of a value, for re-solves


def sensitivities(case: Case) -> list[Sensitivity] | Unavailable:
    """Derivatives of decision and expected cost; the cost's by the envelope theorem.

    Decisions are averaged over reweighted scenarios (`Case.reweighted`), which smooths the steps
    of a quantile.
    """
    found = list(parameters(case.problem, case.outcome_names))
    if not found:
        return Unavailable(
            f"a {type(without_risk(case.problem)).__name__} has no numbers of its own that could "
            "be varied: constants in a CVXPY problem become so as `given` parameters"
        )
    reason = without_risk(case.problem).gradient_unsupported_reason()
    by_gradient = reason is None and not case.is_quantile
    moves = _gradients if by_gradient else _differences
    return [sensitivity for data in found for sensitivity in moves(case, data)]


def _gradients(case: Case, data: Parameter) -> list[Sensitivity]:
    """Through the solver, for all entries at once."""
    leaf = data.value.clone().requires_grad_()
    problem = problem_with(case.problem, {data.name: leaf})
    decisions = case.reweighted(problem).mean(0)
    objective = case.solved(problem).objective[0]
    outputs = [*(decisions[i] for i in case.explained), objective]
    rows = [
        torch.autograd.grad(output, leaf, retain_graph=True, allow_unused=True)[0]
        if output.requires_grad
        else None
        for output in outputs
    ]
    slopes = [torch.zeros_like(leaf) if row is None else row for row in rows]
    return [
        Sensitivity(
            name,
            data.kind,
            float(data.value[place]),
            case.named([float(slope[place]) for slope in slopes[:-1]]),
            float(slopes[-1][place]),
            "gradient",
        )
        for name, place in data.entries
    ]


def _differences(case: Case, data: Parameter) -> list[Sensitivity]:
    """By solving again with each entry a little lower and higher."""
    found = []
    for name, place in data.entries:
        now = float(data.value[place])
        step = _STEP * (abs(now) or float(data.value.abs().max()) or 1.0)
        ends = [_solved_at(case, data, place, now + sign * step) for sign in (-1.0, 1.0)]
        # Where a value may not be lower, as a cost of 0, from the value itself.
        low, high = (end or (*_solved_with(case, case.problem), now) for end in ends)
        width = high[2] - low[2]
        slope = (high[0] - low[0]) / width if width > 0 else np.full(len(low[0]), np.nan)
        cost = (high[1] - low[1]) / width if width > 0 else float("nan")
        found.append(
            Sensitivity(name, data.kind, now, case.named(slope[case.explained]), cost, "re-solves")
        )
    return found


def _solved_at(
    case: Case, data: Parameter, place: tuple[int, ...], entry: float
) -> tuple[np.ndarray, float, float] | None:
    """Mean decision, objective and the entry; None where the problem may not have it."""
    value = data.value.clone()
    value[place] = entry
    try:
        problem = problem_with(case.problem, {data.name: value})
    except InvalidInputError:
        return None
    return *_solved_with(case, problem), entry


def _solved_with(case: Case, problem: Problem) -> tuple[np.ndarray, float]:
    with torch.no_grad():
        mean = case.reweighted(problem).mean(0).numpy()
        return mean, float(case.solved(problem).objective[0])
