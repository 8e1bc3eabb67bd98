"""What a decision costs once the outcome is seen: the best recourse.

Where every variable that is left has rows of its own (shortage, excess, losses beyond a threshold),
the best choice is a formula. Elsewhere a program is solved, and the cost's gradient is that of its
Lagrangian at the solution (the envelope theorem).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch

from forewise.problems.cones import Cones
from forewise.problems.cvxpy.lift import LiftedForm
from forewise.problems.programs import (
    ConicProgram,
    IntegerProgram,
    Program,
    ScenarioProgram,
    apply,
    joined,
)  # fmt: skip
from forewise.solvers.auto import AutoSolver
from forewise.solvers.conic.solver import ConicSolver
from forewise.solvers.solution import Status
from forewise.validation.arguments import WORKING_DTYPE

# A decision that a solver found may miss its rows by as much, relative to their bounds.
_TOLERANCE = 1e-7
# What is left of a bound that a decision meets, relative to the bound: less is rounding.
_ROUNDING = 1e-12
# Costs are compared with each other, and their programs are small.
_SOLVER = AutoSolver(conic=ConicSolver(1e-12))


class RecourseAnswer(NamedTuple):
    """What a solver found for programs with first-stage variables x alone."""

    x: torch.Tensor  # NaN where there is no optimum
    inequality: torch.Tensor  # multipliers, nonnegative
    equality: torch.Tensor
    cone: torch.Tensor  # multipliers of rows in cones, in the dual cones
    infeasible: torch.Tensor  # masks (n_contexts,)
    unbounded: torch.Tensor


def solve_recourse(program: Program) -> RecourseAnswer:
    """Solve programs without scenarios."""
    solution = _SOLVER.solve_program(program)

    def ended(status: Status) -> torch.Tensor:
        return torch.tensor([s is status for s in solution.status], device=solution.decision.device)

    cones = solution.cone_duals
    return RecourseAnswer(
        x=torch.where(ended(Status.OPTIMAL).unsqueeze(-1), solution.decision, torch.nan),
        inequality=solution.duals.inequality,
        equality=solution.duals.equality,
        cone=solution.decision[:, :0] if cones is None else cones.first,
        infeasible=ended(Status.INFEASIBLE),
        unbounded=ended(Status.UNBOUNDED),
    )


def typed_program(
    plain: ScenarioProgram, integer: torch.Tensor, cones: Cones, C: torch.Tensor, k: torch.Tensor
) -> Program:
    """A program without scenarios, with integers or with cones k − C x ∈ K."""
    if integer.any():
        return IntegerProgram(plain, integer, integer[:0])
    return ConicProgram.from_first_stage(plain, cones, C, k) if len(cones) else plain


def recourse_cost(
    lifted: LiftedForm, decision: torch.Tensor, outcome: torch.Tensor, given: torch.Tensor | None
) -> torch.Tensor:
    """Cost of each decision, ``(n_contexts,)``.

    inf where no recourse meets the rows, −inf where it can be arbitrarily good; first-stage rows of
    the decision alone are not checked.
    """
    z, precision = decision.to(WORKING_DTYPE), torch.finfo(decision.dtype).eps
    outcome = outcome.to(WORKING_DTYPE)
    block = {name: made(outcome, given) for name, made in lifted.blocks.items()}
    n = lifted.stages.n_decisions
    fixed = (z * (0.5 * apply(block["P"][:, :n, :n], z) + block["q"][:, :n])).sum(-1)
    fixed = fixed + block["c"].squeeze(-1) + lifted.products(outcome, given)
    cone_block = {name: made(outcome, given) for name, made in lifted.cone_blocks.items()}
    rest = _remainder(lifted, block, cone_block, z, precision)
    if rest.q.shape[-1] == 0 and rest.b.shape[-1] == 0 and not len(rest.cones):
        return fixed
    return fixed + (_separable(rest) if rest.is_separable else _solved(rest))


@dataclass(frozen=True, eq=False)
class Remainder:
    """min ½ x'P x + q'x, A x ≤ b, E x = e, k − C x ∈ K over what is left to choose.

    Leading dimensions are N or 1; x is integers in a mask. `error` ``(N, 1)`` is what rounding did
    to the decision's terms of the rows: much, where it came in single precision.
    """

    P: torch.Tensor
    q: torch.Tensor
    A: torch.Tensor
    b: torch.Tensor
    E: torch.Tensor
    e: torch.Tensor
    C: torch.Tensor
    k: torch.Tensor
    cones: Cones
    integer: torch.Tensor
    error: torch.Tensor

    @property
    def is_separable(self) -> bool:
        """Whether each variable has its own rows and cost, the same in all contexts."""
        if self.E.shape[-2] or len(self.cones) or self.integer.any():
            return False
        if len(self.A) > 1 or len(self.P) > 1:
            return False
        curved = self.P[0] - self.P[0].diagonal().diag()
        return bool(((self.A[0] != 0).sum(-1) <= 1).all()) and not bool(curved.any())

    def take(self, rows: torch.Tensor) -> Remainder:
        """The programs of some contexts."""
        names = ("P", "q", "A", "b", "E", "e", "C", "k", "error")
        parts = {name: getattr(self, name) for name in names}
        return replace(self, **{name: p if len(p) == 1 else p[rows] for name, p in parts.items()})

    def relaxed(self) -> Remainder:
        """With room for the error of a decision that was computed."""
        k = self.k
        if len(self.cones):
            # One entry of each cone, the first or the last, only makes it easier to be larger.
            room = k.new_zeros(k.shape[-1])
            room[self.cones.easing_rows] = 1
            k = k + room * self.allowed(k)
        return replace(self, b=self.b + self.allowed(self.b), k=k)

    def allowed(self, bound: torch.Tensor) -> torch.Tensor:
        """By how much a decision that was computed may miss a bound."""
        return _TOLERANCE * (1 + bound.detach().abs()) + self.error

    def program(self) -> Program:
        """The same as a program with first-stage variables alone."""
        parts = (self.P, self.q, self.A, self.b, self.E, self.e, self.k)
        n_contexts = max(len(part) for part in parts)
        plain = ScenarioProgram(
            weights=torch.ones(n_contexts, 1, dtype=WORKING_DTYPE, device=self.q.device),
            P=self.P, q=self.q, G=self.A, h=self.b, E=self.E, e=self.e,
        )  # fmt: skip
        return typed_program(plain, self.integer, self.cones, self.C, self.k)


def _remainder(
    lifted: LiftedForm,
    block: dict[str, torch.Tensor],
    cone_block: dict[str, torch.Tensor],
    z: torch.Tensor,
    precision: float,
) -> Remainder:
    """What is left to choose once the decision is fixed: auxiliary variables, and recourse."""
    stages, n = lifted.stages, lifted.stages.n_decisions
    extra, k, P = len(stages.first) - n, len(stages.recourse), block["P"]
    T = torch.nn.functional.pad(block["T"], (0, 0, 0, block["W"].shape[-2] - block["T"].shape[-2]))
    padded = block | {"T": T}
    A, b = _stacked(_open(block["G"], n), [padded[name] for name in "GhTWr"], z)
    E, e = _stacked(_open(block["E"], n), [block[name] for name in "EeFVs"], z)
    open_rows = _open(cone_block["G"], n).numpy()
    open_cones = np.bincount(lifted.cones.of_row, open_rows, len(lifted.cones)) > 0
    matters = torch.from_numpy(open_cones[lifted.cones.of_row])
    C, right = _stacked(matters, [cone_block[name] for name in "GhTWr"], z)
    upper = joined([P[:, n:, n:], P.new_zeros(1, extra, k)], -1)
    lower = joined([P.new_zeros(1, k, extra), block["D"]], -1)
    q = [block["q"][:, n:] + apply(P[:, n:, :n], z), block["d"]]
    # The largest of the decision's terms in any row.
    size = z.detach().abs()
    matrices = (block["G"], T, cone_block["G"], cone_block["T"])
    terms = [apply(matrix[:, :, :n].detach().abs(), size) for matrix in matrices]
    largest = joined([torch.zeros_like(size[:, :1]), *terms], -1).amax(-1, keepdim=True)
    return Remainder(
        P=joined([upper, lower], -2), q=joined(q, -1), A=A, b=b, E=E, e=e, C=C, k=right,
        cones=lifted.cones.where(open_cones) + lifted.scenario_cones,
        integer=torch.cat([lifted.integer_first[n:], lifted.integer_recourse]),
        error=4 * precision * largest,
    )  # fmt: skip


def _open(first: torch.Tensor, n: int) -> torch.Tensor:
    """Mask of the first-stage rows that more than the decision touches."""
    return (first[:, :, n:] != 0).any(-1).any(0)


def _stacked(
    matters: torch.Tensor, blocks: list[torch.Tensor], z: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows of what is left, with the decision on the right: first-stage rows, then the others."""
    n = z.shape[-1]
    first, bound, coupling, own, own_bound = blocks
    first, bound = first[:, matters], bound[:, matters]
    bounds = [_room(bound, first[:, :, :n], z), _room(own_bound, coupling[:, :, :n], z)]
    nothing = first.new_zeros(1, first.shape[1], own.shape[-1])
    upper = joined([first[:, :, n:], nothing], -1)
    lower = joined([coupling[:, :, n:], own], -1)
    return joined([upper, lower], -2), joined(bounds, -1)


