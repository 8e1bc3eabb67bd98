"""Programs of very many scenarios, by merging those that share the basis of their recourse.

The recourse's cost is convex in its right-hand sides, so that a program of the mean scenario of
each group costs no more than the whole one (Jensen). Its decision is evaluated on every scenario,
by the known bases; that is an upper bound. Groups whose scenarios have different bases at this
decision are divided by them, after which the program of means costs there what the whole one does.
No decision comes twice, and there are finitely many bases: the bounds meet (adaptive partition of
scenarios, Song and Luedtke, 2015; bunching, Wets, 1988).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import torch

from forewise.exceptions import InvalidInputError
from forewise.problems.programs import ScenarioProgram, joined
from forewise.solvers.aggregation.bases import Bases, Evaluation, Infeasible, OutOfBasesError
from forewise.solvers.aggregation.recourse import Recourse, require_supported
from forewise.solvers.auto import AutoSolver
from forewise.solvers.base import ProgramSolver, valid_contexts
from forewise.solvers.bounds import solve_with_bounds
from forewise.solvers.interior_point.core import Points, as_arrays
from forewise.solvers.interior_point.verification import ACCEPTED, residuals_of_points
from forewise.solvers.solution import Duals, Solution, Status
from forewise.validation.parameters import require_count, require_positive

Array = np.ndarray
_FEW_BASES = 1000
_WHOLE = 64  # scenarios that are not worth merging


@dataclass(frozen=True)
class Round:
    """What is known after one round: the optimal cost lies between the bounds."""

    number: int
    groups: int
    bases: int
    lower: float
    upper: float  # infinite while the decision has no recourse in some scenario

    @property
    def gap(self) -> float:
        """Of the bounds, relative to the cost."""
        return relative_gap(self.lower, self.upper)


def relative_gap(lower: float, upper: float) -> float:
    """Between two bounds of a cost."""
    size = max(abs(lower), abs(upper))
    return max(0.0, upper - lower) / size if size and math.isfinite(upper) else upper - lower


@dataclass(frozen=True, repr=False)
class AggregatedSolver(ProgramSolver):
    """Exact decisions for 10⁵ to 10⁷ scenarios of a context, by merging scenarios.

    When to use: linear recourse whose random data are right-hand sides or rows of the decision, and
    far more scenarios than bases. Time grows with the scenarios times the bases, and memory with
    the scenarios alone: what it returns is their recourse and multipliers. Where few scenarios
    share a basis, as with dozens of independent outcomes, `InteriorPointSolver` is the faster one,
    and `sampled_bounds` serves where scenarios cannot be listed. Solutions carry no gradients.
    Random costs and random matrices of the recourse are refused, and so are quadratic ones.

    Parameters
    ----------
    tolerance : float
        Relative gap of the bounds at which a context is optimal, at most 1e-6.
    max_groups : int
        Groups, and bases, at which a context is given up as `stopped`.
    time_limit : float
        Seconds for a context, asked between rounds.
    general : ProgramSolver
        Solves the programs of means.
    log : callable, optional
        Is called with every `Round`: ``log=print``.

    Examples
    --------
    Twenty thousand scenarios of one context, solved exactly:

    >>> import numpy as np
    >>> import forewise as fw
    >>> demand = np.random.default_rng(0).gamma(4.0, 5.0, size=(1, 20_000, 1))
    >>> problem = fw.Newsvendor(shortage=3.0, excess=1.0)
    >>> solution = fw.solve(problem, fw.Scenarios(demand), fw.solvers.AggregatedSolver())
    >>> bool(abs(solution.decision.item() - np.quantile(demand, 0.75)) < 0.01)
    True
    """

    tolerance: float = 1e-8
    max_groups: int = 20_000
    time_limit: float = math.inf
    general: ProgramSolver = field(default_factory=AutoSolver)
    log: Callable[[Round], object] | None = None

    def __post_init__(self) -> None:
        require_count("max_groups", self.max_groups)
        if not 0 < self.tolerance <= 1e-6:
            raise InvalidInputError(
                f"tolerance must be positive and at most 1e-6, but is {self.tolerance!r}"
            )
        if self.time_limit != math.inf:
            require_positive("time_limit", self.time_limit)

    def solve_program(self, program: ScenarioProgram) -> Solution:
        """Solve every context of a program; failures are statuses, not exceptions."""
        require_supported(program)
        if program.bounds:
            return solve_with_bounds(program, self.solve_program)
        if program.n_scenarios <= _WHOLE or not program.n_recourse:
            return self.general.solve_program(program)
        valid = valid_contexts(program).tolist()
        solutions = {
            i: self._solve(program.take(slice(i, i + 1))) for i, ok in enumerate(valid) if ok
        }
        if list(solutions) == [0] and len(valid) == 1:
            return solutions[0]
        status = [Status.INACCURATE if ok else Status.INVALID for ok in valid]
        whole = Solution.unsolved(program, status)
        for i, solution in solutions.items():
            whole = whole.with_contexts([i], solution)
        return whole

    @torch.no_grad()
    def _solve(self, alone: ScenarioProgram) -> Solution:
        possible = (alone.weights[0] > 0).nonzero().flatten()
        if len(possible) == alone.n_scenarios:
            return _Search(self, alone).solution()
        kept = _Search(self, _of_scenarios(alone, possible)).solution()
        return _spread(kept, possible, alone.n_scenarios)


class _Search:
    """One context's groups, bases and bounds."""

    def __init__(self, solver: AggregatedSolver, program: ScenarioProgram) -> None:
        self.solver, self.program = solver, program
        self.recourse = Recourse.of(program)
        # Where hardly any scenarios share a basis, merging them is no gain.
        most = max(_FEW_BASES, program.n_scenarios // 8)
        self.bases = Bases(self.recourse, min(solver.max_groups, most))
        self.weights = program.weights[0].detach().cpu().numpy()
        self.groups = np.zeros(program.n_scenarios, dtype=np.int64)
        self.cuts: list[tuple[Array, float]] = []
        self.lower, self.rounds = -math.inf, 0
        self.deadline = time.monotonic() + solver.time_limit

    def solution(self) -> Solution:
        """The first solution whose bounds meet, or what became of the search."""
        solver = self.solver
        while True:
            means = self._with_cuts(self.recourse.means(self.groups, self.weights))
            merged = solver.general.solve_program(means)
            if merged.status[0] is not Status.OPTIMAL:
                # Means are feasible wherever the scenarios are, and cost no more.
                return self._ended(merged.status[0])
            z = merged.decision[0].numpy()
            evaluation = self.bases.at(z)
            try:
                found = self._evaluated(evaluation, z)
                if isinstance(found, Infeasible):
                    self._cut(found, z)
            except OutOfBasesError:
                return self._given_up()
            self.rounds += 1
            value = float(merged.objective[0])
            self.lower = max(self.lower, value - abs(value) * float(merged.gap[0]))
            if isinstance(found, Infeasible):
                self._say(math.inf)
            else:
                chosen, cost = found
                first = float(self.program.first_stage_cost(merged.decision)[0])
                upper = first + cost
                self._say(upper)
                before = int(self.groups.max()) + 1
                pairs = self.groups * (len(self.bases.found) + 1) + chosen
                names, divided = np.unique(pairs, return_inverse=True)
                # Without a group to divide, the program of means is the whole one's.
                done = len(names) == before
                if done or relative_gap(self.lower, upper) <= solver.tolerance:
                    return self._complete(merged, evaluation, chosen, upper)
                self.groups = divided.astype(np.int64)
                if len(names) > solver.max_groups:
                    return self._given_up()
            if time.monotonic() > self.deadline:
                return self._ended(Status.STOPPED)

    def _evaluated(self, evaluation: Evaluation, z: Array) -> tuple[Array, float] | Infeasible:
        """Bases of all scenarios and the mean cost of their recourse, or a proof there is none."""
        chosen, costs = np.empty(len(self.weights), dtype=np.int32), []
        for piece, X in self.recourse.blocks(z, evaluation.width):
            found = evaluation.solve(X)
            if isinstance(found, Infeasible):
                return found
            chosen[piece] = found[0]
            costs.append(float(self.weights[piece] @ found[1]))
        return chosen, math.fsum(costs)

    def _say(self, upper: float) -> None:
        if self.solver.log is not None:
            groups, bases = int(self.groups.max()) + 1, len(self.bases.found)
            self.solver.log(Round(self.rounds, groups, bases, self.lower, upper))

    def _cut(self, proof: Infeasible, z: Array) -> None:
        """The row of the decision that the most broken scenario of a proof demands."""
        weights, moving = proof.weights, self.recourse.moving
        worst, where = math.inf, 0
        for piece, X in self.recourse.blocks(z, 1):
            sums = X @ weights[moving]
            if sums.min() < worst:
                worst, where = float(sums.min()), piece.start + int(sums.argmin())
        row, bound = self.recourse.row_of_decision(weights, where)
        if row @ z <= bound:  # it would change nothing
            raise OutOfBasesError
        self.cuts.append((row, bound))

    def _with_cuts(self, means: ScenarioProgram) -> ScenarioProgram:
        if not self.cuts:
            return means
        rows = torch.from_numpy(np.array([row for row, _ in self.cuts]))
        bounds = torch.tensor([bound for _, bound in self.cuts], dtype=rows.dtype)
        return means.with_blocks(
            G=joined([means.G, rows[None]], 1), h=joined([means.h, bounds[None]], 1)
        )

    def _ended(self, status: Status) -> Solution:
        return Solution.unsolved(self.program, [status])

    def _given_up(self, status: Status = Status.STOPPED) -> Solution:
        """What merging does not solve: the whole program at once, where that is small enough."""
        if self.program.n_scenarios <= 10 * self.solver.max_groups:
            return self.solver.general.solve_program(self.program)
        return self._ended(status)

    def _complete(
        self, merged: Solution, evaluation: Evaluation, chosen: Array, upper: float
    ) -> Solution:
        """The solution of all: each scenario's own recourse, its share of its group's duals."""
        z, program = merged.decision[0].numpy(), self.program
        recourse = np.empty((1, len(chosen), program.n_recourse))
        for piece, X in self.recourse.blocks(z, evaluation.width):
            recourse[0, piece] = evaluation.points(X, chosen[piece])
        totals = np.bincount(self.groups, self.weights)
        share, group = (self.weights / totals[self.groups])[:, None], torch.from_numpy(self.groups)

        def of_all(duals: torch.Tensor) -> Array:
            found = duals[:, group].numpy()
            found *= share
            return found

        duals, own = merged.duals, program.h.shape[-1]
        points = Points(
            merged.decision.numpy(),
            recourse,
            np.ascontiguousarray(duals.inequality[:, :own]),
            of_all(duals.scenario_inequality),
            duals.equality.numpy(),
            of_all(duals.scenario_equality),
        )
        duals = Duals(*map(torch.from_numpy, (points.first, points.nu, *points[3::2])))
        residuals = residuals_of_points(as_arrays(program), points, program.weights.device)
        gap = torch.full_like(residuals.gap, relative_gap(self.lower, upper))
        accurate = max(float(residuals.primal), float(residuals.dual)) <= ACCEPTED
        if self.cuts:  # their multipliers are not the program's: the bounds alone tell
            accurate = float(residuals.primal) <= ACCEPTED
        optimal = accurate and float(gap) <= max(self.solver.tolerance, ACCEPTED)
        if not optimal:
            return self._given_up(Status.INACCURATE)
        return Solution(
            decision=merged.decision,
            recourse=torch.from_numpy(recourse),
            objective=torch.full_like(gap, upper),
            duals=duals,
            status=(Status.OPTIMAL,),
            primal_residual=residuals.primal,
            dual_residual=residuals.dual,
            gap=gap,
            iterations=torch.tensor([self.rounds]),
        )


def _of_scenarios(program: ScenarioProgram, kept: torch.Tensor) -> ScenarioProgram:
    """The program of some of the scenarios."""
    count = program.n_scenarios
    scenario = {"weights", "d", "D", "T", "W", "r", "F", "V", "s"}

    def chosen(name: str, block: torch.Tensor) -> torch.Tensor:
        return block[:, kept] if name in scenario and block.shape[1] == count else block

    return program.map(chosen)


def _spread(solution: Solution, kept: torch.Tensor, count: int) -> Solution:
    """A solution of some scenarios with 0 in the place of the others."""

    def spread(part: torch.Tensor) -> torch.Tensor:
        return part.new_zeros(1, count, part.shape[2]).index_copy_(1, kept, part)

    duals = replace(
        solution.duals,
        scenario_inequality=spread(solution.duals.scenario_inequality),
        scenario_equality=spread(solution.duals.scenario_equality),
    )
    return replace(solution, recourse=spread(solution.recourse), duals=duals)
