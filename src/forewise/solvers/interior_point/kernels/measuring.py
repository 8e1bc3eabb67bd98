"""How far a context is from its solution, or along a ray that proves that there is none."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from forewise.solvers.interior_point.kernels import workspace as at
from forewise.solvers.interior_point.kernels.compiling import compiled
from forewise.solvers.interior_point.kernels.products import (
    add_equality_columns,
    add_inequality_columns,
    put_curvature,
    put_equality_rows,
)
from forewise.solvers.interior_point.kernels.vectors import ROUNDING, TINY, fill, largest
from forewise.solvers.interior_point.kernels.workspace import (
    NU,
    NUS,
    ROWS,
    Sizes,
    U,
    Work,
    Z,
    matrix,
    vector,
)

Array = np.ndarray

_SMALLEST_COST = 1e-2  # to which a gap is relative, in the scaled program's units
_CERTAIN = 1e-9  # relative residual at which a ray is a proof
#: What a proof shows must be more than this share of the program's size: the rest is rounding.
SIGNIFICANT = 1e-11


class Progress(NamedTuple):
    """How far a context is, in the scaled program's units."""

    mu: float
    primal: float
    dual: float  # slope of the Lagrangian, or what residuals do to the cost
    gap: float  # relative to the cost; for a target, the deviation from the centre
    size: float  # of the variables
    multipliers: float  # the sum of their sizes, in units of their rows


@compiled
def sum_of_largest(values: Array, tops: Array) -> float:
    """Σ_j of the largest absolute value in scenario j, ``(k, M)``; `tops` is scratch ``(M,)``."""
    if values.shape[0] == 0:
        return 0.0
    for m in range(values.shape[1]):
        tops[m] = abs(values[0, m])
    for v in range(1, values.shape[0]):
        for m in range(values.shape[1]):
            size = abs(values[v, m])
            tops[m] = tops[m] if size <= tops[m] else size
    total = 0.0
    for m in range(values.shape[1]):
        total += tops[m]
    return total


@compiled
def half_cost(w: Work, s: Sizes, point: int, curvature: int) -> float:
    """½ x'H x + q'x, with H x in the x-part of `curvature`."""
    cost = 0.0
    x, Hx, q = vector(w, point + Z, s.n), vector(w, curvature + Z, s.n), vector(w, at.Q, s.n)
    for a in range(s.n):
        cost += x[a] * (0.5 * Hx[a] + q[a])
    size = s.k * s.M
    x, Hx, q = vector(w, point + U, size), vector(w, curvature + U, size), vector(w, at.COST, size)
    for a in range(size):
        cost += x[a] * (0.5 * Hx[a] + q[a])
    return cost


@compiled
def negate_residual(residual: Array, known: Array, sign: float) -> None:
    """residual := sign known − residual."""
    for a in range(residual.shape[0]):
        residual[a] = sign * known[a] - residual[a]


@compiled
def measure(w: Work, s: Sizes, target: float) -> Progress:
    """Put the affine right-hand side (minus the residuals) into the workspace; tell their sizes."""
    right, point = at.RIGHT, at.POINT
    put_curvature(w, s, point, right)
    cost = half_cost(w, s, point, right)
    add_inequality_columns(w, s, point + ROWS, right)
    add_equality_columns(w, s, point, right)
    put_equality_rows(w, s, point, right)
    negate_residual(vector(w, right + Z, s.n), vector(w, at.Q, s.n), -1.0)
    negate_residual(vector(w, right + U, s.k * s.M), vector(w, at.COST, s.k * s.M), -1.0)
    negate_residual(vector(w, right + NU, s.e), vector(w, at.EQUAL, s.e), 1.0)
    negate_residual(vector(w, right + NUS, s.s * s.M), vector(w, at.EQUALS, s.s * s.M), 1.0)
    dual = largest(vector(w, right + Z, s.n))
    dual = max(dual, sum_of_largest(matrix(w, right + U, s.k, s.M), vector(w, at.SCRATCH, s.M)))
    primal = largest(vector(w, right + NU, s.e))
    primal = max(primal, largest(vector(w, right + NUS, s.s * s.M)))
    size = max(largest(vector(w, point + Z, s.n)), largest(vector(w, point + U, s.k * s.M)))
    size = max(size, 1.0)
    primal = max(primal, put_row_residuals(w, s, ROUNDING * size))

    slack, multiplier = vector(w, at.SLACK, s.rows), vector(w, point + ROWS, s.rows)
    weight, norms = vector(w, at.BARRIER, s.rows), vector(w, at.NORMS, s.rows)
    rows = vector(w, right + ROWS, s.rows)
    total, barrier, multipliers, drift = 0.0, 0.0, 0.0, 0.0
    for a in range(s.rows):
        total += slack[a] * multiplier[a]
        barrier += weight[a]
        multipliers += multiplier[a] * norms[a]
        drift += multiplier[a] * (rows[a] - slack[a])
    # What the residuals do to the cost is the part of the gap that complementarity misses.
    for part, count in ((NU, s.e), (NUS, s.s * s.M)):
        drift += inner(vector(w, point + part, count), vector(w, right + part, count))
    for part, count in ((Z, s.n), (U, s.k * s.M)):
        drift -= inner(vector(w, point + part, count), vector(w, right + part, count))
    cost = max(abs(cost), _SMALLEST_COST)
    dual = max(dual, abs(drift) / cost)
    gap = total / cost
    if target > 0.0:
        gap = deviation(slack, multiplier, weight, target)
    return Progress(total / max(barrier, TINY), primal / size, dual, gap, size, multipliers)


