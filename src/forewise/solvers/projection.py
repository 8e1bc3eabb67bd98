"""The nearest decision that meets the first-stage constraints, differentiable."""

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

    Constraints that involve the outcome are left out: the recourse meets them.

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
    program = problem.program(Scenarios(torch.zeros(lead, 1, n_outcomes, dtype=WORKING_DTYPE)))
    rows = program if isinstance(program, ScenarioProgram) else program.plain
    n_contexts, n_decisions = decision.shape
    auxiliary = torch.zeros(n_contexts, rows.n_decisions - n_decisions, dtype=WORKING_DTYPE)
    distance = torch.zeros(rows.n_decisions, dtype=WORKING_DTYPE)
    distance[:n_decisions] = 1
    nearest = ScenarioProgram(
        weights=torch.ones(n_contexts, 1, dtype=WORKING_DTYPE),
        q=torch.cat([-decision.to(WORKING_DTYPE), auxiliary], dim=1),
        P=distance.diag()[None],
        G=rows.G,
        h=rows.h,
        E=rows.E,
        e=rows.e,
        lower=rows.lower,
        upper=rows.upper,
    )
    if isinstance(program, ConicProgram):
        cones = ConicProgram.from_first_stage(nearest, program.cones, program.G, program.h)
        return ConicSolver().solve_program(cones).of_decisions(n_decisions)
    return (solver or InteriorPointSolver()).solve_program(nearest).of_decisions(n_decisions)
