"""A quadratic term that makes the solution of a linear program unique, and smooth in its data."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import torch

from forewise.exceptions import InvalidInputError
from forewise.problems.base import Problem
from forewise.scenarios import Scenarios
from forewise.solvers.base import ProgramSolver, Solver
from forewise.solvers.interior_point.solver import InteriorPointSolver
from forewise.solvers.solution import Solution


@dataclass(frozen=True, repr=False)
class RidgeSolver(Solver):
    """Solves a problem with `weight` · (mean square of the decision) added to its objective.

    Of equally good decisions it takes the smallest, and decisions no longer jump (Wilder et al.
    2019; the paper's text). They are not exactly those of the problem. *When to use*: to repeat
    others' results, or where the smallest decision is wanted; `InteriorPointSolver` differentiates
    linear programs as they are.

    The solution's objective is the problem's own, without the term; its multipliers are those of
    the program with it.

    Parameters
    ----------
    weight : float
        In units of the cost per squared unit of the decision. The paper's is 0.001.
    general : ProgramSolver
        Solves the programs.

    Examples
    --------
    Two assets that cannot lose are equally good; the shortest portfolio that returns 1 has both.

    >>> import forewise as fw
    >>> problem = fw.Portfolio([0.5, 0.5], minimum_return=1.0)
    >>> solution = fw.solve(problem, fw.Scenarios([[[1.0, 1.0]]]), fw.solvers.RidgeSolver(1e-3))
    >>> solution.decision.round(decimals=4)
    tensor([[1., 1.]], dtype=torch.float64)
    """

    weight: float
    general: ProgramSolver = field(default_factory=InteriorPointSolver)

    def __post_init__(self) -> None:
        number = isinstance(self.weight, int | float) and not isinstance(self.weight, bool)
        if not number or not (self.weight > 0 and math.isfinite(self.weight)):
            raise InvalidInputError(f"weight must be a number above 0, but is {self.weight!r}")

    def unsupported_reason(self, problem: Problem) -> str | None:
        """Only linear and quadratic programs get the term."""
        return ProgramSolver.unsupported_reason(self.general, problem)

    def solve(self, problem: Problem, scenarios: Scenarios) -> Solution:
        """Solve the problem's program with the term."""
        program = self.general.program(problem, scenarios)
        n_decisions = problem.n_decisions(scenarios.n_outcomes)
        term = torch.zeros_like(program.P[0])
        term.diagonal()[:n_decisions] = 2 * self.weight / n_decisions
        found = self.general.solve_program(replace(program, P=program.P + term))
        squares = found.decision[:, :n_decisions].square().mean(-1)
        return replace(found, objective=found.objective - self.weight * squares)
