"""Bounds of the variables as rows: for what knows rows alone.

A bound that is infinite in some contexts or scenarios, and not in others, is a row of nothing
there. A variable whose bounds are one value in every context and scenario becomes an equality: as
two inequalities it would leave no interior.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from forewise.problems.programs import BOUNDS, ScenarioProgram, joined
from forewise.problems.sparse import SparseBlock
from forewise.validation.arguments import WORKING_DTYPE

Block = torch.Tensor | SparseBlock
_NONE = np.zeros(0, dtype=int)
_LARGE = 20_000  # numbers from which on a dense matrix with rows of bounds is a sparse one


def with_bounds_as_rows(program: ScenarioProgram) -> ScenarioProgram:
    """The program with rows in the place of its bounds; itself where it has none."""
    return BoundRows.of(program).added(program) if program.bounds else program


@dataclass(frozen=True, eq=False)
class BoundRows:
    """Which rows the bounds of a program become: after the others of their kind."""

    first: StageBounds
    recourse: StageBounds

    @classmethod
    def of(cls, program: ScenarioProgram) -> BoundRows:
        """The rows of a program's bounds."""
        return cls(
            StageBounds.of(program.lower, program.upper),
            StageBounds.of(program.recourse_lower, program.recourse_upper),
        )

    def added(self, program: ScenarioProgram) -> ScenarioProgram:
        """The program with rows in the place of its bounds."""
        blocks: dict[str, Block | None] = dict.fromkeys(BOUNDS)
        own = self.first.added(*(program.block(name) for name in "GhEe"))
        blocks |= dict(zip("GhEe", own, strict=True))
        own = self.recourse.added(*(program.block(name) for name in "WrVs"))
        blocks |= dict(zip("WrVs", own, strict=True))
        if len(self.recourse.fixed):
            blocks["F"] = _with_empty_rows(program.block("F"), len(self.recourse.fixed))
        return program.with_blocks(**blocks)


