"""The interior point as the solver of the programs that costs with recourse are made of.

May import: problems, its siblings `interior_point`, `reference`, `solution`.
"""

from __future__ import annotations

import torch

from forewise.problems.program import ScenarioProgram
from forewise.problems.recourse import RecourseAnswer, use_recourse_solver
from forewise.solvers.interior_point import InteriorPoint
from forewise.solvers.reference import ReferenceSolver
from forewise.solvers.solution import Solution, Status


@use_recourse_solver
def solve_recourse(program: ScenarioProgram) -> RecourseAnswer:
    """Solve programs without scenarios; contexts that are inaccurate get a second opinion."""
    answer = _answer(InteriorPoint().solve_program(program))
    known = answer.infeasible | answer.unbounded | answer.x.isfinite().all(-1)
    open_ones = (~known).nonzero().squeeze(-1)
    if len(open_ones) == 0:
        return answer
    second = _answer(ReferenceSolver().solve_program(program.take(open_ones)))
    pairs = zip(answer, second, strict=True)
    return RecourseAnswer(*(a.index_copy(0, open_ones, b) for a, b in pairs))


def _answer(solution: Solution) -> RecourseAnswer:
    def told(status: Status) -> torch.Tensor:
        return torch.tensor([s is status for s in solution.status], device=solution.decision.device)

    return RecourseAnswer(
        x=torch.where(told(Status.OPTIMAL).unsqueeze(-1), solution.decision, torch.nan),
        inequality=solution.duals.inequality,
        equality=solution.duals.equality,
        infeasible=told(Status.INFEASIBLE),
        unbounded=told(Status.UNBOUNDED),
    )
