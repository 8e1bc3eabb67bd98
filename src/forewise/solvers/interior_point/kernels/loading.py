"""Putting one context of a program into the workspace, scaled to the size of one.

Lengths are divided by a power of two near the largest distance from the origin to a row's
boundary (but no more than 16 times the geometric mean: a bound that is far away on purpose says
little), or near where the quadratic cost outweighs the linear one if all rows pass through the
origin; costs by one near the largest cost coefficient. Distances below 1e-9 of the largest do not
count: a right-hand side that should be 0 may be rounding noise. Powers of two, so that scaling
rounds nothing and does not change under small changes of the data.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from forewise.solvers.interior_point.kernels import workspace as at
from forewise.solvers.interior_point.kernels.arrays import ProgramArrays
from forewise.solvers.interior_point.kernels.arrow import LINKING_FLOOR, SIMPLE_FLOOR
from forewise.solvers.interior_point.kernels.compiling import allocating, compiled, view
from forewise.solvers.interior_point.kernels.vectors import copy, fill, largest
from forewise.solvers.interior_point.kernels.workspace import (
    Sizes,
    Work,
    coupling_block,
    cube,
    is_linking,
    link_columns,
    link_entries,
    link_starts,
    linking_variables,
    matrix,
    own_variables,
    scenario_rows,
    vector,
)

Array = np.ndarray

#: What all scenarios together count for in the barrier, against 1 for a first-stage row.
BARRIER_SHARE = 16.0
_SMALLEST_WEIGHT = 1e-8  # of a scenario, in the barrier
#: Share of the largest distance below which a right-hand side may be rounding noise.
NOISE = 1e-9
_FAR = 16.0  # times the typical distance: rows beyond say nothing about the program's size


class Units(NamedTuple):
    """What one unit of the scaled program is in the user's."""

    length: float
    cost: float


@view
def part_of(block: Array, index: int) -> Array:
    """A context's (or scenario's) part of a possibly shared block."""
    return block[index if block.shape[0] > 1 else 0]


@compiled
def power_of_two(size: float) -> float:
    """The power of two nearest to a size; 1 for 0."""
    return float(2.0 ** np.round(np.log2(size))) if size > 0.0 else 1.0


@compiled
def put_block(block: Array, kept: Array, out: Array) -> None:
    """Copy ``(M | 1, rows, columns)`` to ``(rows, columns, kept | 1)``, scenarios last."""
    shared = block.shape[0] == 1
    for i in range(out.shape[0]):
        for c in range(out.shape[1]):
            for m in range(out.shape[2]):
                out[i, c, m] = block[0 if shared else kept[m], i, c]


@compiled
def put_vectors(block: Array, kept: Array, out: Array) -> None:
    """Copy ``(M | 1, rows)`` to ``(rows, kept)``, scenarios last."""
    shared = block.shape[0] == 1
    for i in range(out.shape[0]):
        for m in range(out.shape[1]):
            out[i, m] = block[0 if shared else kept[m], i]


@compiled
def put_entries(block: Array, kept: Array, i: int, c: int, out: Array) -> None:
    """Copy one entry of ``(M | 1, rows, columns)`` to ``(kept,)``."""
    shared = block.shape[0] == 1
    for m in range(out.shape[0]):
        out[m] = block[0 if shared else kept[m], i, c]


@compiled
def raise_to_rows(norms: Array, block: Array) -> None:
    """norms := max(norms, largest entry of each row), ``(rows, M)`` and ``(rows, n, M | 1)``."""
    for i in range(block.shape[0]):
        for c in range(block.shape[1]):
            if block.shape[2] == 1:
                entry = abs(block[i, c, 0])
                for m in range(norms.shape[1]):
                    norms[i, m] = max(norms[i, m], entry)
            else:
                raise_to(norms[i], block[i, c])


@compiled
def raise_to(norms: Array, entries: Array) -> None:
    """norms := max(norms, |entries|), ``(M,)``."""
    for m in range(norms.shape[0]):
        norms[m] = max(norms[m], abs(entries[m]))


@compiled
def put_row_norms(norms: Array, block: Array) -> None:
    """norms := largest entry of each row, ``(rows,)`` and ``(rows, n)``."""
    for i in range(block.shape[0]):
        top = 0.0
        for c in range(block.shape[1]):
            top = max(top, abs(block[i, c]))
        norms[i] = top


