"""Following the central path of one context: a primal–dual interior-point method.

The path is that of a *weighted* barrier, in which a scenario counts by its weight,

    slack_i λ_i = ω_i μ,   ω_i = 1 for a first-stage row, 16 w_j for a row of scenario j,

so that the path, and the centre of a face of optima where it ends, do not depend on how many
scenarios describe the same distribution.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from forewise.solvers.kernels import workspace as at
from forewise.solvers.kernels.algebra import ROUNDING, add, copy, largest
from forewise.solvers.kernels.arrow import (
    add_equality_columns,
    add_inequality_columns,
    factor,
    inequality_rows,
    put_curvature,
    put_equality_rows,
    refine,
    solve,
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
    matrix,
    vector,
)

Array = np.ndarray

# How a path ended.
CONVERGED = 1
STALLED = 2
PRIMAL_RAY = 3  # the variables diverge along a ray of falling cost: unbounded
DUAL_RAY = 4  # the multipliers diverge along a proof that nothing is feasible

_BARRIER_SHARE = 16.0  # what all scenarios together count for, against 1 for a first-stage row
_SMALLEST_WEIGHT = 1e-8  # of a scenario, in the barrier
_START_SHIFT = 0.1  # smallest slack and multiplier at the start, in units of their rows
_STEP_FRACTION = 0.995  # of the way to the boundary
_SHORT_STEP = 0.1  # below which a step is taken back and the point recentred
_CAREFUL_CENTRING = 0.2  # what a step leaves of μ after two that brought nothing
_RECENTRING = 0.8  # what recentring leaves of μ and the residuals
_CENTRED = 1e-9  # relative deviation from the central path that counts as on it
_TINY = 1e-300  # keeps programs without inequalities from dividing zero by zero
_GAP = 1e-3  # tolerance of the relative gap, against that of the residuals
_SMALLEST_COST = 1e-2  # to which a gap is relative, in the scaled program's units
ACCEPTED_MERIT = 1e-9  # of a stalled path, to be kept without a second try
_PATIENCE = 8  # iterations without progress before a context is given up
_DIVERGING = 1e3  # size of variables or multipliers from which rays are looked for
_CERTAIN = 1e-9  # relative residual at which a ray is a proof
# How often a step is refined, with diagonal and with dense recourse: before any row's Θ⁻¹ is
# nearly that of an active row, in units of the row, and from then on.
_NEARLY_ACTIVE = 1e-8
_DIAGONAL_REFINEMENTS, _DENSE_REFINEMENTS = (0, 1), (1, 3)


class Progress(NamedTuple):
    """How far a context is, in the scaled program's units."""

    mu: float
    primal: float
    dual: float
    gap: float  # relative to the cost; for a target, the deviation from the centre
    size: float  # of the variables


@compiled
def start(w: Work, s: Sizes) -> None:
    """Put a point with positive slacks and multipliers, near least squares, into the workspace."""
    copy(vector(w, at.RIGHT + Z, s.n), vector(w, at.Q, s.n), -1.0)
    copy(vector(w, at.RIGHT + U, s.k * s.M), vector(w, at.COST, s.k * s.M), -1.0)
    copy(vector(w, at.RIGHT + NU, s.e), vector(w, at.EQUAL, s.e), 1.0)
    copy(vector(w, at.RIGHT + NUS, s.s * s.M), vector(w, at.EQUALS, s.s * s.M), 1.0)
    inverse_theta, norms = vector(w, at.INVERSE_THETA, s.rows), vector(w, at.NORMS, s.rows)
    barrier, bound = vector(w, at.BARRIER, s.rows), vector(w, at.BOUND, s.rows)
    for a in range(s.rows):
        inverse_theta[a] = norms[a] * norms[a] / barrier[a]
    factor(w, s)
    solve(w, s, at.RIGHT, at.BOUND, at.POINT, at.AX)
    Ax, slack = vector(w, at.AX, s.rows), vector(w, at.SLACK, s.rows)
    dual = vector(w, at.POINT + ROWS, s.rows)
    above, below = 0.0, 0.0
    for a in range(s.rows):
        slack[a] = (bound[a] - Ax[a]) / norms[a]
        above, below = max(above, slack[a]), max(below, -slack[a])
    for a in range(s.rows):
        dual[a] = (above + _START_SHIFT - slack[a]) * barrier[a] / norms[a]
        slack[a] = (slack[a] + below + _START_SHIFT) * norms[a]


