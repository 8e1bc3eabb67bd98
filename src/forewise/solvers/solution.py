"""What a solver returns: decisions, and the evidence that they are optimal.

May import: display.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import Any

import torch

from forewise.display import COLUMNS, ROWS, counted, html_table, with_shapes


class Status(StrEnum):
    """How a context ended; `advice` says what to do about it."""

    OPTIMAL = "optimal"
    INFEASIBLE = "infeasible"
    UNBOUNDED = "unbounded"
    NONCONVEX = "nonconvex"
    INVALID = "invalid"
    INACCURATE = "inaccurate"

    @property
    def advice(self) -> str:
        """One line for the user."""
        return _ADVICE[self]


_ADVICE = {
    Status.OPTIMAL: "nothing to do",
    Status.INFEASIBLE: "no decision meets all constraints: relax a bound or a budget",
    Status.UNBOUNDED: "the cost falls without end: a bound or a cost is missing",
    Status.NONCONVEX: "a quadratic cost is not positive semidefinite: check the signs of P and D",
    Status.INVALID: "the data contain NaN or infinity: check this context's scenarios",
    Status.INACCURATE: "the tolerance was not reached: rescale the data, or try ReferenceSolver()",
}


@dataclass(frozen=True, eq=False)
class Duals:
    """Multipliers of the program's rows; those of inequalities are nonnegative.

    A multiplier is the rate at which the optimal cost falls as its right-hand side grows.
    """

    inequality: torch.Tensor  # of G z ≤ h (n_contexts, n_rows)
    equality: torch.Tensor  # of E z = e
    scenario_inequality: torch.Tensor  # of T_j z + W_j u_j ≤ r_j (n_contexts, n_scenarios, n_rows)
    scenario_equality: torch.Tensor  # of F_j z + V_j u_j = s_j

    def __repr__(self) -> str:
        return with_shapes(self)


@dataclass(frozen=True, eq=False)
class ConeDuals:
    """Multipliers of the rows of a `ConicProgram` that lie in cones; they lie in the dual cones."""

    first: torch.Tensor  # of h − G z ∈ K (n_contexts, n_rows)
    scenario: torch.Tensor  # of r_j − T_j z − W_j u_j ∈ K (n_contexts, n_scenarios, n_rows)

    def __repr__(self) -> str:
        return with_shapes(self)


@dataclass(frozen=True, eq=False)
class Certificate:
    """Proof that one context is infeasible or unbounded, checked against the raw data.

    `residual` is how far the proof is from exact, relative to what it proves: no feasible (or
    bounded) program within that relative distance of the data exists.
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

    Tensors carry gradients to whatever the program was made from. In a context that is not
    optimal they are NaN, and no gradient flows.

    Attributes
    ----------
    decision : tensor (n_contexts, n_decisions)
        Of a program that was solved as it stands, all its first-stage variables.
    recourse : tensor (n_contexts, n_scenarios, n_recourse)
    objective : tensor (n_contexts,)
    duals : Duals
    status : tuple of Status, one per context
    primal_residual : tensor (n_contexts,)
        Largest violation of a row, relative to its coefficients and the size of the solution.
        Where the coefficients of the variables are of very different size (more than 2^16 apart),
        all three residuals are those in units in which they are alike: a solver finds these
        units by itself.
    dual_residual : tensor (n_contexts,)
        Largest violation of stationarity, relative to the cost coefficients.
    gap : tensor (n_contexts,)
        Primal minus dual objective, relative to the objective, or to a tenth of the size of the
        costs times that of the solution where that is larger.
    certificates : mapping from context to Certificate
        For the contexts that are infeasible or unbounded.
    cone_duals : ConeDuals, or None where there are no cones
    auxiliary : tensor (n_contexts, any number), or None where there are none
        First-stage variables that come with the problem's program and are not the decision: where
        the tail of a risk begins, an absolute value in a constraint.
    iterations : tensor (n_contexts,)
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

    @property
    def first_stage(self) -> torch.Tensor:
        """All that was chosen before the outcome, the decision first."""
        if self.auxiliary is None:
            return self.decision
        return torch.cat([self.decision, self.auxiliary], dim=1)

    def of_decisions(self, count: int) -> Solution:
        """The solution of a problem with so many decisions: the other variables stand aside."""
        if self.decision.shape[1] == count:
            return self
        decision, auxiliary = self.decision[:, :count], self.decision[:, count:]
        return replace(self, decision=decision, auxiliary=auxiliary)

    @property
    def optimal(self) -> torch.Tensor:
        """Mask of the optimal contexts, ``(n_contexts,)``."""
        optimal = [status is Status.OPTIMAL for status in self.status]
        return torch.tensor(optimal, device=self.decision.device)

    def contexts_that_are(self, status: Status) -> list[int]:
        """The contexts that ended so."""
        return [i for i, found in enumerate(self.status) if found is status]

    def with_contexts(self, contexts: list[int], others: Solution) -> Solution:
        """This solution with those of other contexts in the places of some of its own."""
        replaced = set(contexts)
        kept = [i for i in range(len(self.status)) if i not in replaced]
        return Solution.merged([self.take(kept), others], [kept, contexts])

    def take(self, contexts: list[int]) -> Solution:
        """The solutions of some contexts, in that order."""
        places = torch.tensor(contexts, dtype=torch.long, device=self.decision.device)
        taken = {i: number for number, i in enumerate(contexts)}
        return self._map(
            [self],
            lambda parts: parts[0][places],
            tuple(self.status[i] for i in contexts),
            {taken[i]: proof for i, proof in self.certificates.items() if i in taken},
        )

    @classmethod
    def merged(cls, parts: list[Solution], contexts: list[list[int]]) -> Solution:
        """One solution of parts that have different contexts; these say whose place is which."""
        order = [place for places in contexts for place in places]
        device = parts[0].decision.device
        back = torch.tensor(order, dtype=torch.long, device=device).argsort()
        status: dict[int, Status] = {}
        certificates: dict[int, Certificate] = {}
        for part, places in zip(parts, contexts, strict=True):
            status |= dict(zip(places, part.status, strict=True))
            certificates |= {places[i]: proof for i, proof in part.certificates.items()}
        return cls._map(
            parts,
            lambda tensors: torch.cat([x.to(tensors[0]) for x in tensors])[back],
            tuple(status[i] for i in sorted(status)),
            certificates,
        )

    @classmethod
    def _map(
        cls,
        parts: list[Solution],
        join: Callable[[list[torch.Tensor]], torch.Tensor],
        status: tuple[Status, ...],
        certificates: Mapping[int, Certificate],
    ) -> Solution:
        """A solution whose every tensor is `join` of those of some solutions."""

        def joined(of: list[Any], kind: type[Any]) -> Any:
            if any(part is None for part in of):
                return None
            names = [item.name for item in fields(kind)]
            return kind(*(join([getattr(part, name) for part in of]) for name in names))

        names = [item.name for item in fields(cls) if item.type == "torch.Tensor"]
        auxiliary = [part.auxiliary for part in parts if part.auxiliary is not None]
        return cls(
            **{name: join([getattr(part, name) for part in parts]) for name in names},
            duals=joined([part.duals for part in parts], Duals),
            cone_duals=joined([part.cone_duals for part in parts], ConeDuals),
            auxiliary=join(auxiliary) if auxiliary else None,
            status=status,
            certificates=certificates,
        )

    def to(self, dtype: torch.dtype) -> Solution:
        """The same solution in another floating-point precision."""
        duals = Duals(*(getattr(self.duals, name).to(dtype) for name in self.duals.__match_args__))
        cones = self.cone_duals
        if cones is not None:
            cones = ConeDuals(cones.first.to(dtype), cones.scenario.to(dtype))
        return replace(
            self,
            decision=self.decision.to(dtype),
            recourse=self.recourse.to(dtype),
            objective=self.objective.to(dtype),
            duals=duals,
            cone_duals=cones,
            auxiliary=None if self.auxiliary is None else self.auxiliary.to(dtype),
        )

    def __repr__(self) -> str:
        return f"Solution({self._told()})"

    def _told(self) -> str:
        counts = {status: self.status.count(status) for status in Status if status in self.status}
        told = ", ".join(f"{count} {status}" for status, count in counts.items())
        return f"{counted(len(self.status), 'context')}: {told}"

    def _repr_html_(self) -> str:
        shown_decisions = self.decision[:ROWS, :COLUMNS].detach().tolist()
        objective = self.objective[:ROWS].detach().tolist()
        n_decisions = self.decision.shape[1]
        names = [f"decision {i}" for i in range(min(n_decisions, COLUMNS))]
        rows = [
            [i, str(self.status[i]), objective[i], *decision]
            for i, decision in enumerate(shown_decisions)
        ]
        notes = [
            f"{status}: {status.advice}."
            for status in Status
            if status in self.status and status is not Status.OPTIMAL
        ]
        title = f"Solution: {self._told()}, {counted(n_decisions, 'decision')}"
        columns = ["context", "status", "objective", *names]
        return html_table(title, columns, rows, " ".join(notes))