@compiled
def farthest(known: float, bound: Array, norms: Array) -> float:
    """The largest of `known` and the distances |b| / norm; sets the norm of zero rows to one."""
    for a in range(bound.shape[0]):
        if norms[a] == 0.0:
            norms[a] = 1.0
        known = max(known, abs(bound[a]) / norms[a])
    return known


@compiled
def add_logs(
    known: tuple[float, int], bound: Array, norms: Array, least: float
) -> tuple[float, int]:
    """Add the logarithms of the distances above `least`, and their number."""
    logs, number = known
    for a in range(bound.shape[0]):
        distance = abs(bound[a]) / norms[a]
        if distance > least:
            logs += np.log(distance)
            number += 1
    return logs, number


@allocating
def load(p: ProgramArrays, w: Work, b: int) -> tuple[Sizes, Units]:
    """Put one context's scaled program into the workspace."""
    kept = np.flatnonzero(p.weights[b] > 0.0)
    g, r, M = p.h.shape[1], p.r.shape[2], kept.shape[0]
    links = w.layout[at.STARTS] - w.layout[at.LINKING]  # parts of the structure have no gaps
    s = Sizes(
        n=p.q.shape[1], k=p.d.shape[2], links=links, M=M, g=g, e=p.e.shape[1], t=p.T.shape[2], r=r,
        s=p.s.shape[2], rows=g + r * M,
    )  # fmt: skip
    weight = vector(w, at.WEIGHT, M)
    for m in range(M):
        weight[m] = p.weights[b, kept[m]]
    length = load_rows(p, w, s, b, kept)
    cost = load_costs(p, w, s, b, kept, length)
    load_barrier(w, s)
    vector(w, at.FLOOR, 1)[0] = LINKING_FLOOR if is_linking(s) else SIMPLE_FLOOR
    return s, Units(length, cost)


@compiled
def load_rows(p: ProgramArrays, w: Work, s: Sizes, b: int, kept: Array) -> float:
    """Load the constraints; returns the unit of length, already applied."""
    copy(matrix(w, at.G, s.g, s.n), part_of(p.G, b), 1.0)
    copy(matrix(w, at.E, s.e, s.n), part_of(p.E, b), 1.0)
    copy(vector(w, at.BOUND, s.g), part_of(p.h, b), 1.0)
    copy(vector(w, at.EQUAL, s.e), part_of(p.e, b), 1.0)
    put_vectors(part_of(p.r, b), kept, scenario_rows(w, s, at.BOUND, s.r))
    put_vectors(part_of(p.s, b), kept, matrix(w, at.EQUALS, s.s, s.M))
    T = coupling_block(w, s)
    put_block(part_of(p.T, b), kept, T)
    put_block(part_of(p.F, b), kept, cube(w, at.F, s.s, s.n, s.M))
    put_linking_columns(w, s, part_of(p.V, b), kept, cube(w, at.V, s.s, s.links, s.M))

    norms = vector(w, at.NORMS, s.rows)
    put_row_norms(norms, matrix(w, at.G, s.g, s.n))
    scenario = scenario_rows(w, s, at.NORMS, s.r)
    fill(scenario, 0.0)
    raise_to_rows(scenario, T)
    load_recourse_rows(w, s, part_of(p.W, b), kept)

    equal, equals = vector(w, at.EQUAL_NORMS, s.e), matrix(w, at.EQUALS_NORMS, s.s, s.M)
    put_row_norms(equal, matrix(w, at.E, s.e, s.n))
    fill(equals, 0.0)
    raise_to_rows(equals, cube(w, at.F, s.s, s.n, s.M))
    raise_to_rows(equals, cube(w, at.V, s.s, s.links, s.M))
    far = 0.0
    for bounds, of_rows, size in (
        (at.BOUND, at.NORMS, s.rows),
        (at.EQUAL, at.EQUAL_NORMS, s.e),
        (at.EQUALS, at.EQUALS_NORMS, s.s * s.M),
    ):
        far = farthest(far, vector(w, bounds, size), vector(w, of_rows, size))
    logs = (0.0, 0)
    for bounds, of_rows, size in (
        (at.BOUND, at.NORMS, s.rows),
        (at.EQUAL, at.EQUAL_NORMS, s.e),
        (at.EQUALS, at.EQUALS_NORMS, s.s * s.M),
    ):
        logs = add_logs(logs, vector(w, bounds, size), vector(w, of_rows, size), NOISE * far)
    if far > 0.0:
        length = power_of_two(min(far, _FAR * np.exp(logs[0] / logs[1])))
    else:
        length = power_of_two(bend(p, b))
    vector(w, at.REACH, 1)[0] = max(far / length, 1.0)
    for slot, size in ((at.BOUND, s.rows), (at.EQUAL, s.e), (at.EQUALS, s.s * s.M)):
        copy(vector(w, slot, size), vector(w, slot, size), 1.0 / length)
    return length