@compiled
def sum_of_largest(values: Array) -> float:
    """Σ_j of the largest absolute value in scenario j, ``(k, M)``."""
    total = 0.0
    for m in range(values.shape[1]):
        top = 0.0
        for v in range(values.shape[0]):
            size = abs(values[v, m])
            top = size if not size <= top else top
        total += top
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
    dual = max(dual, sum_of_largest(matrix(w, right + U, s.k, s.M)))
    primal = largest(vector(w, right + NU, s.e))
    primal = max(primal, largest(vector(w, right + NUS, s.s * s.M)))
    rows, bound = vector(w, right + ROWS, s.rows), vector(w, at.BOUND, s.rows)
    Ax, slack = vector(w, at.AX, s.rows), vector(w, at.SLACK, s.rows)
    multiplier, norms = vector(w, point + ROWS, s.rows), vector(w, at.NORMS, s.rows)
    weight = vector(w, at.BARRIER, s.rows)
    total, barrier, centre = 0.0, 0.0, 0.0
    size = max(largest(vector(w, point + Z, s.n)), largest(vector(w, point + U, s.k * s.M)))
    size = max(size, 1.0)
    rounding = ROUNDING * size
    for a in range(s.rows):
        rows[a] = bound[a] - Ax[a]
        residual = abs(slack[a] - rows[a]) / norms[a]
        primal = max(primal, residual)
        # Residuals that are only rounding must not be chased: Θ would make them large.
        if residual <= rounding:
            rows[a] = slack[a]
        total += slack[a] * multiplier[a]
        barrier += weight[a]
    if target > 0.0:
        for a in range(s.rows):
            centre = max(centre, abs(slack[a] * multiplier[a] / (weight[a] * target) - 1.0))
    gap = centre if target > 0.0 else total / max(abs(cost), _SMALLEST_COST)
    return Progress(total / max(barrier, _TINY), primal / size, dual, gap, size)


@compiled
def inner(a: Array, b: Array) -> float:
    """a·b."""
    total = 0.0
    for i in range(a.shape[0]):
        total += a[i] * b[i]
    return total


@compiled
def is_dual_ray(w: Work, s: Sizes) -> bool:
    """Whether the multipliers have A'λ + E'ν ≈ 0 and b'λ + e'ν < 0: nothing is feasible."""
    point, error = at.POINT, at.ERROR
    proof = -inner(vector(w, at.BOUND, s.rows), vector(w, point + ROWS, s.rows))
    proof -= inner(vector(w, at.EQUAL, s.e), vector(w, point + NU, s.e))
    proof -= inner(vector(w, at.EQUALS, s.s * s.M), vector(w, point + NUS, s.s * s.M))
    copy(vector(w, error + Z, s.n), vector(w, error + Z, s.n), 0.0)
    copy(vector(w, error + U, s.k * s.M), vector(w, error + U, s.k * s.M), 0.0)
    add_inequality_columns(w, s, point + ROWS, error)
    add_equality_columns(w, s, point, error)
    slope = largest(vector(w, error + Z, s.n))
    slope = max(slope, sum_of_largest(matrix(w, error + U, s.k, s.M)))
    return proof > 0.0 and slope <= _CERTAIN * proof


