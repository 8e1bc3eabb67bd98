"""Where a path starts, and one step along it: Mehrotra's predictor and corrector."""

from __future__ import annotations

import numpy as np

from forewise.solvers.interior_point.kernels import workspace as at
from forewise.solvers.interior_point.kernels.arrow import factor, refine, solve
from forewise.solvers.interior_point.kernels.compiling import compiled, view
from forewise.solvers.interior_point.kernels.measuring import Progress
from forewise.solvers.interior_point.kernels.vectors import TINY, add, copy, fill
from forewise.solvers.interior_point.kernels.workspace import (
    NU,
    NUS,
    ROWS,
    Sizes,
    U,
    Work,
    Z,
    is_linking,
    vector,
)

Array = np.ndarray

# Of the way to the boundary: far from the solution, near it, and near that of a linear program,
# where nothing but this fraction limits how fast the gap falls.
_FAR_FRACTION, _NEAR_FRACTION, _LINEAR_FRACTION = 0.995, 0.9995, 0.9999999
_SHORT_STEP = 0.1  # below which a step is taken back and the point recentred
_CAREFUL_CENTRING = 0.2  # what a step leaves of μ after two that brought nothing
_NEARLY_CENTRED = 0.1  # relative deviation from the centre below which steps to it are full ones
_EXACTLY_CENTRED = 1e-12  # expected deviation after which such a step is not corrected again
_RECENTRING = 0.8  # what recentring leaves of μ and the residuals
# How often a step is refined, with simple and with linking recourse: before any row's Θ⁻¹ is
# nearly that of an active row, in units of the row, and from then on.
_NEARLY_ACTIVE = 1e-8
_SIMPLE_REFINEMENTS, _LINKING_REFINEMENTS = (0, 1), (1, 3)
# Linking recourse may need so many more, until a correction is as small as this beside the step.
_MORE_REFINEMENTS, _REFINED = 5, 1e-8


@compiled
def start(w: Work, s: Sizes, shift: float) -> None:
    """Put a point with positive slacks and multipliers, near least squares, into the workspace.

    None of them is smaller than `shift`, in units of its row.
    """
    copy(vector(w, at.RIGHT + Z, s.n), vector(w, at.Q, s.n), -1.0)
    copy(vector(w, at.RIGHT + U, s.k * s.M), vector(w, at.COST, s.k * s.M), -1.0)
    copy(vector(w, at.RIGHT + NU, s.e), vector(w, at.EQUAL, s.e), 1.0)
    copy(vector(w, at.RIGHT + NUS, s.s * s.M), vector(w, at.EQUALS, s.s * s.M), 1.0)
    copy(vector(w, at.INVERSE_THETA, s.rows), vector(w, at.UNIT, s.rows), 1.0)
    factor(w, s)
    solve(w, s, at.RIGHT, at.BOUND, at.POINT, at.AX)
    norms, inverse = vector(w, at.NORMS, s.rows), vector(w, at.INVERSE_NORMS, s.rows)
    barrier, bound = vector(w, at.BARRIER, s.rows), vector(w, at.BOUND, s.rows)
    Ax, slack = vector(w, at.AX, s.rows), vector(w, at.SLACK, s.rows)
    dual = vector(w, at.POINT + ROWS, s.rows)
    above, below = 0.0, 0.0
    for a in range(s.rows):
        slack[a] = (bound[a] - Ax[a]) * inverse[a]
        above, below = max(above, slack[a]), max(below, -slack[a])
    for a in range(s.rows):
        dual[a] = (above + shift - slack[a]) * barrier[a] * inverse[a]
        slack[a] = (slack[a] + below + shift) * norms[a]


@compiled
def longest_step(change: Array, inverse_position: Array, cap: float) -> float:
    """The longest step, at most `cap`, that keeps every position nonnegative."""
    fastest = -1.0 / cap
    for a in range(change.shape[0]):
        fastest = min(fastest, change[a] * inverse_position[a])
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
    slack, inverse_dual = vector(w, at.SLACK, s.rows), vector(w, at.INVERSE_DUAL, s.rows)
    rows, corrected = vector(w, at.RIGHT + ROWS, s.rows), vector(w, at.CORRECTED + ROWS, s.rows)
    change, dual_change = vector(w, at.CHANGE, s.rows), vector(w, at.STEP + ROWS, s.rows)
    barrier = vector(w, at.BARRIER, s.rows)
    if second_order == 0.0:
        fill(change, 0.0)  # a step that went to infinity may have left anything there
        fill(dual_change, 0.0)
    for a in range(s.rows):
        product = second_order * change[a] * dual_change[a] - target * barrier[a]
        residual = slack[a] - rows[a]
        corrected[a] = slack[a] - share * residual + product * inverse_dual[a]
        # From here on, the part of the slack's change that does not depend on the direction.
        change[a] = -share * residual


@compiled
def refine_step(w: Work, s: Sizes, near: bool) -> None:
    """Refine the corrector's direction as often as it needs."""
    far, close = _LINKING_REFINEMENTS if is_linking(s) else _SIMPLE_REFINEMENTS
    left = 0.0
    for _ in range(close if near else far):
        left = refine(w, s, at.CORRECTED, at.CORRECTED + ROWS, at.STEP, at.STEP_AX)
    if near and is_linking(s):
        for _ in range(_MORE_REFINEMENTS):
            if left <= _REFINED:
                break
            left = refine(w, s, at.CORRECTED, at.CORRECTED + ROWS, at.STEP, at.STEP_AX)


