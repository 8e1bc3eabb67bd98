"""What is solved, what is accepted, and what is corrected.

`screen` finds contexts that need no solving. `Residuals` are the optimality conditions, recomputed
from the raw data: a context is optimal only where they hold. `polish` corrects the
contexts (one in some thousands) whose path lost its last digits to rounding: the rows that look
active become equations, and the smallest correction that solves the linear system is kept where the
residuals accept it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch

from forewise.problems.programs import ScenarioProgram
from forewise.solvers.extensive import (
    ExtensiveForm,
    ExtensivePoint,
    extensive_form,
    load_point,
    unload_point,
)
from forewise.solvers.interior_point.core import (
    CONVERGED,
    STALLED,
    Matrix,
    PathEnds,
    Points,
    ProgramArrays,
    SparseArray,
    as_arrays,
    convex_contexts,
    dense,
    entries_of,
    evidence,
    no_points,
)
from forewise.solvers.interior_point.differentiation import Path
from forewise.solvers.solution import Status

Array = np.ndarray

#: A context is optimal only if all its relative residuals are at most this.
ACCEPTED = 1e-8
_NEAR = 1e-2  # worst residual from which the active rows are known
_LARGEST = 1500  # unknowns of a dense system that is still worth solving
_ROUNDS = 10  # of rows changing sides
_DEPENDENT = 1e-11  # relative singular value below which equations are dependent
_SMALLEST_MULTIPLIER = 1e-30  # as good as zero, and gradients can divide by it


def screen(arrays: ProgramArrays) -> list[Status | None]:
    """Status of the contexts that need no solving: bad data, or a cost that is not convex."""
    valid = _finite(arrays)
    convex = np.ones_like(valid)
    for block in (arrays.P, arrays.D):
        convex &= _convex(block)
    return [
        Status.INVALID if not ok else None if curved_up else Status.NONCONVEX
        for ok, curved_up in zip(valid.tolist(), convex.tolist(), strict=True)
    ]


def _finite(arrays: ProgramArrays) -> Array:
    """Mask of the contexts whose numbers all are, ``(B,)``."""
    valid = np.ones(len(arrays.weights), bool)
    with np.errstate(over="ignore", invalid="ignore"):
        for block in map(entries_of, arrays):
            # A sum is finite only if its terms are, and much faster than looking at each of them.
            if not math.isfinite(block.sum()):
                valid &= np.isfinite(block).reshape(len(block), -1).all(1)
    return valid


def _convex(block: Matrix) -> Array:
    """Mask of the contexts whose matrices are positive semidefinite, ``(B | 1,)``."""
    if not entries_of(block).any():
        return np.ones(len(entries_of(block)), bool)
    if not isinstance(block, SparseArray):
        return _positive_semidefinite(torch.from_numpy(block)).numpy()
    known = convex_contexts(block)
    if (known < 0).any():
        return _positive_semidefinite(torch.from_numpy(dense(block))).numpy()
    return known.astype(bool)


def _positive_semidefinite(block: torch.Tensor) -> torch.Tensor:
    """Mask of the contexts whose dense matrices are positive semidefinite, ``(B | 1,)``.

    Shifted by what may be rounding, they have a Cholesky factor.
    """
    diagonal = block.diagonal(dim1=-2, dim2=-1)
    finite = block.nan_to_num(0.0, 0.0, 0.0)
    shift = 1e-9 * finite.abs().amax((-2, -1))
    convex = diagonal.amin(-1) >= -shift
    if (block - torch.diag_embed(diagonal)).any():
        shifted = finite + torch.diag_embed(shift.unsqueeze(-1).expand_as(diagonal))
        convex &= (torch.linalg.cholesky_ex(shifted).info == 0) | (shift == 0)
    return convex.flatten(1).all(1) if convex.ndim > 1 else convex


@dataclass(frozen=True, eq=False)
class Residuals:
    """Relative residuals of a batch, each ``(n_contexts,)``; `Solution` says relative to what."""

    primal: torch.Tensor
    dual: torch.Tensor
    gap: torch.Tensor

    @property
    def worst(self) -> torch.Tensor:
        """The largest of the three, NaN counting as infinite."""
        worst = torch.maximum(torch.maximum(self.primal, self.dual), self.gap)
        return torch.where(worst.isnan(), torch.inf, worst)


def residuals_of_points(p: ProgramArrays, points: Points, device: torch.device) -> Residuals:
    """Recompute the optimality conditions of points of all contexts."""
    found = evidence(p, points)
    # Numbers near the largest that float64 holds end as infinity or NaN, which nothing accepts.
    with np.errstate(over="ignore", invalid="ignore"):
        reach, steepness = _natural_sizes(p, found.length)
        size, cost_size = np.maximum(reach, found.size), np.maximum(steepness, found.cost_size)
        scale = np.abs(0.5 * found.curved + found.linear)
        scale = np.maximum(scale, 0.1 * cost_size * size)
        primal, dual = found.violation / size, found.slope / cost_size
        gap = np.abs(found.curved + found.linear + found.shadow) / scale
        primal = np.maximum(primal, found.own_violation)
        gap = np.maximum(gap, found.own_gap / cost_size)
    return Residuals(*(torch.from_numpy(part).to(device) for part in (primal, dual, gap)))


def residuals_of_one(
    alone: ScenarioProgram, form: ExtensiveForm, point: ExtensivePoint
) -> Residuals:
    """Recompute those of a point of the extensive form of a single context."""
    arrays = as_arrays(alone)
    points = no_points(arrays, 1)
    unload_point(form, point, points, 0)
    return residuals_of_points(arrays, points, alone.weights.device)


def _natural_sizes(p: ProgramArrays, length: Array) -> tuple[Array, Array]:
    """How long a solution and how steep a cost is to be expected from the data, both positive.

    The length is that of the rows; where all of them pass through the origin, it is where the
    quadratic cost outweighs the linear one. A cost without a linear part is as steep as its
    quadratic part there. Both are needed where the solution itself is 0 and tells no size.
    """
    linear = np.maximum(_largest(p.q), _largest(p.d))
    if (length > 0).all() and (linear > 0).all():
        return length, linear
    curvature = np.maximum(_largest(p.P), _largest(p.D))
    bend = np.where(curvature > 0, linear / _or_one(curvature), 0.0)
    reach = _or_one(np.where(length > 0, length, bend))
    return reach, _or_one(np.where(linear > 0, linear, curvature * reach))


def _largest(block: Matrix) -> Array:
    """Largest absolute value of each context, ``(B | 1,)``; 0 where there is none."""
    values = entries_of(block)
    return np.abs(values.reshape(len(values), -1)).max(1, initial=0.0)


def _or_one(size: Array) -> Array:
    """What to divide by: a size, or 1 where there is none (a program without costs, say)."""
    return np.where(size > 0, size, 1.0)


@torch.no_grad()
def polish(program: ScenarioProgram, arrays: ProgramArrays, path: Path) -> Residuals:
    """Correct, in place, the solutions that are nearly accurate; returns all residuals."""
    device = program.weights.device
    found = residuals_of_points(arrays, path.solutions.points, device)
    for i in (found.worst > ACCEPTED).nonzero().flatten().tolist():
        near = torch.inf if path.ended[i] == CONVERGED else _NEAR
        if path.ended[i] > STALLED or not found.worst[i] < near:
            continue
        form = extensive_form(program, i)
        point = corrected(form, load_point(form, path.solutions.points, i))
        if point is None:
            continue
        point = point._replace(multipliers=np.maximum(point.multipliers, _SMALLEST_MULTIPLIER))
        better = residuals_of_one(program.take(torch.tensor([i])), form, point)
        if not float(better.worst) <= ACCEPTED:
            continue
        for name in ("primal", "dual", "gap"):
            getattr(found, name)[i] = getattr(better, name)[0]
        at_solution = np.array_equal(path.gradient_points.points.z[i], path.solutions.points.z[i])
        for ends in (path.solutions, path.gradient_points)[: 1 + at_solution]:
            _write(form, point, ends, i)
    return found


def _write(form: ExtensiveForm, point: ExtensivePoint, ends: PathEnds, context: int) -> None:
    """Replace the end of a context's path."""
    unload_point(form, point, ends.points, context)
    slack, n_first = np.maximum(form.b - form.A @ point.x, 0.0), ends.slack.first.shape[1]
    ends.slack.first[context] = slack[:n_first]
    ends.slack.scenario[context, form.kept] = slack[n_first:].reshape(len(form.kept), -1)


