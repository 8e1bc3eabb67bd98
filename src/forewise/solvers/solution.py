"""What a solver returns: decisions, and the residuals or certificates that justify their status."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

import torch

from forewise.display import COLUMNS, ROWS, counted, html_table, with_shapes
from forewise.problems.programs import BOUNDS, ConicProgram, Program, ScenarioProgram

_SHOWN = 5  # failed contexts that an error message lists


class Status(StrEnum):
    """How a context ended; `advice` says what to do about it.

    Examples
    --------
    >>> import forewise as fw
    >>> [status.name for status in fw.Status]
    ['OPTIMAL', 'INFEASIBLE', 'UNBOUNDED', 'NONCONVEX', 'INVALID', 'INACCURATE', 'STOPPED']
    >>> print(fw.Status.INFEASIBLE.advice)
    no decision meets all constraints: relax a bound or a budget
    """

    OPTIMAL = "optimal"
    INFEASIBLE = "infeasible"
    UNBOUNDED = "unbounded"
    NONCONVEX = "nonconvex"
    INVALID = "invalid"
    INACCURATE = "inaccurate"
    STOPPED = "stopped"

    @property
    def advice(self) -> str:
        """One line for the user."""
        return _ADVICE[self]


_ADVICE = {
    Status.OPTIMAL: "nothing to do",
    Status.INFEASIBLE: "no decision meets all constraints: relax a bound or a budget",
    Status.UNBOUNDED: "the cost falls without end: a bound or a cost is missing",
    Status.NONCONVEX: "a quadratic cost is not positive semidefinite: check the signs of P and D",
    Status.INVALID: (
        "the data contain NaN or infinity: check this context's scenarios and given data"
    ),
    Status.STOPPED: "the time limit was reached: raise time_limit, or give fewer scenarios",
    Status.INACCURATE: "the tolerance was not reached: rescale the data, or try ReferenceSolver()",
}


@dataclass(frozen=True, eq=False)
class Duals:
    """Multipliers of the program's rows and bounds; those of inequalities are nonnegative.

    A multiplier is the rate at which the optimal cost falls as its right-hand side grows.

    Examples
    --------
    What one more unit of budget is worth:

    >>> import forewise as fw
    >>> costs = dict(quadratic=0, linear=0, shortage_quadratic=1, shortage=4, excess_quadratic=1)
    >>> problem = fw.QuadraticNewsvendor(**costs, excess=1, price=[1, 1], budget=12)
    >>> solution = fw.solve(problem, fw.Scenarios([[[10.0, 10.0]]]))
    >>> solution.duals.inequality.round(decimals=4)
    tensor([[12.]], dtype=torch.float64)
    >>> solution.duals.lower  # of z ≥ 0, which no order touches
    tensor([[0., 0.]], dtype=torch.float64)
    """

    inequality: torch.Tensor  # of G z ≤ h (n_contexts, n_rows)
    equality: torch.Tensor  # of E z = e
    scenario_inequality: torch.Tensor  # of T_j z + W_j u_j ≤ r_j (n_contexts, n_scenarios, n_rows)
    scenario_equality: torch.Tensor  # of F_j z + V_j u_j = s_j
    # Of the program's bounds, like its variables; None where it has none.
    lower: torch.Tensor | None = None
    upper: torch.Tensor | None = None
    recourse_lower: torch.Tensor | None = None
    recourse_upper: torch.Tensor | None = None

    def __repr__(self) -> str:
        return with_shapes(self)


@dataclass(frozen=True, eq=False)
class ConeDuals:
    """Multipliers of the rows of a `ConicProgram` that lie in cones; they lie in the dual cones.

    Examples
    --------
    >>> import cvxpy as cp
    >>> import forewise as fw
    >>> z, y = cp.Variable(2, name="place"), cp.Parameter(2, name="customer")
    >>> problem = fw.CvxpyProblem(cp.Minimize(cp.norm(z - y)), [], decision=z, outcome=y)
    >>> solution = fw.solve(problem, fw.Scenarios([[[0.0, 0.0], [2.0, 0.0], [1.0, 3.0]]]))
    >>> solution.cone_duals.scenario.shape
    torch.Size([1, 3, 3])
    """

    first: torch.Tensor  # of h − G z ∈ K (n_contexts, n_rows)
    scenario: torch.Tensor  # of r_j − T_j z − W_j u_j ∈ K (n_contexts, n_scenarios, n_rows)

    def __repr__(self) -> str:
        return with_shapes(self)


@dataclass(frozen=True, eq=False)
class Certificate:
    """Proof that one context is infeasible or unbounded, checked against the raw data.

    `residual` is how far the proof is from exact, relative to what it proves.

    Examples
    --------
    >>> import forewise as fw
    >>> problem = fw.Portfolio([1.0], minimum_return=100.0, upper=1.0)
    >>> solution = fw.solve(problem, fw.Scenarios([[[1.0], [2.0]]]), on_failure="return")
    >>> certificate = solution.certificates[0]
    >>> certificate.status.name, certificate.residual < 1e-8
    ('INFEASIBLE', True)
    """

    status: Status
    residual: float
    multipliers: Duals | None = None  # A'λ + E'ν = 0, λ ≥ 0, b'λ + e'ν = −1
    decision_ray: torch.Tensor | None = None  # A x ≤ 0, E x = 0, H x = 0, cost of x = −1
    recourse_ray: torch.Tensor | None = None

    def __repr__(self) -> str:
        return with_shapes(self)


@dataclass(frozen=True, eq=False)
class Solution:
    """Decisions of a batch of contexts, and how each was reached.

    Tensors carry gradients to the program's data. In a context that is not optimal they are NaN,
    and no gradient flows.

    Attributes
    ----------
    decision : tensor (n_contexts, n_decisions)
        From `solve_program`, all first-stage variables.
    recourse : tensor (n_contexts, n_scenarios, n_recourse)
    objective : tensor (n_contexts,)
    duals : Duals
    status : tuple of Status, one per context
    primal_residual : tensor (n_contexts,)
        Largest violation of a row, relative to its coefficients and the size of the solution; that
        of a row of the first stage relative to that stage's size, which may be much smaller. Where
        the coefficients of the variables lie more than 2^10 apart, all three residuals are measured
        in units in which they are alike.
    dual_residual : tensor (n_contexts,)
        Largest violation of stationarity, relative to the cost coefficients.
    gap : tensor (n_contexts,)
        Primal minus dual objective, relative to the objective, or to a tenth of the size of the
        costs times that of the solution where that is larger. The part of each row of the first
        stage, relative to the size of the costs times that of the first stage, counts, too.
    certificates : mapping from context to Certificate
        For the contexts that are infeasible or unbounded.
    cone_duals : ConeDuals, or None where there are no cones
    auxiliary : tensor (n_contexts, any number), or None where there are none
        First-stage variables of the program that are not the decision: where the tail of a risk
        begins, an absolute value in a constraint.
    iterations : tensor (n_contexts,)

    Examples
    --------
    Everything about how each context ended, as tensors:

    >>> import forewise as fw
    >>> problem = fw.Portfolio([1.0], minimum_return=1.0, upper=5.0)
    >>> scenarios = fw.Scenarios([[[-1.0], [2.0]], [[float("nan")] * 1] * 2])
    >>> solution = fw.solve(problem, scenarios, on_failure="return")
    >>> [status.name for status in solution.status]
    ['OPTIMAL', 'INVALID']
    >>> solution.decision.round(decimals=6), solution.objective.round(decimals=6)
    (tensor([[1.],
            [nan]], dtype=torch.float64), tensor([0.5000,    nan], dtype=torch.float64))
    """

    decision: torch.Tensor
    recourse: torch.Tensor
    objective: torch.Tensor
    duals: Duals
    status: tuple[Status, ...]
    primal_residual: torch.Tensor
    dual_residual: torch.Tensor
    gap: torch.Tensor
    iterations: torch.Tensor
    certificates: Mapping[int, Certificate] = field(default_factory=dict)
    cone_duals: ConeDuals | None = None
    auxiliary: torch.Tensor | None = None

    @classmethod
    def unsolved(cls, program: Program, status: Sequence[Status | None]) -> Solution:
        """NaN for every context of a program, before any is solved; None is inaccurate."""
        plain = program if isinstance(program, ScenarioProgram) else program.plain
        B, M = len(status), plain.n_scenarios

        def nan(*shape: int) -> torch.Tensor:
            return plain.weights.new_full((B, *shape), torch.nan)

        cone_duals = None
        if isinstance(program, ConicProgram):
            cone_duals = ConeDuals(nan(program.h.shape[-1]), nan(M, program.r.shape[-1]))
        h, e, r, s = (getattr(plain, name).shape[-1] for name in "hers")
        sizes = {"z": (plain.n_decisions,), "u": (M, plain.n_recourse)}
        of_bounds = {name: nan(*sizes[BOUNDS[name]]) for name in plain.bounds}
        return cls(
            decision=nan(plain.n_decisions),
            recourse=nan(M, plain.n_recourse),
            objective=nan(),
            duals=Duals(nan(h), nan(e), nan(M, r), nan(M, s), **of_bounds),
            status=tuple(known or Status.INACCURATE for known in status),
            primal_residual=nan(),
            dual_residual=nan(),
            gap=nan(),
            iterations=torch.zeros(B, dtype=torch.long, device=plain.weights.device),
            cone_duals=cone_duals,
        )

    @property
    def first_stage(self) -> torch.Tensor:
        """All that was chosen before the outcome, the decision first."""
        if self.auxiliary is None:
            return self.decision
        return torch.cat([self.decision, self.auxiliary], dim=1)

    def of_decisions(self, count: int) -> Solution:
        """The solution with its first `count` variables as the decision, the others auxiliary."""
        if self.decision.shape[1] == count:
            return self
        decision, auxiliary = self.decision[:, :count], self.decision[:, count:]
        return replace(self, decision=decision, auxiliary=auxiliary)

    @property
    def optimal(self) -> torch.Tensor:
        """Mask of the optimal contexts, ``(n_contexts,)``."""
        optimal = [status is Status.OPTIMAL for status in self.status]
        return torch.tensor(optimal, device=self.decision.device)

    def resolved(self, solve: Callable[[torch.Tensor], Solution]) -> Solution:
        """The solution with its inaccurate contexts solved again; `solve` takes their indices."""
        if Status.INACCURATE not in self.status:
            return self
        again = [i for i, status in enumerate(self.status) if status is Status.INACCURATE]
        return self.with_contexts(again, solve(torch.tensor(again, device=self.decision.device)))

    def with_contexts(self, contexts: list[int], other: Solution) -> Solution:
        """The solution with another's contexts in the place of some of its own."""
        places = torch.tensor(contexts, device=self.decision.device)

        def put(mine: Any, others: Any) -> Any:
            if mine is None or others is None:
                return None
            if isinstance(mine, torch.Tensor):
                return mine.index_copy(0, places, others.to(mine))
            return type(mine)(*map(put, vars(mine).values(), vars(others).values()))

        status = dict(zip(contexts, other.status, strict=True))
        certificates = {i: proof for i, proof in self.certificates.items() if i not in status}
        certificates |= {contexts[i]: proof for i, proof in other.certificates.items()}
        names = [name for name in vars(self) if name not in ("status", "certificates")]
        return replace(
            self,
            status=tuple(status.get(i, mine) for i, mine in enumerate(self.status)),
            certificates=certificates,
            **{name: put(getattr(self, name), getattr(other, name)) for name in names},
        )

    def to(self, dtype: torch.dtype) -> Solution:
        """The same solution in another floating-point precision."""

        def cast(value: Any) -> Any:
            if value is None or isinstance(value, torch.Tensor):
                return None if value is None else value.to(dtype)
            return type(value)(*map(cast, vars(value).values()))

        names = ("decision", "recourse", "objective", "duals", "cone_duals", "auxiliary")
        return replace(self, **{name: cast(getattr(self, name)) for name in names})

    def __repr__(self) -> str:
        return f"Solution({self._summary()})"

    def _summary(self) -> str:
        counts = {status: self.status.count(status) for status in Status if status in self.status}
        listed = ", ".join(f"{count} {status}" for status, count in counts.items())
        return f"{counted(len(self.status), 'context')}: {listed}"

    def _repr_html_(self) -> str:
        shown_decisions = self.decision[:ROWS, :COLUMNS].detach().tolist()
        objective = self.objective[:ROWS].detach().tolist()
        n_decisions = self.decision.shape[1]
        names = [f"decision {i}" for i in range(min(n_decisions, COLUMNS))]
        rows = [
            [i, str(self.status[i]), objective[i], *decision]
            for i, decision in enumerate(shown_decisions)
        ]
        failures = [s for s in Status if s in self.status and s is not Status.OPTIMAL]
        notes = " ".join(f"{status}: {status.advice}." for status in failures)
        title = f"Solution: {self._summary()}, {counted(n_decisions, 'decision')}"
        return html_table(title, ["context", "status", "objective", *names], rows, notes)


def only(contexts: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """The values of the contexts in a mask; NaN, without a gradient, elsewhere."""
    if bool(contexts.all()):
        return values
    return torch.where(contexts.reshape(-1, *(1,) * (values.ndim - 1)), values, torch.nan)


def listed_failures(failed: Iterable[tuple[int, Status]], row: str = "context") -> str:
    """What became of the first few contexts that failed, for a message."""
    found = [f"{row} {i} is {status} ({status.advice})" for i, status in failed]
    more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return "; ".join(found[:_SHOWN]) + more
