"""The arrow-shaped Newton system of one context: products, factor, solutions.

For a positive vector Θ with one entry per inequality row, the system is

    [ H   A'    E' ] [x]   [x-part    ]      x = (z, u_1 … u_M)
    [ A  −Θ⁻¹   0  ] [λ] = [rows      ]      A, E: all inequalities, all equalities
    [ E   0     0  ] [ν]   [equalities]      H: the cost's second derivatives

The predictor step, the corrector step and the backward pass are all solutions of it. The
scenarios touch each other through z alone, so that each scenario's (u_j, ν_j) is eliminated by
itself:

    H_j u_j + V_j'ν_j = b_j − C_j z,      H_j = w_j D_j + W_j'Θ_j W_j,   C_j = W_j'Θ_j T_j
    V_j u_j           = s_j − F_j z

and one n_z × n_z system is left. Where every scenario row has one recourse variable and every
such variable one coupled row (`diagonal`: shortage and excess, losses beyond a threshold), H_j
is diagonal and the Schur complement is T'κT with one positive κ per coupled row, computed
without subtraction. Otherwise it is computed as a sum of squares. Near the end of the path Θ
spans twenty orders of magnitude; refinement takes back what rounding leaves there.
"""

from __future__ import annotations

import numpy as np

from forewise.solvers.kernels import workspace as at
from forewise.solvers.kernels.algebra import (
    ABSOLUTE_RIDGE,
    ROUNDING,
    add,
    add_dots,
    add_first_stage_columns,
    add_first_stage_times,
    add_gram,
    add_gram_each,
    add_times,
    add_times_each,
    add_transposed_times,
    add_transposed_times_each,
    cholesky,
    cholesky_each,
    copy,
    fill,
    largest,
    solve_lower,
    solve_lower_columns,
    solve_lower_columns_each,
    solve_lower_each,
    solve_upper,
    solve_upper_columns_each,
    solve_upper_each,
)
from forewise.solvers.kernels.compiling import compiled
from forewise.solvers.kernels.workspace import (
    NU,
    NUS,
    ROWS,
    Sizes,
    U,
    Work,
    Z,
    coupling_block,
    cube,
    matrix,
    scenario_rows,
    vector,
)

Array = np.ndarray

# Two small terms keep the elimination from dividing by nearly nothing, and refinement takes back
# what they change: a floor of Θ⁻¹, in units of its row, and a curvature of variables, in units of
# their weight, for those that have no cost or that only equalities hold.
DIAGONAL_FLOOR, DENSE_FLOOR = 1e-12, 1e-14
_PROXIMAL = 1e-9


@compiled
def add_recourse_rows(w: Work, s: Sizes, u: Array, out: Array) -> None:
    """out := out + W_j u_j of every scenario, ``(r, M)``."""
    if w.diagonal:
        coefficient = matrix(w, at.W, s.r, s.M)
        for a in range(s.r):
            v = w.column[a]
            if v >= 0:
                for m in range(s.M):
                    out[a, m] += coefficient[a, m] * u[v, m]
    else:
        add_times_each(out, cube(w, at.W, s.r, s.k, s.M), u, 1.0)


@compiled
def add_recourse_columns(w: Work, s: Sizes, rows: Array, out: Array) -> None:
    """out := out + W_j' rows_j of every scenario, ``(k, M)``."""
    if w.diagonal:
        coefficient = matrix(w, at.W, s.r, s.M)
        for a in range(s.r):
            v = w.column[a]
            if v >= 0:
                for m in range(s.M):
                    out[v, m] += coefficient[a, m] * rows[a, m]
    else:
        add_transposed_times_each(out, cube(w, at.W, s.r, s.k, s.M), rows, 1.0)


