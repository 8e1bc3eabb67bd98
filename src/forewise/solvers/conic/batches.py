"""Solutions of some contexts and scenarios, put back among the others.

May import: problems, its sibling `solution`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch

from forewise.problems.programs import ConicProgram
from forewise.solvers.solution import ConeDuals, Duals, Solution, Status


class Batch(NamedTuple):
    """A solution, and which contexts and scenarios it is of."""

    contexts: torch.Tensor
    scenarios: torch.Tensor
    solution: Solution


def spread(program: ConicProgram, batches: list[Batch], told: list[Status | None]) -> Solution:
    """The solution of all contexts; NaN for those that are in no batch, with what they were told.

    Recourse and multipliers of scenarios that are not there are 0.
    """
    plain = program.plain
    B, M = plain.weights.shape

    def put(values: Callable[[Solution], torch.Tensor], *shape: int) -> torch.Tensor:
        whole = torch.full((B, *shape), torch.nan, dtype=plain.q.dtype, device=plain.q.device)
        for contexts, _, solution in batches:
            whole = whole.index_copy(0, contexts, values(solution).to(whole.dtype))
        return whole

    def put_scenarios(values: Callable[[Solution], torch.Tensor], size: int) -> torch.Tensor:
        whole = torch.full((B, M, size), torch.nan, dtype=plain.q.dtype, device=plain.q.device)
        for contexts, scenarios, solution in batches:
            part = values(solution)
            empty = part.new_zeros(len(contexts), M, size)
            whole = whole.index_copy(0, contexts, empty.index_copy(1, scenarios, part))
        return whole

    status = list(told)
    certificates = {}
    for contexts, _, solution in batches:
        for place, i in enumerate(contexts.tolist()):
            status[i] = solution.status[place]
            if place in solution.certificates:
                certificates[i] = solution.certificates[place]
    rows = {name: getattr(plain, name).shape[-1] for name in "hers"}
    return Solution(
        decision=put(lambda s: s.decision, plain.n_decisions),
        recourse=put_scenarios(lambda s: s.recourse, plain.n_recourse),
        objective=put(lambda s: s.objective),
        duals=Duals(
            inequality=put(lambda s: s.duals.inequality, rows["h"]),
            equality=put(lambda s: s.duals.equality, rows["e"]),
            scenario_inequality=put_scenarios(lambda s: s.duals.scenario_inequality, rows["r"]),
            scenario_equality=put_scenarios(lambda s: s.duals.scenario_equality, rows["s"]),
        ),
        status=tuple(found for found in status if found is not None),
        primal_residual=put(lambda s: s.primal_residual),
        dual_residual=put(lambda s: s.dual_residual),
        gap=put(lambda s: s.gap),
        iterations=put(lambda s: s.iterations).nan_to_num(0).long(),
        certificates=certificates,
        cone_duals=ConeDuals(
            first=put(lambda s: _cones(s).first, program.h.shape[-1]),
            scenario=put_scenarios(lambda s: _cones(s).scenario, program.r.shape[-1]),
        ),
    )


def _cones(solution: Solution) -> ConeDuals:
    assert solution.cone_duals is not None
    return solution.cone_duals
