"""Following the central path of one context: a primal–dual interior-point method.

The path is that of a *weighted* barrier, in which a scenario counts by its weight,

    slack_i λ_i = ω_i μ,   ω_i = 1 for a first-stage row, 16 w_j for a row of scenario j,

so that the path, and the centre of a face of optima where it ends, do not depend on how many
scenarios describe the same distribution.
"""

from __future__ import annotations

import numpy as np

from forewise.solvers.interior_point.kernels import workspace as at
from forewise.solvers.interior_point.kernels.compiling import compiled
from forewise.solvers.interior_point.kernels.measuring import is_dual_ray, is_primal_ray, measure
from forewise.solvers.interior_point.kernels.products import inequality_rows
from forewise.solvers.interior_point.kernels.stepping import start, take_step
from forewise.solvers.interior_point.kernels.vectors import add, copy, fill, largest
from forewise.solvers.interior_point.kernels.workspace import (
    NU,
    NUS,
    ROWS,
    Sizes,
    U,
    Work,
    Z,
    cube,
    linking_variables,
    matrix,
    vector,
)

# How a path ended.
CONVERGED = 1
STALLED = 2
PRIMAL_RAY = 3  # the variables diverge along a ray of falling cost: unbounded
DUAL_RAY = 4  # the multipliers diverge along a proof that nothing is feasible
LOST = 5  # the centre that was looked for is far away, or nowhere

_CENTRED = 1e-11  # residuals and relative deviation of a point that counts as on the path
_NEARLY_CENTRED = 1e-6  # the same of a point that is as good as there
_GAP = 1e-3  # tolerance of the relative gap, against that of the residuals
ACCEPTED_MERIT = 1e-9  # of a stalled path, to be kept without a second try
_FIRST_SHIFT, _SECOND_SHIFT = 0.03, 1.0  # smallest slack and multiplier at the two starts
_PATIENCE = 8  # iterations without progress before a context is given up
_ROUNDING = 1e-12  # μ below which its fall says nothing
_FAR_AWAY = 1e2  # size of variables from which a centre is not looked for
_DIVERGING = 1e3  # size of variables or multipliers from which rays are looked for


@compiled
def solve_context(
    w: Work, s: Sizes, tolerance: float, max_iterations: int, target: float
) -> tuple[int, int]:
    """Follow the path from its start to the solution, twice if need be.

    The point where μ falls below twice the `target` is put aside for `find_centre`.

    Where more rows are active than there are variables, the floor freezes their multipliers.
    Where the start lies too close to the boundary, steps are short. Both are started again
    without the floor and farther away, and the better end is kept.
    """
    start(w, s, _FIRST_SHIFT)
    ended, iterations = follow(w, s, tolerance, max_iterations, 0.0, target)
    if ended == STALLED:
        first = merit(w, s, 0.0)
        if first > ACCEPTED_MERIT:
            copy_point(w, s, at.POINT, at.SLACK, at.FIRST, at.FIRST_SLACK)
            vector(w, at.FLOOR, 1)[0] = 0.0
            start(w, s, _SECOND_SHIFT)
            ended, more = follow(w, s, tolerance, max_iterations, 0.0, target)
            iterations += more
            if ended == STALLED and merit(w, s, 0.0) > first:
                copy_point(w, s, at.FIRST, at.FIRST_SLACK, at.POINT, at.SLACK)
    return ended, iterations


@compiled
def find_centre(w: Work, s: Sizes, tolerance: float, max_iterations: int, target: float) -> float:
    """Put the point of the central path at `target` into the workspace; returns how it is held.

    Solving comes first, and this goes back: so the solution does not depend on the target.
    """
    copy_point(w, s, at.EARLY, at.EARLY_SLACK, at.POINT, at.SLACK)
    ended = seek_centre(w, s, tolerance, max_iterations, target)
    if ended == STALLED:
        # The path went by far from its centre, and the way back was along the boundary.
        start(w, s, _SECOND_SHIFT)
        ended = seek_centre(w, s, tolerance, max_iterations, target)
    if ended == CONVERGED:
        return 0.0
    hold(w, s, target)
    copy_point(w, s, at.EARLY, at.EARLY_SLACK, at.POINT, at.SLACK)
    if seek_centre(w, s, tolerance, max_iterations, target) != CONVERGED:
        start(w, s, _SECOND_SHIFT)
        seek_centre(w, s, tolerance, max_iterations, target)
    return target


@compiled
def seek_centre(w: Work, s: Sizes, tolerance: float, max_iterations: int, target: float) -> int:
    """Go from the workspace's point to the centre at `target`; returns how that ended."""
    ended, _ = follow(w, s, tolerance, max_iterations, target, 0.0)
    if ended == STALLED and merit(w, s, target) <= _NEARLY_CENTRED:
        return CONVERGED
    return ended