@compiled
def is_primal_ray(w: Work, s: Sizes) -> bool:
    """Whether the variables have H x ≈ 0, A x ≤ 0, E x ≈ 0 and falling cost: unbounded."""
    point, error = at.POINT, at.ERROR
    fall = -inner(vector(w, at.Q, s.n), vector(w, point + Z, s.n))
    fall -= inner(vector(w, at.COST, s.k * s.M), vector(w, point + U, s.k * s.M))
    put_curvature(w, s, point, error)
    put_equality_rows(w, s, point, error)
    stray = largest(vector(w, error + Z, s.n))
    stray = max(stray, sum_of_largest(matrix(w, error + U, s.k, s.M)))
    stray = max(stray, largest(vector(w, error + NU, s.e)))
    stray = max(stray, largest(vector(w, error + NUS, s.s * s.M)))
    Ax, norms = vector(w, at.AX, s.rows), vector(w, at.NORMS, s.rows)
    for a in range(s.rows):
        stray = max(stray, Ax[a] / norms[a])
    return fall > 0.0 and stray <= _CERTAIN * fall


@compiled
def longest_step(position: Array, change: Array, cap: float) -> float:
    """The longest step, at most `cap`, that keeps every position nonnegative."""
    fastest = -1.0 / cap
    for a in range(position.shape[0]):
        fastest = min(fastest, change[a] / position[a])
    return -1.0 / fastest


@compiled
def correct(w: Work, s: Sizes, mu: float, centring: float, aim: float, second_order: float) -> None:
    """Put the corrector's right-hand side into the workspace, from the predictor's step.

    What it asks of the residuals is what it asks of μ: to shrink to the share `centring`.
    """
    target = max(centring * mu, aim)
    share = 1.0 if aim > 0.0 else 1.0 - centring
    for part, size in ((Z, s.n), (U, s.k * s.M), (NU, s.e), (NUS, s.s * s.M)):
        copy(vector(w, at.CORRECTED + part, size), vector(w, at.RIGHT + part, size), share)
    slack, dual = vector(w, at.SLACK, s.rows), vector(w, at.POINT + ROWS, s.rows)
    rows, corrected = vector(w, at.RIGHT + ROWS, s.rows), vector(w, at.CORRECTED + ROWS, s.rows)
    change, dual_change = vector(w, at.CHANGE, s.rows), vector(w, at.STEP + ROWS, s.rows)
    barrier = vector(w, at.BARRIER, s.rows)
    for a in range(s.rows):
        product = second_order * change[a] * dual_change[a] - target * barrier[a]
        residual = slack[a] - rows[a]
        corrected[a] = slack[a] - share * residual + product / dual[a]
        # From here on, the part of the slack's change that does not depend on the direction.
        change[a] = -share * residual


@compiled
def corrector_steps(w: Work, s: Sizes, near: bool) -> tuple[float, float]:
    """Solve for the corrector's direction; returns how far variables and multipliers may go."""
    solve(w, s, at.CORRECTED, at.CORRECTED + ROWS, at.STEP, at.STEP_AX)
    far, close = _DIAGONAL_REFINEMENTS if w.diagonal else _DENSE_REFINEMENTS
    for _ in range(close if near else far):
        refine(w, s, at.CORRECTED, at.CORRECTED + ROWS, at.STEP, at.STEP_AX)
    change = vector(w, at.CHANGE, s.rows)
    add(change, vector(w, at.STEP_AX, s.rows), -1.0)
    cap = 1.0 / _STEP_FRACTION
    slack, dual = vector(w, at.SLACK, s.rows), vector(w, at.POINT + ROWS, s.rows)
    primal_step = _STEP_FRACTION * longest_step(slack, change, cap)
    dual_step = _STEP_FRACTION * longest_step(dual, vector(w, at.STEP + ROWS, s.rows), cap)
    return primal_step, dual_step


