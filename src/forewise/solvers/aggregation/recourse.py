"""The recourse program of one context, as its right-hand sides move from scenario to scenario.

    Q(b) = min d'u   s.t.  V u = b_s,  W u ≤ b_r,      b = (s_j − F_j z,  r_j − T_j z)

Costs and matrices are those of all scenarios; most right-hand sides are too, and only the *moving*
rows are looked at scenario by scenario, a block of scenarios at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch

from forewise.exceptions import UnsupportedProblemError
from forewise.problems.programs import ScenarioProgram
from forewise.problems.sparse import SparseBlock

Array = np.ndarray
#: Numbers of the moving rows, or of what is computed from them, in memory at a time.
_ENTRIES = 2**22


def require_supported(program: ScenarioProgram) -> None:
    """Raise where costs or matrices of the recourse are random, or costs are quadratic."""
    random = [name for name in "dWV" if _moves(program.block(name)).any()]
    if random:
        raise UnsupportedProblemError(
            "AggregatedSolver merges scenarios that differ in right-hand sides and in the rows of "
            f"the decision (r, s, T, F), but here {', '.join(random)} is random: use "
            "InteriorPointSolver(), whose time and memory are linear in the scenarios"
        )
    if _numbers(program.block("D")).any():
        raise UnsupportedProblemError(
            "AggregatedSolver needs a recourse of linear cost, but here it is quadratic (D): use "
            "InteriorPointSolver(), whose time and memory are linear in the scenarios"
        )


@dataclass(frozen=True, eq=False)
class Recourse:
    """The recourse of one context. Its rows are the equalities, then the inequalities."""

    program: ScenarioProgram  # of one context
    cost: Array  # (n_u,)
    rows: Array  # (n_rows, n_u)
    n_equal: int
    moving: Array  # numbers of the rows whose right-hand side is random

    @classmethod
    def of(cls, program: ScenarioProgram) -> Recourse:
        """The recourse of a program of one context that is supported."""
        V, W = (_first(_dense(program.block(name))) for name in "VW")
        moves = []
        for side, matrix in (("s", "F"), ("r", "T")):
            found = _moves(getattr(program, side))
            of_matrix = _moves(program.block(matrix))
            found[: len(of_matrix)] |= of_matrix
            moves.append(found)
        moving = np.flatnonzero(np.concatenate(moves))
        return cls(program, _first(program.d), np.vstack([V, W]), len(V), moving)

    @property
    def is_equality(self) -> Array:
        """Mask of the rows that are equalities."""
        return np.arange(len(self.rows)) < self.n_equal

    def common(self, z: Array) -> Array:
        """Right-hand sides (n_rows,) after a decision; 0 in the moving rows."""
        found = self._sides(z, slice(0, 1), np.arange(len(self.rows)))[0]
        found[self.moving] = 0.0
        return found

    def blocks(self, z: Array, width: int) -> Iterator[tuple[slice, Array]]:
        """Slices of scenarios with their moving right-hand sides (n_scenarios, n_moving).

        `width` numbers will be computed of each scenario, which bounds how many come at a time.
        """
        size = max(1, _ENTRIES // max(1, width, len(self.moving)))
        for start in range(0, self.program.n_scenarios, size):
            piece = slice(start, min(start + size, self.program.n_scenarios))
            yield piece, self._sides(z, piece, self.moving)

    def _sides(self, z: Array, piece: slice, rows: Array) -> Array:
        """Right-hand sides of some rows in some scenarios, (n_scenarios, n_rows)."""
        parts = []
        equal, other = rows[rows < self.n_equal], rows[rows >= self.n_equal] - self.n_equal
        count = piece.stop - piece.start
        for side, matrix, chosen in (("s", "F", equal), ("r", "T", other)):
            sides = getattr(self.program, side)
            found = _of(sides, piece)[:, chosen] - self._product(matrix, z, piece, chosen)
            parts.append(np.broadcast_to(found, (count, len(chosen))))
        return np.concatenate(parts, axis=1)

    def _product(self, matrix: str, z: Array, piece: slice, chosen: Array) -> Array:
        """Rows of a matrix times the decision; what `T` lacks is 0."""
        block = self.program.block(matrix)
        if isinstance(block, SparseBlock):
            entries = _of(block.entries, piece)
            product = np.zeros((len(entries), block.size[0]))
            rows, columns = block.rows.numpy(), block.columns.numpy()
            np.add.at(product.T, rows, (entries * z[columns]).T)
        else:
            product = _of(block, piece) @ z
        found = np.zeros((len(product), len(chosen)))
        there = chosen < product.shape[1]
        found[:, there] = product[:, chosen[there]]
        return found

    def row_of_decision(self, weights: Array, scenario: int) -> tuple[Array, float]:
        """A row (n_z,) and its bound: Σ weights × (rows of one scenario), without its recourse."""
        piece, n_z = slice(scenario, scenario + 1), self.program.n_decisions
        everything = np.arange(len(self.rows))
        bound = self._sides(np.zeros(n_z), piece, everything)[0]
        row = np.zeros(n_z)
        for i, unit in enumerate(np.eye(n_z)):
            row[i] = weights @ (bound - self._sides(unit, piece, everything)[0])
        return row, float(weights @ bound)

    def means(self, groups: Array, weights: Array) -> ScenarioProgram:
        """The program of one mean scenario for each group (n_scenarios,) of scenarios."""
        number = torch.from_numpy(groups)
        count, scenarios = int(groups.max()) + 1, len(groups)
        share = torch.from_numpy(weights)
        total = share.new_zeros(count).index_add_(0, number, share)

        def mean(name: str, block: torch.Tensor) -> torch.Tensor:
            if name == "weights":
                return total[None]
            if block.ndim < 2 or name not in _RANDOM or block.shape[1] != scenarios:
                return block
            flat = block.detach().reshape(scenarios, -1)
            found = flat.new_zeros(count, flat.shape[1])
            # The mean of distances to the first: what does not move stays what it is, to the bit.
            for start in range(0, scenarios, _ENTRIES):
                piece = slice(start, start + _ENTRIES)
                for column in range(flat.shape[1]):
                    off = (flat[piece, column] - flat[0, column]) * share[piece]
                    found[:, column].index_add_(0, number[piece], off)
            found = flat[0] + found / total[:, None]
            return found.reshape(1, count, *block.shape[2:])

        return self.program.map(mean)


_RANDOM = ("T", "F", "r", "s", "d", "D", "W", "V")


def _numbers(block: torch.Tensor | SparseBlock) -> Array:
    tensor = block.entries if isinstance(block, SparseBlock) else block
    found: Array = tensor.detach().cpu().numpy()
    return found


def _dense(block: torch.Tensor | SparseBlock) -> torch.Tensor:
    if not isinstance(block, SparseBlock):
        return block[:, :1]
    return block.with_entries(block.entries[:, :1]).dense()


def _first(block: torch.Tensor) -> Array:
    """The first scenario's part, which is that of all."""
    found: Array = block[0, 0].detach().cpu().numpy()
    return found


def _of(block: torch.Tensor, piece: slice) -> Array:
    """The part of some scenarios, one for all where it is shared."""
    found = block[0] if block.shape[1] == 1 else block[0, piece]
    array: Array = found.detach().cpu().numpy()
    return array


def _moves(block: torch.Tensor | SparseBlock) -> Array:
    """Mask of the rows, the first dimension behind the scenarios, with a number that differs."""
    numbers = _numbers(block)
    if isinstance(block, SparseBlock):
        found = np.zeros(block.size[0], dtype=bool)
        if numbers.shape[1] > 1:
            differs = (numbers != numbers[:, :1]).any((0, 1))
            found[block.rows.numpy()[differs]] = True
        return found
    found = np.zeros(numbers.shape[2], dtype=bool)
    if numbers.shape[1] > 1:
        for row in range(numbers.shape[2]):
            part = numbers[:, :, row]
            found[row] = bool((part != part[:, :1]).any())
    return found
