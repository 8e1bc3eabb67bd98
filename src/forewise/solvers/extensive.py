"""The extensive form: one context's program as one sparse quadratic program.

What trusted one-at-a-time solvers are given. Scenarios of weight zero are left out.
May import: problems.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch

from forewise.problems.program import RECOURSE, ScenarioProgram

Array = np.ndarray


@dataclass(frozen=True)
class ExtensiveForm:
    """min ½ x'P x + q'x + c  s.t.  A x ≤ b,  E x = e,  with x = (z, u of the kept scenarios)."""

    P: sp.csc_matrix
    q: Array
    c: float
    A: sp.csc_matrix
    b: Array
    E: sp.csc_matrix
    e: Array
    kept: Array  # indices of the scenarios of positive weight


def extensive_form(program: ScenarioProgram, context: int) -> ExtensiveForm:
    """The extensive form of one context of a batch."""

    def block(name: str) -> Array:
        tensor: torch.Tensor = getattr(program, name)
        value = tensor[context if tensor.shape[0] > 1 else 0].detach().cpu().numpy()
        if name in RECOURSE:
            value = np.broadcast_to(value, (program.n_scenarios, *value.shape[1:]))
        return value

    weights = block("weights")
    kept = np.flatnonzero(weights > 0)
    weights = weights[kept]
    D, d, T, W, r, F, V, s = (block(name)[kept] for name in "DdTWrFVs")
    n = program.n_decisions
    rows = W.shape[1]
    T = np.concatenate([T, np.zeros((len(kept), rows - T.shape[1], n))], axis=1)
    P = sp.block_diag([block("P"), _diagonal_blocks(weights[:, None, None] * D)], format="csc")
    # It stores the zeros of its dense blocks, and a linear program would pass for a quadratic one.
    P.eliminate_zeros()
    return ExtensiveForm(
        P=P,
        q=np.concatenate([block("q"), (weights[:, None] * d).ravel()]),
        c=float(block("c")),
        A=_stack(block("G"), T, W),
        b=np.concatenate([block("h"), r.ravel()]),
        E=_stack(block("E"), F, V),
        e=np.concatenate([block("e"), s.ravel()]),
        kept=kept,
    )


def _stack(first: Array, coupling: Array, recourse: Array) -> sp.csc_matrix:
    """[first 0; coupling diag(recourse)] with the zeros left out."""
    width = recourse.shape[0] * recourse.shape[2]
    top = sp.hstack([sp.csr_matrix(first), sp.csr_matrix((first.shape[0], width))])
    flat = coupling.reshape(-1, coupling.shape[2])
    bottom = sp.hstack([sp.csr_matrix(flat), _diagonal_blocks(recourse)])
    return sp.vstack([top, bottom], format="csc")


def _diagonal_blocks(blocks: Array) -> sp.csr_matrix:
    """Block-diagonal matrix of ``(count, rows, columns)``; zeros are not stored."""
    count, rows, columns = blocks.shape
    which, row, column = np.nonzero(blocks)
    shape = (count * rows, count * columns)
    entries = blocks[which, row, column]
    return sp.csr_matrix((entries, (which * rows + row, which * columns + column)), shape=shape)