@compiled
def load_recourse_rows(w: Work, s: Sizes, W: Array, kept: Array) -> None:
    """Load W, simple and linking entries apart, and raise the rows' norms to it."""
    own, coefficient = own_variables(w, s), matrix(w, at.W, s.r, s.M)
    starts, columns, entries = link_starts(w, s), link_columns(w, s), link_entries(w, s)
    linking, norms = linking_variables(w, s), scenario_rows(w, s, at.NORMS, s.r)
    for a in range(s.r):
        if own[a] >= 0:
            put_entries(W, kept, a, own[a], coefficient[a])
            raise_to(norms[a], coefficient[a])
        for i in range(starts[a], starts[a + 1]):
            put_entries(W, kept, a, linking[columns[i]], entries[i])
            raise_to(norms[a], entries[i])


@compiled
def put_linking_columns(w: Work, s: Sizes, block: Array, kept: Array, out: Array) -> None:
    """Copy the linking variables' columns of ``(M | 1, rows, k)`` to ``(rows, links, kept)``."""
    linking = linking_variables(w, s)
    for i in range(out.shape[0]):
        for c in range(out.shape[1]):
            put_entries(block, kept, i, linking[c], out[i, c])


@compiled
def bend(p: ProgramArrays, b: int) -> float:
    """The distance at which the quadratic cost outweighs the linear one; 0 where it never does."""
    curvature = max(largest(part_of(p.P, b)), largest(part_of(p.D, b)))
    linear = max(largest(part_of(p.q, b)), largest(part_of(p.d, b)))
    return linear / curvature if curvature > 0.0 else 0.0


@compiled
def load_costs(p: ProgramArrays, w: Work, s: Sizes, b: int, kept: Array, length: float) -> float:
    """Load the costs; returns the unit of cost, already applied."""
    q, P = part_of(p.q, b), part_of(p.P, b)
    linear, D = matrix(w, at.COST, s.k, s.M), part_of(p.D, b)
    put_vectors(part_of(p.d, b), kept, linear)
    curvature = max(largest(P), largest(D))
    cost = power_of_two(max(max(largest(q), largest(linear)), curvature * length))
    copy(vector(w, at.Q, s.n), q, 1.0 / cost)
    copy(matrix(w, at.P, s.n, s.n), P, length / cost)
    weight = vector(w, at.WEIGHT, s.M)
    for v in range(s.k):
        for m in range(s.M):
            linear[v, m] *= weight[m] / cost
    linking, diagonal = linking_variables(w, s), matrix(w, at.D, s.k, s.M)
    for v in range(s.k):
        put_entries(D, kept, v, v, diagonal[v])
        for m in range(s.M):
            diagonal[v, m] *= weight[m] * length / cost
    dense = cube(w, at.LINK_D, s.links, s.links, s.M)
    for a in range(s.links):
        fill(diagonal[linking[a]], 0.0)  # it stands in the block of them all
        for c in range(s.links):
            put_entries(D, kept, linking[a], linking[c], dense[a, c])
            for m in range(s.M):
                dense[a, c, m] *= weight[m] * length / cost
    return cost


@compiled
def load_barrier(w: Work, s: Sizes) -> None:
    """Weights of the rows in the barrier, and the units that follow from them and the norms."""
    barrier, weight = vector(w, at.BARRIER, s.rows), vector(w, at.WEIGHT, s.M)
    for a in range(s.g):
        barrier[a] = 1.0
    scenario = scenario_rows(w, s, at.BARRIER, s.r)
    for a in range(s.r):
        for m in range(s.M):
            scenario[a, m] = BARRIER_SHARE * max(weight[m], _SMALLEST_WEIGHT)
    norms, inverse = vector(w, at.NORMS, s.rows), vector(w, at.INVERSE_NORMS, s.rows)
    unit = vector(w, at.UNIT, s.rows)
    for a in range(s.rows):
        inverse[a] = 1.0 / norms[a]
        unit[a] = norms[a] * norms[a] / barrier[a]
