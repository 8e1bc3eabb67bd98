"""The extensive form of a conic program: all contexts in one sparsity pattern, differentiable.

    min ½ x'P x + q'x   s.t.  s = b − A x,   with x = (z, u_1, …, u_M)

The slacks s of the first rows are 0, those of the next nonnegative, then come second-order and
exponential cones. The multipliers y are in the dual cones, and P x + q + A'y = 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch

from forewise.problems.cones import ConeKind, Cones
from forewise.problems.programs import ConicProgram
from forewise.solvers.conic.sparse_batch import Piece, SparseBatch, assemble, for_all, joined
from forewise.solvers.solution import ConeDuals, Duals

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class ConicForm:
    """A batch of cone programs in the form of the module's docstring, n variables and m rows.

    Weights are 1 in the first stage and a scenario's weight elsewhere: how much a cost, and so a
    multiplier, counts.
    """

    P: SparseBatch
    q: torch.Tensor  # (n_contexts, n)
    A: SparseBatch
    b: torch.Tensor  # (n_contexts, m)
    n_equalities: int
    n_inequalities: int
    second_order: tuple[int, ...]  # sizes of the second-order cones
    n_exponential: int
    column_weight: torch.Tensor  # (n_contexts, n)
    row_weight: torch.Tensor  # (n_contexts, m)
    n_decisions: int
    n_scenarios: int
    row_counts: tuple[int, ...]  # of E, F, G, T and the cones' G, T, of all scenarios together
    row_place: Array  # (m,) where these rows went when cones were sorted by kind

    @classmethod
    def from_program(cls, program: ConicProgram) -> ConicForm:
        """The form of a batch whose scenarios all have positive weight."""
        plain, weights = program.plain, program.plain.weights
        (B, M), n, k = weights.shape, plain.n_decisions, plain.n_recourse
        first_stage = ((plain.E, plain.e), (plain.G, plain.h), (program.G, program.h))
        scenario = (
            (plain.F, plain.V, plain.s),
            (plain.T, plain.W, plain.r),
            (program.T, program.W, program.r),
        )
        one, each = torch.ones_like(weights[:, :1]), weights.detach()
        pieces, right, counts, row_weight = [], [], [0], []
        for (G, h), (T, W, r) in zip(first_stage, scenario, strict=True):
            rows, at_G, at_T = r.shape[-1], sum(counts), sum(counts) + h.shape[-1]
            pieces += [
                Piece(G[:, None], at_G, 0, 0, 0),
                Piece(for_all(T, M), at_T, rows, 0, 0),
                Piece(for_all(W, M), at_T, rows, n, k),
            ]
            right += [h, for_all(r, M)]
            counts += [h.shape[-1], M * rows]
            row_weight += [one.repeat_interleave(h.shape[-1], 1), each.repeat_interleave(rows, 1)]
        _, *row_counts = counts
        n_equalities, n_inequalities = sum(row_counts[:2]), sum(row_counts[2:4])
        cones = program.cones + program.scenario_cones * M
        row_place = _sorted_by_kind(cones, n_equalities + n_inequalities)
        order = torch.from_numpy(np.argsort(row_place))
        curvature = [
            Piece(plain.P[:, None], 0, 0, 0, 0),
            Piece(weights[:, :, None, None] * plain.D, n, k, n, k),
        ]
        width = n + M * k
        return cls(
            P=assemble((width, width), curvature),
            q=joined([plain.q, weights[:, :, None] * plain.d], B),
            A=assemble((sum(row_counts), width), pieces, row_place),
            b=joined(right, B)[:, order],
            n_equalities=n_equalities,
            n_inequalities=n_inequalities,
            second_order=cones.sizes_of(ConeKind.SECOND_ORDER),
            n_exponential=len(cones.sizes_of(ConeKind.EXPONENTIAL)),
            column_weight=torch.cat(
                [one.repeat_interleave(n, 1), each.repeat_interleave(k, 1)], dim=1
            ),
            row_weight=torch.cat(row_weight, dim=1)[:, order],
            n_decisions=n,
            n_scenarios=M,
            row_counts=tuple(row_counts),
            row_place=row_place,
        )

    @property
    def first_stage_rows(self) -> torch.Tensor:
        """Indices of the linear rows that touch no recourse."""
        E, F, G, *_ = self.row_counts
        return torch.cat([torch.arange(E), torch.arange(E + F, E + F + G)])

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
        return x[:, : self.n_decisions], self._by_scenario(x[:, self.n_decisions :])

    def split_multipliers(self, y: torch.Tensor) -> tuple[Duals, ConeDuals]:
        """The multipliers by the program's blocks."""
        parts = y[:, torch.from_numpy(self.row_place)].split(self.row_counts, dim=1)
        E, F, G, T, cone_G, cone_T = parts
        duals = Duals(G, E, self._by_scenario(T), self._by_scenario(F))
        return duals, ConeDuals(cone_G, self._by_scenario(cone_T))

    def _by_scenario(self, part: torch.Tensor) -> torch.Tensor:
        M = self.n_scenarios
        return part.reshape(len(part), M, part.shape[1] // M)


def _sorted_by_kind(cones: Cones, first: int) -> Array:
    """Where each row goes when second-order cones come before exponential ones."""
    order = np.concatenate([cones.rows_of(kind) for kind in ConeKind])
    return np.concatenate([np.arange(first), first + np.argsort(order)])
