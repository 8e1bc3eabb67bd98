"""The arrow-shaped Newton system of one context: products, factor, solutions.

For a positive vector Θ with one entry per inequality row, the system is

    [ H   A'    E' ] [x]   [x-part    ]      x = (z, u_1 … u_M)
    [ A  −Θ⁻¹   0  ] [λ] = [rows      ]      A, E: all inequalities, all equalities
    [ E   0     0  ] [ν]   [equalities]      H: the cost's second derivatives

The predictor step, the corrector step and the backward pass are all solutions of it. The
scenarios touch each other through z alone, so that each scenario's (u_j, ν_j) is eliminated by
itself: first the variables that take one division each (`simple_recourse`), then those that hold
the scenario together (`linking_recourse`). One n_z × n_z system is left.

Near the end of the path Θ spans twenty orders of magnitude; refinement takes back what rounding
leaves there.
"""

from __future__ import annotations

from forewise.solvers.interior_point.kernels import workspace as at
from forewise.solvers.interior_point.kernels.algebra import (
    PROXIMAL,
    add_gram_within,
    add_times,
    add_times_within,
    add_transposed_times,
    add_transposed_times_within,
    cholesky,
    solve_lower,
    solve_lower_columns,
    solve_upper,
)
from forewise.solvers.interior_point.kernels.compiling import compiled
from forewise.solvers.interior_point.kernels.linking_recourse import (
    eliminate_linking,
    put_linking,
    reduce_linking,
    restore_linking,
)
from forewise.solvers.interior_point.kernels.products import (
    add_equality_columns,
    add_inequality_columns,
    put_curvature,
    put_equality_rows,
)
from forewise.solvers.interior_point.kernels.scenario_algebra import (
    add_first_stage_columns,
    add_first_stage_times,
    add_gram_each,
)
from forewise.solvers.interior_point.kernels.simple_recourse import (
    eliminate_simple,
    reduce_simple,
    restore_simple,
)
from forewise.solvers.interior_point.kernels.vectors import ROUNDING, TINY, add, copy, fill, largest
from forewise.solvers.interior_point.kernels.workspace import (
    NU,
    NUS,
    ROWS,
    Sizes,
    U,
    Work,
    Z,
    coupling_block,
    is_linking,
    matrix,
    spans,
    vector,
)

# A floor of Θ⁻¹, in units of its row, keeps the elimination from dividing by nearly nothing.
# Refinement takes back what it changes.
SIMPLE_FLOOR, LINKING_FLOOR = 1e-12, 1e-14


@compiled
def factor(w: Work, s: Sizes) -> None:
    """Factor the system for the workspace's Θ⁻¹ and its floor."""
    theta, inverse = vector(w, at.THETA, s.rows), vector(w, at.INVERSE_THETA, s.rows)
    unit, floor = vector(w, at.UNIT, s.rows), vector(w, at.FLOOR, 1)[0]
    for a in range(s.rows):
        theta[a] = 1.0 / (inverse[a] + floor * unit[a])
    L, scale = matrix(w, at.L, s.n, s.n), vector(w, at.SCALE, max(s.n, s.e))
    copy(L, matrix(w, at.P, s.n, s.n), 1.0)
    for a in range(s.n):
        L[a, a] += PROXIMAL
    add_gram_within(L, matrix(w, at.G, s.g, s.n), spans(w, at.SPAN_G, s.g), theta)
    eliminate_simple(w, s)
    if is_linking(s):
        eliminate_linking(w, s, L)
    else:
        add_gram_each(L, coupling_block(w, s), matrix(w, at.KAPPA, s.t, s.M))
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
def solve(w: Work, s: Sizes, right: int, right_rows: int, out: int, out_Ax: int) -> None:
    """Solve the factored system for one right-hand side; A x comes along.

    `right` gives the x-part and the equalities, `right_rows` the inequality rows.
    """
    rows, theta = vector(w, out + ROWS, s.rows), vector(w, at.THETA, s.rows)
    given = vector(w, right_rows, s.rows)
    for a in range(s.g):
        rows[a] = theta[a] * given[a]
    z, u = vector(w, out + Z, s.n), matrix(w, out + U, s.k, s.M)
    copy(z, vector(w, right + Z, s.n), 1.0)
    copy(u, matrix(w, right + U, s.k, s.M), 1.0)
    G = matrix(w, at.G, s.g, s.n)
    add_transposed_times_within(z, G, spans(w, at.SPAN_G, s.g), rows)
    T, shared = coupling_block(w, s), matrix(w, at.SHARED, s.t, s.M)
    reduce_simple(w, s, right_rows, out)
    if is_linking(s):
        reduce_linking(w, s, right, out)
    add_first_stage_columns(z, T, shared, 1.0)

    solve_first_stage(w, s, right, out)

    fill(shared, 0.0)
    add_first_stage_times(shared, T, z, 1.0)
    if is_linking(s):
        restore_linking(w, s, out)
    restore_simple(w, s, out, out_Ax)
    if is_linking(s):
        put_linking(w, s, out)
    Ax = vector(w, out_Ax, s.rows)
    fill(vector(w, out_Ax, s.g), 0.0)
    add_times_within(vector(w, out_Ax, s.g), G, spans(w, at.SPAN_G, s.g), z)
    for a in range(s.rows):
        rows[a] = theta[a] * Ax[a] - rows[a]


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
def refine(w: Work, s: Sizes, right: int, right_rows: int, out: int, out_Ax: int) -> float:
    """Correct what rounding left of a solution, against the system before elimination.

    Returns the size of the correction, relative to the variables.
    """
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
    change = largest(vector(w, correction + Z, s.n))
    change = max(change, largest(vector(w, correction + U, s.k * s.M)))
    return change / max(reach, TINY)
