"""Moreau: all contexts in one batch, with gradients through torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch

from forewise.solvers.conic.form import ConicForm
from forewise.solvers.conic.sparse_batch import SparseBatch
from forewise_lab.bench.instances import Instance
from forewise_lab.bench.peers.base import (
    Answer,
    Gradient,
    Peer,
    Prepared,
    gradient,
    lift,
    split_solution,
)

if TYPE_CHECKING:
    import moreau.torch


@dataclass(frozen=True)
class MoreauBatch(Peer):
    """Moreau's interior point on the lifted program in one sparsity pattern.

    Rows −x_i ≤ 0 are given as direct cones, which made Moreau up to 1.6 times faster here. It takes
    as many threads as it may use cores, so it has one only while the run has one core.
    """

    name: str = "Moreau"
    packages: ClassVar[tuple[str, ...]] = ("moreau.torch",)

    def prepare(self, instance: Instance) -> Prepared:
        leaves = instance.leaves()
        program = instance.program_of(leaves)
        lifted, positive = without_sign_rows(lift(program))
        pattern = [part for M in (lifted.P, lifted.A) for part in (M.row_offsets, M.columns)]
        solver = moreau_solver(
            lifted.A.shape, pattern, lifted.n_equalities, positive, instance.n_contexts, True
        )
        # P and A without a batch where contexts share both.
        shared = len(lifted.P.values) == len(lifted.A.values) == 1
        matrices = [
            M.values[0] if shared else M.values.expand(instance.n_contexts, -1).contiguous()
            for M in (lifted.P, lifted.A)
        ]
        values = (*matrices, lifted.q, lifted.b)
        constants = tuple(value.detach() for value in values)
        direction = instance.direction()

        def forward() -> Answer:
            with torch.no_grad():
                x = solver.solve(*constants).x
            n_unsolved = sum(status.name != "Solved" for status in solver.info.status)
            return split_solution(x.numpy(), program, n_unsolved)

        def forward_backward() -> Gradient:
            x = solver.solve(*values).x
            return gradient((x[:, : program.n_decisions] * direction).sum(), leaves)

        return Prepared(forward, forward_backward)


def without_sign_rows(lifted: ConicForm) -> tuple[ConicForm, list[int]]:
    """The program without its rows −x_i ≤ 0, and the variables i that they kept nonnegative."""
    A = lifted.A
    counts = np.bincount(A.rows, minlength=A.shape[0])
    is_sign = np.zeros(A.shape[0], dtype=bool)
    negative = (A.values < 0).all(dim=0).numpy()
    is_sign[A.rows[(counts[A.rows] == 1) & negative]] = True
    is_sign &= (lifted.b == 0).all(dim=0).numpy()
    is_sign[: lifted.n_equalities] = False
    entry_stays = ~is_sign[A.rows]
    row_number = np.cumsum(~is_sign) - 1
    rest = SparseBatch(
        shape=(int((~is_sign).sum()), A.shape[1]),
        rows=row_number[A.rows[entry_stays]],
        columns=A.columns[entry_stays],
        values=A.values[:, entry_stays],
    )
    positive = sorted({int(column) for column in A.columns[~entry_stays]})
    return replace(lifted, A=rest, b=lifted.b[:, ~is_sign]), positive


def moreau_solver(
    shape: tuple[int, int],
    pattern: Sequence[np.ndarray],
    n_equalities: int,
    positive: list[int],
    n_contexts: int,
    differentiable: bool,
) -> moreau.torch.Solver:
    """A solver for A of some shape: first equalities, then inequalities, and some x_i ≥ 0.

    `pattern` has the row offsets and columns of P, then of A.
    """
    import moreau.torch

    n_rows, n_variables = shape
    cones = moreau.Cones(
        num_zero_cones=n_equalities,
        num_nonneg_cones=n_rows - n_equalities,
        dir_cones=[moreau.DirectConeSpec(kind="nonneg", indices=positive)] if positive else [],
    )
    # Left to choose, Moreau takes an active-set method for some sizes, which needed seconds and
    # did not converge here.
    settings = moreau.Settings(
        solver="ipm", device="cpu", batch_size=n_contexts, enable_grad=differentiable
    )
    places = [torch.as_tensor(np.asarray(part, np.int64)) for part in pattern]
    return moreau.torch.Solver(n_variables, n_rows, *places, cones, settings)
