"""How good an answer is, recomputed from the raw data."""

from __future__ import annotations

import numpy as np
import torch

from forewise.problems.programs import ScenarioProgram, apply
from forewise_lab.bench.instances import Instance
from forewise_lab.bench.peers.base import Answer, Array

#: A peer whose answer is worse than this is marked in the tables.
WANTED = 1e-6
# Costs smaller than this are compared absolutely.
SMALLEST_COST = 1e-3


def relative_errors(instance: Instance, answers: dict[str, Answer]) -> dict[str, float]:
    """The worst context's relative error of each answer: excess cost, or constraint violation.

    The best known cost of a context is the lowest among the answers that keep the constraints;
    the error of one answer alone is NaN.
    """
    if len(answers) < 2:
        return dict.fromkeys(answers, float("nan"))
    costs = {peer: true_cost(instance, answer) for peer, answer in answers.items()}
    violations = {peer: violation(instance, answer) for peer, answer in answers.items()}
    kept = [np.where(violations[peer] <= WANTED, costs[peer], np.inf) for peer in answers]
    best = np.min(kept, axis=0)
    if not np.isfinite(best).all():
        return dict.fromkeys(answers, float("nan"))
    scale = np.maximum(np.abs(best), SMALLEST_COST)
    return {
        peer: float(np.maximum(np.abs(costs[peer] - best) / scale, violations[peer]).max())
        for peer in answers
    }


def true_cost(instance: Instance, answer: Answer) -> Array:
    """Cost of the answer in each context, ``(n_contexts,)``.

    The problem's mean cost of the decision over the scenarios where there is a problem, else
    the program's cost of the decision and the recourse.
    """
    decision = torch.as_tensor(answer.decision)
    if instance.problem is None or instance.scenarios is None:
        return instance.program.objective(decision, _recourse(answer)).numpy()
    values = instance.scenarios.values
    each = decision[:, None].expand(-1, instance.n_scenarios, -1)
    costs = instance.problem.unchecked_cost(each.flatten(0, 1), values.flatten(0, 1))
    return (costs.view(values.shape[:2]) * instance.scenarios.weights).sum(-1).numpy()


def violation(instance: Instance, answer: Answer) -> Array:
    """Largest violated row of each context, relative to 1 + |right-hand side|."""
    program, decision = instance.program, torch.as_tensor(answer.decision)
    excesses = [
        _relative(apply(program.G, decision) - program.h, program.h).clamp_min(0),
        _relative(apply(program.E, decision) - program.e, program.e).abs(),
    ]
    if instance.problem is None:
        excesses.extend(_scenario_excess(program, decision, _recourse(answer)))
    flat = [excess.reshape(len(decision), -1) for excess in excesses if excess.numel()]
    return torch.cat([decision.new_zeros(len(decision), 1), *flat], dim=1).amax(dim=1).numpy()


def _scenario_excess(
    program: ScenarioProgram, decision: torch.Tensor, recourse: torch.Tensor
) -> list[torch.Tensor]:
    z, touching = decision[:, None], program.T.shape[2]
    left = apply(program.W, recourse)
    left = torch.cat([left[..., :touching] + apply(program.T, z), left[..., touching:]], dim=-1)
    equal = apply(program.F, z) + apply(program.V, recourse)
    return [
        _relative(left - program.r, program.r).clamp_min(0),
        _relative(equal - program.s, program.s).abs(),
    ]


def _relative(excess: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    return excess / (1 + right.abs())


def _recourse(answer: Answer) -> torch.Tensor:
    if answer.recourse is None:
        raise ValueError("an instance without a problem needs the recourse, but got none")
    return torch.as_tensor(answer.recourse)
