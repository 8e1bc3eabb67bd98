"""Cones that rows of a program may have to lie in.

second-order   { (t, x)    : |x| ≤ t }
exponential    { (a, b, c) : b exp(a / b) ≤ c, b > 0 } and its closure
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

Array = np.ndarray


class ConeKind(StrEnum):
    """The kinds of cones that are not plain inequalities."""

    SECOND_ORDER = "second-order"
    EXPONENTIAL = "exponential"


@dataclass(frozen=True)
class Cones:
    """Kinds and sizes of cones whose rows stand one cone after the other."""

    kinds: tuple[ConeKind, ...] = ()
    sizes: tuple[int, ...] = ()

    def __add__(self, other: Cones) -> Cones:
        return Cones(self.kinds + other.kinds, self.sizes + other.sizes)

    def __mul__(self, count: int) -> Cones:
        return Cones(self.kinds * count, self.sizes * count)

    def __len__(self) -> int:
        return len(self.kinds)

    @property
    def n_rows(self) -> int:
        """Number of rows of all cones."""
        return sum(self.sizes)

    @property
    def of_row(self) -> Array:
        """The number of each row's cone, ``(n_rows,)``."""
        return np.repeat(np.arange(len(self)), self.sizes)

    def rows_of(self, kind: ConeKind) -> Array:
        """The rows of the cones of one kind."""
        is_kind = np.array([k is kind for k in self.kinds], dtype=bool)
        return np.flatnonzero(is_kind[self.of_row])

    def sizes_of(self, kind: ConeKind) -> tuple[int, ...]:
        """The sizes of the cones of one kind."""
        return tuple(s for k, s in zip(self.kinds, self.sizes, strict=True) if k is kind)

    @property
    def easing_rows(self) -> Array:
        """The row of each cone that may grow without leaving it: t of |x| ≤ t, c of the other."""
        sizes = np.array(self.sizes, dtype=np.int64)
        is_first = np.array([kind is ConeKind.SECOND_ORDER for kind in self.kinds], dtype=bool)
        return np.cumsum(sizes) - np.where(is_first, sizes, 1)

    def where(self, mask: Array) -> Cones:
        """The cones of a mask ``(n_cones,)``."""
        kept = np.flatnonzero(mask)
        return Cones(tuple(self.kinds[i] for i in kept), tuple(self.sizes[i] for i in kept))
