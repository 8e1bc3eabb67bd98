"""The contract of a peer, a solver that is measured.

To add one: a frozen dataclass that is a `Peer`, and a line in `default_peers`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, ClassVar

import numpy as np
import torch

import forewise as fw
from forewise.problems.bounds import with_bounds_as_rows
from forewise.problems.cones import Cones
from forewise.problems.programs import ConicProgram
from forewise.solvers.conic.form import ConicForm

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

    `forward_backward` solves and differentiates; None where the peer cannot. `seconds` of building
    are measured from outside where it does not say them.
    """

    forward: Callable[[], Any]
    forward_backward: Callable[[], Gradient] | None = None
    seconds: float = 0.0


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

    def supports(self, program: fw.ScenarioProgram) -> str | None:
        """None if it can solve the program, else one line that says why not."""
        return None

    @abstractmethod
    def prepare(self, instance: Any) -> Prepared:
        """Everything that is done once for an instance; its time is shown apart."""


def gradient(loss: torch.Tensor, leaves: dict[str, torch.Tensor]) -> Gradient:
    """Gradient of a loss; the graph up to the solve is kept for the next turn."""
    found = torch.autograd.grad(loss, list(leaves.values()), retain_graph=True)
    return Gradient({name: g.numpy() for name, g in zip(leaves, found, strict=True)})


def split_solution(x: Array, program: fw.ScenarioProgram, n_unsolved: int = 0) -> Answer:
    """The answer in a batch of lifted solutions x = (z, u_1, …, u_M)."""
    n, k = program.n_decisions, program.n_recourse
    recourse = x[:, n:].reshape(len(x), program.n_scenarios, k)
    return Answer(x[:, :n], recourse, n_unsolved)


def lift(program: fw.ScenarioProgram) -> ConicForm:
    """Every context's extensive form in one sparsity pattern, which batched peers are given.

    The scenarios must all have positive weight. A P that contexts share has a leading 1.
    """
    program = with_bounds_as_rows(program)
    no_rows = program.q.new_zeros(1, 0, program.n_decisions), program.q.new_zeros(1, 0)
    form = ConicForm.from_program(ConicProgram.from_first_stage(program, Cones(), *no_rows))
    values = form.P.values
    shared = values[:1] if (values == values[:1]).all() else values
    return replace(form, P=replace(form.P, values=shared))
