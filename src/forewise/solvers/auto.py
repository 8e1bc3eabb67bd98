"""The solver that picks a solver, and the two verbs users call.

May import: problems, and all its siblings.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from forewise.problems.base import Problem
from forewise.problems.kinds import ProgramKind
from forewise.problems.program import ScenarioProgram
from forewise.scenarios import Scenarios
from forewise.solvers.base import ProgramSolver, Solver, checked, run
from forewise.solvers.closed_form import DualSearch, WeightedQuantile
from forewise.solvers.conic import ConicSolver
from forewise.solvers.integer import IntegerSolver
from forewise.solvers.interior_point import InteriorPoint
from forewise.solvers.reference import ReferenceSolver
from forewise.solvers.risk import RiskSolver
from forewise.solvers.solution import Solution, Status


@dataclass(frozen=True)
class AutoSolver(Solver):
    """Takes the closed form where the problem has one, and the solver of its kind elsewhere.

    The few contexts that the interior point leaves `inaccurate` (about one degenerate linear
    program in some thousands) are solved once more by the `ReferenceSolver`; their decisions carry
    no gradients, and pass the same test of residuals or stay inaccurate.

    Parameters
    ----------
    general : ProgramSolver
        What solves the linear and quadratic problems without a closed form.
    conic : ConicSolver
        What solves problems with cones.
    integer : IntegerSolver
        What solves problems with whole numbers.
    """

    general: ProgramSolver = field(default_factory=InteriorPoint)
    conic: ConicSolver = field(default_factory=ConicSolver)
    integer: IntegerSolver = field(default_factory=IntegerSolver)

    def refusal(self, problem: Problem) -> str | None:
        """What the chosen solver says."""
        return self.choice(problem).refusal(problem)

    def choice(self, problem: Problem) -> Solver:
        """The solver that `solve` will use for this problem."""
        for special in (WeightedQuantile(), DualSearch(), RiskSolver(self.general)):
            if special.refusal(problem) is None:
                return special
        solvers: dict[ProgramKind, Solver] = {
            ProgramKind.QUADRATIC: self.general,
            ProgramKind.CONIC: self.conic,
            ProgramKind.INTEGER: self.integer,
        }
        return solvers[problem.program_kind]

    def solve(self, problem: Problem, scenarios: Scenarios) -> Solution:
        """Solve every context with the chosen solver."""
        choice = self.choice(problem)
        if not isinstance(choice, InteriorPoint):
            return choice.solve(problem, scenarios)
        program = problem.program(scenarios)
        solution = choice.solve_program(program)
        open_ones = [i for i, s in enumerate(solution.status) if s is Status.INACCURATE]
        if not open_ones:
            return solution
        places = torch.tensor(open_ones, device=program.weights.device)
        with torch.no_grad():
            second = ReferenceSolver().solve_program(program.take(places))
        return solution.with_contexts(open_ones, second)


def solve(
    problem: Problem,
    scenarios: Scenarios,
    solver: Solver | None = None,
    on_failure: str = "raise",
) -> Solution:
    """Solve one stochastic program per context: minimise the weighted mean cost.

    Parameters
    ----------
    problem : Problem
    scenarios : Scenarios
        float32 scenarios are solved in float64 and their decisions returned as float32.
    solver : Solver, optional
        `AutoSolver()` by default.
    on_failure : {"raise", "return"}
        What to do if a context has no optimal decision: raise a `SolveError`, or return the
        solution with that context's status and NaN in its place.

    Returns
    -------
    Solution
    """
    return run(solver or AutoSolver(), problem, scenarios, on_failure)


def solve_program(
    program: ScenarioProgram, solver: ProgramSolver | None = None, on_failure: str = "raise"
) -> Solution:
    """Solve a scenario program as it stands, without a problem around it."""
    return checked((solver or InteriorPoint()).solve_program(program), on_failure)
