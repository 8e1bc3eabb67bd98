"""Why a context has no solution: where certificates are looked for.

Most rays come with the path, which diverges along them. Where it only stalled, two programs
that always have a solution decide: the least violation of the constraints (its multipliers are
the proof of infeasibility), and the steepest direction that keeps them (the ray of an
unbounded program).

May import: problems, `certificates`, `differentiation` for `Path`, `extensive`, `kernels`,
`optimality`, `solution`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from forewise.problems.programs import ScenarioProgram
from forewise.solvers.extensive import ExtensivePoint, extensive_form, load_point
from forewise.solvers.interior_point.certificates import infeasibility, unboundedness
from forewise.solvers.interior_point.differentiation import Path
from forewise.solvers.interior_point.kernels.path import DUAL_RAY, PRIMAL_RAY
from forewise.solvers.interior_point.optimality import row_norms
from forewise.solvers.solution import Certificate

#: Solves a program that has a solution, of one context.
SolveOne = Callable[[ScenarioProgram], ExtensivePoint | None]


@torch.no_grad()
def diagnose(
    program: ScenarioProgram, path: Path, contexts: list[int], solve: SolveOne
) -> dict[int, Certificate]:
    """Certificates of the contexts that have one."""
    found: dict[int, Certificate] = {}
    for i in contexts:
        alone = program.take(torch.tensor([i], device=program.weights.device))
        point = load_point(extensive_form(alone, 0), path.solutions.points, i)
        certificate = None
        if path.ended[i] == DUAL_RAY:
            certificate = infeasibility(alone, point)
        elif path.ended[i] == PRIMAL_RAY:
            certificate = unboundedness(alone, point)
        certificate = certificate or search(alone, solve)
        if certificate is not None:
            found[i] = certificate
    return found


def search(alone: ScenarioProgram, solve: SolveOne) -> Certificate | None:
    """Look for a certificate of a single context, from scratch."""
    return _search_infeasibility(alone, solve) or _search_unboundedness(alone, solve)


def _search_infeasibility(alone: ScenarioProgram, solve: SolveOne) -> Certificate | None:
    point = solve(_least_violation(alone))
    if point is None:
        return None
    n_g, n_e, n_r, n_s = (x.shape[-1] for x in (alone.h, alone.e, alone.r, alone.s))
    first, scenario = point.multipliers[: n_g + 2 * n_e], point.multipliers[n_g + 2 * n_e + 1 :]
    scenario = scenario.reshape(int((alone.weights > 0).sum()), n_r + 2 * n_s)
    up, down = first[n_g : n_g + n_e], first[n_g + n_e :]
    above, below = scenario[:, n_r : n_r + n_s], scenario[:, n_r + n_s :]
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
