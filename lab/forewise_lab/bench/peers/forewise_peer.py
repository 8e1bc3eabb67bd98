"""forewise itself, called as a user calls it."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from forewise.problems import ScenarioProgram
from forewise.scenarios import Scenarios
from forewise.solvers import Solution, solve, solve_program
from forewise_lab.bench.instances import Instance
from forewise_lab.bench.peers.base import Answer, Gradient, Prepared


@dataclass(frozen=True)
class ForewisePeer:
    """`solve` of a problem's scenarios, or `solve_program` where there is no problem.

    Nothing is built ahead: every solve starts from the scenarios.
    """

    name: str = "forewise"

    def missing(self) -> str | None:
        """Never."""
        return None

    def supports(self, program: ScenarioProgram) -> str | None:
        """Every scenario program."""
        return None

    def prepare(self, instance: Instance) -> Prepared:
        """The leaves that ask for gradients."""
        leaves = instance.leaves()
        constants = {name: leaf.detach() for name, leaf in leaves.items()}
        direction = instance.direction()

        def forward() -> Answer:
            solution = _solve(instance, constants)
            if instance.problem is not None:
                return Answer(solution.decision.numpy())
            return Answer(solution.decision.numpy(), solution.recourse.numpy())

        def forward_backward() -> Gradient:
            loss = (_solve(instance, leaves).decision * direction).sum()
            found = torch.autograd.grad(loss, list(leaves.values()))
            return Gradient({name: g.numpy() for name, g in zip(leaves, found, strict=True)})

        return Prepared(forward, forward_backward)


def _solve(instance: Instance, leaves: dict[str, torch.Tensor]) -> Solution:
    if instance.problem is not None:
        return solve(instance.problem, Scenarios(leaves["scenarios"]))
    return solve_program(instance.program_of(leaves))
