"""The extensive form of a conic program: all contexts in one sparsity pattern, differentiable.

    min ½ x'P x + q'x   s.t.  s = b − A x,   with x = (z, u_1, …, u_M)

The slacks s of the first rows are 0, those of the next nonnegative, then come second-order and
exponential cones. The multipliers y are in the dual cones, and P x + q + A'y = 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch

from forewise.problems.cones import ConeKind, Cones
from forewise.problems.programs import ConicProgram
from forewise.solvers.conic.sparse_batch import Piece, SparseBatch, assemble, for_all, joined
from forewise.solvers.solution import ConeDuals, Duals

Array = np.ndarray


class Sizes(NamedTuple):
    """How many scenarios, variables and rows of each kind a program has."""

    scenarios: int
    z: int
    u: int
    E: int
    F: int
    G: int
    T: int
    cone_G: int
    cone_T: int

    @classmethod
    def from_program(cls, program: ConicProgram) -> Sizes:
        """The sizes of a program."""
        plain = program.plain
        bounds = (plain.e, plain.s, plain.h, plain.r, program.h, program.r)
        E, F, G, T, cone_G, cone_T = (bound.shape[-1] for bound in bounds)
        M, z, u = plain.n_scenarios, plain.n_decisions, plain.n_recourse
        return cls(M, z, u, E, F, G, T, cone_G, cone_T)

    @property
    def row_counts(self) -> tuple[int, ...]:
        """Rows of E, F, G, T, and of the cones, of all scenarios together."""
        M = self.scenarios
        return self.E, M * self.F, self.G, M * self.T, self.cone_G, M * self.cone_T


@dataclass(frozen=True, eq=False)
class ConicForm:
    """A batch of cone programs in the form of the module's docstring.

    Attributes
    ----------
    P, A : SparseBatch
    q, b : tensors (n_contexts, n), (n_contexts, m)
    n_equalities, n_inequalities : int
    second_order : tuple of int
        Sizes of the second-order cones.
    n_exponential : int
    column_weight, row_weight : tensors (n_contexts, n), (n_contexts, m)
        1 in the first stage, a scenario's weight elsewhere: how much a cost, and so a
        multiplier, counts.
    sizes : Sizes
        Of the program's blocks.
    row_place : array (m,)
        Where the rows went when cones were sorted by kind.
    """

    P: SparseBatch
    q: torch.Tensor
    A: SparseBatch
    b: torch.Tensor
    n_equalities: int
    n_inequalities: int
    second_order: tuple[int, ...]
    n_exponential: int
    column_weight: torch.Tensor
    row_weight: torch.Tensor
    sizes: Sizes
    row_place: Array

    @classmethod
    def from_program(cls, program: ConicProgram) -> ConicForm:
        """The form of a batch whose scenarios all have positive weight."""
        plain, size = program.plain, Sizes.from_program(program)
        M, n, k = size[:3]
        weights = plain.weights
        # Where the rows of each block start, before cones are sorted by kind.
        *starts, m = np.cumsum((0, *size.row_counts)).tolist()
        at_E, at_F, at_G, at_T, at_cone_G, at_cone_T = starts
        width = n + M * k
        cones = program.cones + program.scenario_cones * M
        A = assemble(
            (m, width),
            [
                Piece(plain.E[:, None], at_E, 0, 0, 0),
                Piece(for_all(plain.F, M), at_F, size.F, 0, 0),
                Piece(for_all(plain.V, M), at_F, size.F, n, k),
                Piece(plain.G[:, None], at_G, 0, 0, 0),
                Piece(for_all(plain.T, M), at_T, size.T, 0, 0),
                Piece(for_all(plain.W, M), at_T, size.T, n, k),
                Piece(program.G[:, None], at_cone_G, 0, 0, 0),
                Piece(for_all(program.T, M), at_cone_T, size.cone_T, 0, 0),
                Piece(for_all(program.W, M), at_cone_T, size.cone_T, n, k),
            ],
            row_place := _sorted_by_kind(cones, at_cone_G),
        )
        P = assemble(
            (width, width),
            [
                Piece(plain.P[:, None], 0, 0, 0, 0),
                Piece(weights[:, :, None, None] * plain.D, n, k, n, k),
            ],
        )
        B = plain.n_contexts
        right = [
            plain.e, for_all(plain.s, M), plain.h, for_all(plain.r, M),
            program.h, for_all(program.r, M),
        ]  # fmt: skip
        order = torch.from_numpy(np.argsort(row_place))
        whole = weights.detach()
        one = torch.ones_like(whole[:, :1])

        def counted(*parts: tuple[torch.Tensor, int]) -> torch.Tensor:
            return torch.cat([part.repeat_interleave(count, 1) for part, count in parts], 1)

        row_weight = counted(
            (one, size.E), (whole, size.F), (one, size.G), (whole, size.T),
            (one, size.cone_G), (whole, size.cone_T),
        )  # fmt: skip
        return cls(
            P=P,
            q=joined([plain.q, weights[:, :, None] * plain.d], B),
            A=A,
            b=joined(right, B)[:, order],
            n_equalities=at_G,
            n_inequalities=at_cone_G - at_G,
            second_order=cones.sizes_of(ConeKind.SECOND_ORDER),
            n_exponential=len(cones.sizes_of(ConeKind.EXPONENTIAL)),
            column_weight=counted((one, n), (whole, k)),
            row_weight=row_weight[:, order],
            sizes=size,
            row_place=row_place,
        )

    def detached(self) -> ConicForm:
        """The same numbers on the processor, without gradients."""
        return self._changed(lambda values: values.detach().cpu())

    def take(self, contexts: torch.Tensor) -> ConicForm:
        """The programs of some contexts."""
        return self._changed(lambda values: values if len(values) == 1 else values[contexts])

    def _changed(self, change: Callable[[torch.Tensor], torch.Tensor]) -> ConicForm:
        return replace(
            self,
            P=replace(self.P, values=change(self.P.values)),
            A=replace(self.A, values=change(self.A.values)),
            q=change(self.q),
            b=change(self.b),
            column_weight=change(self.column_weight),
            row_weight=change(self.row_weight),
        )

    def split_point(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """z and u of x: ``(B, n_z)``, ``(B, M, n_u)``."""
        n = self.sizes.z
        return x[:, :n], x[:, n:].reshape(len(x), self.sizes.scenarios, self.sizes.u)

    def split_multipliers(self, y: torch.Tensor) -> tuple[Duals, ConeDuals]:
        """The multipliers by the program's blocks."""
        whole = y[:, torch.from_numpy(self.row_place)].split(self.sizes.row_counts, dim=1)
        E, F, G, T, cone_G, cone_T = whole

        def by_scenario(part: torch.Tensor, rows: int) -> torch.Tensor:
            return part.reshape(len(y), self.sizes.scenarios, rows)

        duals = Duals(G, E, by_scenario(T, self.sizes.T), by_scenario(F, self.sizes.F))
        return duals, ConeDuals(cone_G, by_scenario(cone_T, self.sizes.cone_T))


def _sorted_by_kind(cones: Cones, first: int) -> Array:
    """Where each row goes when second-order cones come before exponential ones."""
    order = np.concatenate([cones.rows_of(kind) for kind in ConeKind])
    return np.concatenate([np.arange(first), first + np.argsort(order)])