@compiled
def put_row_residuals(w: Work, s: Sizes, rounding: float) -> float:
    """Put b − A x into the rows of the right-hand side; returns how far the slacks are from it.

    In units of the rows. Residuals that are only rounding must not be chased: Θ would make them
    large.
    """
    rows, bound = vector(w, at.RIGHT + ROWS, s.rows), vector(w, at.BOUND, s.rows)
    Ax, slack = vector(w, at.AX, s.rows), vector(w, at.SLACK, s.rows)
    inverse_norms, residual = vector(w, at.INVERSE_NORMS, s.rows), vector(w, at.CHANGE, s.rows)
    for a in range(s.rows):
        known = bound[a] - Ax[a]
        residual[a] = abs(slack[a] - known) * inverse_norms[a]
        rows[a] = slack[a] if residual[a] <= rounding else known
    return largest(residual)


@compiled
def deviation(slack: Array, multiplier: Array, weight: Array, target: float) -> float:
    """Largest relative deviation from slack·λ = ω·target."""
    worst = 0.0
    for a in range(slack.shape[0]):
        worst = max(worst, abs(slack[a] * multiplier[a] - weight[a] * target) / weight[a])
    return worst / target


@compiled
def inner(a: Array, b: Array) -> float:
    """a·b."""
    total = 0.0
    for i in range(a.shape[0]):
        total += a[i] * b[i]
    return total


@compiled
def weighted_size(values: Array, norms: Array) -> float:
    """Σ |values| norms."""
    total = 0.0
    for i in range(values.shape[0]):
        total += abs(values[i]) * norms[i]
    return total


@compiled
def is_dual_ray(w: Work, s: Sizes) -> bool:
    """Whether the multipliers have A'λ + E'ν ≈ 0 and b'λ + e'ν < 0: nothing is feasible."""
    point, error = at.POINT, at.ERROR
    proof = -inner(vector(w, at.BOUND, s.rows), vector(w, point + ROWS, s.rows))
    proof -= inner(vector(w, at.EQUAL, s.e), vector(w, point + NU, s.e))
    proof -= inner(vector(w, at.EQUALS, s.s * s.M), vector(w, point + NUS, s.s * s.M))
    fill(vector(w, error + Z, s.n), 0.0)
    fill(vector(w, error + U, s.k * s.M), 0.0)
    add_inequality_columns(w, s, point + ROWS, error)
    add_equality_columns(w, s, point, error)
    slope = largest(vector(w, error + Z, s.n))
    slope = max(slope, sum_of_largest(matrix(w, error + U, s.k, s.M), vector(w, at.SCRATCH, s.M)))
    total = weighted_size(vector(w, point + ROWS, s.rows), vector(w, at.NORMS, s.rows))
    total += weighted_size(vector(w, point + NU, s.e), vector(w, at.EQUAL_NORMS, s.e))
    count = s.s * s.M
    total += weighted_size(vector(w, point + NUS, count), vector(w, at.EQUALS_NORMS, count))
    reach = vector(w, at.REACH, 1)[0]
    return proof > SIGNIFICANT * reach * total and reach * slope <= _CERTAIN * proof


@compiled
def is_primal_ray(w: Work, s: Sizes) -> bool:
    """Whether the variables have H x ≈ 0, A x ≤ 0, E x ≈ 0 and falling cost: unbounded."""
    point, error = at.POINT, at.ERROR
    fall = -inner(vector(w, at.Q, s.n), vector(w, point + Z, s.n))
    fall -= inner(vector(w, at.COST, s.k * s.M), vector(w, point + U, s.k * s.M))
    put_curvature(w, s, point, error)
    put_equality_rows(w, s, point, error)
    stray = largest(vector(w, error + Z, s.n))
    stray = max(stray, sum_of_largest(matrix(w, error + U, s.k, s.M), vector(w, at.SCRATCH, s.M)))
    stray = max(stray, largest(vector(w, error + NU, s.e)))
    stray = max(stray, largest(vector(w, error + NUS, s.s * s.M)))
    Ax, norms = vector(w, at.AX, s.rows), vector(w, at.NORMS, s.rows)
    for a in range(s.rows):
        stray = max(stray, Ax[a] / norms[a])
    size = max(largest(vector(w, point + Z, s.n)), largest(vector(w, point + U, s.k * s.M)))
    return fall > SIGNIFICANT * size and stray <= _CERTAIN * fall