def _room(bound: torch.Tensor, matrix: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
    """bound − matrix z, and exactly 0 where that is only rounding: a program whose largest bound
    is 1e-15 has no accurate solution.
    """
    room = bound - apply(matrix, z)
    with torch.no_grad():
        size = bound.abs() + apply(matrix.abs(), z.abs())
        met = room.abs() <= _ROUNDING * size
    return torch.where(met, room - room.detach(), room)


def _separable(rest: Remainder) -> torch.Tensor:
    """The best cost where each variable lies between bounds of its own: min ½ D u² + d u."""
    A, D = rest.A[0], rest.P[0].diagonal()
    infinity = torch.inf
    bare = (A == 0).all(-1)
    slack = rest.b[:, bare].detach()
    allowed = (slack >= -rest.allowed(slack)).all(-1)
    if A.shape[-1] == 0:
        return torch.where(allowed, 0.0, infinity).to(rest.b)
    # The bound that each row is, divided by the row's one coefficient.
    bound = rest.b / torch.where(bare, 1.0, A.sum(-1))
    low = _gathered(bound, A < 0, -infinity).amax(-1)
    high = _gathered(bound, A > 0, infinity).amin(-1)
    gap = (low - high).detach()
    allowed = allowed & (gap <= rest.allowed(high)).all(-1)
    d = rest.q.expand_as(low)
    flat = D <= 0
    # Where the cost is flat any choice will do; a bound that is there is one.
    corner = torch.where(d > 0, low, high)
    at_rest = torch.minimum(torch.maximum(torch.zeros_like(low), low.detach()), high.detach())
    corner = torch.where(d == 0, at_rest, corner)
    inner = torch.minimum(torch.maximum(-d / torch.where(flat, 1.0, D), low), high)
    u = torch.where(flat, corner, inner)
    unbounded = u.detach().isinf().any(-1)
    u = torch.where(u.detach().isinf(), 0.0, u)
    best = (u * (0.5 * D * u + d)).sum(-1)
    best = torch.where(unbounded, -infinity, best)
    return torch.where(allowed | best.isnan(), best, infinity)


def _gathered(values: torch.Tensor, mask: torch.Tensor, absent: float) -> torch.Tensor:
    """Values of each column's rows, ``(N, n_columns, most_rows)``, filled up with `absent`."""
    column, row = mask.T.nonzero(as_tuple=True)
    count = mask.sum(0)
    place = torch.arange(len(row), device=row.device) - (count.cumsum(0) - count)[column]
    n_rows = values.shape[-1]
    index = row.new_full((len(count), max(int(count.max()), 1)), n_rows)
    index[column, place] = row
    return torch.nn.functional.pad(values, (0, 1), value=absent)[:, index]


def _solved(rest: Remainder) -> torch.Tensor:
    """The best cost by a solver; its gradient in the data is that of the Lagrangian."""
    with torch.no_grad():
        answer = solve_recourse(rest.program())
        # A second try for those that rounding made infeasible.
        again = answer.infeasible.nonzero().squeeze(-1)
        if len(again):
            second = solve_recourse(rest.take(again).relaxed().program())
            parts = zip(answer, second, strict=True)
            answer = RecourseAnswer(*(a.index_copy(0, again, b) for a, b in parts))
    x = torch.where(_finite(answer.x), answer.x, 0.0)
    best = (x * (0.5 * apply(rest.P, x) + rest.q)).sum(-1)
    for matrix, bound, multiplier in (
        (rest.A, rest.b, answer.inequality),
        (rest.E, rest.e, answer.equality),
        (rest.C, rest.k, answer.cone),
    ):
        if bound.shape[-1]:
            excess = apply(matrix, x) - bound
            multiplier = torch.where(_finite(multiplier), multiplier, 0.0)
            best = best + (multiplier * (excess - excess.detach())).sum(-1)
    best = torch.where(_finite(answer.x)[:, 0], best, torch.nan)
    best = torch.where(answer.unbounded, -torch.inf, best)
    return torch.where(answer.infeasible, torch.inf, best)


def _finite(values: torch.Tensor) -> torch.Tensor:
    return values.isfinite().all(-1, keepdim=True)
