"""Sparse matrices of many contexts in one pattern, with values that carry gradients."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

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

    def times(self, vectors: torch.Tensor) -> torch.Tensor:
        """Matrix times vector: ``(n_contexts, n_rows)`` from ``(n_contexts, n_columns)``."""
        return self._summed(vectors[:, self.columns], self.rows, self.shape[0])

    def transposed_times(self, vectors: torch.Tensor) -> torch.Tensor:
        """Transposed matrix times vector: ``(n_contexts, n_columns)``."""
        return self._summed(vectors[:, self.rows], self.columns, self.shape[1])

    def _summed(self, factors: torch.Tensor, place: Array, size: int) -> torch.Tensor:
        total = factors.new_zeros(len(factors), size)
        return total.index_add(1, torch.from_numpy(place), self.values * factors)

    def row_maximum(self) -> torch.Tensor:
        """Largest absolute value of each row, ``(n_contexts | 1, n_rows)``; 0 where it is empty."""
        norms = self.values.new_zeros(len(self.values), self.shape[0])
        index = torch.from_numpy(self.rows).expand_as(self.values)
        return norms.scatter_reduce(1, index, self.values.detach().abs(), "amax")


@dataclass(frozen=True, eq=False)
class Piece:
    """A stack of blocks ``(n_contexts | 1, count, height, width)`` and where they stand.

    Block j starts at row `row + j * row_step` and column `column + j * column_step`.
    """

    blocks: torch.Tensor
    row: int
    row_step: int
    column: int
    column_step: int


def assemble(
    shape: tuple[int, int], pieces: list[Piece], row_place: Array | None = None
) -> SparseBatch:
    """Put the pieces into one matrix; what is zero in every context is not stored.

    Row i of the pieces becomes row ``row_place[i]`` of the matrix, if that is given.
    """
    n_contexts = max(len(piece.blocks) for piece in pieces)
    rows, columns, values = [], [], []
    for piece in pieces:
        which, row, column = np.nonzero((piece.blocks != 0).any(dim=0).numpy())
        rows.append(piece.row + which * piece.row_step + row)
        columns.append(piece.column + which * piece.column_step + column)
        entries = piece.blocks[:, which, row, column]
        values.append(entries.expand(n_contexts, -1))
    row, column = np.concatenate(rows), np.concatenate(columns)
    if row_place is not None:
        row = row_place[row]
    order = np.lexsort((column, row))
    return SparseBatch(shape, row[order], column[order], torch.cat(values, dim=1)[:, order])


def for_all(block: torch.Tensor, n_scenarios: int) -> torch.Tensor:
    """A block ``(n_contexts | 1, n_scenarios | 1, ...)`` with all its scenarios."""
    return block.expand(block.shape[0], n_scenarios, *block.shape[2:])


def joined(vectors: list[torch.Tensor], n_contexts: int) -> torch.Tensor:
    """Blocks of vectors side by side, ``(n_contexts, n_entries)``."""
    full = [vector.expand(n_contexts, *vector.shape[1:]) for vector in vectors]
    return torch.cat([vector.reshape(n_contexts, -1) for vector in full], dim=1)


def one_where_zero(size: torch.Tensor) -> torch.Tensor:
    """What to divide by: a size, or 1 where there is none."""
    return torch.where(size > 0, size, 1.0)
