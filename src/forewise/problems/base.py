"""The contract of a problem: what is decided, what it costs, and its stochastic program.

May import: exceptions, display, arguments, tables, scenarios. To add a problem: a frozen dataclass
(``repr=False``) with the methods below, checked in its `__init__`; export it; add it to the list in
the tests.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch

from forewise.display import described
from forewise.exceptions import InvalidInputError
from forewise.problems.feasibility import (
    FEASIBILITY_TOLERANCE,
    Constraints,
    feasible_contexts,
    require_finite_decisions,
)
from forewise.problems.programs import Program, ScenarioProgram
from forewise.problems.risk import Risk
from forewise.scenarios import Scenarios
from forewise.validation.arguments import WORKING_DTYPE, as_table, as_tensor, row_labels
from forewise.validation.tables import check_same_rows

_DICTS_ARE_NOT_TABLES = (
    ". scikit-learn takes no rows of a dict when it splits data: pass forewise.Given(dict), or a "
    "data frame"
)


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
    def _program(self, scenarios: Scenarios) -> Program:
        """Program of checked scenarios; called by `program`."""

    def certainty_equivalent(self) -> CertaintyEquivalent | None:
        """What may stand for the whole distribution of the outcome; None, unless a problem knows.

        Asked by learners before they spend time on a distribution.
        """
        return None

    @property
    def program_type(self) -> type[Program]:
        """The type that `program` returns: solvers and learners ask before anything is built."""
        return ScenarioProgram

    def gradient_unsupported_reason(self) -> str | None:
        """Why decisions have no gradients, and what to do instead; None where they have.

        Asked by learners that train through the solver.
        """
        return None

    def direct_unsupported_reason(self) -> str | None:
        """Why no rule without a distribution can be learned; None where one can."""
        return None

    def constraints(self, n_decisions: int) -> Constraints:
        """What decisions must meet before the outcome is seen, in the user's sense and by name.

        Called by `violation` and wherever decisions are judged. By default the first-stage rows of
        the program; a problem whose program has other rows than a user wrote says so here.
        """
        n_outcomes = n_decisions if self.n_outcomes is None else self.n_outcomes
        anything = torch.zeros(self.n_contexts or 1, 1, n_outcomes, dtype=WORKING_DTYPE)
        program = self.program(Scenarios(anything))
        plain = program if isinstance(program, ScenarioProgram) else program.plain
        names = self.decision_names(n_outcomes)
        return Constraints(
            variables=names or [f"decision {i}" for i in range(n_decisions)],
            G=plain.G,
            h=plain.h,
            E=plain.E,
            e=plain.e,
        )

    def violation(self, decision: Any, given: Any = None) -> torch.Tensor:
        """By how much each decision breaks the problem's constraints; 0 where it meets them.

        The largest violation of a constraint that the decision must meet before the outcome is
        seen, relative to the constraint's size, so that units do not matter: orders of 15 and 15
        with a budget of 20 break it by 10 / 20. Costs and metrics refuse more than 1e-6, unless
        told otherwise. Constraints with the outcome or recourse in them are the cost's business,
        which is infinite where nothing meets them; a chance is that of a distribution.

        Parameters
        ----------
        decision : table (n_contexts, n_decisions), or (n_contexts,) where there is one decision
        given : as for `bound`, optional
            What is known in each context.

        Returns
        -------
        tensor (n_contexts,), without gradients

        Notes
        -----
        The size of a row a'z ≤ b is the largest of |b| and the terms |a_k z_k|. Where b = 0, as
        for z ≥ 0, it is what the context's other decisions say of it, so that −1e-12 beside 1 is
        rounding; a decision that is −1e-12 altogether is rounding beside other contexts, beside
        the outcome (in `cost`), or, where there is neither, below 1e-10. A whole number is missed
        by its distance to the nearest one.
        """
        check_same_rows(decision=decision, given=given)
        chosen = as_table("decision", decision)
        problem = self if given is None else self.bound_for(len(chosen), given)
        problem._check_decisions(chosen)
        require_finite_decisions(chosen)
        return problem.constraints(chosen.shape[1]).violations(chosen).worst

    def cost(
        self,
        decision: Any,
        outcome: Any,
        given: Any = None,
        *,
        on_infeasible: str = "raise",
        tolerance: float = FEASIBILITY_TOLERANCE,
    ) -> torch.Tensor:
        """Cost of each decision when its outcome is seen, differentiable in both.

        A decision that breaks the problem's constraints has no cost that means anything, and is
        refused. `unchecked_cost` is the formula alone, for training and for one's own decisions.

        Parameters
        ----------
        decision : table (n_contexts, n_decisions), or (n_contexts,) where there is one decision
        outcome : table (n_contexts, n_outcomes), or (n_contexts,) where there is one outcome
        given : as for `bound`, optional
            What is known in each context.
        on_infeasible : {"raise", "infinite"}
            What to do with decisions that break a constraint: raise an `InfeasibleDecisionError`,
            or count them as infinitely dear.
        tolerance : float
            The `violation` up to which a decision meets the constraints. Orders that were rounded
            to pieces need more than the default: 0.01 lets them exceed a budget by 1 %.

        Returns
        -------
        tensor (n_contexts,)
            Infinite where no recourse meets the constraints that have the outcome in them.
        """
        check_same_rows(decision=decision, outcome=outcome, given=given)
        chosen, seen = as_table("decision", decision), as_table("outcome", outcome)
        problem = self if given is None else self.bound_for(len(seen), given)
        # First, because it says which of the two has a wrong shape.
        cost = problem.unchecked_cost(chosen, seen)
        allowed = feasible_contexts(
            problem.constraints(chosen.shape[1]), chosen, seen, on_infeasible, tolerance,
            rows=row_labels(decision),
        )  # fmt: skip
        return (
            cost if bool(allowed.all()) else torch.where(allowed.to(cost.device), cost, torch.inf)
        )

    def unchecked_cost(self, decision: Any, outcome: Any) -> torch.Tensor:
        """The cost as a formula, ``(n_contexts,)``: constraints on the decision are not looked at.

        Called where decisions are a solver's own, and in training, where speed matters.
        """
        check_same_rows(decision=decision, outcome=outcome)
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

    def program(self, scenarios: Scenarios) -> Program:
        """The stochastic program of the scenarios: minimise the weighted mean cost.

        Its first `n_decisions` first-stage variables are the decision.
        """
        self._check_width("scenarios", scenarios.n_outcomes)
        return self._program(scenarios)

    def recourse_program(self, scenarios: Scenarios) -> ScenarioProgram:
        """As `program`, with every cost that depends on the outcome in the recourse.

        What the first stage costs is then the same in every scenario.
        """
        program = self.program(scenarios)
        assert isinstance(program, ScenarioProgram)  # others say so in `program_type`
        return program

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
        decision = first_stage[:, : self.n_decisions(outcome.shape[1])]
        return self.unchecked_cost(decision, outcome)

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
                + (_DICTS_ARE_NOT_TABLES if isinstance(given, Mapping) else "")
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

    def _check_decisions(self, decision: torch.Tensor) -> None:
        """Raise unless the decisions of some contexts can be this problem's."""
        n_decisions = self.n_decisions(
            decision.shape[1] if self.n_outcomes is None else self.n_outcomes
        )
        if decision.shape[1] != n_decisions:
            raise InvalidInputError(
                f"decision must have shape (n_contexts, n_decisions) with {n_decisions} "
                f"decision(s), but has shape {tuple(decision.shape)}"
            )
        if self.n_contexts not in (None, len(decision)):
            raise InvalidInputError(
                f"decision has {len(decision)} rows, but the problem is bound to what is given in "
                f"{self.n_contexts} contexts: it must have one row for each of them"
            )

    def __repr__(self) -> str:
        return described(self)

    def _check_width(self, name: str, width: int) -> None:
        if self.n_outcomes is not None and width != self.n_outcomes:
            raise InvalidInputError(
                f"{name} must have {self.n_outcomes} outcome(s) for this "
                f"{type(self).__name__}, but has {width}"
            )


def _remade(kind: type[Problem], arguments: dict[str, Any]) -> Problem:
    return kind(**arguments)
