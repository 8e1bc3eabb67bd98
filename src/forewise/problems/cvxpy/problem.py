"""A problem of the user's own, written once in CVXPY.

Making it is a pipeline: check → canonicalise → presolve → lift. What stays are arrays, so that a
problem can be copied, stored and solved where CVXPY is not installed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from forewise.exceptions import InvalidInputError
from forewise.problems.base import Problem
from forewise.problems.cvxpy.canonicalise import canonicalise
from forewise.problems.cvxpy.chance import without_chances
from forewise.problems.cvxpy.check import check
from forewise.problems.cvxpy.form import CanonicalForm
from forewise.problems.cvxpy.lift import LiftedForm, lift
from forewise.problems.cvxpy.naming import VariableLayout
from forewise.problems.cvxpy.presolve import presolve
from forewise.problems.cvxpy.recourse import recourse_cost
from forewise.problems.cvxpy.violation import CvxpyConstraints
from forewise.problems.programs import IntegerProgram, Program, ScenarioProgram
from forewise.scenarios import Scenarios
from forewise.validation.arguments import WORKING_DTYPE, as_tensor


@dataclass(frozen=True, eq=False, init=False, repr=False)
class CvxpyProblem(Problem):
    """The deterministic problem in CVXPY, and which of its parts is decided, and which uncertain.

    Costs and constraints are convex, linear, quadratic or with norms, logarithms and exponentials
    (second-order and exponential cones), with the outcome anywhere; or linear with integers.

        min_z Σ_j w_j min_u { objective(z, u, y_j) : constraints(z, u, y_j) }

    Every variable that is not a decision is *recourse*: chosen after the outcome is seen. Every
    constraint must hold for every scenario.

    Parameters
    ----------
    objective : cvxpy.Minimize
        Convex by CVXPY's rules. Linear and quadratic problems are solved fastest.
    constraints : list of cvxpy constraints
        Some may be ``chance(constraint, level)``: to hold with a probability.
    decision : cvxpy.Variable or list of them
        What is chosen before the outcome is seen.
    outcome : cvxpy.Parameter or list of them
        What is uncertain. Outcomes of an array stand in the order given here, each flattened row
        by row (C order, as ``array.reshape(n_contexts, -1)`` does).
    given : cvxpy.Parameter or list of them, optional
        What is known when deciding and changes by context: pass its values to `bound`. Other
        parameters are constants and must have a value.

    Notes
    -----
    Decisions, too, stand in the order given, each flattened row by row; `split_decision` gives them
    back by name and in shape. The outcome may multiply variables but must not scale a quadratic
    term: a draw could turn it over. Variables may be ``integer=True`` or ``boolean=True`` where all
    else is linear; such problems have no gradients.

    Examples
    --------
    >>> import cvxpy as cp
    >>> import forewise as fw
    >>> z, y = cp.Variable(2, nonneg=True, name="order"), cp.Parameter(2, name="demand")
    >>> budget = cp.Parameter(name="budget")
    >>> cost = 4 * cp.sum(cp.pos(y - z)) + cp.sum_squares(cp.pos(z - y))
    >>> problem = fw.CvxpyProblem(
    ...     cp.Minimize(cost), [cp.sum(z) <= budget], decision=z, outcome=y, given=budget
    ... )
    >>> problem.bound([3.0]).cost([[1.0, 2.0]], [[2.0, 1.0]])
    tensor([5.], dtype=torch.float64)
    """

    form: CanonicalForm
    layout: VariableLayout
    given_values: torch.Tensor | None
    _lifted: LiftedForm
    _without_chances: LiftedForm  # what costs and constraints are made of

    def __init__(
        self,
        objective: Any,
        constraints: Any = (),
        *,
        decision: Any,
        outcome: Any,
        given: Any = None,
    ) -> None:
        model = check(objective, constraints, decision, outcome, given)
        form = presolve(canonicalise(model))
        self._fill(form, VariableLayout.from_model(model))

    def _fill(self, form: CanonicalForm, layout: VariableLayout) -> None:
        lifted = lift(form)
        self._set(
            form=form,
            layout=layout,
            given_values=None,
            _lifted=lifted,
            _without_chances=lift(without_chances(form)) if len(form.level) else lifted,
        )

    def _set(self, **fields: Any) -> None:
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @property
    def n_outcomes(self) -> int:
        return self.form.n_outcomes

    def n_decisions(self, n_outcomes: int | None = None) -> int:
        return len(self.form.decision)

    @property
    def decision_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shape of each decision variable, by name."""
        return dict(self.layout.decision)

    def split_decision(self, decision: Any) -> dict[str, Any]:
        """Parts of ``(n_contexts, n_decisions)`` by variable name, each ``(n_contexts, *shape)``.

        One decision, ``(n_decisions,)``, gives parts without the first dimension.
        """
        return self.layout.split_decision(decision)

    def join_decision(self, parts: dict[str, Any]) -> torch.Tensor:
        """The inverse of `split_decision`: values by name to ``(n_contexts, n_decisions)``."""
        return self.layout.join_decision(parts)

    @property
    def needs_given(self) -> bool:
        """Whether the problem has given parameters that have no values yet."""
        return bool(self.layout.given) and self.given_values is None

    @property
    def given_names(self) -> list[str]:
        """Names of the entries of given parameters that have no values yet, `price[0]`, say."""
        return self.layout.given_names() if self.needs_given else []

    @property
    def n_contexts(self) -> int | None:
        """Number of rows that are given; None if there are none, or one for all."""
        rows = None if self.given_values is None else len(self.given_values)
        return None if rows == 1 else rows

    def decision_names(self, n_outcomes: int | None = None) -> list[str]:
        return self.layout.decision_names()

    def bound(self, given: Any) -> CvxpyProblem:
        """The same problem for contexts whose given data are known, with gradients in them.

        Parameters
        ----------
        given : dict or `Given` from parameter name to values, table, or None
            Row i belongs to row i of scenarios, decisions and outcomes; one row serves any number.
            Values of a parameter have shape (n_contexts, *shape). An array or a series is for the
            only given parameter, or for all of them side by side, (n_contexts, n_given), each
            flattened row by row. A data frame has their names as columns, ``budget`` or
            ``room[0]``, in any order; where there is one parameter it may have others.
        """
        if given is None:
            return self
        if not self.layout.given:
            raise InvalidInputError(
                "given must be None for a CvxpyProblem without given parameters: name them in "
                "given= when making the problem"
            )
        return self._with_given(self.layout.join_given(given))

    def for_contexts(self, contexts: slice | torch.Tensor) -> CvxpyProblem:
        """The problem of some contexts: their rows of what is given."""
        if self.given_values is None or len(self.given_values) == 1:
            return self
        return self._with_given(self.given_values[contexts])

    def __getitem__(self, contexts: slice | torch.Tensor) -> CvxpyProblem:
        """The problem of some contexts, as `for_contexts`."""
        if self.given_values is None:
            raise InvalidInputError(
                "a CvxpyProblem has rows once it is bound to what is given: problem.bound(given)"
            )
        return self._with_given(self.given_values[contexts])

    def _with_given(self, given: torch.Tensor) -> CvxpyProblem:
        problem = object.__new__(CvxpyProblem)
        problem._set(**{**vars(self), "given_values": given})
        return problem

    def _given_for(self, n_contexts: int, device: torch.device) -> torch.Tensor | None:
        if self.needs_given:
            raise InvalidInputError(
                f"this problem needs what is given in each context ({', '.join(self.layout.given)})"
                ": use problem.bound(values) in its place"
            )
        if self.given_values is None:
            return None
        if len(self.given_values) not in (1, n_contexts):
            raise InvalidInputError(
                f"given has {len(self.given_values)} rows, but there are {n_contexts} contexts: "
                "bind the problem to one row for each of them"
            )
        return self.given_values.to(device)

    @property
    def program_type(self) -> type[Program]:
        """Whether cones or integers are in it."""
        return self._lifted.program_type

    def gradient_unsupported_reason(self) -> str | None:
        """Integers have no gradients."""
        if self.program_type is not IntegerProgram:
            return None
        return (
            "it decides integers, which have no gradient: use a DecoupledLearner; or train "
            "on the continuous relaxation, the same problem without integer=True and boolean=True"
        )

    def direct_unsupported_reason(self) -> str | None:
        """Chance constraints are about a distribution."""
        if not len(self.form.level):
            return None
        return (
            "a chance constraint is about the distribution of the outcome, and a direct rule has "
            "no distribution: use a CombinedLearner or a DecoupledLearner"
        )

    def _program(self, scenarios: Scenarios) -> Program:
        given = self._given_for(scenarios.n_contexts, scenarios.values.device)
        return self._lifted.program(scenarios, given)

    def recourse_program(self, scenarios: Scenarios) -> ScenarioProgram:
        """As `program`, with every cost that depends on the outcome in the recourse."""
        self._check_width("scenarios", scenarios.n_outcomes)
        given = self._given_for(scenarios.n_contexts, scenarios.values.device)
        return self._lifted.recourse_program(scenarios, given)

    def constraints(self, n_decisions: int) -> CvxpyConstraints:
        """The rows and cones without outcome and recourse, and which decisions are integers.

        Chance constraints are not among them: they are about a distribution.
        """
        lifted = self._without_chances
        lead = 1 if self.given_values is None else len(self.given_values)
        given = self._given_for(lead, torch.device("cpu"))
        anything = torch.zeros(1, self.n_outcomes, dtype=WORKING_DTYPE)
        G, h, E, e = (lifted.blocks[name](anything, given) for name in "GhEe")
        C, k = (lifted.cone_blocks[name](anything, given) for name in "Gh")
        names, integer = self.layout.decision_names(), lifted.integer_first
        return CvxpyConstraints(names, G, h, E, e, cones=lifted.cones, C=C, k=k, integer=integer)

    def _cost(self, decision: torch.Tensor, outcome: torch.Tensor) -> torch.Tensor:
        given = self._given_for(len(outcome), outcome.device)
        dtype = torch.promote_types(decision.dtype, outcome.dtype)
        return recourse_cost(self._without_chances, decision, outcome, given).to(dtype)

    def state(self) -> dict[str, Any]:
        """The problem as plain values and arrays, without the given data it is bound to."""
        return {"form": self.form.state(), "layout": self.layout.state()}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> CvxpyProblem:
        """The problem that `state` was taken of; CVXPY is not needed."""
        problem = object.__new__(cls)
        form = CanonicalForm.from_state(state["form"])
        problem._fill(form, VariableLayout.from_state(state["layout"]))
        return problem

    def __reduce__(self) -> tuple[Any, ...]:
        given = self.given_values
        return _restored, (self.state(), None if given is None else given.detach().cpu().numpy())

    def __repr__(self) -> str:
        return f"CvxpyProblem({self.layout})"


def _restored(state: dict[str, Any], given: np.ndarray | None) -> CvxpyProblem:
    problem = CvxpyProblem.from_state(state)
    if given is None:
        return problem
    return problem._with_given(as_tensor("given", given).to(WORKING_DTYPE))
