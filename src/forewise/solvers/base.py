"""The contract of a solver.

To add a solver: a frozen dataclass (``repr=False``) that derives from `ProgramSolver`, or from
`Solver` where it solves a problem without its program; export it; add it to the list in the tests.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Generic, Self, TypeVar

import torch

from forewise.display import described
from forewise.problems.base import Problem
from forewise.problems.programs import (
    BLOCKS,
    ConicProgram,
    IntegerProgram,
    Program,
    ScenarioProgram,
)
from forewise.problems.sparse import SparseBlock
from forewise.scenarios import Scenarios
from forewise.solvers.solution import Solution

P = TypeVar("P", ScenarioProgram, ConicProgram, IntegerProgram)


class Solver(ABC):
    """HOW a problem is solved. A solver holds settings and no state.

    Examples
    --------
    >>> import forewise as fw
    >>> solver = fw.solvers.WeightedQuantileSolver()
    >>> solver.unsupported_reason(fw.Newsvendor(3.0, 1.0)) is None
    True
    >>> solver.unsupported_reason(fw.Portfolio([1.0], minimum_return=1.0))
    'a quantile solves Newsvendor only, not Portfolio; use AutoSolver()'
    """

    @abstractmethod
    def unsupported_reason(self, problem: Problem) -> str | None:
        """Why this solver cannot solve `problem`, or None if it can. Called before `solve`."""

    @abstractmethod
    def solve(self, problem: Problem, scenarios: Scenarios) -> Solution:
        """Solve every context; failures are statuses, not exceptions."""

    def starting_from(self, start: Solution) -> Self:
        """The solver, beginning near an earlier solution; itself where it begins nowhere."""
        return self

    def __repr__(self) -> str:
        return described(self)


class TypedSolver(Solver, Generic[P]):
    """A solver of one type of programs, and so of every problem that becomes one."""

    program_type: type[P]

    @abstractmethod
    def solve_program(self, program: P) -> Solution:
        """Solve every context of a program; failures are statuses, not exceptions."""

    def unsupported_reason(self, problem: Problem) -> str | None:
        """Problems that become another type of program are refused."""
        if problem.program_type is self.program_type:
            return None
        return (
            f"it becomes {problem.program_type.title}, and this solver takes "
            f"{self.program_type.title}: use AutoSolver()"
        )

    def solve(self, problem: Problem, scenarios: Scenarios) -> Solution:
        """Solve the problem's program."""
        return self.solve_program(self.program(problem, scenarios))

    def program(self, problem: Problem, scenarios: Scenarios) -> P:
        """The program of a problem that this solver supports."""
        program = problem.program(scenarios)
        assert isinstance(program, self.program_type)
        return program


class ProgramSolver(TypedSolver[ScenarioProgram]):
    """A solver of scenario programs, and so of every linear or quadratic problem.

    Examples
    --------
    Whatever derives from it solves every linear or quadratic problem, with the same result:

    >>> import forewise as fw
    >>> problem = fw.Newsvendor(3.0, 1.0)
    >>> scenarios = fw.Scenarios([[[1.0], [2.0], [3.0], [4.5]]], weights=[[0.2, 0.2, 0.2, 0.4]])
    >>> for solver in (fw.InteriorPointSolver(), fw.ReferenceSolver()):
    ...     print(fw.solve(problem, scenarios, solver).decision.round(decimals=5).item())
    4.5
    4.5
    """

    program_type = ScenarioProgram


def solver_for(program_type: type[Program], *solvers: TypedSolver[Any]) -> TypedSolver[Any]:
    """The one of some solvers that takes a type of programs."""
    return next(solver for solver in solvers if solver.program_type is program_type)


def valid_contexts(program: ScenarioProgram) -> torch.Tensor:
    """Mask of the contexts whose data are all finite, ``(n_contexts,)``."""
    valid = torch.ones(program.n_contexts, dtype=torch.bool, device=program.weights.device)
    stored = (program.block(name) for name in ("weights", *BLOCKS))  # bounds are rows by now
    tensors = (b.entries if isinstance(b, SparseBlock) else b for b in stored)
    blocks = [block.detach() for block in tensors if block.numel()]
    # A sum is finite only if its terms are, and much faster than looking at each of them.
    if not torch.stack([block.sum() for block in blocks]).sum().isfinite():
        for block in blocks:
            valid &= block.isfinite().reshape(block.shape[0], -1).all(1)
    return valid
