"""The contract of a problem: what is decided, what it costs, and its stochastic program.

To add a problem: a frozen dataclass (``repr=False``) that checks its arguments and has the four
abstract members of `Problem`; export it; add it to the list in the tests. `RiskAverseProblem` wraps
another problem.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch

from forewise.display import described
from forewise.exceptions import InvalidInputError, UnsupportedProblemError
from forewise.problems.bounds import with_bounds_as_rows
from forewise.problems.feasibility import (
    FEASIBILITY_TOLERANCE,
    Constraints,
    feasible_contexts,
    require_finite_decisions,
)
from forewise.problems.programs import Program, ScenarioProgram
from forewise.problems.risk import Expectation, Risk, tail_program
from forewise.scenarios import Scenarios
from forewise.validation.arguments import WORKING_DTYPE, as_table, as_tensor
from forewise.validation.frames import row_labels
from forewise.validation.parameters import require_instance
from forewise.validation.tables import check_same_rows

_DICTS_ARE_NOT_TABLES = (
    ". scikit-learn takes no rows of a dict when it splits data: pass forewise.Given(dict), or a "
    "data frame"
)


@dataclass(frozen=True)
class CertaintyEquivalent:
    """A statistic of the outcome that decides as well as its whole distribution, and why.

    Examples
    --------
    >>> import forewise as fw
    >>> fw.Newsvendor(shortage=1.0, excess=1.0).certainty_equivalent().statistic
    'median'
    """

    statistic: Literal["mean", "median"]
    reason: str


class Problem(ABC):
    """What is decided before the outcome is seen, and what it costs when it is.

    Abstract are `n_outcomes`, `n_decisions`, `_cost` and `_program`. A problem may override what
    learners and solvers ask (`program_type`, `certainty_equivalent`, `..._unsupported_reason`,
    `recourse_program`, `training_cost`, `summary`), its `constraints`, `decision_names` and
    `split_decision`, and, where data are known by context, `needs_given`, `n_contexts`, `bound` and
    `for_contexts`. Data that are tensors with gradients get them.

    Examples
    --------
    A problem says what a decision costs, and what the cheapest one is for given scenarios:

    >>> import forewise as fw
    >>> problem = fw.Newsvendor(shortage=3.0, excess=1.0)
    >>> problem.cost([[10.0]], [[12.0]])
    tensor([6.], dtype=torch.float64)
    >>> fw.solve(problem, fw.Scenarios([[[8.0], [10.0], [12.0], [14.0]]])).decision
    tensor([[12.]], dtype=torch.float64)

    `CONTRIBUTING.md` has the five steps to one of your own; often a `CvxpyProblem` saves them.
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

    @property
    def program_type(self) -> type[Program]:
        """The type that `program` returns: solvers and learners ask before anything is built."""
        return ScenarioProgram

    def certainty_equivalent(self) -> CertaintyEquivalent | None:
        """The statistic that decides as well as the whole distribution; None if none is known."""
        return None

    def gradient_unsupported_reason(self) -> str | None:
        """Why decisions have no gradients, and what to do instead; None where they have."""
        return None

    def direct_unsupported_reason(self) -> str | None:
        """Why no rule without a distribution can be learned; None where one can."""
        return None

    def constraints(self, n_decisions: int) -> Constraints:
        """What decisions must meet before the outcome is seen, in the user's sense and by name.

        By default the first-stage rows of the program; override it where these are others than a
        user wrote.
        """
        n_outcomes = n_decisions if self.n_outcomes is None else self.n_outcomes
        anything = torch.zeros(self.n_contexts or 1, 1, n_outcomes, dtype=WORKING_DTYPE)
        program = self.program(Scenarios(anything))
        plain = program if isinstance(program, ScenarioProgram) else program.plain
        plain = with_bounds_as_rows(plain)
        names = self.decision_names(n_outcomes) or [f"decision {i}" for i in range(n_decisions)]
        return Constraints(names, plain.G, plain.h, plain.E, plain.e)

    def violation(self, decision: Any, given: Any = None) -> torch.Tensor:
        """The largest violation of a constraint by each decision, ``(n_contexts,)``, no gradients.

        It is relative to the constraint's size: orders of 15 and 15 with a budget of 20 break it by
        10 / 20, in any units. Costs and metrics refuse more than 1e-6 by default. Constraints with
        the outcome or recourse in them make the cost infinite instead.

        Parameters
        ----------
        decision, given : as for `cost`

        Notes
        -----
        The size of a row a'z ≤ b is the largest of |b| and the terms |a_k z_k|. Where b = 0, as
        for z ≥ 0, it is that of the context's other decisions, so that −1e-12 beside 1 is rounding.
        A decision that is −1e-12 altogether is rounding beside other contexts, beside the outcome
        (in `cost`), or, where there is neither, below 1e-10.
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

        Parameters
        ----------
        decision : table (n_contexts, n_decisions), or (n_contexts,) where there is one decision
        outcome : table (n_contexts, n_outcomes), or (n_contexts,) where there is one outcome
        given : as for `bound`, optional
        on_infeasible : {"raise", "infinite"}
            What to do with decisions that break a constraint: raise an `InfeasibleDecisionError`,
            or return an infinite cost.
        tolerance : float
            The largest `violation` that is allowed. Orders that were rounded to pieces need more
            than the default: 0.01 lets them exceed a budget by 1 %.

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
        if bool(allowed.all()):
            return cost
        return torch.where(allowed.to(cost.device), cost, torch.inf)

    def unchecked_cost(self, decision: Any, outcome: Any) -> torch.Tensor:
        """The cost as a formula, ``(n_contexts,)``: constraints on the decision are not checked.

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
        """As `program`, with every cost that depends on the outcome in the recourse."""
        program = self.program(scenarios)
        assert isinstance(program, ScenarioProgram)  # others say so in `program_type`
        return program

    def with_risk(self, risk: Risk) -> Problem:
        """The problem that minimises a risk of the cost, such as `CVaR(0.9)`, and not its mean."""
        return self if isinstance(risk, Expectation) else RiskAverseProblem(self, risk)

    def training_cost(self, first_stage: torch.Tensor, outcome: torch.Tensor) -> torch.Tensor:
        """What combined learning minimises, ``(n_contexts,)``.

        `first_stage` are all variables that a solver chose before the outcome, the decision first.
        """
        decision = first_stage[:, : self.n_decisions(outcome.shape[1])]
        return self.unchecked_cost(decision, outcome)

    def summary(self, costs: torch.Tensor) -> torch.Tensor:
        """One number for a sample of costs: what the problem minimises of them."""
        return costs.mean()

    @property
    def needs_given(self) -> bool:
        """Whether the problem must be bound to given data before it can be solved."""
        return False

    @property
    def given_names(self) -> list[str]:
        """Names of the columns that must be given; empty where none is."""
        return []

    @property
    def n_contexts(self) -> int | None:
        """Number of contexts the problem is bound to; None if it serves any number."""
        return None

    def bound(self, given: Any) -> Problem:
        """The problem for contexts whose given data are known; itself where nothing is given."""
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
        """Copies and pickles are made anew from arrays: equal problems then have equal bytes."""
        arguments = {
            name: value.detach().cpu().numpy() if isinstance(value, torch.Tensor) else value
            for name in inspect.signature(type(self)).parameters
            for value in [getattr(self, name)]
        }
        return _restored, (type(self), arguments)

    def __repr__(self) -> str:
        return described(self)

    def _check_decisions(self, decision: torch.Tensor) -> None:
        """Raise unless the table has this problem's decisions and contexts."""
        wanted = self.n_decisions(decision.shape[1] if self.n_outcomes is None else self.n_outcomes)
        if decision.shape[1] != wanted:
            raise InvalidInputError(
                f"decision must have shape (n_contexts, n_decisions) with {wanted} decision(s), "
                f"but has shape {tuple(decision.shape)}"
            )
        if self.n_contexts not in (None, len(decision)):
            raise InvalidInputError(
                f"decision has {len(decision)} rows, but the problem is bound to what is given in "
                f"{self.n_contexts} contexts: it must have one row for each of them"
            )

    def _check_width(self, name: str, width: int) -> None:
        if self.n_outcomes is not None and width != self.n_outcomes:
            raise InvalidInputError(
                f"{name} must have {self.n_outcomes} outcome(s) for this "
                f"{type(self).__name__}, but has {width}"
            )


