"""Cones that rows of a program may have to lie in, and the program that has such rows.

    second-order   { (t, x)    : |x| ≤ t }
    exponential    { (a, b, c) : b exp(a / b) ≤ c, b > 0 } and its closure

May import: its sibling `program`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
import torch

from forewise.problems.program import ScenarioProgram

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
        ends = np.cumsum(np.array(self.sizes, dtype=np.int64))
        grows = np.array([kind is ConeKind.SECOND_ORDER for kind in self.kinds], dtype=bool)
        return np.where(grows, ends - np.array(self.sizes, dtype=np.int64), ends - 1)

    def where(self, mask: Array) -> Cones:
        """The cones of a mask ``(n_cones,)``."""
        kept = np.flatnonzero(mask)
        return Cones(tuple(self.kinds[i] for i in kept), tuple(self.sizes[i] for i in kept))


@dataclass(frozen=True, eq=False)
class ConicProgram:
    """A batch of two-stage programs with cones, one per context.

    The linear and quadratic part, and rows that must lie in cones K:

        h − G z ∈ K (first stage),    r_j − T_j z − W_j u_j ∈ K (every scenario j)

    As in a `ScenarioProgram`, what is shared has a leading dimension of size 1.

    Attributes
    ----------
    plain : ScenarioProgram
    cones : Cones
        Of the first-stage rows G, h.
    G, h : tensors (n_contexts | 1, n_rows, n_z), (n_contexts | 1, n_rows)
    scenario_cones : Cones
        Of the rows T, W, r, the same in every scenario.
    T, W, r : tensors (n_contexts | 1, n_scenarios | 1, n_rows, n_z), (..., n_u), (..., n_rows)
    """

    plain: ScenarioProgram
    cones: Cones
    G: torch.Tensor
    h: torch.Tensor
    scenario_cones: Cones
    T: torch.Tensor
    W: torch.Tensor
    r: torch.Tensor

    @classmethod
    def of_first_stage(
        cls, plain: ScenarioProgram, cones: Cones, G: torch.Tensor, h: torch.Tensor
    ) -> ConicProgram:
        """A program whose scenarios have no cones."""
        T = h.new_zeros(1, 1, 0, plain.n_decisions)
        W = h.new_zeros(1, 1, 0, plain.n_recourse)
        return cls(plain, cones, G, h, Cones(), T, W, h.new_zeros(1, 1, 0))

    def cone_blocks(self) -> dict[str, torch.Tensor]:
        """The tensors of the cone rows, by name."""
        return {name: getattr(self, name) for name in ("G", "h", "T", "W", "r")}

    def take(self, contexts: slice | torch.Tensor) -> ConicProgram:
        """The programs of some contexts; what is shared stays shared."""
        return self._changed(
            self.plain.take(contexts),
            lambda _, block: block if block.shape[0] == 1 else block[contexts],
        )

    def take_scenarios(self, scenarios: torch.Tensor) -> ConicProgram:
        """The programs with some of their scenarios, whose weights must sum to one."""
        shared = {"q", "P", "G", "h", "E", "e", "c"}

        def chosen(block: torch.Tensor) -> torch.Tensor:
            return block if block.shape[1] == 1 else block[:, scenarios]

        def of_plain(name: str, block: torch.Tensor) -> torch.Tensor:
            if name == "weights":
                return block[:, scenarios]
            return block if name in shared else chosen(block)

        return self._changed(
            self.plain.map(of_plain),
            lambda name, block: block if name in shared else chosen(block),
        )

    def _changed(
        self, plain: ScenarioProgram, change: Callable[[str, torch.Tensor], torch.Tensor]
    ) -> ConicProgram:
        G, h, T, W, r = (change(name, block) for name, block in self.cone_blocks().items())
        return replace(self, plain=plain, G=G, h=h, T=T, W=W, r=r)
