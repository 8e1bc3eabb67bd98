"""Proofs that a context has no solution, accepted only where they hold beyond doubt.

A solver's proof is exact to its tolerance, and a feasible program whose decisions are large has
a proof like that as well: the multipliers leave a small slope, and somewhere far out the decision
makes up for it. So the few rows (or variables) that carry a proof are taken alone, and their
multipliers are corrected until the proof is exact up to rounding: then no feasible point exists,
however far out. It must also show more than rounding in the right-hand sides can make.

Both tests are relative to every coefficient, and do not depend on the units of rows or variables.

May import: problems, `differentiation` for `TensorPoints`, `extensive`, `solution`, `kernels`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import lsmr

from forewise.problems.programs import ScenarioProgram
from forewise.solvers.extensive import ExtensiveForm, ExtensivePoint, extensive_form, unload_point
from forewise.solvers.interior_point.differentiation import TensorPoints
from forewise.solvers.interior_point.kernels.arrays import as_arrays
from forewise.solvers.interior_point.kernels.batch import no_points
from forewise.solvers.solution import Certificate, Duals, Status

Array = np.ndarray

#: A proof is accepted if changing its coefficients by no more than this share makes it exact.
ACCEPTED_PROOF = 1e-9
#: What a proof shows must be more than this share of the program's size: the rest is rounding.
SIGNIFICANT = 1e-11
# Share of the largest below which a multiplier, or a variable, may not belong to a proof.
_NEGLIGIBLE = (1e-10, 1e-7, 1e-4, 1e-2)
_DENSE = 1500  # rows, or columns, of a system that is still solved densely
_CORRECTIONS = 3


def infeasibility(alone: ScenarioProgram, point: ExtensivePoint) -> Certificate | None:
    """A checked proof from multipliers with A'λ + E'ν ≈ 0 and b'λ + e'ν < 0, if they are one."""
    form = extensive_form(alone, 0)
    rows = sp.vstack([form.A, form.E], format="csr")
    bounds, n = np.concatenate([form.b, form.e]), len(form.b)
    multipliers = np.concatenate([point.multipliers, point.nu])
    if not np.isfinite(multipliers).all():
        return None
    sizes = _largest_of_rows(rows)
    distance = np.max(np.abs(bounds) / sizes, initial=0.0)
    for proof in _exact(rows.T.tocsr(), multipliers, 1.0 / sizes, slice(0, n)):
        value = -float(bounds @ proof)
        if not value > SIGNIFICANT * distance * float(sizes @ np.abs(proof)):
            continue
        residual = _share(rows.T @ proof, abs(rows).T @ np.abs(proof))
        if residual <= ACCEPTED_PROOF and (proof[:n] >= 0).all():
            scaled = ExtensivePoint(np.zeros_like(form.q), proof[:n] / value, proof[n:] / value)
            found = _as_tensors(alone, form, scaled)
            duals = Duals(found.first, found.nu, found.scenario, found.nus)
            return Certificate(Status.INFEASIBLE, residual, multipliers=duals)
    return None


def unboundedness(alone: ScenarioProgram, point: ExtensivePoint) -> Certificate | None:
    """A checked ray from one with A x ≤ 0, E x ≈ 0, H x ≈ 0 and q'x < 0, if it is one."""
    form = extensive_form(alone, 0)
    if not np.isfinite(point.x).all():
        return None
    equal = sp.vstack([form.E, form.P], format="csr")
    importance = _importance(alone, form)
    for ray in _kept_rows_exact(form, equal, point.x):
        fall = -float(form.q @ ray)
        if not fall > SIGNIFICANT * float(importance @ np.abs(ray)):
            continue
        off = np.concatenate([np.maximum(form.A @ ray, 0.0), np.abs(equal @ ray)])
        size = np.concatenate([abs(form.A) @ np.abs(ray), abs(equal) @ np.abs(ray)])
        residual = _share(off, size)
        if residual <= ACCEPTED_PROOF:
            scaled = ExtensivePoint(ray / fall, np.zeros_like(form.b), np.zeros_like(form.e))
            found = _as_tensors(alone, form, scaled)
            return Certificate(
                Status.UNBOUNDED, residual, decision_ray=found.z, recourse_ray=found.u
            )
    return None


