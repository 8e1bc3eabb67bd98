"""The extensive form: one context's program as one sparse quadratic program.

What one-at-a-time solvers are given. Scenarios of weight zero are left out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
import torch

from forewise.problems.programs import RECOURSE, ScenarioProgram
from forewise.problems.sparse import SparseBlock
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
    n_first: int  # variables of the first stage


class ExtensivePoint(NamedTuple):
    """A point of an extensive form."""

    x: Array
    multipliers: Array  # of A x ≤ b
    nu: Array  # of E x = e


def extensive_form(program: ScenarioProgram, context: int) -> ExtensiveForm:
    """The extensive form of one context of a batch."""
    assert not program.bounds  # they are rows by now, or would be lost

    def vector(name: str) -> Array:
        tensor: torch.Tensor = getattr(program, name)
        value: Array = tensor[context if tensor.shape[0] > 1 else 0].detach().cpu().numpy()
        if name in RECOURSE:
            value = np.broadcast_to(value, (program.n_scenarios, *value.shape[1:]))[kept]
        return value

    def entries(name: str) -> _Entries:
        return _entries(program.block(name), context, kept if name in RECOURSE else None)

    weights = program.weights[context].detach().cpu().numpy()
    kept = np.flatnonzero(weights > 0)
    n, k, M = program.n_decisions, program.n_recourse, len(kept)
    h, r, e, s = (vector(name) for name in "hres")
    curvature = entries("D").times(weights[kept])
    return ExtensiveForm(
        P=_matrix((n + M * k,) * 2, (entries("P"), 0, 0, 0, 0), (curvature, n, k, n, k)),
        q=np.concatenate([vector("q"), (weights[kept, None] * vector("d")).ravel()]),
        c=float(vector("c")),
        A=_matrix(
            (len(h) + r.size, n + M * k),
            (entries("G"), 0, 0, 0, 0),
            (entries("T"), len(h), r.shape[1], 0, 0),
            (entries("W"), len(h), r.shape[1], n, k),
        ),
        b=np.concatenate([h, r.ravel()]),
        E=_matrix(
            (len(e) + s.size, n + M * k),
            (entries("E"), 0, 0, 0, 0),
            (entries("F"), len(e), s.shape[1], 0, 0),
            (entries("V"), len(e), s.shape[1], n, k),
        ),
        e=np.concatenate([e, s.ravel()]),
        kept=kept,
        n_first=n,
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
    P, q = form.P * (length / cost), form.q / cost
    scaled = replace(form, P=P, q=q, c=0.0, A=A, b=b / length, E=E, e=e / length)
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


class _Entries(NamedTuple):
    """What is not zero in a block of one context, scenario by scenario."""

    scenario: Array
    row: Array
    column: Array
    value: Array

    def times(self, weights: Array) -> _Entries:
        """Those of each scenario times its weight."""
        return self._replace(value=weights[self.scenario] * self.value)


def _entries(block: torch.Tensor | SparseBlock, context: int, kept: Array | None) -> _Entries:
    """A block's entries; `kept` are the scenarios of one that belongs to them."""
    numbers = block.entries if isinstance(block, SparseBlock) else block
    values = numbers[context if len(numbers) > 1 else 0].detach().cpu().numpy()
    if kept is None:
        values = values[None]
    elif len(values) > 1:
        values = values[kept]
    copies = 1 if kept is None or len(values) > 1 else len(kept)
    if isinstance(block, SparseBlock):
        scenario, place = np.nonzero(values)
        found = values[scenario, place]
        row, column = block.rows.numpy()[place], block.columns.numpy()[place]
    else:
        scenario, row, column = np.nonzero(values)
        found = values[scenario, row, column]
    if copies != 1:
        scenario = np.repeat(np.arange(copies), len(found))
        row, column, found = (np.tile(part, copies) for part in (row, column, found))
    return _Entries(scenario, row, column, found)


def _matrix(shape: tuple[int, int], *parts: tuple[_Entries, int, int, int, int]) -> sp.csc_matrix:
    """A matrix of blocks, each where it begins and how far it moves from scenario to scenario."""
    rows = [row + of.row + down * of.scenario for of, row, down, _, _ in parts]
    columns = [column + of.column + right * of.scenario for of, _, _, column, right in parts]
    values = [of.value for of, *_ in parts]
    places = (np.concatenate(rows), np.concatenate(columns))
    return sp.csc_matrix((np.concatenate(values), places), shape=shape)
