"""The lifted program: every context's extensive form in one sparsity pattern, differentiable.

What batched peers are given:  min ½ x'P x + q'x  s.t.  A x = b (first rows), A x ≤ b (the rest),
with x = (z, u_1, …, u_M).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from forewise.problems.programs import ScenarioProgram
from forewise.solvers.conic.sparse_batch import Piece, SparseBatch, assemble, for_all, joined

__all__ = ["LiftedProgram", "SparseBatch", "lift"]


@dataclass(frozen=True, eq=False)
class LiftedProgram:
    """A batch of quadratic programs in the form of the module's docstring."""

    P: SparseBatch
    q: torch.Tensor
    A: SparseBatch
    b: torch.Tensor
    n_equalities: int


def lift(program: ScenarioProgram) -> LiftedProgram:
    """The lifted program of a batch whose scenarios all have positive weight."""
    M, n, k = program.n_scenarios, program.n_decisions, program.n_recourse
    weights = program.weights
    n_first, n_rest = program.E.shape[1], program.V.shape[2]
    rows = program.W.shape[2]
    n_equalities = n_first + M * n_rest
    below = n_equalities + program.G.shape[1]
    width = n + M * k
    A = assemble(
        (below + M * rows, width),
        [
            Piece(program.E[:, None], 0, 0, 0, 0),
            Piece(for_all(program.F, M), n_first, n_rest, 0, 0),
            Piece(for_all(program.V, M), n_first, n_rest, n, k),
            Piece(program.G[:, None], n_equalities, 0, 0, 0),
            Piece(for_all(program.T, M), below, rows, 0, 0),
            Piece(for_all(program.W, M), below, rows, n, k),
        ],
    )
    weighted = weights[:1] if (weights == weights[:1]).all() else weights
    P = assemble(
        (width, width),
        [
            Piece(program.P[:, None], 0, 0, 0, 0),
            Piece(weighted[:, :, None, None] * program.D, n, k, n, k),
        ],
    )
    right = [program.e, for_all(program.s, M), program.h, for_all(program.r, M)]
    return LiftedProgram(
        P=P,
        q=joined([program.q, weights[:, :, None] * program.d], program.n_contexts),
        A=A,
        b=joined(right, program.n_contexts),
        n_equalities=n_equalities,
    )