@compiled
def predict(w: Work, s: Sizes, mu: float) -> float:
    """Solve for the affine direction; returns the share of μ to centre on, by how far it gets."""
    slack, dual = vector(w, at.SLACK, s.rows), vector(w, at.POINT + ROWS, s.rows)
    solve(w, s, at.RIGHT, at.RIGHT + ROWS, at.STEP, at.STEP_AX)
    rows, Ax_change = vector(w, at.RIGHT + ROWS, s.rows), vector(w, at.STEP_AX, s.rows)
    change, dual_change = vector(w, at.CHANGE, s.rows), vector(w, at.STEP + ROWS, s.rows)
    for a in range(s.rows):
        change[a] = rows[a] - slack[a] - Ax_change[a]
    primal_step, dual_step = longest_step(slack, change, 1.0), longest_step(dual, dual_change, 1.0)
    barrier = vector(w, at.BARRIER, s.rows)
    reached, total = 0.0, 0.0
    for a in range(s.rows):
        reached += (slack[a] + primal_step * change[a]) * (dual[a] + dual_step * dual_change[a])
        total += barrier[a]
    return min(max(reached / max(total * mu, _TINY), 0.0), 1.0) ** 3


@compiled
def take_step(w: Work, s: Sizes, mu: float, linear: bool, careful: bool, aim: float) -> None:
    """One predictor–corrector step (Mehrotra's) from the point that was measured."""
    slack, dual = vector(w, at.SLACK, s.rows), vector(w, at.POINT + ROWS, s.rows)
    inverse_theta, norms = vector(w, at.INVERSE_THETA, s.rows), vector(w, at.NORMS, s.rows)
    barrier = vector(w, at.BARRIER, s.rows)
    near = False
    for a in range(s.rows):
        inverse_theta[a] = slack[a] / dual[a]
        near |= inverse_theta[a] * barrier[a] < _NEARLY_ACTIVE * norms[a] * norms[a]
    factor(w, s)

    if mu <= 2.0 * aim:
        # Close to the centre that is aimed at, plain Newton steps converge fastest.
        correct(w, s, mu, 0.0, aim, 0.0)
    elif careful:
        # The second-order term can send a path in circles: centre instead.
        correct(w, s, mu, _CAREFUL_CENTRING, aim, 0.0)
    else:
        # Predictor: straight at the solution. How far it gets says how much to centre.
        centring = predict(w, s, mu)
        # Corrector: towards the centre, minus the predictor's second-order error.
        correct(w, s, mu, centring, aim, 1.0)
    primal_step, dual_step = corrector_steps(w, s, near)
    if min(primal_step, dual_step) < _SHORT_STEP:
        # Off the centre, the second-order term misleads: go back towards the centre first.
        correct(w, s, mu, _RECENTRING, aim, 0.0)
        primal_step, dual_step = corrector_steps(w, s, near)
    if not linear:
        # Quadratic costs tie the multipliers to the variables: both take the shorter step.
        primal_step = dual_step = min(primal_step, dual_step)
    add(slack, vector(w, at.CHANGE, s.rows), primal_step)
    add(vector(w, at.AX, s.rows), vector(w, at.STEP_AX, s.rows), primal_step)
    for part, size in ((Z, s.n), (U, s.k * s.M)):
        add(vector(w, at.POINT + part, size), vector(w, at.STEP + part, size), primal_step)
    for part, size in ((ROWS, s.rows), (NU, s.e), (NUS, s.s * s.M)):
        add(vector(w, at.POINT + part, size), vector(w, at.STEP + part, size), dual_step)


@compiled
def solve_context(
    w: Work, s: Sizes, tolerance: float, max_iterations: int, target: float
) -> tuple[int, int]:
    """Follow the path from its start to the solution, twice if need be.

    The point where μ falls below `target` is put aside for `find_centre`.

    Where more rows are active than there are variables, the floor freezes their multipliers.
    Such a context is started again without the floor, and its better end is kept.
    """
    start(w, s)
    ended, iterations = follow(w, s, tolerance, max_iterations, 0.0, target)
    if ended == STALLED:
        first = merit(w, s)
        if first > ACCEPTED_MERIT:
            copy_point(w, s, at.POINT, at.SLACK, at.FIRST, at.FIRST_SLACK)
            vector(w, at.FLOOR, 1)[0] = 0.0
            start(w, s)
            ended, more = follow(w, s, tolerance, max_iterations, 0.0, target)
            iterations += more
            if ended == STALLED and merit(w, s) > first:
                copy_point(w, s, at.FIRST, at.FIRST_SLACK, at.POINT, at.SLACK)
    return ended, iterations