@compiled
def inequality_rows(w: Work, s: Sizes, x: int, out: int) -> None:
    """out := A x."""
    z = vector(w, x + Z, s.n)
    fill(vector(w, out, s.rows), 0.0)
    add_times(vector(w, out, s.g), matrix(w, at.G, s.g, s.n), z, 1.0)
    add_first_stage_times(scenario_rows(w, s, out, s.t), coupling_block(w, s), z, 1.0)
    add_recourse_rows(w, s, matrix(w, x + U, s.k, s.M), scenario_rows(w, s, out, s.r))


@compiled
def add_inequality_columns(w: Work, s: Sizes, rows: int, out: int) -> None:
    """x-part of out := itself + A' rows."""
    out_z = vector(w, out + Z, s.n)
    add_transposed_times(out_z, matrix(w, at.G, s.g, s.n), vector(w, rows, s.g), 1.0)
    add_first_stage_columns(out_z, coupling_block(w, s), scenario_rows(w, s, rows, s.t), 1.0)
    out_u = matrix(w, out + U, s.k, s.M)
    add_recourse_columns(w, s, scenario_rows(w, s, rows, s.r), out_u)


@compiled
def put_curvature(w: Work, s: Sizes, x: int, out: int) -> None:
    """x-part of out := H x."""
    out_z, out_u = vector(w, out + Z, s.n), matrix(w, out + U, s.k, s.M)
    fill(out_z, 0.0)
    add_times(out_z, matrix(w, at.P, s.n, s.n), vector(w, x + Z, s.n), 1.0)
    u = matrix(w, x + U, s.k, s.M)
    if w.diagonal:
        curvature = matrix(w, at.D, s.k, s.M)
        for v in range(s.k):
            for m in range(s.M):
                out_u[v, m] = curvature[v, m] * u[v, m]
    else:
        fill(out_u, 0.0)
        add_times_each(out_u, cube(w, at.D, s.k, s.k, s.M), u, 1.0)


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
        add_times_each(nus, cube(w, at.V, s.s, s.k, s.M), matrix(w, x + U, s.k, s.M), 1.0)


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
        add_transposed_times_each(out_u, cube(w, at.V, s.s, s.k, s.M), nus, 1.0)


@compiled
def factor(w: Work, s: Sizes) -> None:
    """Factor the system for the workspace's Θ⁻¹ and its floor."""
    theta, inverse = vector(w, at.THETA, s.rows), vector(w, at.INVERSE_THETA, s.rows)
    norms, barrier = vector(w, at.NORMS, s.rows), vector(w, at.BARRIER, s.rows)
    floor = vector(w, at.FLOOR, 1)[0]
    for a in range(s.rows):
        theta[a] = 1.0 / (inverse[a] + floor * norms[a] * norms[a] / barrier[a])
    L, scale = matrix(w, at.L, s.n, s.n), vector(w, at.SCALE, max(s.n, s.e))
    copy(L, matrix(w, at.P, s.n, s.n), 1.0)
    for a in range(s.n):
        L[a, a] += _PROXIMAL
    add_gram(L, matrix(w, at.G, s.g, s.n), theta)
    if w.diagonal:
        eliminate_diagonal(w, s, L)
    else:
        eliminate_dense(w, s, L)
    for a in range(s.n):
        scale[a] = L[a, a]
    cholesky(L, scale)
    if s.e:
        bridge, E = matrix(w, at.BRIDGE_E, s.n, s.e), matrix(w, at.E, s.e, s.n)
        for a in range(s.n):
            for b in range(s.e):
                bridge[a, b] = E[b, a]
        solve_lower_columns(L, bridge)
        N = matrix(w, at.N_E, s.e, s.e)
        for a in range(s.e):
            for b in range(a + 1):
                N[a, b] = 0.0
                for i in range(s.n):
                    N[a, b] += bridge[i, a] * bridge[i, b]
            scale[a] = N[a, a]
        cholesky(N, scale)


