"""Proofs that a context has no solution, and where they are looked for.

Most rays come with the path, which diverges along them. Where it only stalled, two programs that
always have a solution decide: the least violation of the constraints (its multipliers prove
infeasibility), and the steepest direction that keeps them (the ray of an unbounded program).

A solver's proof is exact to its tolerance, and a feasible program with a distant solution has one
like it. So the few rows (or variables) that carry a proof are taken alone and corrected until it is
exact up to rounding, relative to every coefficient, and shows more than rounding in the right-hand
sides can make.

The two programs take as long as the context itself or longer, so above `SEARCHED` rows and columns
they are not tried: a large context whose path only stalled stays inaccurate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import scipy.sparse as sp
import torch
from scipy.sparse.linalg import lsmr
from torch.nn.functional import pad

from forewise.problems.programs import ScenarioProgram, joined
from forewise.solvers.extensive import (
    ExtensiveForm,
    ExtensivePoint,
    extensive_form,
    load_point,
    unload_point,
)
from forewise.solvers.interior_point.core import DUAL_RAY, PRIMAL_RAY, as_arrays, no_points
from forewise.solvers.interior_point.differentiation import Path, TensorPoints
from forewise.solvers.solution import Certificate, Status

Array = np.ndarray

#: Solves a program that has a solution, of one context.
SolveOne = Callable[[ScenarioProgram], ExtensivePoint | None]

#: A proof is accepted if changing its coefficients by no more than this share makes it exact.
ACCEPTED_PROOF = 1e-9
#: What a proof shows must be more than this share of the program's size: the rest is rounding.
SIGNIFICANT = 1e-11
#: Rows and columns of a context, all scenarios together, up to which a proof is looked for.
SEARCHED = 200_000
# Share of the largest below which a multiplier, or a variable, may not belong to a proof.
_NEGLIGIBLE = (1e-10, 1e-7, 1e-4, 1e-2)
_DENSE = 1500  # rows, or columns, of a system that is still solved densely
_CORRECTIONS = 3
# Multiplications that one least-squares correction may take, and iterations it has in any case.
_WORK, _LEAST_ITERATIONS = 3e8, 100


@torch.no_grad()
def diagnose(
    program: ScenarioProgram, path: Path, contexts: list[int], solve: SolveOne
) -> dict[int, Certificate]:
    """Certificates of the contexts that have one."""
    found = {}
    for i in contexts:
        alone = program.take(torch.tensor([i], device=program.weights.device))
        point = load_point(extensive_form(alone, 0), path.solutions.points, i)
        proof = None
        if path.ended[i] == DUAL_RAY:
            proof = infeasibility(alone, point)
        elif path.ended[i] == PRIMAL_RAY:
            proof = unboundedness(alone, point)
        found[i] = proof or search_certificate(alone, solve)
    return {i: certificate for i, certificate in found.items() if certificate is not None}


def search_certificate(alone: ScenarioProgram, solve: SolveOne) -> Certificate | None:
    """Look for a certificate of a single context, from scratch, unless it is too large."""
    scenario = alone.n_recourse + alone.r.shape[-1] + alone.s.shape[-1]
    first = alone.n_decisions + alone.h.shape[-1] + alone.e.shape[-1]
    if first + int((alone.weights > 0).sum()) * scenario > SEARCHED:
        return None
    return (
        _search_first_stage(alone, solve)
        or _search_infeasibility(alone, solve)
        or _search_unboundedness(alone, solve)
    )


def _search_first_stage(alone: ScenarioProgram, solve: SolveOne) -> Certificate | None:
    """A proof from the rows of the first stage alone, which may be tiny beside the scenarios'."""
    if alone.h.shape[-1] + alone.e.shape[-1] == 0 or alone.n_recourse == 0:
        return None
    rows = {name: getattr(alone, name) for name in "GhEe"}
    first = ScenarioProgram(alone.weights.new_ones(1, 1), torch.zeros_like(alone.q), **rows)
    proof = _search_infeasibility(first, solve)
    if proof is None or proof.multipliers is None:
        return None
    none = {
        f"scenario_{kind}": right.new_zeros(1, alone.n_scenarios, right.shape[-1])
        for kind, right in (("inequality", alone.r), ("equality", alone.s))
    }
    return replace(proof, multipliers=replace(proof.multipliers, **none))


def _search_infeasibility(alone: ScenarioProgram, solve: SolveOne) -> Certificate | None:
    point = solve(_least_violation(alone))
    if point is None:
        return None
    n_g, n_e, n_r, n_s = (x.shape[-1] for x in (alone.h, alone.e, alone.r, alone.s))
    first, scenario = point.multipliers[: n_g + 2 * n_e], point.multipliers[n_g + 2 * n_e + 1 :]
    scenario = scenario.reshape(int((alone.weights > 0).sum()), n_r + 2 * n_s)
    up, down = np.split(first[n_g:], 2)
    above, below = np.split(scenario[:, n_r:], 2, axis=1)
    proof = ExtensivePoint(
        x=point.x[: alone.n_decisions],
        multipliers=np.concatenate([first[:n_g], scenario[:, :n_r].ravel()]),
        nu=np.concatenate([up - down, (above - below).ravel()]),
    )
    return infeasibility(alone, proof)


