"""qpth: the dense batched interior point of OptNet, with gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

import forewise as fw
from forewise_lab.bench.instances import Instance
from forewise_lab.bench.peers.base import (
    Answer,
    Gradient,
    Peer,
    Prepared,
    gradient,
    lift,
    split_solution,
)


@dataclass(frozen=True)
class QpthDense(Peer):
    """qpth on the lifted program with all its zeros, so for few scenarios only.

    It asks for an older NumPy than it needs, and is installed without its dependencies.
    """

    name: str = "qpth"
    largest: int = 32
    packages: ClassVar[tuple[str, ...]] = ("qpth.qp",)
    install: ClassVar[str] = "pip install --no-deps qpth==0.0.18"

    def supports(self, program: fw.ScenarioProgram) -> str | None:
        if program.n_scenarios > self.largest:
            return f"dense: not run beyond M = {self.largest}"
        if not (_positive_definite(program.P) and _positive_definite(program.D)):
            return "needs a strictly convex cost"
        return None

    def prepare(self, instance: Instance) -> Prepared:
        leaves = instance.leaves()
        program, direction = instance.program_of(leaves), instance.direction()
        lifted = lift(program)
        rows, equal, b = lifted.A.dense(), lifted.n_equalities, lifted.b
        parts = (rows[:, equal:], b[:, equal:], rows[:, :equal], b[:, :equal])
        values = [
            _as_qpth_takes_it(part, instance.n_contexts)
            for part in (lifted.P.dense(), lifted.q, *parts)
        ]
        constants = [value.detach() for value in values]

        def forward() -> Answer:
            return split_solution(_solve(constants).numpy(), program)

        def forward_backward() -> Gradient:
            decision = _solve(values)[:, : program.n_decisions]
            return gradient((decision * direction).sum(), leaves)

        return Prepared(forward, forward_backward)


def _solve(values: list[torch.Tensor]) -> torch.Tensor:
    from qpth.qp import QPFunction

    solution: torch.Tensor = QPFunction(verbose=-1, check_Q_spd=False)(*values)
    return solution


def _positive_definite(matrices: torch.Tensor) -> bool:
    return bool((torch.linalg.cholesky_ex(matrices).info == 0).all())


def _as_qpth_takes_it(value: torch.Tensor, n_contexts: int) -> torch.Tensor:
    """A shared matrix without its leading 1, and nothing at all for what is absent.

    What is differentiated is not shared: of that, qpth's gradient would be a mean of contexts.
    """
    if not value.numel():
        return torch.empty(0, dtype=value.dtype)
    if value.requires_grad:
        return value.expand(n_contexts, *value.shape[1:])
    return value[0] if value.ndim == 3 and len(value) == 1 else value