@compiled
def eliminate_diagonal(w: Work, s: Sizes, L: Array) -> None:
    """Eliminate recourse whose blocks are diagonal; L := L + Σ_j T'κT."""
    H, theta = matrix(w, at.H, s.k, s.M), scenario_rows(w, s, at.THETA, s.r)
    coefficient = matrix(w, at.W, s.r, s.M)
    kappa, coupling = matrix(w, at.KAPPA, s.t, s.M), matrix(w, at.COUPLING, s.t, s.M)
    curvature = matrix(w, at.D, s.k, s.M)
    for v in range(s.k):
        for m in range(s.M):
            H[v, m] = curvature[v, m] + ABSOLUTE_RIDGE
    for a in range(s.t, s.r):
        v = w.column[a]
        if v >= 0:
            for m in range(s.M):
                H[v, m] += theta[a, m] * coefficient[a, m] * coefficient[a, m]
    for a in range(s.t):
        v = w.column[a]
        if v >= 0:
            for m in range(s.M):
                rest = H[v, m]
                whole = rest + theta[a, m] * coefficient[a, m] * coefficient[a, m]
                share = theta[a, m] / whole
                H[v, m] = whole
                kappa[a, m] = share * rest
                coupling[a, m] = share * coefficient[a, m]
        else:
            for m in range(s.M):
                kappa[a, m] = theta[a, m]
                coupling[a, m] = 0.0
    add_gram_each(L, coupling_block(w, s), kappa, vector(w, at.SCRATCH, s.M))


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
            for m in range(s.M):
                scratch[m] = theta[i, m] * W[i, a, m]
            for c in range(a + 1):
                for m in range(s.M):
                    H[a, c, m] += scratch[m] * W[i, c, m]
            if i < s.t:
                add_outer(X[a], scratch, T[i])
    weight = vector(w, at.WEIGHT, s.M)
    for a in range(s.k):
        for m in range(s.M):
            H[a, a, m] += _PROXIMAL * weight[m]
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
            for c in range(s.n):
                for m in range(s.M):
                    row[c, m] -= W[i, a, m] * Y[a, c, m]
        add_weighted_squares(L, row, theta[i], scratch)
    for a in range(s.k):
        fill(row, 0.0)
        for b in range(s.k):
            for c in range(s.n):
                for m in range(s.M):
                    row[c, m] += D[a, b, m] * Y[b, c, m]
        for c in range(s.n):
            add_dots(L[c], row, Y[a, c], c + 1)
    if s.s:
        eliminate_equalities(w, s, L)


@compiled
def add_weighted_squares(L: Array, row: Array, weight: Array, scratch: Array) -> None:
    """Lower triangle of L := L + Σ_m weight_m row_m row_m', with row ``(n, M)``."""
    for a in range(row.shape[0]):
        for m in range(row.shape[1]):
            scratch[m] = weight[m] * row[a, m]
        add_dots(L[a], row, scratch, a + 1)


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
        for c in range(s.n):
            add_dots(L[c], pull[a], pull[a, c], c + 1)


