"""From a scenario program to one that minimises a risk of its costs.

With C_j(u) = ½ u'D_j u + d_j'u the cost of scenario j, and what is known, f(z), outside:

    min   f(z) + (1 − share) Σ_j w_j C_j(u_j) + share · ( t + Σ_j w_j v_j / (1 − level) )
    s.t.  C_j(u_j) − t ≤ v_j,  0 ≤ v_j,  and the program's own rows

t is one more first-stage variable, the last; v_j one more of recourse. In the worst case there
are no v. The row is linear where the cost is; where it is quadratic it is replaced by its tangent
at a centre, and what the tangent lacks is added to the cost (`Centre`).
May import: its siblings `program`, `risk`.
"""

from __future__ import annotations

from typing import NamedTuple

import torch

from forewise.problems.programs import ScenarioProgram, apply, joined
from forewise.problems.risk import Risk


class Centre(NamedTuple):
    """Where tangents touch, and how much of the curvature they lack is added to each scenario.

    With `curvature` the multipliers of the rows divided by the weights, a program whose solution
    is its own centre has the solution of the risk, and the solution's derivatives.
    """

    u: torch.Tensor  # (n_contexts, n_scenarios, n_recourse)
    curvature: torch.Tensor  # (n_contexts, n_scenarios)


def tail_program(
    program: ScenarioProgram, risk: Risk, centre: Centre | None = None
) -> ScenarioProgram:
    """The program of a risk; its first stage must cost the same in every scenario."""
    slope, bound = program.d, program.r.new_zeros(1, 1)
    D, d = (1 - risk.share) * program.D, (1 - risk.share) * program.d
    if centre is not None:
        bent = apply(program.D, centre.u)
        slope = program.d + bent
        bound = 0.5 * (centre.u * bent).sum(-1)
        D = D + centre.curvature[..., None, None] * program.D
        d = d - centre.curvature[..., None] * bent
    has_excess = risk.level < 1
    k, n_coupled = program.n_recourse, program.T.shape[-2]

    W = program.W
    row = torch.cat([slope, -slope.new_ones(*slope.shape[:2], 1)], -1) if has_excess else slope
    W = _padded(W, columns=1) if has_excess else W
    lower = [W[:, :, n_coupled:]]
    ends = [program.r[:, :, n_coupled:]]
    if has_excess:
        positive = W.new_zeros(1, 1, 1, k + 1)
        positive[..., -1] = -1
        lower.append(positive)
        ends.append(program.r.new_zeros(1, 1, 1))
        D, V = _padded(D, rows=1, columns=1), _padded(program.V, columns=1)
        price = d.new_full((1, 1, 1), risk.share / (1 - risk.level))
        d = joined([d, price], -1)
    else:
        V = program.V
    threshold = program.T.new_zeros(1, 1, 1, program.n_decisions + 1)
    threshold[..., -1] = -1
    q = torch.cat([program.q, program.q.new_full((len(program.q), 1), risk.share)], -1)
    return ScenarioProgram(
        weights=program.weights,
        q=q,
        c=program.c,
        P=_padded(program.P, rows=1, columns=1),
        G=_padded(program.G, columns=1),
        h=program.h,
        E=_padded(program.E, columns=1),
        e=program.e,
        D=D,
        d=d,
        T=joined([_padded(program.T, columns=1), threshold], -2),
        W=joined([W[:, :, :n_coupled], row.unsqueeze(-2), *lower], -2),
        r=joined([program.r[:, :, :n_coupled], bound.unsqueeze(-1), *ends], -1),
        F=_padded(program.F, columns=1),
        V=V,
        s=program.s,
    )


def _padded(block: torch.Tensor, rows: int = 0, columns: int = 0) -> torch.Tensor:
    return torch.nn.functional.pad(block, (0, columns, 0, rows))
