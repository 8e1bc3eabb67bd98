"""The solver that picks a solver, and the two verbs users call.

May import: problems, and all its siblings.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from forewise.problems.base import Problem
from forewise.problems.programs import ConicProgram, IntegerProgram, Program, ScenarioProgram
from forewise.scenarios import Scenarios
from forewise.solvers.base import ProgramSolver, Solver, checked, run
from forewise.solvers.closed_form import DualSearchSolver, WeightedQuantileSolver
from forewise.solvers.conic.solver import ConicSolver
from forewise.solvers.integer import IntegerSolver
from forewise.solvers.interior_point.solver import InteriorPointSolver
from forewise.solvers.reference import ReferenceSolver
from forewise.solvers.risk import RiskSolver
from forewise.solvers.second_opinion import SecondOpinion
from forewise.solvers.solution import Solution, Status
from forewise.validation.arguments import require_instance


@dataclass(frozen=True, repr=False)
class AutoSolver(Solver):
    """Takes the closed form where the problem has one, and the solver of its kind elsewhere.

    A context that its solver leaves `inaccurate` is solved once more: one of a closed form by the
    general solver, and one of that (about one degenerate linear program in some thousands) by the
    `ReferenceSolver`, whose decisions carry no gradients. Each passes the same test of residuals,
    or is proved infeasible or unbounded, or stays inaccurate.

    Parameters
    ----------
    general : ProgramSolver
        What solves the linear and quadratic problems without a closed form.
    conic : ConicSolver
        What solves problems with cones.
    integer : IntegerSolver
        What solves problems with whole numbers.
    """

    general: ProgramSolver = field(default_factory=InteriorPointSolver)
    conic: ConicSolver = field(default_factory=ConicSolver)
    integer: IntegerSolver = field(default_factory=IntegerSolver)

    def unsupported_reason(self, problem: Problem) -> str | None:
        """What the chosen solver says."""
        return self.choice(problem).unsupported_reason(problem)

    def choice(self, problem: Problem) -> Solver:
        """The solver that `solve` will use for this problem."""
        for special in (WeightedQuantileSolver(), DualSearchSolver(), RiskSolver(self._general)):
            if special.unsupported_reason(problem) is None:
                return special
        solvers: dict[type[Program], Solver] = {
            ScenarioProgram: self.general,
            ConicProgram: self.conic,
            IntegerProgram: self.integer,
        }
        return solvers[problem.program_type]

    @property
    def _general(self) -> ProgramSolver:
        """The general solver, with the reference's opinion where it has none of its own."""
        if isinstance(self.general, InteriorPointSolver):
            return SecondOpinion(self.general, ReferenceSolver())
        return self.general

    def solve(self, problem: Problem, scenarios: Scenarios) -> Solution:
        """Solve every context with the chosen solver."""
        choice = self.choice(problem)
        if choice is self.general:
            return self._general.solve(problem, scenarios)
        solution = choice.solve(problem, scenarios)
        if not isinstance(choice, WeightedQuantileSolver | DualSearchSolver):
            return solution
        open_ones = solution.contexts_that_are(Status.INACCURATE)
        if not open_ones:
            return solution
        places = torch.tensor(open_ones, device=scenarios.values.device)
        again = self.solve_program(problem.program(scenarios).take(places))
        return solution.with_contexts(open_ones, again)

    def solve_program(self, program: Program) -> Solution:
        """Solve a program by the solver of its type."""
        match program:
            case ConicProgram():
                return self.conic.solve_program(program)
            case IntegerProgram():
                return self.integer.solve_program(program)
            case ScenarioProgram():
                return self._general.solve_program(program)


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
    return run(AutoSolver() if solver is None else solver, problem, scenarios, on_failure)


def solve_program(
    program: ScenarioProgram, solver: ProgramSolver | None = None, on_failure: str = "raise"
) -> Solution:
    """Solve a scenario program as it stands, without a problem around it.

    By default the interior point does, and the reference has the last word where it has none.
    """
    if solver is None:
        solver = SecondOpinion(InteriorPointSolver(), ReferenceSolver())
    require_instance("program", program, ScenarioProgram, "problem.program(scenarios)")
    require_instance("solver", solver, ProgramSolver, "InteriorPointSolver()")
    return checked(solver.solve_program(program), on_failure)