@compiled
def corrector_steps(w: Work, s: Sizes, mu: float, linear: bool, near: bool) -> tuple[float, float]:
    """Solve for the corrector's direction; returns how far variables and multipliers may go."""
    solve(w, s, at.CORRECTED, at.CORRECTED + ROWS, at.STEP, at.STEP_AX)
    refine_step(w, s, near)
    change = vector(w, at.CHANGE, s.rows)
    add(change, vector(w, at.STEP_AX, s.rows), -1.0)
    longest = _LINEAR_FRACTION if linear else _NEAR_FRACTION
    fraction = min(max(_FAR_FRACTION, 1.0 - mu), longest)
    cap = 1.0 / fraction
    inverse, inverse_dual = inverses(w, s)
    primal_step = fraction * longest_step(change, inverse, cap)
    dual_change = vector(w, at.STEP + ROWS, s.rows)
    return primal_step, fraction * longest_step(dual_change, inverse_dual, cap)


@compiled
def predict(w: Work, s: Sizes) -> float:
    """Solve for the affine direction; returns the share of μ to centre on, by how far it gets."""
    slack, dual = vector(w, at.SLACK, s.rows), vector(w, at.POINT + ROWS, s.rows)
    solve(w, s, at.RIGHT, at.RIGHT + ROWS, at.STEP, at.STEP_AX)
    rows, Ax_change = vector(w, at.RIGHT + ROWS, s.rows), vector(w, at.STEP_AX, s.rows)
    change, dual_change = vector(w, at.CHANGE, s.rows), vector(w, at.STEP + ROWS, s.rows)
    for a in range(s.rows):
        change[a] = rows[a] - slack[a] - Ax_change[a]
    inverse, inverse_dual = inverses(w, s)
    primal_step = longest_step(change, inverse, 1.0)
    dual_step = longest_step(dual_change, inverse_dual, 1.0)
    reached, total = 0.0, 0.0
    for a in range(s.rows):
        reached += (slack[a] + primal_step * change[a]) * (dual[a] + dual_step * dual_change[a])
        total += slack[a] * dual[a]
    return min(max(reached / max(total, TINY), 0.0), 1.0) ** 3


@view
def inverses(w: Work, s: Sizes) -> tuple[Array, Array]:
    """One over the slacks, one over the multipliers."""
    return vector(w, at.INVERSE_SLACK, s.rows), vector(w, at.INVERSE_DUAL, s.rows)


@compiled
def put_ratios(w: Work, s: Sizes) -> bool:
    """Put Θ⁻¹ and the reciprocals into the workspace; tells whether a row is nearly active."""
    slack, dual = vector(w, at.SLACK, s.rows), vector(w, at.POINT + ROWS, s.rows)
    inverse_theta, unit = vector(w, at.INVERSE_THETA, s.rows), vector(w, at.UNIT, s.rows)
    inverse, inverse_dual = inverses(w, s)
    for a in range(s.rows):
        both = 1.0 / (slack[a] * dual[a])
        inverse[a] = dual[a] * both
        inverse_dual[a] = slack[a] * both
        inverse_theta[a] = slack[a] * inverse_dual[a]
    near = 0
    for a in range(s.rows):
        near += inverse_theta[a] < _NEARLY_ACTIVE * unit[a]
    return near > 0


@compiled
def take_step(w: Work, s: Sizes, now: Progress, linear: bool, careful: bool, aim: float) -> None:
    """One predictor–corrector step (Mehrotra's) from the point that was measured."""
    mu = now.mu
    near = put_ratios(w, s)
    factor(w, s)

    if mu <= 2.0 * aim:
        # Close to the centre that is aimed at, plain Newton steps converge fastest.
        correct(w, s, mu, 0.0, aim, 0.0)
    elif careful:
        # The second-order term can send a path in circles: centre instead.
        correct(w, s, mu, _CAREFUL_CENTRING, aim, 0.0)
    else:
        # Predictor: straight at the solution. How far it gets says how much to centre.
        centring = predict(w, s)
        # Corrector: towards the centre, minus the predictor's second-order error.
        correct(w, s, mu, centring, aim, 1.0)
    primal_step, dual_step = corrector_steps(w, s, mu, linear, near)
    if mu <= 2.0 * aim and now.gap <= _NEARLY_CENTRED:
        # Each correction with the same factor leaves about a quarter of the deviation of what
        # there was, and together they cost less than the step that they save.
        left = (0.25 * now.gap) ** 2
        while left > _EXACTLY_CENTRED:
            correct(w, s, mu, 0.0, aim, 1.0)
            primal_step, dual_step = corrector_steps(w, s, mu, linear, near)
            left *= 0.25 * now.gap
    if min(primal_step, dual_step) < _SHORT_STEP:
        # Off the centre, the second-order term misleads: go back towards the centre first.
        correct(w, s, mu, _RECENTRING, aim, 0.0)
        primal_step, dual_step = corrector_steps(w, s, mu, linear, near)
    if not linear:
        # Quadratic costs tie the multipliers to the variables: both take the shorter step.
        primal_step = dual_step = min(primal_step, dual_step)
    add(vector(w, at.SLACK, s.rows), vector(w, at.CHANGE, s.rows), primal_step)
    add(vector(w, at.AX, s.rows), vector(w, at.STEP_AX, s.rows), primal_step)
    for part, size in ((Z, s.n), (U, s.k * s.M)):
        add(vector(w, at.POINT + part, size), vector(w, at.STEP + part, size), primal_step)
    for part, size in ((ROWS, s.rows), (NU, s.e), (NUS, s.s * s.M)):
        add(vector(w, at.POINT + part, size), vector(w, at.STEP + part, size), dual_step)
