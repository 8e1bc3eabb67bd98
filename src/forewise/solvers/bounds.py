"""Bounds of the variables, as rows: what solvers without bounds of their own are given.

A variable whose bounds are one value in every context and scenario becomes an equality: as two
inequalities it would leave no interior.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch

from forewise.problems.programs import BOUNDS, ScenarioProgram, joined
from forewise.problems.sparse import SparseBlock
from forewise.solvers.solution import Certificate, Duals, Solution


def solve_with_bounds(
    program: ScenarioProgram, solve: Callable[[ScenarioProgram], Solution]
) -> Solution:
    """Solve a program with bounds by a solver of programs without."""
    first = _Bounds.of(program.lower, program.upper)
    recourse = _Bounds.of(program.recourse_lower, program.recourse_upper)
    G, h, E, e = first.added(program.block("G"), program.h, program.block("E"), program.e)
    W, r, V, s = recourse.added(program.block("W"), program.r, program.block("V"), program.s)
    F = _with_empty_rows(program.block("F"), int(recourse.fixed.sum()))
    rows = program.with_blocks(
        G=G, h=h, E=E, e=e, W=W, r=r, V=V, s=s, F=F, **dict.fromkeys(program.bounds)
    )
    solution = solve(rows)

    def split(duals: Duals) -> Duals:
        inequality, equality, lower, upper = first.split(duals.inequality, duals.equality)
        scenario, equal, recourse_lower, recourse_upper = recourse.split(
            duals.scenario_inequality, duals.scenario_equality
        )
        bounds = (lower, upper, recourse_lower, recourse_upper)
        found = dict(zip(BOUNDS, bounds, strict=True))
        given = {name: bound for name, bound in found.items() if name in program.bounds}
        return Duals(inequality, equality, scenario, equal, **given)

    def split_proof(proof: Certificate) -> Certificate:
        if proof.multipliers is None:
            return proof
        return replace(proof, multipliers=split(proof.multipliers))

    certificates = {i: split_proof(proof) for i, proof in solution.certificates.items()}
    return replace(solution, duals=split(solution.duals), certificates=certificates)


@dataclass(frozen=True, eq=False)
class _Bounds:
    """Bounds of the variables of one stage; masks ``(n,)`` say which become which rows."""

    lower: torch.Tensor  # (..., n)
    upper: torch.Tensor
    above: torch.Tensor  # that have an upper bound somewhere
    below: torch.Tensor
    fixed: torch.Tensor

    @classmethod
    def of(cls, lower: torch.Tensor | None, upper: torch.Tensor | None) -> _Bounds:
        if lower is None and upper is None:
            none = torch.zeros(0, dtype=torch.bool)
            return cls(torch.zeros(0), torch.zeros(0), none, none, none)
        lower = torch.full_like(upper, -torch.inf) if lower is None else lower  # type: ignore[arg-type]
        upper = torch.full_like(lower, torch.inf) if upper is None else upper
        lower, upper = torch.broadcast_tensors(lower, upper)
        fixed = (lower == upper).flatten(0, -2).all(0)
        above = ~(upper == torch.inf).flatten(0, -2).all(0) & ~fixed
        below = ~(lower == -torch.inf).flatten(0, -2).all(0) & ~fixed
        return cls(lower, upper, above, below, fixed)

    def added(
        self,
        rows: torch.Tensor | SparseBlock,
        bounds: torch.Tensor,
        equal: torch.Tensor | SparseBlock,
        values: torch.Tensor,
    ) -> tuple[torch.Tensor | SparseBlock, ...]:
        """The blocks with the bounds' rows at the end."""
        for bound, mask, sign in ((self.upper, self.above, 1.0), (self.lower, self.below, -1.0)):
            if mask.any():
                chosen = bound[..., mask]
                there = chosen.detach().abs() != torch.inf
                # Where others have a bound and this one has none: a row of nothing, 0 ≤ its size.
                size = torch.where(there, chosen.detach().abs(), 0.0).amax()
                level = torch.where(size > 0, size, 1.0)
                entries = sign * there.to(bound)
                if there.all():
                    entries = entries[(slice(0, 1),) * (entries.ndim - 1)]
                rows = _with_rows(rows, mask, entries)
                bounds = joined([bounds, torch.where(there, sign * chosen, level)], -1)
        if self.fixed.any():
            value = 0.5 * (self.lower + self.upper)[..., self.fixed]
            one = value.new_ones(*(1,) * (value.ndim - 1), value.shape[-1])
            equal = _with_rows(equal, self.fixed, one)
            values = joined([values, value], -1)
        return rows, bounds, equal, values

    def split(
        self, inequality: torch.Tensor, equality: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        """Multipliers of the own rows, and those of the lower and the upper bounds."""
        above, below, fixed = (int(m.sum()) for m in (self.above, self.below, self.fixed))
        own = inequality.shape[-1] - above - below
        rows, up, down = inequality.split([own, above, below], -1)
        equal, pulled = equality.split([equality.shape[-1] - fixed, fixed], -1)
        upper = rows.new_zeros(*rows.shape[:-1], len(self.above))
        lower = torch.zeros_like(upper)
        upper[..., self.above], lower[..., self.below] = up, down
        upper[..., self.fixed], lower[..., self.fixed] = pulled.clamp_min(0), (-pulled).clamp_min(0)
        return rows, equal, lower, upper


def _with_rows(
    block: torch.Tensor | SparseBlock, mask: torch.Tensor, entries: torch.Tensor
) -> torch.Tensor | SparseBlock:
    """A block with one row for each variable of a mask, ``entries`` (..., rows) times that."""
    columns = mask.nonzero().flatten().cpu()
    count, n = len(columns), block.shape[-1]
    added = SparseBlock(torch.arange(count), columns, entries, (count, n))
    if isinstance(block, torch.Tensor) and block.requires_grad:
        return joined([block, added.dense()], -2)  # zeros have gradients, too
    known = block if isinstance(block, SparseBlock) else SparseBlock.from_dense(block)
    return known.below(added)


def _with_empty_rows(block: torch.Tensor | SparseBlock, count: int) -> torch.Tensor | SparseBlock:
    if isinstance(block, SparseBlock):
        return block.with_rows(count)
    return torch.nn.functional.pad(block, (0, 0, 0, count))
