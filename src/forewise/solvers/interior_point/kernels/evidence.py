"""What the optimality conditions say of given points, from a program's raw data.

Nothing here uses the scaled program, the workspace or anything else that solving uses.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from forewise.solvers.interior_point.kernels.arrays import ProgramArrays
from forewise.solvers.interior_point.kernels.compiling import compiled, inlined, view
from forewise.solvers.interior_point.kernels.points import Points
from forewise.solvers.interior_point.kernels.views import look

Array = np.ndarray


class Evidence(NamedTuple):
    """Sizes of what the optimality conditions are made of, each ``(n_contexts,)``."""

    violation: Array  # largest violation of a row, in units of its largest coefficient
    slope: Array  # violation of stationarity in z, and in u_j summed over the scenarios
    shadow: Array  # b'λ + e'ν over all stages
    curved: Array  # z'P z + Σ_j w_j u_j'D_j u_j
    linear: Array  # q'z + Σ_j w_j d_j'u_j
    length: Array  # a typical distance from the origin to a row's boundary
    size: Array  # of the variables
    cost_size: Array  # of the costs' gradients


def weigh(p: ProgramArrays, x: Points) -> Evidence:
    """The evidence for or against the points of all contexts; NaN where a point is not finite."""
    n_contexts, n_z = x.z.shape
    found = Evidence(*(np.zeros(n_contexts) for _ in Evidence._fields))
    _weigh_contexts(p, x, found, np.zeros(n_z), np.zeros(x.u.shape[2]))
    return found


class _Sums(NamedTuple):
    """What rows add up to: multiplied with the point, and by how much they are off."""

    violation: float
    wrong: float  # the largest multiplier of the wrong sign, in units of its row
    shadow: float
    logs: float  # of the distances from the origin to the boundaries that do not pass it
    number: int  # of those


@compiled
def _weigh_contexts(p: ProgramArrays, x: Points, found: Evidence, of_z: Array, of_u: Array) -> None:
    for b in range(x.z.shape[0]):
        if not _is_finite(x, b):
            found.violation[b] = np.nan
            continue
        z = x.z[b]
        found.size[b] = max(_largest(z), _largest(look(x.u, b * x.u[b].size, (x.u[b].size,))))
        _weigh_first_cost(p, b, z, found, of_z)
        sums = _Sums(0.0, 0.0, 0.0, 0.0, 0)
        none = look(of_z, 0, (0,))
        for G, h, multipliers, equal in (
            (p.G, p.h, x.first, False),
            (p.E, p.e, x.nu, True),
        ):
            A, bound = G[_part(G, b)], h[_part(h, b)]
            for i in range(bound.shape[0]):
                row = (bound[i], multipliers[b, i], equal, True)
                sums = _weigh_row(A[i], none, z, none, row, sums, of_z, none)
        found.slope[b] = sums.wrong
        sums = _weigh_scenarios(p, b, x, found, sums, of_z, of_u)
        found.violation[b], found.shadow[b] = sums.violation, sums.shadow
        found.slope[b] = max(found.slope[b], _largest(of_z))
        found.length[b] = np.exp(sums.logs / sums.number) if sums.number else 0.0


@compiled
def _weigh_first_cost(p: ProgramArrays, b: int, z: Array, found: Evidence, of_z: Array) -> None:
    """Costs of the first stage; `of_z` becomes their gradient."""
    P, q = p.P[_part(p.P, b)], p.q[_part(p.q, b)]
    for a in range(z.shape[0]):
        Pz = 0.0
        for c in range(z.shape[0]):
            Pz += P[a, c] * z[c]
        of_z[a] = Pz + q[a]
        found.curved[b] += z[a] * Pz
        found.linear[b] += q[a] * z[a]
        found.cost_size[b] = max(found.cost_size[b], max(abs(q[a]), abs(Pz)))


@compiled
def _weigh_scenarios(
    p: ProgramArrays, b: int, x: Points, found: Evidence, sums: _Sums, of_z: Array, of_u: Array
) -> _Sums:
    """Costs and rows of the scenarios; `of_z` gets what their multipliers add."""
    T, W, r = p.T[_part(p.T, b)], p.W[_part(p.W, b)], p.r[_part(p.r, b)]
    F, V, s = p.F[_part(p.F, b)], p.V[_part(p.V, b)], p.s[_part(p.s, b)]
    D, d = p.D[_part(p.D, b)], p.d[_part(p.d, b)]
    z, none = x.z[b], look(of_z, 0, (0,))
    steep, wrong = 0.0, 0.0
    for j in range(x.u.shape[1]):
        u, weight = _row(x.u, b, j), p.weights[b, j]
        D_j, d_j = _part(D, j), _part(d, j)
        for a in range(u.shape[0]):
            Du = 0.0
            for c in range(u.shape[0]):
                Du += D[D_j, a, c] * u[c]
            of_u[a] = weight * (Du + d[d_j, a])
            found.curved[b] += weight * u[a] * Du
            found.linear[b] += weight * d[d_j, a] * u[a]
            found.cost_size[b] = max(found.cost_size[b], max(abs(d[d_j, a]), abs(Du)))
        T_j, W_j, r_j = _part(T, j), _part(W, j), _part(r, j)
        own = _Sums(sums.violation, 0.0, sums.shadow, sums.logs, sums.number)
        for i in range(r.shape[1]):
            coupled = _row(T, T_j, i) if i < T.shape[1] else none
            row = (r[r_j, i], x.scenario[b, j, i], False, weight > 0.0)
            own = _weigh_row(coupled, _row(W, W_j, i), z, u, row, own, of_z, of_u)
        F_j, V_j, s_j = _part(F, j), _part(V, j), _part(s, j)
        for i in range(s.shape[1]):
            row = (s[s_j, i], x.nus[b, j, i], True, weight > 0.0)
            own = _weigh_row(_row(F, F_j, i), _row(V, V_j, i), z, u, row, own, of_z, of_u)
        steep, wrong, sums = steep + _largest(of_u), wrong + own.wrong, own
    found.slope[b] = max(found.slope[b], max(steep, wrong))
    return sums


@inlined
def _weigh_row(
    in_z: Array,
    in_u: Array,
    z: Array,
    u: Array,
    row: tuple[float, float, bool, bool],
    sums: _Sums,
    of_z: Array,
    of_u: Array,
) -> _Sums:
    """One row: its bound, its multiplier, whether it is an equality, whether it is there at all."""
    bound, multiplier, equal, kept = row
    product, norm = -bound, 0.0
    for c in range(in_z.shape[0]):
        product += in_z[c] * z[c]
        norm = max(norm, abs(in_z[c]))
        of_z[c] += in_z[c] * multiplier
    for c in range(in_u.shape[0]):
        product += in_u[c] * u[c]
        norm = max(norm, abs(in_u[c]))
        of_u[c] += in_u[c] * multiplier
    norm = norm if norm > 0.0 else 1.0
    violation, wrong, shadow, logs, number = sums
    shadow += bound * multiplier
    if not equal:
        wrong = max(wrong, -multiplier * norm)
    if kept:
        violation = max(violation, (abs(product) if equal else product) / norm)
        if bound != 0.0:
            logs += np.log(abs(bound) / norm)
            number += 1
    return _Sums(violation, wrong, shadow, logs, number)


@inlined
def _part(block: Array, index: int) -> int:
    """Where a context (or scenario) finds its part of a possibly shared block."""
    return index if block.shape[0] > 1 else 0


@view
def _row(block: Array, j: int, i: int) -> Array:
    """block[j, i], without counting that it is looked at."""
    rows, columns = block.shape[1:]
    return look(block, (j * rows + i) * columns, (columns,))


@compiled
def _largest(values: Array) -> float:
    top = 0.0
    for i in range(values.shape[0]):
        top = max(top, abs(values[i]))
    return top


@compiled
def _is_finite(x: Points, b: int) -> bool:
    """Whether all numbers of a context's point are finite: their sum then is, too."""
    total = 0.0
    for part in (x.z[b], x.first[b], x.nu[b]):
        for i in range(part.shape[0]):
            total += part[i]
    for block in (x.u[b], x.scenario[b], x.nus[b]):
        for j in range(block.shape[0]):
            for i in range(block.shape[1]):
                total += block[j, i]
    return bool(np.isfinite(total))