@compiled
def solve(w: Work, s: Sizes, right: int, right_rows: int, out: int, out_Ax: int) -> None:
    """Solve the factored system for one right-hand side; A x comes along.

    `right` gives the x-part and the equalities, `right_rows` the inequality rows.
    """
    rows, theta = vector(w, out + ROWS, s.rows), vector(w, at.THETA, s.rows)
    given = vector(w, right_rows, s.rows)
    for a in range(s.rows):
        rows[a] = theta[a] * given[a]
    z, u = vector(w, out + Z, s.n), matrix(w, out + U, s.k, s.M)
    copy(z, vector(w, right + Z, s.n), 1.0)
    copy(u, matrix(w, right + U, s.k, s.M), 1.0)
    add_transposed_times(z, matrix(w, at.G, s.g, s.n), rows, 1.0)
    add_recourse_columns(w, s, scenario_rows(w, s, out + ROWS, s.r), u)
    T, Tz = coupling_block(w, s), matrix(w, at.TZ, s.t, s.M)
    copy(Tz, scenario_rows(w, s, out + ROWS, s.t), 1.0)
    if w.diagonal:
        coupling = matrix(w, at.COUPLING, s.t, s.M)
        for a in range(s.t):
            v = w.column[a]
            if v >= 0:
                for m in range(s.M):
                    Tz[a, m] -= coupling[a, m] * u[v, m]
    else:
        reduce_dense(w, s, right, out)
    add_first_stage_columns(z, T, Tz, 1.0)

    solve_first_stage(w, s, right, out)

    fill(Tz, 0.0)
    add_first_stage_times(Tz, T, z, 1.0)
    if w.diagonal:
        H, coupling = matrix(w, at.H, s.k, s.M), matrix(w, at.COUPLING, s.t, s.M)
        for v in range(s.k):
            for m in range(s.M):
                u[v, m] /= H[v, m]
        for a in range(s.t):
            v = w.column[a]
            if v >= 0:
                for m in range(s.M):
                    u[v, m] -= coupling[a, m] * Tz[a, m]
    else:
        restore_dense(w, s, out)
    Ax = vector(w, out_Ax, s.rows)
    fill(Ax, 0.0)
    add_times(vector(w, out_Ax, s.g), matrix(w, at.G, s.g, s.n), z, 1.0)
    copy(scenario_rows(w, s, out_Ax, s.t), Tz, 1.0)
    add_recourse_rows(w, s, u, scenario_rows(w, s, out_Ax, s.r))
    for a in range(s.rows):
        rows[a] = theta[a] * Ax[a] - rows[a]


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


@compiled
def solve_first_stage(w: Work, s: Sizes, right: int, out: int) -> None:
    """z and ν of the reduced system, whose right side is in the place of z."""
    z, L = vector(w, out + Z, s.n), matrix(w, at.L, s.n, s.n)
    solve_lower(L, z)
    if s.e:
        nu, bridge = vector(w, out + NU, s.e), matrix(w, at.BRIDGE_E, s.n, s.e)
        N = matrix(w, at.N_E, s.e, s.e)
        copy(nu, vector(w, right + NU, s.e), -1.0)
        add_transposed_times(nu, bridge, z, 1.0)
        solve_lower(N, nu)
        solve_upper(N, nu)
        add_times(z, bridge, nu, -1.0)
    solve_upper(L, z)


@compiled
def refine(w: Work, s: Sizes, right: int, right_rows: int, out: int, out_Ax: int) -> None:
    """Correct what rounding left of a solution, against the system before elimination."""
    error, correction = at.ERROR, at.CORRECTION
    put_curvature(w, s, out, error)
    add_inequality_columns(w, s, out + ROWS, error)
    add_equality_columns(w, s, out, error)
    put_equality_rows(w, s, out, error)
    for part, size in ((Z, s.n), (U, s.k * s.M), (NU, s.e), (NUS, s.s * s.M)):
        residual, given = vector(w, error + part, size), vector(w, right + part, size)
        for a in range(size):
            residual[a] = given[a] - residual[a]
    residual, given = vector(w, error + ROWS, s.rows), vector(w, right_rows, s.rows)
    inverse_theta, Ax = vector(w, at.INVERSE_THETA, s.rows), vector(w, out_Ax, s.rows)
    dual, norms = vector(w, out + ROWS, s.rows), vector(w, at.NORMS, s.rows)
    reach = max(largest(vector(w, out + Z, s.n)), largest(vector(w, out + U, s.k * s.M)))
    for a in range(s.rows):
        residual[a] = given[a] - Ax[a] + inverse_theta[a] * dual[a]
        # What is only rounding must not be chased: Θ would make it large.
        if abs(residual[a]) <= ROUNDING * reach * norms[a]:
            residual[a] = 0.0
    solve(w, s, error, error + ROWS, correction, at.CORRECTION_AX)
    for part, size in ((Z, s.n), (U, s.k * s.M), (ROWS, s.rows), (NU, s.e), (NUS, s.s * s.M)):
        add(vector(w, out + part, size), vector(w, correction + part, size), 1.0)
    add(Ax, vector(w, at.CORRECTION_AX, s.rows), 1.0)
