"""The extensive form: one context's program as one sparse quadratic program.

What one-at-a-time solvers are given. Scenarios of weight zero are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
import torch

from forewise.problems.programs import RECOURSE, ScenarioProgram
from forewise.solvers.interior_point.core import NOISE, Points

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


class ExtensivePoint(NamedTuple):
    """A point of an extensive form."""

    x: Array
    multipliers: Array  # of A x ≤ b
    nu: Array  # of E x = e


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
    T = np.pad(T, ((0, 0), (0, W.shape[1] - T.shape[1]), (0, 0)))
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


class Units(NamedTuple):
    """What one unit of a scaled form is in the user's."""

    length: float
    cost: float
    inequality: Array  # of each row of A
    equality: Array

    def back(self, point: ExtensivePoint) -> ExtensivePoint:
        """A point of the scaled form, in the user's units."""
        return ExtensivePoint(
            point.x * self.length,
            point.multipliers * self.cost / self.inequality,
            point.nu * self.cost / self.equality,
        )


def scaled_form(form: ExtensiveForm) -> tuple[ExtensiveForm, Units]:
    """The form with rows, lengths and costs of size one, as absolute tolerances ask for.

    All units are powers of two: scaling rounds nothing.
    """
    A, b, of_A = _unit_rows(form.A, form.b)
    E, e, of_E = _unit_rows(form.E, form.e)
    length = _typical(np.abs(np.concatenate([b, e])))
    curvature, linear = np.abs(form.P.data).max(initial=0.0), np.abs(form.q).max(initial=0.0)
    bend = linear / curvature if curvature > 0 else 0.0
    length = _power_of_two(length or bend)
    cost = _power_of_two(max(linear, curvature * length))
    scaled = ExtensiveForm(
        form.P * (length / cost), form.q / cost, 0.0, A, b / length, E, e / length, form.kept
    )
    return scaled, Units(length, cost, of_A, of_E)


def _typical(distances: Array) -> float:
    """The largest distance to a row, but no more than 16 times the usual one; 0 for none."""
    top = float(distances.max(initial=0.0))
    some = distances[distances > NOISE * top]
    return min(top, 16.0 * float(np.exp(np.log(some).mean()))) if len(some) else 0.0


def _unit_rows(rows: sp.csc_matrix, bounds: Array) -> tuple[sp.csc_matrix, Array, Array]:
    if not len(bounds):
        return rows, bounds, bounds
    norms = abs(rows).max(axis=1).toarray().ravel()
    units = np.exp2(np.round(np.log2(np.where(norms > 0, norms, 1.0))))
    return (sp.diags(1.0 / units) @ rows).tocsc(), bounds / units, units


def _power_of_two(size: float) -> float:
    """The power of two nearest to a size; 1 for 0."""
    return float(np.exp2(np.round(np.log2(size)))) if size > 0 else 1.0


def load_point(form: ExtensiveForm, points: Points, context: int = 0) -> ExtensivePoint:
    """One context's point of a program, as one of its extensive form."""
    return ExtensivePoint(
        *(
            np.concatenate([first[context], scenario[context, form.kept].ravel()])
            for first, scenario in zip(points[::2], points[1::2], strict=True)
        )
    )


def unload_point(form: ExtensiveForm, point: ExtensivePoint, points: Points, context: int) -> None:
    """Write a point of the extensive form to a context's place among the points of a program."""
    for values, first, scenario in zip(point, points[::2], points[1::2], strict=True):
        first[context] = values[: first.shape[1]]
        scenario[context, form.kept] = values[first.shape[1] :].reshape(len(form.kept), -1)


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
