"""Engines have absolute tolerances: they are given programs whose bounds and costs are near 1.

With bounds in units of β and costs in units of κ the solution is x/β and its multipliers y/κ:

    q/κ,   b/β,   P β/κ,   A as it is

May import: its siblings `conic_engines`, `conic_form`.
"""

from __future__ import annotations

from dataclasses import replace

import torch

from forewise.solvers.conic.engines import Answers, ConicEngine
from forewise.solvers.conic.form import ConicForm


def run_scaled(
    engine: ConicEngine, form: ConicForm, tolerance: float, differentiate: bool
) -> Answers:
    """An engine's answers for a form, found in units of each context's own size."""
    norm = form.A.row_maximum()
    beta = _one_where_zero((form.b / torch.where(norm > 0, norm, 1.0)).abs().amax(1, keepdim=True))
    linear = (form.q / form.column_weight).abs().amax(1, keepdim=True)
    bent = beta * form.P.row_maximum().amax(1, keepdim=True)
    kappa = _one_where_zero(torch.where(linear > 0, linear, bent))
    scaled = replace(
        form,
        P=replace(form.P, values=form.P.values * (beta / kappa)),
        q=form.q / kappa,
        b=form.b / beta,
    )
    found = engine.run(scaled, tolerance, differentiate)
    own = found.adjoint

    def adjoint(gx: torch.Tensor, gy: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        assert own is not None
        gq, gb = own(gx * beta, gy * kappa)
        return gq / kappa, gb / beta

    return found._replace(
        x=found.x * beta, y=found.y * kappa, adjoint=None if own is None else adjoint
    )


def _one_where_zero(size: torch.Tensor) -> torch.Tensor:
    return torch.where(size > 0, size, 1.0)