@np.errstate(over="ignore", invalid="ignore")  # of points near the largest numbers there are
def corrected(form: ExtensiveForm, point: ExtensivePoint) -> ExtensivePoint | None:
    """The solution whose active rows are those of a nearby point; None where that is too much."""
    if form.P.shape[0] + form.A.shape[0] + form.E.shape[0] > _LARGEST:
        return None
    H, A, E = form.P.toarray(), form.A.toarray(), form.E.toarray()
    x, multipliers, nu = point
    cost = max(np.abs(form.q).max(initial=0.0), np.abs(H @ x).max(initial=0.0), 1e-9)
    norms, sizes = _norms_and_sizes(form, A, E, x)
    of_A, of_E = np.split(sizes, [len(A)])
    slack = form.b - A @ x
    active = slack / of_A < multipliers * norms / cost
    before = np.inf
    for _ in range(_ROUNDS):
        rows, on = A[active], np.where(active, multipliers, 0.0)
        zero = np.zeros((rows.shape[0] + E.shape[0],) * 2)
        both = np.concatenate([rows, E])
        system = np.block([[H, both.T], [both, zero]])
        slope = H @ x + form.q + A.T @ on + E.T @ nu
        off = np.concatenate([slope, rows @ x - form.b[active], E @ x - form.e])
        try:
            step = np.linalg.lstsq(system, -off, rcond=_DEPENDENT)[0]
        except np.linalg.LinAlgError:  # numbers too far apart for its decomposition to converge
            return None
        n, m = len(x), len(x) + rows.shape[0]
        x, nu = x + step[:n], nu + step[m:]
        multipliers = on.copy()
        multipliers[active] += step[n:m]
        slack = form.b - A @ x
        wrong = active & (multipliers * norms < -ACCEPTED * 1e-2 * cost)
        violated = ~active & (slack < -ACCEPTED * 1e-2 * of_A)
        # A step is exact relative to its largest entry: smaller variables take another. Rows that
        # contradict each other never hold.
        error = np.max(np.abs(off) / np.concatenate([np.full(n, cost), of_A[active], of_E]))
        settled = not (wrong.any() or violated.any())
        if settled and (error <= ACCEPTED * 1e-4 or not error < 0.5 * before):
            break
        before = error if settled else np.inf
        active = (active & ~wrong) | violated
    return ExtensivePoint(x, multipliers, nu)


def _norms_and_sizes(form: ExtensiveForm, A: Array, E: Array, x: Array) -> tuple[Array, Array]:
    """Largest coefficients of A's rows, and the sizes of what A's and E's are about.

    Rows of the first stage alone have its size, as `Evidence` has it.
    """
    rows, bounds = np.abs(np.concatenate([A, E])), np.abs(np.concatenate([form.b, form.e]))
    norms = _or_one(rows.max(1, initial=0.0))
    size = max(np.abs(x).max(initial=0.0), 1e-9)
    own = ~rows[:, form.n_first :].any(1)
    farthest = (bounds / norms)[own].max(initial=0.0)
    first = max(np.abs(x[: form.n_first]).max(initial=0.0), farthest)
    return norms[: len(A)], norms * np.where(own & (farthest > 0), min(first, size), size)
