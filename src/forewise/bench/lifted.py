"""The lifted program: every context's extensive form in one sparsity pattern, differentiable.

What batched peers are given:  min ½ x'P x + q'x  s.t.  A x = b (first rows), A x ≤ b (the rest),
with x = (z, u_1, …, u_M). May import: problems.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from forewise.problems.program import ScenarioProgram

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class SparseBatch:
    """Matrices of one CSR pattern, with values ``(n_contexts | 1, n_entries)``."""

    shape: tuple[int, int]
    rows: Array
    columns: Array
    values: torch.Tensor

    @property
    def row_offsets(self) -> Array:
        """Where each row starts, ``(n_rows + 1,)``."""
        counts = np.bincount(self.rows, minlength=self.shape[0])
        return np.concatenate([[0], np.cumsum(counts)])

    def dense(self) -> torch.Tensor:
        """The same matrices with their zeros, ``(n_contexts | 1, n_rows, n_columns)``."""
        full = self.values.new_zeros(len(self.values), *self.shape)
        full[:, self.rows, self.columns] = self.values
        return full


@dataclass(frozen=True, eq=False)
class LiftedProgram:
    """A batch of quadratic programs in the form of the module's docstring."""

    P: SparseBatch
    q: torch.Tensor
    A: SparseBatch
    b: torch.Tensor
    n_equalities: int


@dataclass(frozen=True, eq=False)
class _Piece:
    """A stack of blocks ``(n_contexts | 1, count, height, width)`` and where they stand.

    Block j starts at row `row + j * row_step` and column `column + j * column_step`.
    """

    blocks: torch.Tensor
    row: int
    row_step: int
    column: int
    column_step: int


def lift(program: ScenarioProgram) -> LiftedProgram:
    """The lifted program of a batch whose scenarios all have positive weight."""
    M, n, k = program.n_scenarios, program.n_decisions, program.n_recourse
    weights = program.weights
    n_first, n_rest = program.E.shape[1], program.V.shape[2]
    rows = program.W.shape[2]
    n_equalities = n_first + M * n_rest
    below = n_equalities + program.G.shape[1]
    width = n + M * k
    A = _assemble(
        (below + M * rows, width),
        [
            _Piece(program.E[:, None], 0, 0, 0, 0),
            _Piece(_for_all(program.F, M), n_first, n_rest, 0, 0),
            _Piece(_for_all(program.V, M), n_first, n_rest, n, k),
            _Piece(program.G[:, None], n_equalities, 0, 0, 0),
            _Piece(_for_all(program.T, M), below, rows, 0, 0),
            _Piece(_for_all(program.W, M), below, rows, n, k),
        ],
    )
    weighted = weights[:1] if (weights == weights[:1]).all() else weights
    P = _assemble(
        (width, width),
        [
            _Piece(program.P[:, None], 0, 0, 0, 0),
            _Piece(weighted[:, :, None, None] * program.D, n, k, n, k),
        ],
    )
    right = [program.e, _for_all(program.s, M), program.h, _for_all(program.r, M)]
    return LiftedProgram(
        P=P,
        q=_joined([program.q, weights[:, :, None] * program.d], program.n_contexts),
        A=A,
        b=_joined(right, program.n_contexts),
        n_equalities=n_equalities,
    )


def _for_all(block: torch.Tensor, n_scenarios: int) -> torch.Tensor:
    return block.expand(block.shape[0], n_scenarios, *block.shape[2:])


def _joined(vectors: list[torch.Tensor], n_contexts: int) -> torch.Tensor:
    full = [vector.expand(n_contexts, *vector.shape[1:]) for vector in vectors]
    return torch.cat([vector.reshape(n_contexts, -1) for vector in full], dim=1)


def _assemble(shape: tuple[int, int], pieces: list[_Piece]) -> SparseBatch:
    """Put the pieces into one matrix; what is zero in every context is not stored."""
    n_contexts = max(len(piece.blocks) for piece in pieces)
    rows, columns, values = [], [], []
    for piece in pieces:
        which, row, column = np.nonzero((piece.blocks != 0).any(dim=0).numpy())
        rows.append(piece.row + which * piece.row_step + row)
        columns.append(piece.column + which * piece.column_step + column)
        entries = piece.blocks[:, which, row, column]
        values.append(entries.expand(n_contexts, -1))
    row, column = np.concatenate(rows), np.concatenate(columns)
    order = np.lexsort((column, row))
    return SparseBatch(shape, row[order], column[order], torch.cat(values, dim=1)[:, order])
