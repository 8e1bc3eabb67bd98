"""The two verbs that users call, and the solver that picks a solver."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Self, TypeVar

from forewise.exceptions import InvalidInputError, SolveError, UnsupportedProblemError
from forewise.problems.base import Problem
from forewise.problems.programs import Program, ScenarioProgram
from forewise.scenarios import Scenarios
from forewise.solvers.base import ProgramSolver, Solver, TypedSolver, solver_for
from forewise.solvers.closed_form import DualSearchSolver, WeightedQuantileSolver
from forewise.solvers.conic.solver import ConicSolver
from forewise.solvers.integer import IntegerSolver
from forewise.solvers.interior_point.solver import InteriorPointSolver
from forewise.solvers.reference import ReferenceSolver
from forewise.solvers.risk import RiskSolver
from forewise.solvers.solution import Solution, Status, listed_failures
from forewise.validation.parameters import require_instance

S = TypeVar("S", bound=Solver)


@dataclass(frozen=True, repr=False)
class AutoSolver(ProgramSolver):
    """Takes the closed form where the problem has one, and the solver of its program elsewhere.

    A context that stays `inaccurate` is solved again: after a closed form by the general solver,
    after the interior point (about one degenerate linear program in some thousands) by the
    `ReferenceSolver`, whose decisions carry no gradients.

    Parameters
    ----------
    general : ProgramSolver
        Solves linear and quadratic programs.
    conic : ConicSolver
        Solves programs with cones.
    integer : IntegerSolver
        Solves programs with integers.
    start : Solution, optional
        Near which `general` begins with the problem's own program.

    Examples
    --------
    What a call without a solver uses. The newsvendor has a closed form, a portfolio has none:

    >>> import forewise as fw
    >>> scenarios = fw.Scenarios([[[1.0], [2.0], [3.0], [4.0]]])
    >>> fw.solve(fw.Newsvendor(3.0, 1.0), scenarios, fw.AutoSolver()).iterations
    tensor([0])
    >>> portfolio = fw.Portfolio([1.0], minimum_return=1.0)
    >>> bool(fw.solve(portfolio, scenarios, fw.AutoSolver()).iterations > 0)
    True
    """

    general: ProgramSolver = field(default_factory=InteriorPointSolver)
    conic: ConicSolver = field(default_factory=ConicSolver)
    integer: IntegerSolver = field(default_factory=IntegerSolver)
    start: Solution | None = None

    def starting_from(self, start: Solution) -> Self:
        """The solver, beginning near an earlier solution."""
        return replace(self, start=start)

    def unsupported_reason(self, problem: Problem) -> str | None:
        """What the chosen solver says."""
        return self.choice(problem).unsupported_reason(problem)

    def choice(self, problem: Problem) -> Solver:
        """The solver that `solve` will use for this problem."""
        cold = replace(self, start=None)
        for special in (WeightedQuantileSolver(), DualSearchSolver(), RiskSolver(cold)):
            if special.unsupported_reason(problem) is None:
                return special
        return solver_for(problem.program_type, self.general, self.conic, self.integer)

    def solve(self, problem: Problem, scenarios: Scenarios) -> Solution:
        """Solve every context with the chosen solver."""
        choice = self.choice(problem)
        if isinstance(choice, TypedSolver):
            return self.solve_program(problem.program(scenarios))
        solution = choice.solve(problem, scenarios)
        if isinstance(choice, RiskSolver):
            return solution
        cold = replace(self, start=None)
        return solution.resolved(
            lambda contexts: cold.solve_program(problem.program(scenarios).take(contexts))
        )

    def solve_program(self, program: Program) -> Solution:
        """Solve a program by the solver of its type."""
        solver = solver_for(type(program), self.general, self.conic, self.integer)
        if self.start is not None:
            solver = solver.starting_from(self.start)
        solution = solver.solve_program(program)
        if not (isinstance(solver, InteriorPointSolver) and isinstance(program, ScenarioProgram)):
            return solution
        return solution.resolved(
            lambda contexts: ReferenceSolver().solve_program(program.take(contexts))
        )


def solve(
    problem: Problem,
    scenarios: Scenarios,
    solver: Solver | None = None,
    on_failure: str = "raise",
    start: Solution | None = None,
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
    start : Solution, optional
        That of a problem alike: the interior point begins near it, and elsewhere where that does
        not help. It saves time, and decides among equally good decisions at most. It must have as
        many contexts and scenarios. Closed forms and other solvers have no use for it.

    Examples
    --------
    Three contexts at once, each with its own scenarios and its own verdict:

    >>> import torch
    >>> import forewise as fw
    >>> problem = fw.Newsvendor(shortage=3.0, excess=1.0)
    >>> demand = torch.tensor([[8.0, 9.0, 10.0, 11.0], [1.0, 2.0, 3.0, 90.0], [5.0, 5.0, 5.0, 5.0]])
    >>> solution = fw.solve(problem, fw.Scenarios(demand[..., None]))
    >>> solution.decision.flatten()
    tensor([10.,  3.,  5.])
    >>> solution.status[0].name, solution.objective
    ('OPTIMAL', tensor([ 1.5000, 66.0000,  0.0000]))
    """
    solver = _started(AutoSolver() if solver is None else solver, start)
    _check_on_failure(on_failure)
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
    return _checked(solution, on_failure).to(scenarios.values.dtype)


def solve_program(
    program: ScenarioProgram,
    solver: ProgramSolver | None = None,
    on_failure: str = "raise",
    start: Solution | None = None,
) -> Solution:
    """Solve a scenario program as it stands, without a problem around it; see `solve`.

    Examples
    --------
    Order z at 1, or buy u later at 3, for a demand of 2 or 4:

    >>> import forewise as fw
    >>> program = fw.ScenarioProgram(
    ...     weights=[[0.5, 0.5]],
    ...     q=[[1.0]],
    ...     d=[[[3.0]]],
    ...     T=[[[[-1.0]]]],
    ...     W=[[[[-1.0]]]],
    ...     r=[[[-2.0], [-4.0]]],
    ...     lower=[[0.0]],
    ...     recourse_lower=[[[0.0]]],
    ... )
    >>> fw.solve_program(program).objective.round(decimals=6)
    tensor([4.], dtype=torch.float64)
    """
    solver = _started(AutoSolver() if solver is None else solver, start)
    _check_on_failure(on_failure)
    require_instance("program", program, ScenarioProgram, "problem.program(scenarios)")
    require_instance("solver", solver, ProgramSolver, "InteriorPointSolver()")
    return _checked(solver.solve_program(program), on_failure)


def _started(solver: S, start: Solution | None) -> S:
    """A solver that begins near a solution."""
    if start is None or not isinstance(solver, Solver):  # what it is, is said later
        return solver
    require_instance("start", start, Solution, "solve(problem, scenarios)")
    return solver.starting_from(start)


def _check_on_failure(on_failure: str) -> None:
    if on_failure not in ("raise", "return"):
        raise InvalidInputError(f'on_failure must be "raise" or "return", but is {on_failure!r}')


def _checked(solution: Solution, on_failure: str) -> Solution:
    """Raise if a context failed and `on_failure` says so."""
    if on_failure == "return":
        return solution
    failed = [(i, s) for i, s in enumerate(solution.status) if s is not Status.OPTIMAL]
    if not failed:
        return solution
    raise SolveError(
        f"{len(failed)} of {len(solution.status)} contexts have no optimal decision: "
        f"{listed_failures(failed)}. "
        'Use on_failure="return" to get the others, and their statuses.',
        solution,
    )
