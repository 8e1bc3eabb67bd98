"""Products of one context's matrices with points: A x, A'λ, H x, E x, E'ν.

`arrow` has the legend of the system that they belong to.
"""

from __future__ import annotations

import numpy as np

from forewise.solvers.interior_point.kernels import workspace as at
from forewise.solvers.interior_point.kernels.algebra import (
    add_times,
    add_times_within,
    add_transposed_times,
    add_transposed_times_within,
)
from forewise.solvers.interior_point.kernels.compiling import compiled
from forewise.solvers.interior_point.kernels.scenario_algebra import (
    add_first_stage_columns,
    add_first_stage_times,
)
from forewise.solvers.interior_point.kernels.vectors import fill
from forewise.solvers.interior_point.kernels.workspace import (
    NU,
    NUS,
    Sizes,
    U,
    Work,
    Z,
    coupling_block,
    cube,
    link_columns,
    link_entries,
    link_starts,
    linking_variables,
    matrix,
    own_variables,
    scenario_rows,
    spans,
    vector,
)

Array = np.ndarray


@compiled
def add_recourse_rows(w: Work, s: Sizes, u: Array, out: Array) -> None:
    """out := out + W_j u_j of every scenario, ``(r, M)``."""
    own, coefficient = own_variables(w, s), matrix(w, at.W, s.r, s.M)
    starts, columns, entries = link_starts(w, s), link_columns(w, s), link_entries(w, s)
    linking = linking_variables(w, s)
    for a in range(s.r):
        v = own[a]
        if v >= 0:
            for m in range(s.M):
                out[a, m] += coefficient[a, m] * u[v, m]
        for i in range(starts[a], starts[a + 1]):
            v = linking[columns[i]]
            for m in range(s.M):
                out[a, m] += entries[i, m] * u[v, m]


@compiled
def add_recourse_columns(w: Work, s: Sizes, rows: Array, out: Array) -> None:
    """out := out + W_j' rows_j of every scenario, ``(k, M)``."""
    own, coefficient = own_variables(w, s), matrix(w, at.W, s.r, s.M)
    starts, columns, entries = link_starts(w, s), link_columns(w, s), link_entries(w, s)
    linking = linking_variables(w, s)
    for a in range(s.r):
        v = own[a]
        if v >= 0:
            for m in range(s.M):
                out[v, m] += coefficient[a, m] * rows[a, m]
        for i in range(starts[a], starts[a + 1]):
            v = linking[columns[i]]
            for m in range(s.M):
                out[v, m] += entries[i, m] * rows[a, m]


@compiled
def inequality_rows(w: Work, s: Sizes, x: int, out: int) -> None:
    """out := A x."""
    z = vector(w, x + Z, s.n)
    fill(vector(w, out, s.rows), 0.0)
    add_times_within(vector(w, out, s.g), matrix(w, at.G, s.g, s.n), spans(w, at.SPAN_G, s.g), z)
    add_first_stage_times(scenario_rows(w, s, out, s.t), coupling_block(w, s), z, 1.0)
    add_recourse_rows(w, s, matrix(w, x + U, s.k, s.M), scenario_rows(w, s, out, s.r))


@compiled
def add_inequality_columns(w: Work, s: Sizes, rows: int, out: int) -> None:
    """x-part of out := itself + A' rows."""
    out_z = vector(w, out + Z, s.n)
    G = matrix(w, at.G, s.g, s.n)
    add_transposed_times_within(out_z, G, spans(w, at.SPAN_G, s.g), vector(w, rows, s.g))
    add_first_stage_columns(out_z, coupling_block(w, s), scenario_rows(w, s, rows, s.t), 1.0)
    out_u = matrix(w, out + U, s.k, s.M)
    add_recourse_columns(w, s, scenario_rows(w, s, rows, s.r), out_u)


@compiled
def put_curvature(w: Work, s: Sizes, x: int, out: int) -> None:
    """x-part of out := H x."""
    out_z, out_u = vector(w, out + Z, s.n), matrix(w, out + U, s.k, s.M)
    fill(out_z, 0.0)
    add_times_within(
        out_z, matrix(w, at.P, s.n, s.n), spans(w, at.SPAN_P, s.n), vector(w, x + Z, s.n)
    )
    u, curvature = matrix(w, x + U, s.k, s.M), matrix(w, at.D, s.k, s.M)
    for v in range(s.k):
        for m in range(s.M):
            out_u[v, m] = curvature[v, m] * u[v, m]
    linking, D = linking_variables(w, s), cube(w, at.LINK_D, s.links, s.links, s.M)
    for a in range(s.links):
        for b in range(s.links):
            for m in range(s.M):
                out_u[linking[a], m] += D[a, b, m] * u[linking[b], m]


@compiled
def put_equality_rows(w: Work, s: Sizes, x: int, out: int) -> None:
    """Equality part of out := E x."""
    if s.e:
        nu = vector(w, out + NU, s.e)
        fill(nu, 0.0)
        add_times(nu, matrix(w, at.E, s.e, s.n), vector(w, x + Z, s.n), 1.0)
    if s.s:
        nus = matrix(w, out + NUS, s.s, s.M)
        fill(nus, 0.0)
        add_first_stage_times(nus, cube(w, at.F, s.s, s.n, s.M), vector(w, x + Z, s.n), 1.0)
        u, V = matrix(w, x + U, s.k, s.M), cube(w, at.V, s.s, s.links, s.M)
        linking = linking_variables(w, s)
        for a in range(s.s):
            for b in range(s.links):
                for m in range(s.M):
                    nus[a, m] += V[a, b, m] * u[linking[b], m]


@compiled
def add_equality_columns(w: Work, s: Sizes, nu: int, out: int) -> None:
    """x-part of out := itself + E' ν, with ν the equality part of a point."""
    out_z = vector(w, out + Z, s.n)
    if s.e:
        add_transposed_times(out_z, matrix(w, at.E, s.e, s.n), vector(w, nu + NU, s.e), 1.0)
    if s.s:
        nus = matrix(w, nu + NUS, s.s, s.M)
        add_first_stage_columns(out_z, cube(w, at.F, s.s, s.n, s.M), nus, 1.0)
        out_u = matrix(w, out + U, s.k, s.M)
        V, linking = cube(w, at.V, s.s, s.links, s.M), linking_variables(w, s)
        for a in range(s.s):
            for b in range(s.links):
                for m in range(s.M):
                    out_u[linking[b], m] += V[a, b, m] * nus[a, m]
