"""A last correction of the few contexts whose path ended just short of their solution.

Where rows have neither slack nor multiplier, or constraints leave no interior, a path loses its
last digits to rounding. From a point that near, it can be told which rows are active: they become
equations, the multipliers of the others zero, and the smallest correction that solves the linear
system left is taken. Rows that turn out wrong change sides, and the system is solved again.

It is dense and slow, for one context in some thousands. A correction is kept only where the
residuals recomputed from the raw data accept it.

May import: problems, `optimality`, `extensive`, `differentiation` for `Path`,
`kernels`.
"""

from __future__ import annotations

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
from forewise.solvers.interior_point.differentiation import Path
from forewise.solvers.interior_point.kernels.arrays import ProgramArrays, as_arrays
from forewise.solvers.interior_point.kernels.batch import PathEnds
from forewise.solvers.interior_point.kernels.path import STALLED
from forewise.solvers.interior_point.kernels.points import Points
from forewise.solvers.interior_point.optimality import ACCEPTED, Residuals, residuals_of_points

Array = np.ndarray

_NEAR = 1e-2  # worst residual from which the active rows can be told
_LARGEST = 1500  # unknowns of a dense system that is still worth solving
_ROUNDS = 10  # of rows changing sides
_DEPENDENT = 1e-11  # relative singular value below which equations say the same
_SMALLEST_MULTIPLIER = 1e-30  # as good as zero, and gradients can divide by it


@torch.no_grad()
def polish_inaccurate(program: ScenarioProgram, arrays: ProgramArrays, path: Path) -> Residuals:
    """Correct, in place, the solutions that are nearly accurate; returns all residuals."""
    device = program.weights.device
    found = residuals_of_points(arrays, path.solutions.points, device)
    for i in (found.worst > ACCEPTED).nonzero().flatten().tolist():
        if path.ended[i] > STALLED or not found.worst[i] <= _NEAR:
            continue
        form = extensive_form(program, i)
        ends = PathEnds(
            Points(*(part[i : i + 1].copy() for part in path.solutions.points)),
            type(path.solutions.slack)(*(part[i : i + 1].copy() for part in path.solutions.slack)),
            path.solutions.holds[i : i + 1],
        )
        correction = corrected(form, load_point(form, ends.points))
        if correction is None:
            continue
        _unload(form, correction, ends)
        alone = as_arrays(program.take(torch.tensor([i])))
        better = residuals_of_points(alone, ends.points, device)
        if float(better.worst) <= ACCEPTED:
            for name in ("primal", "dual", "gap"):
                getattr(found, name)[i] = getattr(better, name)[0]
            _put(path, i, ends)
    return found


def corrected(form: ExtensiveForm, point: ExtensivePoint) -> ExtensivePoint | None:
    """The solution whose active rows are those of a nearby point; None where that is too much."""
    if form.P.shape[0] + form.A.shape[0] + form.E.shape[0] > _LARGEST:
        return None
    H, A, E = form.P.toarray(), form.A.toarray(), form.E.toarray()
    x, multipliers, nu = point
    norms = np.abs(A).max(1, initial=0.0)
    norms[norms == 0.0] = 1.0
    size, cost = max(np.abs(x).max(initial=0.0), 1e-9), max(np.abs(form.q).max(initial=0.0), 1e-9)
    slack = (form.b - A @ x) / norms
    active = slack / size < multipliers * norms / cost
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
        slack = (form.b - A @ x) / norms
        wrong = active & (multipliers * norms < -ACCEPTED * 1e-2 * cost)
        violated = ~active & (slack < -ACCEPTED * 1e-2 * size)
        small = np.abs(off[:n]).max(initial=0.0) <= ACCEPTED * 1e-4 * cost
        if small and not wrong.any() and not violated.any():
            break
        active = (active & ~wrong) | violated
    return ExtensivePoint(x, multipliers, nu)


def _unload(form: ExtensiveForm, point: ExtensivePoint, ends: PathEnds) -> None:
    """Write a point of the extensive form to that of a single context."""
    multipliers = np.maximum(point.multipliers, _SMALLEST_MULTIPLIER)
    unload_point(form, point._replace(multipliers=multipliers), ends.points, 0)
    slack, n_first = np.maximum(form.b - form.A @ point.x, 0.0), ends.slack.first.shape[1]
    ends.slack.first[0] = slack[:n_first]
    ends.slack.scenario[0, form.kept] = slack[n_first:].reshape(len(form.kept), -1)


def _put(path: Path, i: int, ends: PathEnds) -> None:
    """Replace a context's solution, and where it is differentiated if that is the solution."""
    places = [path.solutions]
    if np.array_equal(path.gradient_points.points.z[i], path.solutions.points.z[i]):
        places.append(path.gradient_points)
    for place in places:
        for old, new in zip(
            (*place.points, *place.slack), (*ends.points, *ends.slack), strict=True
        ):
            old[i] = new[0]
