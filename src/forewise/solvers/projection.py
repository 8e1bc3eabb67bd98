"""The nearest decision that meets the first-stage constraints, differentiable.

May import: problems, its siblings `base`, `conic`, `interior_point`, `solution`.
"""

from __future__ import annotations

import torch

from forewise.problems.base import Problem
from forewise.problems.programs import ConicProgram, ScenarioProgram
from forewise.scenarios import Scenarios
from forewise.solvers.base import ProgramSolver
from forewise.solvers.conic.solver import ConicSolver
from forewise.solvers.interior_point.solver import InteriorPointSolver
from forewise.solvers.solution import Solution
from forewise.validation.arguments import WORKING_DTYPE


def project(
    problem: Problem, decision: torch.Tensor, n_outcomes: int, solver: ProgramSolver | None = None
) -> Solution:
    """Bring decisions into the feasible set: min ½ |z − decision|² over first-stage rows and cones.

    Constraints that involve the outcome are not looked at: they are the recourse's business.

    Parameters
    ----------
    problem : Problem
    decision : tensor (n_contexts, n_decisions)
    n_outcomes : int
        Of the outcomes the problem is about.
    solver : ProgramSolver, optional
        `InteriorPointSolver()` by default. Where there are cones, a `ConicSolver` takes its place.

    Returns
    -------
    Solution
        Its decision is the projection, with gradients to the `decision` given.
    """
    lead = problem.n_contexts or 1
    anything = Scenarios(torch.zeros(lead, 1, n_outcomes, dtype=WORKING_DTYPE))
    whole = problem.program(anything)
    rows = whole if isinstance(whole, ScenarioProgram) else whole.plain
    n_contexts, n_decisions = decision.shape
    n_z = rows.n_decisions
    q = torch.zeros(n_contexts, n_z, dtype=WORKING_DTYPE)
    distance = torch.zeros(n_z, dtype=WORKING_DTYPE)
    distance[:n_decisions] = 1
    q = torch.cat([-decision.to(WORKING_DTYPE), q[:, n_decisions:]], dim=1)
    program = ScenarioProgram(
        weights=torch.ones(n_contexts, 1, dtype=WORKING_DTYPE),
        q=q,
        P=distance.diag()[None],
        G=rows.G,
        h=rows.h,
        E=rows.E,
        e=rows.e,
    )
    if isinstance(whole, ConicProgram):
        cones = ConicProgram.from_first_stage(program, whole.cones, whole.G, whole.h)
        return ConicSolver().solve_program(cones).of_decisions(n_decisions)
    return (solver or InteriorPointSolver()).solve_program(program).of_decisions(n_decisions)
