"""What the interior point leaves open is solved once more."""

from __future__ import annotations

from dataclasses import dataclass

import torch

import forewise as fw
from forewise.problems.programs import ScenarioProgram


@dataclass(frozen=True)
class Hesitant(fw.InteriorPointSolver):
    """Gives up on the contexts at even places."""

    def solve_program(self, program: ScenarioProgram) -> fw.Solution:
        solution = super().solve_program(program)
        even = torch.arange(program.n_contexts) % 2 == 0
        return solution.__class__(
            **{
                **solution.__dict__,
                "decision": torch.where(even[:, None], torch.nan, solution.decision),
                "objective": torch.where(even, torch.nan, solution.objective),
                "status": tuple(
                    fw.Status.INACCURATE if i % 2 == 0 else s for i, s in enumerate(solution.status)
                ),
            }
        )


def test_inaccurate_contexts_get_a_second_opinion():
    generator = torch.Generator().manual_seed(0)
    returns = torch.randn(5, 20, 4, generator=generator, dtype=torch.float64) + 0.3
    problem = fw.Portfolio(expected_return=torch.ones(4), minimum_return=1.0)
    values = returns.requires_grad_()
    found = fw.solve(problem, fw.Scenarios(values), fw.AutoSolver(Hesitant()))
    trusted = fw.solve(problem, fw.Scenarios(values.detach()), fw.ReferenceSolver())
    assert all(status is fw.Status.OPTIMAL for status in found.status)
    torch.testing.assert_close(found.objective.detach(), trusted.objective, rtol=1e-7, atol=1e-7)
    (gradient,) = torch.autograd.grad(found.decision.sum(), values)
    assert not gradient[::2].any()
    assert gradient.isfinite().all()


def test_what_has_no_solution_stays_so():
    """Infeasible contexts are proved, not asked about again."""
    problem = fw.Portfolio(expected_return=torch.ones(2), minimum_return=3.0, upper=torch.ones(2))
    values = torch.ones(2, 3, 2, dtype=torch.float64)
    found = fw.solve(problem, fw.Scenarios(values), on_failure="return")
    assert set(found.status) == {fw.Status.INFEASIBLE}
    assert set(found.certificates) == {0, 1}
