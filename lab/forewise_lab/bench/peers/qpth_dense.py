"""qpth: the dense batched interior point of OptNet, with gradients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch

from forewise.problems import ScenarioProgram
from forewise_lab.bench.instances import Instance
from forewise_lab.bench.lifted import LiftedProgram, lift
from forewise_lab.bench.peers import qpth_environment, qpth_runner
from forewise_lab.bench.peers.base import Answer, Gradient, Prepared, split_solution
from forewise_lab.bench.peers.qpth_runner import Arrays


@dataclass(frozen=True)
class QpthDense:
    """qpth on the lifted program with all its zeros, so for few scenarios only.

    Runs here if it can be imported, else in an environment of its own. Either way its time is
    that of the solve and its backward pass alone.
    """

    name: str = "qpth"
    largest: int = 32

    def missing(self) -> str | None:
        """Whether qpth can be imported, or be given an environment of its own."""
        if _importable():
            return None
        problem = qpth_environment.make()
        if problem is None:
            return None
        return (
            f"qpth is not installed, and making an environment for it failed ({problem}); "
            f"install it with: pip install --no-deps {qpth_environment.QPTH}"
        )

    def supports(self, program: ScenarioProgram) -> str | None:
        """Strictly convex costs and at most `largest` scenarios."""
        if program.n_scenarios > self.largest:
            return f"dense: not run beyond M = {self.largest}"
        if not (_positive_definite(program.P) and _positive_definite(program.D)):
            return "needs a strictly convex cost"
        return None

    def prepare(self, instance: Instance) -> Prepared:
        """The dense matrices, as a function of the leaves."""
        leaves = instance.leaves()
        program = instance.program_of(leaves)
        tensors = _dense(lift(program))
        problem = {name: tensor.detach().numpy() for name, tensor in tensors.items()}
        undirected = problem | {"direction": np.empty(0)}
        directed = problem | {"direction": instance.direction().numpy()}
        run = _solve_function()

        def forward() -> Answer:
            found = run(undirected)
            answer = split_solution(found["x"], program)
            return Answer(answer.decision, answer.recourse, seconds=float(found["seconds"]))

        def forward_backward() -> Gradient:
            found = run(directed)
            reached = [name for name in found if name in tensors and tensors[name].requires_grad]
            gradients = torch.autograd.grad(
                [tensors[name] for name in reached],
                list(leaves.values()),
                [torch.as_tensor(found[name]) for name in reached],
                retain_graph=True,
            )
            of = {name: g.numpy() for name, g in zip(leaves, gradients, strict=True)}
            return Gradient(of, seconds=float(found["seconds"]))

        return Prepared(forward, forward_backward)


def _importable() -> bool:
    try:
        import qpth.qp  # noqa: F401
    except ImportError:
        return False
    return True


def _solve_function() -> Callable[[Arrays], Arrays]:
    if _importable():
        return qpth_runner.solve
    return partial(qpth_environment.solve, interpreter=qpth_environment.python())


def _positive_definite(matrices: torch.Tensor) -> bool:
    return bool((torch.linalg.cholesky_ex(matrices).info == 0).all())


def _dense(lifted: LiftedProgram) -> dict[str, torch.Tensor]:
    rows, equal = lifted.A.dense(), lifted.n_equalities
    return {
        "Q": lifted.P.dense(),
        "p": lifted.q,
        "G": rows[:, equal:],
        "h": lifted.b[:, equal:],
        "A": rows[:, :equal],
        "b": lifted.b[:, :equal],
    }
