"""The contract of a solver, and the one verb: `solve`.

May import: problems, `solution`. To add a solver: a frozen dataclass with the two methods
below (`ProgramSolver` gives them for a solver of scenario programs); export it; add it to the
list in the tests.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch

from forewise.display import described
from forewise.exceptions import InvalidInputError, SolveError, UnsupportedProblemError
from forewise.problems.base import Problem
from forewise.problems.programs import ScenarioProgram
from forewise.scenarios import Scenarios
from forewise.solvers.solution import Solution, Status
from forewise.validation.arguments import require_instance

_SHOWN = 5  # failed contexts that an error message lists


class Solver(ABC):
    """HOW a problem is solved. A solver holds settings and no state."""

    @abstractmethod
    def unsupported_reason(self, problem: Problem) -> str | None:
        """Why this solver cannot solve `problem`, or None if it can. Called before `solve`."""

    @abstractmethod
    def solve(self, problem: Problem, scenarios: Scenarios) -> Solution:
        """Solve every context; failures are statuses, not exceptions."""

    def __repr__(self) -> str:
        return described(self)


class ProgramSolver(Solver):
    """A solver of scenario programs, and so of every linear or quadratic problem."""

    def unsupported_reason(self, problem: Problem) -> str | None:
        """What is no linear or quadratic program is refused."""
        if problem.program_type is ScenarioProgram:
            return None
        return (
            f"it becomes {problem.program_type.title}, and this solver takes linear and quadratic "
            "ones: use AutoSolver()"
        )

    def solve(self, problem: Problem, scenarios: Scenarios) -> Solution:
        """Solve the problem's program."""
        program = problem.program(scenarios)
        assert isinstance(program, ScenarioProgram)  # by `unsupported_reason`
        return self.solve_program(program)

    @abstractmethod
    def solve_program(self, program: ScenarioProgram) -> Solution:
        """Solve every context of a program; failures are statuses, not exceptions."""


def run(solver: Solver, problem: Problem, scenarios: Scenarios, on_failure: str) -> Solution:
    """Solve a problem with a solver that was chosen, in the scenarios' precision."""
    _require_known(on_failure)
    require_instance("problem", problem, Problem, "Newsvendor(shortage=3, excess=1)")
    require_instance("solver", solver, Solver, "AutoSolver()")
    if not isinstance(scenarios, Scenarios):
        raise InvalidInputError(
            f"scenarios must be a forewise.Scenarios, but is a {type(scenarios).__name__}: "
            "wrap the array as Scenarios(values)"
        )
    unsupported_reason = solver.unsupported_reason(problem)
    if unsupported_reason is not None:
        raise UnsupportedProblemError(
            f"{type(solver).__name__} cannot solve this: {unsupported_reason}"
        )
    n_decisions = problem.n_decisions(scenarios.n_outcomes)
    solution = solver.solve(problem, scenarios).of_decisions(n_decisions)
    return checked(solution, on_failure).to(scenarios.values.dtype)


def checked(solution: Solution, on_failure: str) -> Solution:
    """Raise if a context failed and `on_failure` says so."""
    _require_known(on_failure)
    failed = [i for i, status in enumerate(solution.status) if status is not Status.OPTIMAL]
    if failed and on_failure == "raise":
        listed = "; ".join(
            f"context {i} is {solution.status[i]} ({solution.status[i].advice})"
            for i in failed[:_SHOWN]
        )
        more = f"; and {len(failed) - _SHOWN} more" if len(failed) > _SHOWN else ""
        raise SolveError(
            f"{len(failed)} of {len(solution.status)} contexts have no optimal decision: {listed}"
            f'{more}. Use on_failure="return" to get the others, and their statuses.',
            solution,
        )
    return solution


def _require_known(on_failure: str) -> None:
    if on_failure not in ("raise", "return"):
        raise InvalidInputError(f'on_failure must be "raise" or "return", but is {on_failure!r}')


def valid_contexts(program: ScenarioProgram) -> torch.Tensor:
    """Mask of the contexts whose data are all finite, ``(n_contexts,)``."""
    valid = torch.ones(program.n_contexts, dtype=torch.bool, device=program.weights.device)
    blocks = [block.detach() for block in program.blocks().values() if block.numel()]
    # A sum is finite only if its terms are, and much faster than looking at each of them.
    if not torch.stack([block.sum() for block in blocks]).sum().isfinite():
        for block in blocks:
            valid &= block.isfinite().reshape(block.shape[0], -1).all(1)
    return valid