@dataclass(frozen=True, eq=False)
class StageBounds:
    """Bounds of the variables of one stage; the columns of those that become rows."""

    lower: torch.Tensor | None  # (..., n)
    upper: torch.Tensor | None
    above: np.ndarray  # columns that have an upper bound somewhere
    below: np.ndarray
    fixed: np.ndarray
    everywhere: tuple[bool, bool]  # whether those above, and below, have one in all scenarios

    @classmethod
    def of(cls, lower: torch.Tensor | None, upper: torch.Tensor | None) -> StageBounds:
        """The columns of bounds."""
        above, above_everywhere = _finite_columns(upper, np.inf)
        below, below_everywhere = _finite_columns(lower, -np.inf)
        fixed = _NONE
        if lower is not None and upper is not None:
            same = (lower.detach() == upper.detach()).flatten(0, -2).all(0)
            if same.any():
                fixed = same.nonzero().flatten().cpu().numpy()
                above, below = np.setdiff1d(above, fixed), np.setdiff1d(below, fixed)
        return cls(lower, upper, above, below, fixed, (above_everywhere, below_everywhere))

    def added(self, rows: Block, sides: Block, equal: Block, values: Block) -> tuple[Block, ...]:
        """The blocks with the bounds' rows at the end: upper ones, then lower ones."""
        assert isinstance(sides, torch.Tensor)
        assert isinstance(values, torch.Tensor)
        pieces = [sides]
        sides_of = (self.upper, self.above, 1.0), (self.lower, self.below, -1.0)
        for (bound, columns, sign), everywhere in zip(sides_of, self.everywhere, strict=True):
            if bound is None or not len(columns):
                continue
            chosen = _columns_of(bound, columns)
            if everywhere:
                rows = _with_rows(rows, columns, sign)
                pieces.append(chosen if sign > 0 else -chosen)
                continue
            is_there = chosen.detach().abs() != torch.inf
            # A row of nothing: 0 ≤ the size of the others' bounds.
            size = torch.where(is_there, chosen.detach().abs(), 0.0).amax()
            level = torch.where(size > 0, size, 1.0)
            rows = _with_rows(rows, columns, sign * is_there.to(chosen))
            pieces.append(torch.where(is_there, sign * chosen, level))
        if len(pieces) > 1:
            sides = joined(pieces, -1)
        if len(self.fixed):
            assert self.lower is not None
            assert self.upper is not None
            value = 0.5 * (self.lower + self.upper)[..., torch.from_numpy(self.fixed)]
            equal = _with_rows(equal, self.fixed, 1.0)
            values = joined([values, value], -1)
        return rows, sides, equal, values

    def split(
        self, inequality: torch.Tensor, equality: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None, torch.Tensor | None]:
        """Multipliers of the own rows, and those of the lower and the upper bounds.

        None where there are no bounds of that side.
        """
        if self.lower is None and self.upper is None:
            return inequality, equality, None, None
        counts = len(self.above), len(self.below)
        own = inequality.shape[-1] - sum(counts)
        rows, up, down = _parts(inequality, own, *counts)
        if len(self.fixed):
            count = len(self.fixed)
            equality, pulled = _parts(equality, equality.shape[-1] - count, count)
            raised, lowered = pulled.clamp_min(0), (-pulled).clamp_min(0)
        else:
            raised = lowered = equality[..., :0]
        low, high = self.lower, self.upper
        of_lower = None if low is None else self._put(low, down, self.below, lowered)
        of_upper = None if high is None else self._put(high, up, self.above, raised)
        return rows, equality, of_lower, of_upper

    def joined(
        self,
        inequality: torch.Tensor,
        equality: torch.Tensor,
        lower: torch.Tensor | None,
        upper: torch.Tensor | None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The inverse of `split`: multipliers of all rows."""
        parts, pulled = [inequality], []
        for found, columns, sign in ((upper, self.above, 1.0), (lower, self.below, -1.0)):
            if found is not None:
                parts.append(_columns_of(found, columns))
                pulled.append(sign * _columns_of(found, self.fixed))
        return (
            torch.cat(parts, -1),
            torch.cat([equality, sum(pulled[1:], pulled[0])], -1) if len(self.fixed) else equality,
        )

    def _put(
        self, bound: torch.Tensor, part: torch.Tensor, columns: np.ndarray, held: torch.Tensor
    ) -> torch.Tensor:
        """Multipliers of some columns and of the fixed ones, 0 elsewhere."""
        n = bound.shape[-1]
        if len(columns) == n:
            return part
        found = part.new_zeros(*part.shape[:-1], n)
        found[..., torch.from_numpy(columns)] = part
        found[..., torch.from_numpy(self.fixed)] = held
        return found


def _finite_columns(bound: torch.Tensor | None, infinite: float) -> tuple[np.ndarray, bool]:
    """Columns in which a bound is not always infinite, and whether it never is in these."""
    if bound is None:
        return _NONE, True
    values = bound.detach().cpu().numpy()
    there = values.reshape(-1, values.shape[-1]) != infinite  # NaN is, and is found in the rows
    if there.all():
        return np.arange(there.shape[1]), True
    columns = np.flatnonzero(there.any(0))
    return columns, bool(there[:, columns].all())


def _parts(values: torch.Tensor, *sizes: int) -> list[torch.Tensor]:
    """Neighbouring parts along the last dimension."""
    found, start = [], 0
    for size in sizes:
        found.append(values.narrow(-1, start, size))
        start += size
    return found


def _columns_of(values: torch.Tensor, columns: np.ndarray) -> torch.Tensor:
    return values if len(columns) == values.shape[-1] else values[..., torch.from_numpy(columns)]


def _with_rows(block: Block, columns: np.ndarray, entries: torch.Tensor | float) -> Block:
    """A block with one row for each of some variables, ``entries`` (..., rows) times that."""
    count, n, lead = len(columns), block.shape[-1], block.ndim - 2
    if isinstance(entries, float):
        entries = torch.full((1,) * lead + (count,), entries, dtype=WORKING_DTYPE)
    large = (block.shape[-2] + count) * n > _LARGE
    if isinstance(block, torch.Tensor) and (block.requires_grad or not large):
        own = np.zeros((*entries.shape, n))  # zeros have gradients, too
        own[..., np.arange(count), columns] = entries.cpu().numpy()
        added = torch.from_numpy(own).to(block.device)
        return joined([block, added], -2) if block.shape[-2] else added
    if isinstance(block, torch.Tensor):
        block = SparseBlock.from_dense(block)
    return block.below(SparseBlock(np.arange(count), columns, entries, (count, n)))


def _with_empty_rows(block: Block, count: int) -> Block:
    if isinstance(block, SparseBlock):
        return block.with_rows(count)
    return torch.nn.functional.pad(block, (0, 0, 0, count))