@compiled
def find_centre(w: Work, s: Sizes, tolerance: float, max_iterations: int, target: float) -> None:
    """Put the point of the central path at `target` into the workspace.

    Solving comes first, and this goes back: so the solution does not depend on the target.
    """
    copy_point(w, s, at.EARLY, at.EARLY_SLACK, at.POINT, at.SLACK)
    follow(w, s, tolerance, max_iterations, target, 0.0)


@compiled
def merit(w: Work, s: Sizes) -> float:
    """The largest of the residuals and the relative gap."""
    inequality_rows(w, s, at.POINT, at.AX)
    now = measure(w, s, 0.0)
    return max(max(now.primal, now.dual), now.gap)


@compiled
def follow(
    w: Work, s: Sizes, tolerance: float, max_iterations: int, target: float, early: float
) -> tuple[int, int]:
    """Follow the path from the workspace's point; returns how it ended and the iterations.

    With a positive `target` it ends at the point where slack·λ = ω·target exactly, else at the
    solution. `tolerance` is that of the residuals and the relative gap. The first point whose μ
    is not above `early` is put aside.
    """
    curved = largest(matrix(w, at.P, s.n, s.n))
    curved = max(curved, largest(vector(w, at.D, s.k * s.M * (1 if w.diagonal else s.k))))
    best, waited, iteration = np.inf, 0, 0
    inequality_rows(w, s, at.POINT, at.AX)
    norms, dual = vector(w, at.NORMS, s.rows), vector(w, at.POINT + ROWS, s.rows)
    for iteration in range(max_iterations + 1):
        now = measure(w, s, target)
        residual = max(now.primal, now.dual)
        small_gap = _CENTRED if target > 0.0 else _GAP * tolerance
        # The start is a least-squares point, and may pass without having been refined.
        if iteration > 0 and residual <= tolerance and now.gap <= small_gap:
            return CONVERGED, iteration
        multipliers = 0.0
        for a in range(s.rows):
            multipliers = max(multipliers, dual[a] * norms[a])
        if multipliers > _DIVERGING and is_dual_ray(w, s):
            return DUAL_RAY, iteration
        if now.size > _DIVERGING and is_primal_ray(w, s):
            return PRIMAL_RAY, iteration
        if early > 0.0:
            copy_point(w, s, at.POINT, at.SLACK, at.EARLY, at.EARLY_SLACK)
            if now.mu <= early:
                early = 0.0
        worst = max(residual, now.gap)
        waited = 0 if worst < 0.9 * best else waited + 1
        if worst < best:
            best = worst
            copy_point(w, s, at.POINT, at.SLACK, at.BEST, at.BEST_SLACK)
        if waited >= (_PATIENCE if best > ACCEPTED_MERIT else 2) or not np.isfinite(worst):
            break
        take_step(w, s, now.mu, curved == 0.0, waited >= 2, target)
    if best < np.inf:
        copy_point(w, s, at.BEST, at.BEST_SLACK, at.POINT, at.SLACK)
    return STALLED, iteration


@compiled
def copy_point(w: Work, s: Sizes, point: int, slack: int, to: int, to_slack: int) -> None:
    """Copy a point and its slacks."""
    for part, size in ((Z, s.n), (U, s.k * s.M), (ROWS, s.rows), (NU, s.e), (NUS, s.s * s.M)):
        copy(vector(w, to + part, size), vector(w, point + part, size), 1.0)
    copy(vector(w, to_slack, s.rows), vector(w, slack, s.rows), 1.0)