def _search_unboundedness(alone: ScenarioProgram, solve: SolveOne) -> Certificate | None:
    point = solve(_steepest_direction(alone))
    return None if point is None else unboundedness(alone, point)


def _least_violation(alone: ScenarioProgram) -> ScenarioProgram:
    """min τ ≥ 0 such that every row is violated by at most τ, in units of the row.

    Rows: G, E from above, E from below, −τ ≤ 0; and per scenario W, V from above and below.
    """

    def elastic(rows: torch.Tensor, norms: torch.Tensor) -> torch.Tensor:
        return joined([rows, -norms.unsqueeze(-1)], -1)

    h, e, r, s = _row_norms(alone)
    only_tau = pad(alone.q.new_ones(1, 1), (alone.n_decisions, 0))
    T = pad(alone.T, (0, 0, 0, alone.r.shape[-1] - alone.T.shape[-2]))
    rows = [elastic(alone.G, h), elastic(alone.E, e), elastic(-alone.E, e), -only_tau[None]]
    return ScenarioProgram(
        weights=alone.weights,
        q=only_tau,
        G=torch.cat(rows, dim=1),
        h=torch.cat([alone.h, alone.e, -alone.e, alone.q.new_zeros(1, 1)], dim=1),
        d=torch.zeros_like(alone.d),
        T=joined([elastic(T, r), elastic(alone.F, s), elastic(-alone.F, s)], 2),
        W=joined([alone.W, alone.V, -alone.V], 2),
        r=joined([alone.r, alone.s, -alone.s], 2),
    )


def _steepest_direction(alone: ScenarioProgram) -> ScenarioProgram:
    """min of the linear cost over directions in a unit box that keep all rows and bend none."""
    q, n, k = alone.q, alone.n_decisions, alone.n_recourse
    box_z, box_u = (torch.eye(size, dtype=q.dtype, device=q.device)[None] for size in (n, k))
    return ScenarioProgram(
        weights=alone.weights,
        q=q,
        G=torch.cat([alone.G, box_z, -box_z], dim=1),
        h=torch.cat([torch.zeros_like(alone.h), q.new_ones(1, 2 * n)], dim=1),
        E=torch.cat([alone.E, alone.P], dim=1),
        e=q.new_zeros(1, alone.e.shape[-1] + n),
        d=alone.d,
        T=alone.T,
        W=joined([alone.W, box_u[None], -box_u[None]], 2),
        r=pad(q.new_ones(1, 1, 2 * k), (alone.r.shape[-1], 0)),
        F=pad(alone.F, (0, 0, 0, k)),
        V=joined([alone.V, alone.D], 2),
        s=q.new_zeros(1, 1, alone.s.shape[-1] + k),
    )


def _row_norms(program: ScenarioProgram) -> tuple[torch.Tensor, ...]:
    """Largest coefficient of each row of h, e, r, s, shaped like these; 1 for a zero row."""

    def largest(*blocks: torch.Tensor) -> torch.Tensor:
        norm = joined([pad(block.detach().abs(), (0, 1)) for block in blocks], -1).amax(-1)
        return torch.where(norm > 0, norm, 1.0)

    T = pad(program.T, (0, 0, 0, program.r.shape[-1] - program.T.shape[-2]))
    return (
        largest(program.G),
        largest(program.E),
        largest(T, program.W),
        largest(program.F, program.V),
    )


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
            duals = _as_tensors(alone, form, scaled).duals
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
    return TensorPoints.from_arrays(points, alone.weights.device)


def _importance(alone: ScenarioProgram, form: ExtensiveForm) -> Array:
    """The largest cost a unit of each variable could have: a scenario's is weighted."""
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
    most = max(int(_WORK / (4.0 * max(matrix.nnz, 1))), _LEAST_ITERATIONS)
    most = min(most, *matrix.shape)
    answer: Array = lsmr(matrix, right, atol=1e-15, btol=1e-15, maxiter=most)[0]
    return answer


def _share(off: Array, size: Array) -> float:
    """The largest part of `size` that is `off`."""
    return float(np.max(np.abs(off) / np.where(size > 0, size, 1.0), initial=0.0))


def _largest_of_rows(rows: sp.csr_matrix) -> Array:
    """Largest coefficient of each row, 1 for a zero row."""
    sizes = abs(rows).max(axis=1).toarray().ravel() if rows.shape[0] else np.zeros(0)
    return np.where(sizes > 0, sizes, 1.0)
