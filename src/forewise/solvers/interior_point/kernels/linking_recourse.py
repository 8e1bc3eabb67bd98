"""Eliminating every scenario's linking variables and equality multipliers.

What `simple_recourse` leaves of a scenario are its shared rows y = T z + W u, u the linking
variables, with the weights κ in the place of Θ:

    H u + V'ν = b − C z,      H = w D + W'κW,   C = W'κT
    V u       = s − F z

and the reduced system of z gets its Schur complement.
"""

from __future__ import annotations

import numpy as np

from forewise.solvers.interior_point.kernels import workspace as at
from forewise.solvers.interior_point.kernels.algebra import PROXIMAL
from forewise.solvers.interior_point.kernels.compiling import compiled
from forewise.solvers.interior_point.kernels.scenario_algebra import (
    add_first_stage_columns,
    add_first_stage_times,
    add_gram_each,
    add_lower_products,
    add_times_each,
    add_transposed_times_each,
    cholesky_each,
    solve_lower_columns_each,
    solve_lower_each,
    solve_upper_columns_each,
    solve_upper_each,
)
from forewise.solvers.interior_point.kernels.vectors import add, copy, fill
from forewise.solvers.interior_point.kernels.workspace import (
    NUS,
    Sizes,
    U,
    Work,
    Z,
    coupling_block,
    cube,
    is_linked,
    is_shared,
    leading_rows,
    link_columns,
    link_entries,
    link_starts,
    linking_variables,
    matrix,
    vector,
)

Array = np.ndarray


@compiled
def eliminate_linking(w: Work, s: Sizes, L: Array) -> None:
    """L := L + the scenarios' Schur complements.

    T'κT − C'H⁻¹C is a difference of large numbers. With Y = H⁻¹C it is also

        (T − W Y)'κ(T − W Y) + Y'(w D)Y,

    a sum of squares that Y minimises: rounding errors of Y enter it only squared.
    """
    fold_weights(w, s)
    H, X, Y = (
        cube(w, at.LINK_H, s.links, s.links, s.M),
        cube(w, at.X, s.links, s.n, s.M),
        cube(w, at.Y, s.links, s.n, s.M),
    )
    put_linking_block(w, s, H, X)
    cholesky_each(H, vector(w, at.SCRATCH, s.M))
    solve_lower_columns_each(H, X)
    copy(Y, X, 1.0)
    solve_upper_columns_each(H, Y)
    add_squares(w, s, Y, L)
    if s.s:
        eliminate_equalities(w, s, L)


@compiled
def fold_weights(w: Work, s: Sizes) -> None:
    """Add the weight of every shared row that repeats another one to that one's."""
    leads, kappa = leading_rows(w, s), matrix(w, at.KAPPA, s.r, s.M)
    for a in range(s.r):
        if leads[a] != a:
            add(kappa[leads[a]], kappa[a], 1.0)


@compiled
def put_linking_block(w: Work, s: Sizes, H: Array, X: Array) -> None:
    """H := w D + W'κW, its lower triangle, and X := W'κT."""
    starts, columns, entries = link_starts(w, s), link_columns(w, s), link_entries(w, s)
    leads, kappa = leading_rows(w, s), matrix(w, at.KAPPA, s.r, s.M)
    scaled, weight = vector(w, at.SCRATCH, s.M), vector(w, at.WEIGHT, s.M)
    T = coupling_block(w, s)
    copy(H, cube(w, at.LINK_D, s.links, s.links, s.M), 1.0)
    fill(X, 0.0)
    for i in range(s.r):
        if leads[i] != i:
            continue
        for a in range(starts[i], starts[i + 1]):
            for m in range(s.M):
                scaled[m] = kappa[i, m] * entries[a, m]
            for c in range(starts[i], a + 1):
                for m in range(s.M):
                    H[columns[a], columns[c], m] += scaled[m] * entries[c, m]
            if i < s.t:
                add_outer(X[columns[a]], scaled, T[i])
    for a in range(s.links):
        for m in range(s.M):
            H[a, a, m] += PROXIMAL * weight[m]


@compiled
def add_squares(w: Work, s: Sizes, Y: Array, L: Array) -> None:
    """L := L + (T − W Y)'κ(T − W Y) + Y'(w D)Y."""
    starts, columns, entries = link_starts(w, s), link_columns(w, s), link_entries(w, s)
    leads, kappa = leading_rows(w, s), matrix(w, at.KAPPA, s.r, s.M)
    row, ones = matrix(w, at.ROW, s.n, s.M), vector(w, at.SCRATCH, s.M)
    T, D = coupling_block(w, s), cube(w, at.LINK_D, s.links, s.links, s.M)
    fill(ones, 1.0)
    for i in range(s.r):
        if leads[i] != i or not is_shared(w, s, i):
            continue
        if not is_linked(w, s, i):
            add_gram_each(L, T[i : i + 1], kappa[i : i + 1])
            continue
        fill(row, 0.0)
        if i < s.t:
            add_outer(row, ones, T[i])
        for a in range(starts[i], starts[i + 1]):
            for c in range(s.n):
                for m in range(s.M):
                    row[c, m] -= entries[a, m] * Y[columns[a], c, m]
        add_lower_products(L, row, row, kappa[i])
    for a in range(s.links):
        fill(row, 0.0)
        bent = False
        for b in range(s.links):
            if any_entry(D[a, b]):
                bent = True
                for c in range(s.n):
                    for m in range(s.M):
                        row[c, m] += D[a, b, m] * Y[b, c, m]
        if bent:
            add_lower_products(L, row, Y[a])