@compiled
def hold(w: Work, s: Sizes, target: float) -> None:
    """Add to the costs what keeps a centre from going to infinity.

    Where decisions as large as one likes are optimal, the barrier drives them there.
    ½ target |x|², weighed as all rows together are, holds them at the distance of the rows.
    """
    barrier, weight = vector(w, at.BARRIER, s.rows), vector(w, at.WEIGHT, s.M)
    total = 0.0
    for a in range(s.rows):
        total += barrier[a]
    P, D = matrix(w, at.P, s.n, s.n), matrix(w, at.D, s.k, s.M)
    for a in range(s.n):
        P[a, a] += target * total
    for v in range(s.k):
        for m in range(s.M):
            D[v, m] += target * total * weight[m]
    linking, link_D = linking_variables(w, s), cube(w, at.LINK_D, s.links, s.links, s.M)
    for a in range(s.links):
        add(link_D[a, a], D[linking[a]], 1.0)
        fill(D[linking[a]], 0.0)


@compiled
def merit(w: Work, s: Sizes, target: float) -> float:
    """The largest of the residuals and the relative gap, or deviation from the centre."""
    inequality_rows(w, s, at.POINT, at.AX)
    now = measure(w, s, target)
    return max(max(now.primal, now.dual), now.gap)


@compiled
def follow(
    w: Work, s: Sizes, tolerance: float, max_iterations: int, target: float, early: float
) -> tuple[int, int]:
    """Follow the path from the workspace's point; returns how it ended and the iterations.

    With a positive `target` it ends at the point where slack·λ = ω·target exactly, else at the
    solution. `tolerance` is that of the residuals and the relative gap. The first point whose μ
    is not above twice `early` is put aside: the next one may be off the centre by far.
    """
    curved = largest(matrix(w, at.P, s.n, s.n))
    curved = max(curved, largest(matrix(w, at.D, s.k, s.M)))
    curved = max(curved, largest(vector(w, at.LINK_D, s.links * s.links * s.M)))
    best, lowest, waited, iteration = np.inf, np.inf, 0, 0
    inequality_rows(w, s, at.POINT, at.AX)
    for iteration in range(max_iterations + 1):
        now = measure(w, s, target)
        residual = max(now.primal, now.dual)
        small, small_gap = tolerance, _GAP * tolerance
        if target > 0.0:
            small = small_gap = _CENTRED
        # The start is a least-squares point, and may pass without having been refined.
        if iteration > 0 and residual <= small and now.gap <= small_gap:
            return CONVERGED, iteration
        if now.multipliers > _DIVERGING and is_dual_ray(w, s):
            return DUAL_RAY, iteration
        if now.size > _DIVERGING and is_primal_ray(w, s):
            return PRIMAL_RAY, iteration
        if target > 0.0 and _FAR_AWAY < now.size < np.inf:
            return LOST, iteration
        if now.mu <= 2.0 * early:
            copy_point(w, s, at.POINT, at.SLACK, at.EARLY, at.EARLY_SLACK)
            early = 0.0
        worst = max(residual, now.gap)
        # A falling μ is progress, whatever the gap is relative to; it may take several steps.
        falling = now.mu < 0.9 * lowest and now.mu > _ROUNDING
        waited = 0 if worst < 0.9 * best or falling else waited + 1
        lowest = now.mu if falling else lowest
        if worst < best:
            best = worst
            copy_point(w, s, at.POINT, at.SLACK, at.BEST, at.BEST_SLACK)
        if waited >= (_PATIENCE if best > ACCEPTED_MERIT else 2) or not np.isfinite(worst):
            break
        take_step(w, s, now, curved == 0.0, waited >= 2, target)
    if best < np.inf:
        copy_point(w, s, at.BEST, at.BEST_SLACK, at.POINT, at.SLACK)
    if early > 0.0:
        copy_point(w, s, at.POINT, at.SLACK, at.EARLY, at.EARLY_SLACK)
    return STALLED, iteration


@compiled
def copy_point(w: Work, s: Sizes, point: int, slack: int, to: int, to_slack: int) -> None:
    """Copy a point and its slacks."""
    for part, size in ((Z, s.n), (U, s.k * s.M), (ROWS, s.rows), (NU, s.e), (NUS, s.s * s.M)):
        copy(vector(w, to + part, size), vector(w, point + part, size), 1.0)
    copy(vector(w, to_slack, s.rows), vector(w, slack, s.rows), 1.0)
