"""Blocks of a program that are sparse: matrices of all contexts and scenarios with one pattern."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from forewise.exceptions import InvalidInputError
from forewise.validation.arguments import WORKING_DTYPE, as_tensor


@dataclass(frozen=True, eq=False)
class SparseBlock:
    """Matrices that share one sparsity pattern, and where it is given once, their entries.

    Parameters
    ----------
    rows, columns : integer arrays (n_entries,)
        Where the entries stand, in any order.
    entries : tensor (n_contexts | 1, [n_scenarios | 1,] n_entries)
        Tensors may require gradients.
    size : (n_rows, n_columns)

    Examples
    --------
    >>> import forewise as fw
    >>> block = fw.SparseBlock(rows=[0, 1], columns=[2, 0], entries=[[5.0, 7.0]], size=(2, 3))
    >>> block.dense()
    tensor([[[0., 0., 5.],
             [7., 0., 0.]]], dtype=torch.float64)
    """

    rows: torch.Tensor
    columns: torch.Tensor
    entries: torch.Tensor
    size: tuple[int, int]

    def __init__(self, rows: Any, columns: Any, entries: Any, size: tuple[int, int]) -> None:
        rows, columns = (_as_places(places) for places in (rows, columns))
        if len(size) != 2 or not all(isinstance(n, Integral) and n >= 0 for n in size):
            raise InvalidInputError(f"size must be (n_rows, n_columns), but is {size!r}")
        entries = as_tensor("entries", entries).to(WORKING_DTYPE)
        if not rows.ndim == columns.ndim == 1 or not len(rows) == len(columns) == entries.shape[-1]:
            raise InvalidInputError(
                "a sparse block needs as many rows and columns as entries, but has "
                f"{tuple(rows.shape)}, {tuple(columns.shape)} and {tuple(entries.shape)}"
            )
        places = rows * size[1] + columns
        inside = (rows >= 0) & (rows < size[0]) & (columns >= 0) & (columns < size[1])
        if not bool(inside.all()):
            raise InvalidInputError(f"a sparse block of size {tuple(size)} has an entry outside")
        if len(places) > 1 and not bool((places.diff() > 0).all()):
            places, order = torch.sort(places)
            if bool((places.diff() == 0).any()):
                raise InvalidInputError("a sparse block has two entries in one place: add them up")
            rows, columns = rows[order], columns[order]
            entries = entries[..., order.to(entries.device)]
        self._fill(rows, columns, entries, (int(size[0]), int(size[1])))

    def _fill(self, *values: Any) -> None:
        for name, value in zip(("rows", "columns", "entries", "size"), values, strict=True):
            object.__setattr__(self, name, value)

    @classmethod
    def read(cls, name: str, value: Any, leading: int) -> SparseBlock | None:
        """A block given as one, a SciPy matrix, or a sparse tensor; None for anything dense.

        A matrix without the `leading` dimensions of contexts and scenarios is all of theirs.
        """
        if isinstance(value, SparseBlock):
            if value.entries.ndim != leading + 1:
                raise InvalidInputError(
                    f"the entries of {name} must have {leading + 1} dimensions, but have shape "
                    f"{tuple(value.entries.shape)}"
                )
            return value
        if sp.issparse(value):
            if value.ndim != 2 or np.iscomplexobj(value):
                raise InvalidInputError(
                    f"{name} must be a matrix of real numbers, but is a sparse array of shape "
                    f"{value.shape} and dtype {value.dtype}"
                )
            matrix = sp.coo_array(value)
            matrix.sum_duplicates()
            entries = np.asarray(matrix.data, float).reshape(*(1,) * leading, -1)
            rows, columns = matrix.coords
            return cls(rows, columns, entries, matrix.shape)
        if not isinstance(value, torch.Tensor) or value.layout is torch.strided:
            return None
        value = (value if value.layout is torch.sparse_coo else value.to_sparse_coo()).coalesce()
        places, shape = value.indices(), value.shape
        if value.ndim not in (2, leading + 2) or value.dense_dim():
            raise InvalidInputError(
                f"{name} must be a sparse tensor of 2 or {leading + 2} dimensions, "
                f"but has shape {tuple(shape)}"
            )
        flat = places[-2] * shape[-1] + places[-1]
        known, place = torch.unique(flat, return_inverse=True)
        lead = tuple(shape[:-2])
        entries = value.values().new_zeros(*(lead or (1,) * leading), len(known))
        at = (*places[:-2], place) if lead else (*(0,) * leading, place)
        at = tuple(torch.as_tensor(i).expand_as(place) for i in at)
        entries = entries.index_put(at, value.values())
        rows = torch.div(known, shape[-1], rounding_mode="floor")
        return cls(rows.cpu(), (known % shape[-1]).cpu(), entries, (shape[-2], shape[-1]))

    @classmethod
    def empty(cls, shape: Sequence[int]) -> SparseBlock:
        """A block of nothing but zeros."""
        none = torch.zeros(0, dtype=torch.long)
        entries = torch.zeros(*shape[:-2], 0, dtype=WORKING_DTYPE)
        return cls(none, none, entries, (shape[-2], shape[-1]))

    @classmethod
    def from_dense(cls, block: torch.Tensor) -> SparseBlock:
        """The entries of a dense block that are not zero in all contexts and scenarios."""
        mask = (block.detach() != 0).flatten(0, -3).any(0)
        rows, columns = mask.nonzero(as_tuple=True)
        size = (mask.shape[0], mask.shape[1])
        return cls(rows.cpu(), columns.cpu(), block[..., rows, columns], size)

    @property
    def shape(self) -> tuple[int, ...]:
        """That of the dense block."""
        return (*self.entries.shape[:-1], *self.size)

    @property
    def ndim(self) -> int:
        """Dimensions of the dense block."""
        return len(self.shape)

    def numel(self) -> int:
        """Numbers of the dense block."""
        return math.prod(self.shape)

    @property
    def requires_grad(self) -> bool:
        """Whether the entries do."""
        return self.entries.requires_grad

    def with_entries(self, entries: torch.Tensor) -> SparseBlock:
        """The same pattern with other entries."""
        found: SparseBlock = object.__new__(SparseBlock)
        found._fill(self.rows, self.columns, entries, self.size)
        return found

    def dense(self) -> torch.Tensor:
        """The block with its zeros, ``(..., n_rows, n_columns)``."""
        full = self.entries.new_zeros(self.shape)
        return full.index_put(
            (*_grid(self.entries.shape[:-1], full.device), self.rows, self.columns), self.entries
        )

    def times(self, vector: torch.Tensor) -> torch.Tensor:
        """Block times vector over broadcast leading dimensions, ``(..., n_rows)``."""
        products = self.entries * vector[..., self.columns]
        total = products.new_zeros(*products.shape[:-1], self.size[0])
        return total.index_add(-1, self.rows.to(products.device), products)

    def below(self, other: SparseBlock) -> SparseBlock:
        """Rows of another block, that all contexts share or not, under the own ones."""
        lead = torch.broadcast_shapes(self.entries.shape[:-1], other.entries.shape[:-1])
        parts = [block.entries.expand(*lead, -1) for block in (self, other)]
        return SparseBlock(
            torch.cat([self.rows, other.rows + self.size[0]]),
            torch.cat([self.columns, other.columns]),
            torch.cat(parts, -1),
            (self.size[0] + other.size[0], self.size[1]),
        )

    def with_rows(self, count: int) -> SparseBlock:
        """The block with empty rows at the end."""
        found: SparseBlock = object.__new__(SparseBlock)
        found._fill(self.rows, self.columns, self.entries, (self.size[0] + count, self.size[1]))
        return found

    def starts(self) -> np.ndarray:
        """Where each row's entries begin, ``(n_rows + 1,)``."""
        counts = np.bincount(self.rows.numpy(), minlength=self.size[0])
        return np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)


def _as_places(places: Any) -> torch.Tensor:
    """Numbers of rows or columns, on the processor."""
    found = torch.as_tensor(places).detach().cpu()
    if found.numel() and (found.is_floating_point() or found.dtype in (torch.bool, torch.cfloat)):
        raise InvalidInputError(
            f"rows and columns of a sparse block must be integers, but came as {found.dtype}"
        )
    return found.long()


def _grid(lead: torch.Size, device: torch.device) -> list[torch.Tensor]:
    """Indices of the leading dimensions, to be broadcast against those of entries."""
    return [
        torch.arange(size, device=device).reshape(-1, *(1,) * (len(lead) - i))
        for i, size in enumerate(lead)
    ]
