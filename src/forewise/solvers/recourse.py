"""The solvers of the programs that costs with recourse are made of.

May import: problems, its siblings `conic`, `integer`, `interior_point`, `reference`, `solution`.
"""

from __future__ import annotations

import torch

from forewise.problems.cones import ConicProgram
from forewise.problems.cvxpy.recourse import RecourseAnswer, use_recourse_solver
from forewise.problems.integers import IntegerProgram
from forewise.problems.program import ScenarioProgram
from forewise.solvers.conic.solver import ConicSolver
from forewise.solvers.integer import IntegerSolver
from forewise.solvers.interior_point.solver import InteriorPointSolver
from forewise.solvers.reference import ReferenceSolver
from forewise.solvers.solution import Solution, Status

# Costs are compared with each other, and their programs are small.
_PRECISE = 1e-12


@use_recourse_solver
def solve_recourse(program: ScenarioProgram | ConicProgram | IntegerProgram) -> RecourseAnswer:
    """Solve programs without scenarios; contexts that are inaccurate get a second opinion."""
    if isinstance(program, ConicProgram):
        return _answer(ConicSolver(_PRECISE).solve_program(program))
    if isinstance(program, IntegerProgram):
        return _answer(IntegerSolver().solve_program(program))
    answer = _answer(InteriorPointSolver().solve_program(program))
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

    cones = solution.cone_duals
    return RecourseAnswer(
        x=torch.where(told(Status.OPTIMAL).unsqueeze(-1), solution.decision, torch.nan),
        inequality=solution.duals.inequality,
        equality=solution.duals.equality,
        cone=solution.decision[:, :0] if cones is None else cones.first,
        infeasible=told(Status.INFEASIBLE),
        unbounded=told(Status.UNBOUNDED),
    )
