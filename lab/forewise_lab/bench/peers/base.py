"""The contract of a peer, a solver that is measured.

To add one: a frozen dataclass that is a `Peer`, and a line in `default_peers`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import ClassVar

import numpy as np
import torch

from forewise.problems import ScenarioProgram
from forewise.problems.bounds import with_bounds_as_rows
from forewise.solvers.conic.sparse_batch import Piece, SparseBatch, assemble, for_all, joined
from forewise_lab.bench.instances import Instance

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Answer:
    """What one solve of a batch gave.

    `decision` is (n_contexts, n_z), `recourse` (n_contexts, n_scenarios, n_u), or None where a
    problem's cost needs none. `n_unsolved` counts the contexts that the peer does not call solved.
    """

    decision: Array
    recourse: Array | None = None
    n_unsolved: int = 0


@dataclass(frozen=True, eq=False)
class Gradient:
    """Gradient of the loss Σ v·decision with respect to each leaf of the instance, by name."""

    of: dict[str, Array]


@dataclass(frozen=True, eq=False)
class Prepared:
    """A built instance; each call solves it anew.

    `forward_backward` solves and differentiates; None where the peer cannot.
    """

    forward: Callable[[], Answer]
    forward_backward: Callable[[], Gradient] | None = None


class PeerFailedError(RuntimeError):
    """A peer could not solve an instance; the run notes it and goes on."""


class Peer(ABC):
    """A solver that is measured; `name` is what tables, files and plots call it."""

    name: str
    #: Packages beyond those of forewise, and the command that installs them.
    packages: ClassVar[tuple[str, ...]] = ()
    install: ClassVar[str] = 'pip install "forewise-lab[bench]"'

    def missing(self) -> str | None:
        """None if it can run, else one line that says how to install it; called once."""
        try:
            for package in self.packages:
                import_module(package)
        except ImportError as error:
            missing = isinstance(error, ModuleNotFoundError)
            reason = "is not installed" if missing else f"fails: {error}"
            return f"{self.name} {reason}; install it with: {self.install}"
        return None

    def supports(self, program: ScenarioProgram) -> str | None:
        """None if it can solve the program, else one line that says why not."""
        return None

    @abstractmethod
    def prepare(self, instance: Instance) -> Prepared:
        """Everything that is done once for an instance; its time is shown apart."""


def gradient(loss: torch.Tensor, leaves: dict[str, torch.Tensor]) -> Gradient:
    """Gradient of a loss; the graph up to the solve is kept for the next turn."""
    found = torch.autograd.grad(loss, list(leaves.values()), retain_graph=True)
    return Gradient({name: g.numpy() for name, g in zip(leaves, found, strict=True)})


def split_solution(x: Array, program: ScenarioProgram, n_unsolved: int = 0) -> Answer:
    """The answer in a batch of lifted solutions x = (z, u_1, …, u_M)."""
    n, k = program.n_decisions, program.n_recourse
    recourse = x[:, n:].reshape(len(x), program.n_scenarios, k)
    return Answer(x[:, :n], recourse, n_unsolved)


@dataclass(frozen=True, eq=False)
class LiftedProgram:
    """Every context's extensive form in one sparsity pattern, which batched peers are given:

    min ½ x'P x + q'x   s.t.  A x = b (first rows), A x ≤ b (the rest),   x = (z, u_1, …, u_M)
    """

    P: SparseBatch
    q: torch.Tensor
    A: SparseBatch
    b: torch.Tensor
    n_equalities: int


def lift(program: ScenarioProgram) -> LiftedProgram:
    """The lifted program of a batch whose scenarios all have positive weight."""
    program = with_bounds_as_rows(program)
    M, n, k = program.n_scenarios, program.n_decisions, program.n_recourse
    weights = program.weights
    n_first, n_rest = program.E.shape[1], program.V.shape[2]
    rows = program.W.shape[2]
    n_equalities = n_first + M * n_rest
    below = n_equalities + program.G.shape[1]
    width = n + M * k
    pieces = [
        Piece(program.E[:, None], 0, 0, 0, 0),
        Piece(for_all(program.F, M), n_first, n_rest, 0, 0),
        Piece(for_all(program.V, M), n_first, n_rest, n, k),
        Piece(program.G[:, None], n_equalities, 0, 0, 0),
        Piece(for_all(program.T, M), below, rows, 0, 0),
        Piece(for_all(program.W, M), below, rows, n, k),
    ]
    weighted = weights[:1] if (weights == weights[:1]).all() else weights
    quadratic = Piece(weighted[:, :, None, None] * program.D, n, k, n, k)
    right = [program.e, for_all(program.s, M), program.h, for_all(program.r, M)]
    return LiftedProgram(
        P=assemble((width, width), [Piece(program.P[:, None], 0, 0, 0, 0), quadratic]),
        q=joined([program.q, weights[:, :, None] * program.d], program.n_contexts),
        A=assemble((below + M * rows, width), pieces),
        b=joined(right, program.n_contexts),
        n_equalities=n_equalities,
    )
