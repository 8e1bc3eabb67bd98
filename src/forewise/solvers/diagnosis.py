"""Why a context has no solution: certificates, found and then checked against the raw data.

Most rays come with the path, which diverges along them. Where it only stalled, two programs
that always have a solution decide: the least violation of the constraints (its multipliers are
the proof of infeasibility), and the steepest direction that keeps them (the ray of an
unbounded program).

May import: problems, `solution`, `optimality`, `differentiation` for `Path`, `kernels`.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from forewise.problems.program import ScenarioProgram, apply
from forewise.solvers.differentiation import Path, TensorPoints
from forewise.solvers.kernels.path import DUAL_RAY, PRIMAL_RAY
from forewise.solvers.kernels.points import Points
from forewise.solvers.optimality import evidence, largest, row_norms
from forewise.solvers.solution import Certificate, Duals, Status

#: A proof is accepted if it is off by no more than this, relative to what it proves.
ACCEPTED_PROOF = 1e-6

Follow = Callable[[ScenarioProgram], Path]


@torch.no_grad()
def diagnose(
    program: ScenarioProgram, path: Path, contexts: list[int], follow: Follow
) -> dict[int, Certificate]:
    """Certificates of the contexts that have one."""
    found: dict[int, Certificate] = {}
    for i in contexts:
        alone = program.take(torch.tensor([i]))
        point = _point(path.solutions.points, i, program.weights.device)
        certificate = None
        if path.ended[i] == DUAL_RAY:
            certificate = infeasibility(alone, _multipliers(point))
        elif path.ended[i] == PRIMAL_RAY:
            certificate = unboundedness(alone, point.z, point.u)
        certificate = certificate or _search(alone, follow)
        if certificate is not None:
            found[i] = certificate
    return found


def _search(alone: ScenarioProgram, follow: Follow) -> Certificate | None:
    """Look for a certificate of a single context whose path stalled."""
    n_g, n_e, n_r, n_s = (x.shape[-1] for x in (alone.h, alone.e, alone.r, alone.s))
    point = _point(follow(_least_violation(alone)).solutions.points, 0, alone.q.device)
    up, down = point.first[:, n_g : n_g + n_e], point.first[:, n_g + n_e : n_g + 2 * n_e]
    above, below = point.scenario[..., n_r : n_r + n_s], point.scenario[..., n_r + n_s :]
    proof = Duals(point.first[:, :n_g], up - down, point.scenario[..., :n_r], above - below)
    certificate = infeasibility(alone, proof)
    if certificate is None:
        point = _point(follow(_steepest_direction(alone)).solutions.points, 0, alone.q.device)
        certificate = unboundedness(alone, point.z, point.u)
    return certificate


def _least_violation(alone: ScenarioProgram) -> ScenarioProgram:
    """min τ ≥ 0 such that every row is violated by at most τ, in units of the row.

    Rows: G, E from above, E from below, −τ ≤ 0; and per scenario W, V from above and below.
    """
    norms = row_norms(alone)
    n = alone.n_decisions

    def elastic(rows: torch.Tensor, norm: torch.Tensor) -> torch.Tensor:
        lead = torch.broadcast_shapes(rows.shape[:-1], norm.shape)
        return torch.cat(
            [rows.expand(*lead, rows.shape[-1]), -norm.expand(lead).unsqueeze(-1)], dim=-1
        )

    M, n_r = alone.n_scenarios, alone.r.shape[-1]
    T = torch.nn.functional.pad(alone.T, (0, 0, 0, n_r - alone.T.shape[-2]))
    T, W, r = (x.expand(1, M, *x.shape[2:]) for x in (T, alone.W, alone.r))
    F, V, s = (x.expand(1, M, *x.shape[2:]) for x in (alone.F, alone.V, alone.s))
    E_norm, s_norm = norms["e"], norms["s"].expand(1, M, -1)
    only_tau = alone.q.new_zeros(1, n + 1)
    only_tau[:, -1] = 1.0
    return ScenarioProgram(
        weights=alone.weights,
        q=only_tau,
        G=torch.cat(
            [
                elastic(alone.G, norms["h"]),
                elastic(alone.E, E_norm),
                elastic(-alone.E, E_norm),
                -only_tau[None],
            ],
            dim=1,
        ),
        h=torch.cat([alone.h, alone.e, -alone.e, alone.q.new_zeros(1, 1)], dim=1),
        d=torch.zeros_like(alone.d),
        T=torch.cat(
            [elastic(T, norms["r"].expand(1, M, -1)), elastic(F, s_norm), elastic(-F, s_norm)],
            dim=2,
        ),
        W=torch.cat([W, V, -V], dim=2),
        r=torch.cat([r, s, -s], dim=2),
    )


def _steepest_direction(alone: ScenarioProgram) -> ScenarioProgram:
    """min of the linear cost over directions in a unit box that keep all rows and bend none."""
    n, k = alone.n_decisions, alone.n_recourse
    eye_z = torch.eye(n, dtype=alone.q.dtype, device=alone.q.device)[None]
    eye_u = torch.eye(k, dtype=alone.q.dtype, device=alone.q.device)[None, None]
    M = alone.n_scenarios
    W, V, D = (x.expand(1, M, *x.shape[2:]) for x in (alone.W, alone.V, alone.D))
    F = alone.F.expand(1, M, *alone.F.shape[2:])
    box = eye_u.expand(1, M, k, k)
    n_r, n_s = alone.r.shape[-1], alone.s.shape[-1]
    return ScenarioProgram(
        weights=alone.weights,
        q=alone.q,
        G=torch.cat([alone.G, eye_z, -eye_z], dim=1),
        h=torch.cat([torch.zeros_like(alone.h), alone.q.new_ones(1, 2 * n)], dim=1),
        E=torch.cat([alone.E, alone.P], dim=1),
        e=alone.q.new_zeros(1, alone.e.shape[-1] + n),
        d=alone.d,
        T=alone.T,
        W=torch.cat([W, box, -box], dim=2),
        r=torch.cat([alone.q.new_zeros(1, M, n_r), alone.q.new_ones(1, M, 2 * k)], dim=2),
        F=torch.cat([F, F.new_zeros(1, M, k, n)], dim=2),
        V=torch.cat([V, D], dim=2),
        s=alone.q.new_zeros(1, M, n_s + k),
    )


def infeasibility(alone: ScenarioProgram, proof: Duals) -> Certificate | None:
    """Check that A'λ + E'ν = 0, λ ≥ 0 and b'λ + e'ν < 0: then no point meets all rows."""
    kept = (alone.weights > 0).unsqueeze(-1)
    proof = Duals(
        proof.inequality.clamp_min(0),
        proof.equality,
        proof.scenario_inequality.clamp_min(0) * kept,
        proof.scenario_equality * kept,
    )
    # Without costs, stationarity is just A'λ + E'ν = 0.
    free = alone.map(lambda name, block: torch.zeros_like(block) if name in "PqDd" else block)
    zero_u = alone.q.new_zeros(1, alone.n_scenarios, alone.n_recourse)
    found = evidence(free, torch.zeros_like(alone.q), zero_u, proof)
    value = -found.shadow
    if not value > 0:
        return None
    proof = Duals(*(getattr(proof, name) / value for name in proof.__match_args__))
    # A feasible point would have to lie this many times farther out than every row.
    residual = float(found.slope / value * found.length)
    if not residual <= ACCEPTED_PROOF:
        return None
    return Certificate(Status.INFEASIBLE, residual, multipliers=proof)


def unboundedness(alone: ScenarioProgram, z: torch.Tensor, u: torch.Tensor) -> Certificate | None:
    """Check that A x ≤ 0, E x = 0, H x = 0 and q'x < 0: then the cost falls along x for ever."""
    weights = alone.weights.unsqueeze(-1)
    u = u * (weights > 0)
    fall = -((alone.q * z).sum() + (weights * alone.d * u).sum())
    if not fall > 0:
        return None
    z, u = z / fall, u / fall
    homogeneous = alone.map(lambda name, b: torch.zeros_like(b) if name in "hers" else b)
    none = [torch.zeros_like(b) for b in (alone.h, alone.e, alone.r, alone.s)]
    lead = alone.n_scenarios
    multipliers = Duals(none[0], none[1], *(b.expand(1, lead, -1) for b in none[2:]))
    off = evidence(homogeneous, z, u, multipliers).violation
    cost_size = torch.maximum(largest(alone.q), largest(alone.d))
    # Relative to the cost that falls by one along the ray; and a direction along which the cost
    # bends at all, as its curvature goes, has an end however steeply the cost falls at first.
    residual = float(torch.maximum(off * cost_size, _bend(alone, z, u)))
    if not residual <= ACCEPTED_PROOF:
        return None
    return Certificate(Status.UNBOUNDED, residual, decision_ray=z, recourse_ray=u)


def _bend(alone: ScenarioProgram, z: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """How far a ray is from one without curvature, ``(1,)``, relative to both."""
    bent = torch.maximum(largest(apply(alone.P, z)), largest(apply(alone.D, u)))
    curvature = torch.maximum(largest(alone.P), largest(alone.D))
    size = curvature * torch.maximum(largest(z), largest(u))
    return bent / torch.where(size > 0, size, 1.0)


def _point(points: Points, i: int, device: torch.device) -> TensorPoints:
    return TensorPoints.of(Points(*(part[i : i + 1] for part in points)), device)


def _multipliers(point: TensorPoints) -> Duals:
    return Duals(point.first, point.nu, point.scenario, point.nus)
