"""The contract of a peer: can it run, can it solve this, build it, solve it.

May import: instances. To add a peer: a frozen dataclass with the members of `Peer` in a module
of its own, and a line in `default_peers`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from forewise.problems import ScenarioProgram
from forewise_lab.bench.instances import Instance

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Answer:
    """What one solve of a batch gave.

    Attributes
    ----------
    decision : array (n_contexts, n_z)
    recourse : array (n_contexts, n_scenarios, n_u), or None where a problem's cost needs none
    n_unsolved : contexts that the peer itself does not call solved
    seconds : the time that the peer measured, where it runs in a process of its own
    """

    decision: Array
    recourse: Array | None = None
    n_unsolved: int = 0
    seconds: float | None = None


@dataclass(frozen=True, eq=False)
class Gradient:
    """Gradient of the loss Σ v·decision with respect to each leaf of the instance, by name."""

    of: dict[str, Array]
    seconds: float | None = None


@dataclass(frozen=True, eq=False)
class Prepared:
    """A built instance; each call solves it anew.

    `forward_backward` solves and differentiates; None where the peer cannot.
    """

    forward: Callable[[], Answer]
    forward_backward: Callable[[], Gradient] | None = None


class PeerFailedError(RuntimeError):
    """A peer could not solve an instance; the run notes it and goes on."""


class Peer(Protocol):
    """A solver that is measured."""

    @property
    def name(self) -> str:
        """What tables, files and plots call it."""

    def missing(self) -> str | None:
        """None if it can run, else one line that says how to install it.

        Called once, before anything is measured; may set up what the peer needs.
        """

    def supports(self, program: ScenarioProgram) -> str | None:
        """None if it can solve the program, else one line that says why not."""

    def prepare(self, instance: Instance) -> Prepared:
        """Everything that is done once for an instance; its time is shown apart."""


def split_solution(x: Array, program: ScenarioProgram, n_unsolved: int = 0) -> Answer:
    """The answer in a batch of lifted solutions x = (z, u_1, …, u_M)."""
    n, k = program.n_decisions, program.n_recourse
    recourse = x[:, n:].reshape(len(x), program.n_scenarios, k)
    return Answer(x[:, :n], recourse, n_unsolved)


def import_problem(package: str, error: ImportError, install: str) -> str:
    """The line for a peer whose package cannot be imported."""
    reason = "is not installed" if isinstance(error, ModuleNotFoundError) else f"fails: {error}"
    return f"{package} {reason}; install it with: {install}"