def _as_tensors(alone: ScenarioProgram, form: ExtensiveForm, point: ExtensivePoint) -> TensorPoints:
    points = no_points(as_arrays(alone), 1)
    unload_point(form, point, points, 0)
    return TensorPoints.of(points, alone.weights.device)


def _importance(alone: ScenarioProgram, form: ExtensiveForm) -> Array:
    """The largest cost a unit of each variable could have: a scenario's is weighed."""
    weights = alone.weights[0].cpu().numpy()[form.kept]
    unweighed = form.q.copy()
    unweighed[alone.n_decisions :] /= np.repeat(weights, alone.n_recourse)
    importance = np.full(len(form.q), np.abs(unweighed).max(initial=0.0))
    importance[alone.n_decisions :] *= np.repeat(weights, alone.n_recourse)
    return importance


def _kept_rows_exact(form: ExtensiveForm, equal: sp.csr_matrix, x: Array) -> Iterator[Array]:
    """Rays near x that keep the equations, and the rows that x nearly keeps, exactly."""
    along, size = form.A @ x, abs(form.A) @ np.abs(x)
    for nearly in (1e-9, 1e-6, 1e-3):
        rows = sp.vstack([equal, form.A.tocsr()[along > -nearly * size]], format="csr")
        yield from _exact(rows, x, np.ones(len(x)), slice(0, 0))


def _exact(system: sp.csr_matrix, x: Array, unit: Array, nonnegative: slice) -> Iterator[Array]:
    """Solutions of system x = 0 near x, on ever smaller supports; x itself comes first.

    The correction is relative to x, and what is off in a row relative to the row's terms. A
    component that is left out, or was negative and must not be, is zero.
    """
    x = x.copy()
    x[nonnegative] = np.maximum(x[nonnegative], 0.0)
    yield x
    importance = np.abs(x) / unit
    top = importance.max(initial=0.0)
    for negligible in _NEGLIGIBLE:
        support = np.flatnonzero(importance > negligible * top)
        if not len(support):
            return
        rows = system[:, support]
        rows = rows[np.diff(rows.indptr) > 0]
        corrected = x[support]
        for _ in range(_CORRECTIONS):
            terms = abs(rows) @ np.abs(corrected)
            weighted = sp.diags(1.0 / np.where(terms > 0, terms, 1.0)) @ rows
            step = _least_squares(weighted @ sp.diags(corrected), -(weighted @ corrected))
            corrected = corrected * (1.0 + step)
        found = np.zeros_like(x)
        found[support] = corrected
        yield found


def _least_squares(matrix: sp.spmatrix, right: Array) -> Array:
    """The smallest step with the least squared error."""
    if max(matrix.shape) <= _DENSE:
        try:
            return np.linalg.lstsq(matrix.toarray(), right, rcond=1e-12)[0]
        except np.linalg.LinAlgError:  # numbers too far apart for its decomposition to converge
            return np.zeros(matrix.shape[1])
    answer: Array = lsmr(matrix, right, atol=1e-15, btol=1e-15)[0]
    return answer


def _share(off: Array, size: Array) -> float:
    """The largest part of `size` that is `off`."""
    return float(np.max(np.abs(off) / np.where(size > 0, size, 1.0), initial=0.0))


def _largest_of_rows(rows: sp.csr_matrix) -> Array:
    """Largest coefficient of each row, 1 for a zero row."""
    sizes = abs(rows).max(axis=1).toarray().ravel() if rows.shape[0] else np.zeros(0)
    return np.where(sizes > 0, sizes, 1.0)
