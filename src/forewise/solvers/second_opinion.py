"""A solver that asks another where it is not sure.

May import: problems, and its siblings `base`, `solution`.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from forewise.problems.programs import ScenarioProgram
from forewise.solvers.base import ProgramSolver
from forewise.solvers.solution import Solution, Status


@dataclass(frozen=True)
class SecondOpinion(ProgramSolver):
    """Solves with one solver, and with another what that leaves `inaccurate`.

    Parameters
    ----------
    first : ProgramSolver
    second : ProgramSolver
        Its solutions carry no gradients here.
    """

    first: ProgramSolver
    second: ProgramSolver

    def solve_program(self, program: ScenarioProgram) -> Solution:
        """Solve every context of a program; failures are statuses, not exceptions."""
        solution = self.first.solve_program(program)
        open_ones = solution.contexts_that_are(Status.INACCURATE)
        if not open_ones:
            return solution
        places = torch.tensor(open_ones, device=program.weights.device)
        with torch.no_grad():
            second = self.second.solve_program(program.take(places))
        return solution.with_contexts(open_ones, second)
