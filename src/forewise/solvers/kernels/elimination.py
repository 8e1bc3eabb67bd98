"""Eliminating every scenario's own variables and multipliers from the arrow-shaped system.

Where every scenario row has one recourse variable and every such variable one coupled row
(`Work.diagonal`: shortage and excess, losses beyond a threshold), a scenario's block H_j is
diagonal, and its Schur complement T'κT has one positive κ per coupled row, computed without
subtraction. Otherwise it is computed as a sum of squares. `arrow` has the legend.
"""

from __future__ import annotations

import numpy as np

from forewise.solvers.kernels import workspace as at
from forewise.solvers.kernels.algebra import ABSOLUTE_RIDGE
from forewise.solvers.kernels.compiling import compiled
from forewise.solvers.kernels.scenario_algebra import (
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
from forewise.solvers.kernels.vectors import copy, fill
from forewise.solvers.kernels.workspace import (
    NUS,
    ROWS,
    Sizes,
    U,
    Work,
    Z,
    coupling_block,
    cube,
    matrix,
    recourse_variables,
    scenario_rows,
    vector,
)

Array = np.ndarray

# A curvature of variables, in units of their weight, for those that have no cost or that only
# equalities hold. Refinement takes back what it changes.
PROXIMAL = 1e-9


@compiled
def eliminate_diagonal(w: Work, s: Sizes, L: Array) -> None:
    """Eliminate recourse whose blocks are diagonal; L := L + Σ_j T'κT.

    What is kept in the place of H are its reciprocals.
    """
    column = recourse_variables(w, s)
    H, theta = matrix(w, at.H, s.k, s.M), scenario_rows(w, s, at.THETA, s.r)
    coefficient = matrix(w, at.W, s.r, s.M)
    kappa, coupling = matrix(w, at.KAPPA, s.t, s.M), matrix(w, at.COUPLING, s.t, s.M)
    curvature = matrix(w, at.D, s.k, s.M)
    for v in range(s.k):
        for m in range(s.M):
            H[v, m] = curvature[v, m] + ABSOLUTE_RIDGE
    for a in range(s.t, s.r):
        v = column[a]
        if v >= 0:
            for m in range(s.M):
                H[v, m] += theta[a, m] * coefficient[a, m] * coefficient[a, m]
    for a in range(s.t):
        v = column[a]
        if v >= 0:
            for m in range(s.M):
                kappa[a, m] = theta[a, m] * H[v, m]
                coupling[a, m] = theta[a, m] * coefficient[a, m]
                H[v, m] += coupling[a, m] * coefficient[a, m]
        else:
            for m in range(s.M):
                kappa[a, m] = theta[a, m]
                coupling[a, m] = 0.0
    for v in range(s.k):
        for m in range(s.M):
            H[v, m] = 1.0 / H[v, m]
    for a in range(s.t):
        v = column[a]
        if v >= 0:
            for m in range(s.M):
                kappa[a, m] *= H[v, m]
                coupling[a, m] *= H[v, m]
    add_gram_each(L, coupling_block(w, s), kappa)


@compiled
def reduce_diagonal(w: Work, s: Sizes, right_rows: int, out: int) -> None:
    """Scale the scenarios' rows by Θ; add what they ask of u, and put what of z into `TZ`."""
    column = recourse_variables(w, s)
    u, coupling = matrix(w, out + U, s.k, s.M), matrix(w, at.COUPLING, s.t, s.M)
    rows, Tz = scenario_rows(w, s, out + ROWS, s.r), matrix(w, at.TZ, s.t, s.M)
    given, theta = scenario_rows(w, s, right_rows, s.r), scenario_rows(w, s, at.THETA, s.r)
    coefficient = matrix(w, at.W, s.r, s.M)
    # Backwards: when the one coupled row of a variable comes, its other rows have been added.
    for a in range(s.r - 1, -1, -1):
        v = column[a]
        if v >= 0:
            for m in range(s.M):
                rows[a, m] = theta[a, m] * given[a, m]
                u[v, m] += coefficient[a, m] * rows[a, m]
            if a < s.t:
                for m in range(s.M):
                    Tz[a, m] = rows[a, m] - coupling[a, m] * u[v, m]
        else:
            for m in range(s.M):
                rows[a, m] = theta[a, m] * given[a, m]
            if a < s.t:
                copy(Tz[a], rows[a], 1.0)


@compiled
def restore_diagonal(w: Work, s: Sizes, out: int, out_Ax: int) -> None:
    """The scenarios' u, with T z of the z that was found in `TZ`, and their rows of A x."""
    column = recourse_variables(w, s)
    u, coupling = matrix(w, out + U, s.k, s.M), matrix(w, at.COUPLING, s.t, s.M)
    inverse, Tz = matrix(w, at.H, s.k, s.M), matrix(w, at.TZ, s.t, s.M)
    for v in range(s.k):
        for m in range(s.M):
            u[v, m] *= inverse[v, m]
    for a in range(s.t):
        v = column[a]
        if v >= 0:
            for m in range(s.M):
                u[v, m] -= coupling[a, m] * Tz[a, m]
    Ax, coefficient = scenario_rows(w, s, out_Ax, s.r), matrix(w, at.W, s.r, s.M)
    for a in range(s.r):
        v = column[a]
        if v >= 0 and a < s.t:
            for m in range(s.M):
                Ax[a, m] = Tz[a, m] + coefficient[a, m] * u[v, m]
        elif v >= 0:
            for m in range(s.M):
                Ax[a, m] = coefficient[a, m] * u[v, m]
        elif a < s.t:
            copy(Ax[a], Tz[a], 1.0)
        else:
            fill(Ax[a], 0.0)


@compiled
def eliminate_dense(w: Work, s: Sizes, L: Array) -> None:
    """Eliminate any recourse, equalities included; L := L + the scenarios' Schur complements.

    T'ΘT − C'H⁻¹C is a difference of large numbers. With Y = H⁻¹C it is also

        (T − W Y)'Θ(T − W Y) + Y'(w D)Y,

    a sum of squares that Y minimises: rounding errors of Y enter it only squared.
    """
    theta, scratch = scenario_rows(w, s, at.THETA, s.r), vector(w, at.SCRATCH, s.M)
    T, W = coupling_block(w, s), cube(w, at.W, s.r, s.k, s.M)
    H, X, Y = (
        cube(w, at.H, s.k, s.k, s.M),
        cube(w, at.X, s.k, s.n, s.M),
        cube(w, at.Y, s.k, s.n, s.M),
    )
    D = cube(w, at.D, s.k, s.k, s.M)
    copy(H, D, 1.0)
    fill(X, 0.0)
    for i in range(s.r):
        for a in range(s.k):
            if not any_entry(W[i, a]):
                continue
            for m in range(s.M):
                scratch[m] = theta[i, m] * W[i, a, m]
            for c in range(a + 1):
                if any_entry(W[i, c]):
                    for m in range(s.M):
                        H[a, c, m] += scratch[m] * W[i, c, m]
            if i < s.t:
                add_outer(X[a], scratch, T[i])
    weight = vector(w, at.WEIGHT, s.M)
    for a in range(s.k):
        for m in range(s.M):
            H[a, a, m] += PROXIMAL * weight[m]
    cholesky_each(H, scratch)
    solve_lower_columns_each(H, X)
    copy(Y, X, 1.0)
    solve_upper_columns_each(H, Y)
    row = matrix(w, at.ROW, s.n, s.M)
    for i in range(s.r):
        fill(row, 0.0)
        if i < s.t:
            fill(scratch, 1.0)
            add_outer(row, scratch, T[i])
        for a in range(s.k):
            if any_entry(W[i, a]):
                for c in range(s.n):
                    for m in range(s.M):
                        row[c, m] -= W[i, a, m] * Y[a, c, m]
        add_lower_products(L, row, row, theta[i])
    for a in range(s.k):
        fill(row, 0.0)
        bent = False
        for b in range(s.k):
            if any_entry(D[a, b]):
                bent = True
                for c in range(s.n):
                    for m in range(s.M):
                        row[c, m] += D[a, b, m] * Y[b, c, m]
        if bent:
            add_lower_products(L, row, Y[a])
    if s.s:
        eliminate_equalities(w, s, L)


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
    """Eliminate the scenarios' equality multipliers, through N_j = V_j H_j⁻¹ V_j'."""
    scratch = vector(w, at.SCRATCH, s.M)
    H, X = cube(w, at.H, s.k, s.k, s.M), cube(w, at.X, s.k, s.n, s.M)
    bridge, V = cube(w, at.BRIDGE, s.k, s.s, s.M), cube(w, at.V, s.s, s.k, s.M)
    N, pull = cube(w, at.N, s.s, s.s, s.M), cube(w, at.PULL, s.s, s.n, s.M)
    for v in range(s.k):
        for a in range(s.s):
            copy(bridge[v, a], V[a, v], 1.0)
    solve_lower_columns_each(H, bridge)
    fill(N, 0.0)
    copy(pull, cube(w, at.F, s.s, s.n, s.M), 1.0)
    for v in range(s.k):
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
def reduce_dense(w: Work, s: Sizes, right: int, out: int) -> None:
    """Half-solve every scenario, in place, and take its part from the right side of z."""
    z, u = vector(w, out + Z, s.n), matrix(w, out + U, s.k, s.M)
    solve_lower_each(cube(w, at.H, s.k, s.k, s.M), u)
    add_first_stage_columns(z, cube(w, at.X, s.k, s.n, s.M), u, -1.0)
    if s.s:
        nus = matrix(w, out + NUS, s.s, s.M)
        copy(nus, matrix(w, right + NUS, s.s, s.M), -1.0)
        add_transposed_times_each(nus, cube(w, at.BRIDGE, s.k, s.s, s.M), u, 1.0)
        solve_lower_each(cube(w, at.N, s.s, s.s, s.M), nus)
        add_first_stage_columns(z, cube(w, at.PULL, s.s, s.n, s.M), nus, -1.0)


@compiled
def restore_dense(w: Work, s: Sizes, out: int) -> None:
    """Finish the half-solved scenarios with the z that was found."""
    z, u = vector(w, out + Z, s.n), matrix(w, out + U, s.k, s.M)
    if s.s:
        nus = matrix(w, out + NUS, s.s, s.M)
        add_first_stage_times(nus, cube(w, at.PULL, s.s, s.n, s.M), z, 1.0)
        solve_upper_each(cube(w, at.N, s.s, s.s, s.M), nus)
        add_times_each(u, cube(w, at.BRIDGE, s.k, s.s, s.M), nus, -1.0)
    add_first_stage_times(u, cube(w, at.X, s.k, s.n, s.M), z, -1.0)
    solve_upper_each(cube(w, at.H, s.k, s.k, s.M), u)