@compiled
def any_entry(x: Array) -> bool:
    """Whether any scenario has an entry here: models of real things have few."""
    for m in range(x.shape[0]):  # noqa: SIM110 (the compiler has no generators)
        if x[m] != 0.0:
            return True
    return False


@compiled
def add_outer(out: Array, x: Array, T: Array) -> None:
    """out[c, m] := out[c, m] + x[m] T[c, m], with T ``(n, M)`` or shared ``(n, 1)``."""
    for c in range(out.shape[0]):
        if T.shape[1] == 1:
            if T[c, 0] != 0.0:
                for m in range(x.shape[0]):
                    out[c, m] += x[m] * T[c, 0]
        else:
            for m in range(x.shape[0]):
                out[c, m] += x[m] * T[c, m]


@compiled
def eliminate_equalities(w: Work, s: Sizes, L: Array) -> None:
    """Eliminate the scenarios' equality multipliers, through N = V H⁻¹ V'."""
    scratch = vector(w, at.SCRATCH, s.M)
    H, X = cube(w, at.LINK_H, s.links, s.links, s.M), cube(w, at.X, s.links, s.n, s.M)
    bridge, V = cube(w, at.BRIDGE, s.links, s.s, s.M), cube(w, at.V, s.s, s.links, s.M)
    N, pull = cube(w, at.N, s.s, s.s, s.M), cube(w, at.PULL, s.s, s.n, s.M)
    for v in range(s.links):
        for a in range(s.s):
            copy(bridge[v, a], V[a, v], 1.0)
    solve_lower_columns_each(H, bridge)
    fill(N, 0.0)
    copy(pull, cube(w, at.F, s.s, s.n, s.M), 1.0)
    for v in range(s.links):
        for a in range(s.s):
            for c in range(a + 1):
                for m in range(s.M):
                    N[a, c, m] += bridge[v, a, m] * bridge[v, c, m]
            for c in range(s.n):
                for m in range(s.M):
                    pull[a, c, m] -= bridge[v, a, m] * X[v, c, m]
    cholesky_each(N, scratch)
    solve_lower_columns_each(N, pull)
    for a in range(s.s):
        add_lower_products(L, pull[a], pull[a])


@compiled
def reduce_linking(w: Work, s: Sizes, right: int, out: int) -> None:
    """Half-solve every scenario, into `LINK_U`, and take its part from the right side of z."""
    starts, columns, entries = link_starts(w, s), link_columns(w, s), link_entries(w, s)
    link, shared = matrix(w, at.LINK_U, s.links, s.M), matrix(w, at.SHARED, s.r, s.M)
    take_linking(w, s, out)
    for i in range(s.r):
        for a in range(starts[i], starts[i + 1]):
            for m in range(s.M):
                link[columns[a], m] += entries[a, m] * shared[i, m]
    z = vector(w, out + Z, s.n)
    solve_lower_each(cube(w, at.LINK_H, s.links, s.links, s.M), link)
    add_first_stage_columns(z, cube(w, at.X, s.links, s.n, s.M), link, -1.0)
    if s.s:
        nus = matrix(w, out + NUS, s.s, s.M)
        copy(nus, matrix(w, right + NUS, s.s, s.M), -1.0)
        add_transposed_times_each(nus, cube(w, at.BRIDGE, s.links, s.s, s.M), link, 1.0)
        solve_lower_each(cube(w, at.N, s.s, s.s, s.M), nus)
        add_first_stage_columns(z, cube(w, at.PULL, s.s, s.n, s.M), nus, -1.0)


@compiled
def restore_linking(w: Work, s: Sizes, out: int) -> None:
    """Finish the half-solved scenarios with the z that was found; add their part of `SHARED`."""
    z, link = vector(w, out + Z, s.n), matrix(w, at.LINK_U, s.links, s.M)
    if s.s:
        nus = matrix(w, out + NUS, s.s, s.M)
        add_first_stage_times(nus, cube(w, at.PULL, s.s, s.n, s.M), z, 1.0)
        solve_upper_each(cube(w, at.N, s.s, s.s, s.M), nus)
        add_times_each(link, cube(w, at.BRIDGE, s.links, s.s, s.M), nus, -1.0)
    add_first_stage_times(link, cube(w, at.X, s.links, s.n, s.M), z, -1.0)
    solve_upper_each(cube(w, at.LINK_H, s.links, s.links, s.M), link)
    starts, columns, entries = link_starts(w, s), link_columns(w, s), link_entries(w, s)
    shared = matrix(w, at.SHARED, s.r, s.M)
    for i in range(s.r):
        if i >= s.t and is_linked(w, s, i):
            fill(shared[i], 0.0)
        for a in range(starts[i], starts[i + 1]):
            for m in range(s.M):
                shared[i, m] += entries[a, m] * link[columns[a], m]


@compiled
def take_linking(w: Work, s: Sizes, point: int) -> None:
    """`LINK_U` := the linking variables of a point."""
    linking, link = linking_variables(w, s), matrix(w, at.LINK_U, s.links, s.M)
    u = matrix(w, point + U, s.k, s.M)
    for a in range(s.links):
        copy(link[a], u[linking[a]], 1.0)


@compiled
def put_linking(w: Work, s: Sizes, point: int) -> None:
    """The linking variables of a point := `LINK_U`."""
    linking, link = linking_variables(w, s), matrix(w, at.LINK_U, s.links, s.M)
    u = matrix(w, point + U, s.k, s.M)
    for a in range(s.links):
        copy(u[linking[a]], link[a], 1.0)
