"""The contract of a problem: what is decided, what it costs, and its stochastic program.

May import: exceptions, arguments, scenarios. To add a problem: a frozen dataclass with the
methods below, checked in its `__init__`; export it; add it to the list in the tests.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Literal

import torch

from forewise.arguments import as_tensor
from forewise.exceptions import InvalidInputError
from forewise.problems.kinds import ProgramKind
from forewise.problems.program import ScenarioProgram
from forewise.scenarios import Scenarios


@dataclass(frozen=True)
class CertaintyEquivalent:
    """A statistic of the outcome that decides as well as its whole distribution, and why."""

    statistic: Literal["mean", "median"]
    reason: str


class Problem(ABC):
    """What is decided before the outcome is seen, and what it costs when it is.

    A problem knows no solver and no learning. It may be given tensors that require gradients
    as its data; they get them.
    """

    @property
    @abstractmethod
    def n_outcomes(self) -> int | None:
        """Number of outcomes the cost depends on; None if any number will do."""

    @abstractmethod
    def n_decisions(self, n_outcomes: int) -> int:
        """Number of decisions, given the number of outcomes."""

    @abstractmethod
    def _cost(self, decision: torch.Tensor, outcome: torch.Tensor) -> torch.Tensor:
        """Cost of checked, broadcastable tensors; called by `cost`."""

    @abstractmethod
    def _program(self, scenarios: Scenarios) -> ScenarioProgram:
        """Program of checked scenarios; called by `program`."""

    def certainty_equivalent(self) -> CertaintyEquivalent | None:
        """What may stand for the whole distribution of the outcome; None, unless a problem knows.

        Asked by learners before they spend time on a distribution.
        """
        return None

    @property
    def program_kind(self) -> ProgramKind:
        """The kind of program the problem becomes. Asked by solvers, to say what they cannot do."""
        return ProgramKind.QUADRATIC

    def gradient_refusal(self) -> str | None:
        """Why decisions have no gradients, and what to do instead; None where they have.

        Asked by learners that train through the solver.
        """
        return None

    def cost(self, decision: Any, outcome: Any) -> torch.Tensor:
        """Cost of each decision when its outcome is seen, differentiable in both.

        Parameters
        ----------
        decision : array or tensor (n_contexts, n_decisions)
        outcome : array or tensor (n_contexts, n_outcomes)

        Returns
        -------
        tensor (n_contexts,)
        """
        decision, outcome = as_tensor("decision", decision), as_tensor("outcome", outcome)
        if outcome.ndim != 2:
            raise InvalidInputError(
                "outcome must have shape (n_contexts, n_outcomes), but has shape "
                f"{tuple(outcome.shape)}"
            )
        self._check_width("outcome", outcome.shape[1])
        wanted = (outcome.shape[0], self.n_decisions(outcome.shape[1]))
        if decision.shape != wanted:
            raise InvalidInputError(
                f"decision must have shape (n_contexts, n_decisions) = {wanted}, but has shape "
                f"{tuple(decision.shape)}"
            )
        return self._cost(decision, outcome)

    def program(self, scenarios: Scenarios) -> ScenarioProgram:
        """The stochastic program of the scenarios: minimise the weighted mean cost.

        Its first `n_decisions` first-stage variables are the decision.
        """
        self._check_width("scenarios", scenarios.n_outcomes)
        return self._program(scenarios)

    def bound(self, given: Any) -> Problem:
        """The problem for contexts whose given data are known; itself where nothing is given.

        Called before programs and costs are asked for, by whoever has the data.
        """
        if given is not None:
            raise InvalidInputError(
                f"given must be None for a {type(self).__name__}, which has no given parameters; "
                "a CvxpyProblem may have some"
            )
        return self

    def for_contexts(self, contexts: slice | torch.Tensor) -> Problem:
        """The problem of some of the contexts it is bound to; itself where it is not."""
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles are made anew from the arguments, as arrays.

        Two equal problems then look equal to whoever compares bytes, which tensors do not.
        """
        arguments = {
            name: value.detach().cpu().numpy() if isinstance(value, torch.Tensor) else value
            for name in inspect.signature(type(self)).parameters
            for value in [getattr(self, name)]
        }
        return _remade, (type(self), arguments)

    def _check_width(self, name: str, width: int) -> None:
        if self.n_outcomes is not None and width != self.n_outcomes:
            raise InvalidInputError(
                f"{name} must have {self.n_outcomes} outcome(s) for this "
                f"{type(self).__name__}, but has {width}"
            )


def _remade(kind: type[Problem], arguments: dict[str, Any]) -> Problem:
    return kind(**arguments)
