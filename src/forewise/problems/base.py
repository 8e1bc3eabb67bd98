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
from forewise.problems.risk import Risk
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

    def direct_refusal(self) -> str | None:
        """Why no rule without a distribution can be learned; None where one can."""
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

    def recourse_program(self, scenarios: Scenarios) -> ScenarioProgram:
        """As `program`, with every cost that depends on the outcome in the recourse.

        What the first stage costs is then the same in every scenario.
        """
        return self.program(scenarios)

    def with_risk(self, risk: Risk) -> Problem:
        """The problem with a risk of the cost minimised in the place of its mean.

        Parameters
        ----------
        risk : Risk
            `Expectation()`, `CVaR(level)`, `MeanCVaR(weight, level)` or `WorstCase()`.
        """
        # What wraps a problem is a problem, and must know this module first.
        from forewise.problems.risk_averse import with_risk

        return with_risk(self, risk)

    def training_cost(self, first_stage: torch.Tensor, outcome: torch.Tensor) -> torch.Tensor:
        """What learning makes small, ``(n_contexts,)``: the cost, unless a problem says otherwise.

        `first_stage` are all variables that a solver chose before the outcome, the decision first.
        """
        return self.cost(first_stage[:, : self.n_decisions(outcome.shape[1])], outcome)

    def summary(self, costs: torch.Tensor) -> torch.Tensor:
        """What a sample of costs amounts to, in the sense in which the problem minimises them."""
        return costs.mean()

    @property
    def needs_given(self) -> bool:
        """Whether the problem must be bound to what is given before it can be solved."""
        return False

    @property
    def n_contexts(self) -> int | None:
        """Number of contexts the problem is bound to; None if it serves any number."""
        return None

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

    def bound_for(self, n_contexts: int, given: Any, name: str = "given") -> Problem:
        """As `bound`, for a table of so many rows; says which argument is missing or too short."""
        if given is None and self.needs_given:
            raise InvalidInputError(
                f"{name} must be passed: this {type(self).__name__} has parameters that are known "
                "in each context"
            )
        problem = self.bound(given)
        if problem.n_contexts not in (None, n_contexts):
            raise InvalidInputError(
                f"{name} has {problem.n_contexts} rows, but there are {n_contexts} contexts: it "
                "must have one row for each of them, or one for all"
            )
        return problem

    def decision_names(self, n_outcomes: int) -> list[str] | None:
        """Names of the decisions' columns, where the problem has some."""
        return None

    def split_decision(self, decision: Any) -> dict[str, Any]:
        """Decisions by the name of their variable; a problem without names has one."""
        return {"decision": decision}

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