@dataclass(frozen=True, eq=False, repr=False)
class RiskAverseProblem(Problem):
    """A problem whose decisions minimise a risk of the cost; made by `Problem.with_risk`.

    The cost of a decision and an outcome is the problem's own. Programs have one more first-stage
    variable behind the decision, the threshold of the tail. The rest is as the problem's.

    Examples
    --------
    >>> import forewise as fw
    >>> problem = fw.Newsvendor(shortage=3.0, excess=1.0).with_risk(fw.WorstCase())
    >>> type(problem).__name__
    'RiskAverseProblem'
    >>> fw.solve(problem, fw.Scenarios([[[0.0], [8.0]]])).decision.round(decimals=6)
    tensor([[6.]], dtype=torch.float64)
    """

    problem: Problem
    risk: Risk

    def __post_init__(self) -> None:
        require_instance("problem", self.problem, Problem, "Newsvendor(shortage=3, excess=1)")
        require_instance("risk", self.risk, Risk, "CVaR(0.9)")
        program_type = self.problem.program_type
        if program_type is not ScenarioProgram:
            raise UnsupportedProblemError(
                f"with_risk takes problems that become linear or quadratic programs, and this one "
                f"becomes {program_type.title}: write the risk into the objective, as t + "
                "cp.pos(cost - t) / (1 - level) with a variable t among the decisions for "
                "CVaR(level)"
            )

    @property
    def n_outcomes(self) -> int | None:
        return self.problem.n_outcomes

    def n_decisions(self, n_outcomes: int) -> int:
        return self.problem.n_decisions(n_outcomes)

    def constraints(self, n_decisions: int) -> Constraints:
        return self.problem.constraints(n_decisions)

    def _cost(self, decision: torch.Tensor, outcome: torch.Tensor) -> torch.Tensor:
        return self.problem._cost(decision, outcome)

    def _program(self, scenarios: Scenarios) -> ScenarioProgram:
        program = self.problem.recourse_program(scenarios)
        if program.D.any():
            raise UnsupportedProblemError(
                f"{self.risk} of a cost that is quadratic in the recourse has no linear or "
                "quadratic program: solve it with AutoSolver() or RiskSolver()"
            )
        return tail_program(program, self.risk)

    def recourse_program(self, scenarios: Scenarios) -> ScenarioProgram:
        return self.problem.recourse_program(scenarios)

    def training_cost(self, first_stage: torch.Tensor, outcome: torch.Tensor) -> torch.Tensor:
        """The risk of a decision and its threshold, estimated from one outcome."""
        decision = first_stage[:, : self.n_decisions(outcome.shape[1])]
        return self.risk.realised(self.unchecked_cost(decision, outcome), first_stage[:, -1])

    def gradient_unsupported_reason(self) -> str | None:
        if self.risk.level == 1:
            return (
                "the worst case cannot be learned from one outcome per context: train with "
                "CVaR(0.95), say, and decide with WorstCase()"
            )
        return self.problem.gradient_unsupported_reason()

    def direct_unsupported_reason(self) -> str | None:
        return (
            f"{self.risk} is about the distribution of the cost, and a direct rule has no "
            "distribution: use a CombinedLearner or a DecoupledLearner"
        )

    def summary(self, costs: torch.Tensor) -> torch.Tensor:
        return self.risk(costs)

    def with_risk(self, risk: Risk) -> Problem:
        return self.problem.with_risk(risk)

    @property
    def needs_given(self) -> bool:
        return self.problem.needs_given

    @property
    def given_names(self) -> list[str]:
        return self.problem.given_names

    @property
    def n_contexts(self) -> int | None:
        return self.problem.n_contexts

    def bound(self, given: Any) -> Problem:
        return self.problem.bound(given).with_risk(self.risk)

    def for_contexts(self, contexts: slice | torch.Tensor) -> Problem:
        return self.problem.for_contexts(contexts).with_risk(self.risk)

    def decision_names(self, n_outcomes: int) -> list[str] | None:
        return self.problem.decision_names(n_outcomes)

    def split_decision(self, decision: Any) -> dict[str, Any]:
        return self.problem.split_decision(decision)


def without_risk(problem: Problem) -> Problem:
    """The problem without its risk: the same thing where there is one scenario."""
    return problem.problem if isinstance(problem, RiskAverseProblem) else problem


def certainty_equivalent(problem: Problem) -> CertaintyEquivalent | None:
    """The statistic that decides as well as the whole distribution of the outcome, and why.

    Where the cost is linear in the outcome it is the mean, in the balanced newsvendor the median:
    a point forecast is then all a decision needs. None where there is no such statistic.

    Examples
    --------
    >>> import forewise as fw
    >>> fw.problems.certainty_equivalent(fw.Newsvendor(1.0, 1.0)).statistic
    'median'
    >>> fw.problems.certainty_equivalent(fw.Newsvendor(3.0, 1.0)) is None
    True
    """
    require_instance("problem", problem, Problem, "Newsvendor(shortage=3, excess=1)")
    return problem.certainty_equivalent()


def _restored(kind: type[Problem], arguments: dict[str, Any]) -> Problem:
    return kind(**arguments)
