"""The solver of risk-averse problems, on top of a solver of scenario programs.

Where the cost is piecewise linear, its risk is a program of the same kind. Where it is quadratic
in the recourse, the program of its risk has quadratic rows. They are replaced by tangents, and the
curvature that these lack goes to the cost, weighted with the rows' multipliers: each round is a
quadratic program, and the rounds are Newton's method on the optimality conditions, made safe by a
line search on the risk itself. The last program has the derivatives of the true one; its decision
is taken where its risk is not above that of the search's.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import torch

from forewise.problems.base import Problem, RiskAverseProblem
from forewise.problems.bounds import BoundRows
from forewise.problems.programs import RECOURSE, ScenarioProgram, apply
from forewise.problems.risk import Centre, Risk, tail_program
from forewise.scenarios import Scenarios
from forewise.solvers.base import ProgramSolver, Solver
from forewise.solvers.bounds import split_duals
from forewise.solvers.interior_point.solver import InteriorPointSolver
from forewise.solvers.solution import Solution, Status, only

# Share of the mean's curvature for scenarios outside of the tail, which have none of their own: it
# keeps their recourse in place in the search. The last program, which is differentiated, has less.
_LEAST_CURVATURE, _LAST_CURVATURE = 1e-2, 1e-4
# Scenarios whose rows all have multipliers below this, relative to the largest, change nothing.
_NEGLIGIBLE = 1e-7
# What moving away from the search's decision costs in the last program, in units of the risk for a
# change by the decision's own size: of many good decisions, it takes one nearby.
_ANCHOR = 1e-6
_STEPS = 2.0 ** -torch.arange(10.0, dtype=torch.float64)
# A round that promises so little, relative to the costs, is the last.
_PROMISE = 1e-10
# The last program's decision is as good as the search's if its risk is above it by less than this.
_AS_GOOD = 1e-9
# A search that ends because nothing gets better has converged if a round promised less than this.
_STALLED = 1e-7


class _Point(NamedTuple):
    """Where the search stands in each context."""

    z: torch.Tensor
    u: torch.Tensor
    multiplier: torch.Tensor  # of each scenario's cost, in units of the scenario's weight
    relevant: torch.Tensor  # scenarios that have any multiplier
    value: torch.Tensor

    def centre(self, risk: Risk, least: float) -> Centre:
        """What the next program's tangents touch."""
        least = least if risk.share == 1 else 0.0
        return Centre(self.u, self.multiplier.clamp(least, 1e8))

    def put(self, contexts: torch.Tensor, others: _Point) -> _Point:
        pairs = zip(self, others, strict=True)
        return _Point(*(mine.index_copy(0, contexts, other) for mine, other in pairs))


@dataclass(frozen=True, repr=False)
class RiskSolver(Solver):
    """Solves problems `with_risk`, by one program where costs are linear and several elsewhere.

    With several, multipliers and residuals are those of the last. If that one fails where the
    search did not, the context is optimal, without multipliers and without gradients.

    Parameters
    ----------
    general : ProgramSolver
        Solves the programs.
    max_rounds : int
        Programs that may be solved for a quadratic cost.

    Examples
    --------
    `AutoSolver` takes it for problems `with_risk`; by itself it says how many programs at most.

    >>> import forewise as fw
    >>> problem = fw.Newsvendor(3.0, 1.0).with_risk(fw.CVaR(0.5))
    >>> demand = fw.Scenarios([[[0.0], [10.0], [20.0], [100.0]]])
    >>> fw.solve(problem, demand, fw.solvers.RiskSolver(max_rounds=20)).status[0].name
    'OPTIMAL'
    """

    general: ProgramSolver = field(default_factory=InteriorPointSolver)
    max_rounds: int = 60

    def unsupported_reason(self, problem: Problem) -> str | None:
        """Only problems with a risk have one to minimise."""
        if isinstance(problem, RiskAverseProblem):
            return None
        return f"a {type(problem).__name__} has no risk: it is made by problem.with_risk(...)"

    def solve(self, problem: Problem, scenarios: Scenarios) -> Solution:
        """Solve every context; the decision is followed by where the tail begins."""
        assert isinstance(problem, RiskAverseProblem)
        program = problem.recourse_program(scenarios)
        if not program.D.any():
            return self.general.solve_program(tail_program(program, problem.risk))
        bounds = BoundRows.of(program)
        found = self._solve_quadratic(bounds.added(program), problem.risk)
        return replace(found, duals=split_duals(bounds, found.duals))

    def _solve_quadratic(self, program: ScenarioProgram, risk: Risk) -> Solution:
        with torch.no_grad():
            plain = program.map(lambda _, block: block.detach())
            start = self.general.solve_program(plain)
            point, converged = self._search(plain, risk, start)
            point = self._settled(plain, risk, point)
        centre = point.centre(risk, _LAST_CURVATURE)
        # Recourse that costs nothing would stand at its bounds without pressing on them, and there
        # is no derivative at such a point.
        weights = torch.where(point.relevant, program.weights, 0.0)
        part = program.map(lambda name, block: weights if name == "weights" else block)
        last = self.general.solve_program(_anchored(tail_program(part, risk, centre), point))
        with torch.no_grad():
            better = self._better(plain, risk, last, point)
        status = [*map(_combined, start.status, converged.tolist())]
        threshold = risk.threshold(plain.recourse_cost(better.u), plain.weights)
        # What the last program did not see has no derivatives from it.
        u = torch.where(
            point.relevant[..., None], last.recourse[..., : program.n_recourse], torch.nan
        )
        optimal = torch.tensor([s is Status.OPTIMAL for s in status], device=better.z.device)
        decision = _valued(last.decision, torch.cat([better.z, threshold[:, None]], -1))
        row = program.T.shape[-2]  # that of the tail, which is no row of the program
        rows = last.duals.scenario_inequality[..., : program.r.shape[-1] + 1]
        own = torch.cat([rows[..., :row], rows[..., row + 1 :]], -1)
        return replace(
            last,
            decision=only(optimal, decision),
            recourse=only(optimal, _valued(u, better.u)),
            objective=_valued(_value(part, last, centre), better.value),
            duals=replace(last.duals, scenario_inequality=own),
            status=tuple(status),
            certificates={
                i: proof for i, proof in start.certificates.items() if status[i] is start.status[i]
            },
        )

    def _search(
        self, program: ScenarioProgram, risk: Risk, start: Solution
    ) -> tuple[_Point, torch.Tensor]:
        """The centres whose programs have themselves for a solution, and where they were found."""
        value = _risk(program, risk, start.decision, start.recourse)
        whole = torch.full_like(program.weights, risk.share)
        point = _Point(start.decision, start.recourse, whole, program.weights > 0, value)
        converged = torch.zeros_like(start.optimal)
        active = start.optimal.nonzero().squeeze(-1)
        for _ in range(self.max_rounds):
            if len(active) == 0:
                break
            part = program.take(active)
            old = _Point(*(value[active] for value in point))
            new, promise = self._round(part, risk, old)
            point = point.put(active, new)
            size = old.value.abs() + (part.weights * part.recourse_cost(old.u).abs()).sum(-1)
            stuck = ~(new.value < old.value - 1e-14 * size)
            done = (promise <= _PROMISE * size) | (stuck & (promise <= _STALLED * size))
            converged = converged.index_copy(0, active, done)
            active = active[~(done | stuck)]
        return point, converged

    def _settled(self, program: ScenarioProgram, risk: Risk, point: _Point) -> _Point:
        """The same decisions with the best recourse of every scenario.

        The search leaves scenarios outside of the tail anywhere below its threshold.
        """
        best = self._best_recourse(program, point.z)
        cheaper = program.recourse_cost(best) <= program.recourse_cost(point.u)
        u = torch.where(cheaper.unsqueeze(-1), best, point.u)
        return point._replace(u=u, value=_risk(program, risk, point.z, u))

    def _better(
        self, program: ScenarioProgram, risk: Risk, last: Solution, point: _Point
    ) -> _Point:
        """The last program's decision, or the search's where that is better.

        The last program does not see scenarios outside of the tail. Where its decision could move
        without costing more, it may have moved to where they are the tail.
        """
        z = last.decision[:, : program.n_decisions]
        u = self._best_recourse(program, torch.where(last.optimal[:, None], z, point.z))
        value = _risk(program, risk, z, u)
        size = point.value.abs() + (program.weights * program.recourse_cost(point.u).abs()).sum(-1)
        taken = last.optimal & (value <= point.value + _AS_GOOD * size)
        return point._replace(
            z=torch.where(taken[:, None], z, point.z),
            u=torch.where(taken[:, None, None], u, point.u),
            value=torch.where(taken, value, point.value),
        )

    def _best_recourse(self, program: ScenarioProgram, z: torch.Tensor) -> torch.Tensor:
        n = program.n_decisions
        fixed = torch.eye(n, dtype=z.dtype, device=z.device)[None]
        blocks = {name: getattr(program, name) for name in RECOURSE}
        return self.general.solve_program(
            ScenarioProgram(program.weights, z.new_zeros(1, n), E=fixed, e=z, **blocks)
        ).recourse

    def _round(
        self, program: ScenarioProgram, risk: Risk, old: _Point
    ) -> tuple[_Point, torch.Tensor]:
        """The best point on the way to the solution of the tangents, and what was promised."""
        centre = old.centre(risk, _LEAST_CURVATURE)
        found = self.general.solve_program(tail_program(program, risk, centre))
        solved = found.optimal
        n, k = program.n_decisions, program.n_recourse
        z = torch.where(solved[:, None], found.decision[:, :n], old.z)
        u = torch.where(solved[:, None, None], found.recourse[..., :k], old.u)
        promise = torch.where(solved, old.value - _value(program, found, centre), torch.inf)
        dz, du = z - old.z, u - old.u
        tries = [_risk(program, risk, old.z + step * dz, old.u + step * du) for step in _STEPS]
        values = torch.stack(tries)
        best = values.argmin(0)
        step = _STEPS[best]
        multiplier, relevant = _pressure(program, risk, found)
        new = _Point(
            old.z + step[:, None] * dz,
            old.u + step[:, None, None] * du,
            torch.where(solved[:, None], multiplier, old.multiplier),
            torch.where(solved[:, None], relevant, old.relevant),
            values.gather(0, best[None])[0],
        )
        return new, promise


def _pressure(
    program: ScenarioProgram, risk: Risk, found: Solution
) -> tuple[torch.Tensor, torch.Tensor]:
    """Multipliers of the scenarios' costs in units of their weights, and who matters at all."""
    weights = program.weights.clamp_min(1e-300)
    rows = torch.cat([found.duals.scenario_inequality, found.duals.scenario_equality.abs()], -1)
    # The last inequality, where there is one, only says that an excess is not negative.
    excess = program.r.shape[-1] + 1
    rows = torch.cat([rows[..., :excess], rows[..., excess + (risk.level < 1) :]], -1)
    each = rows.amax(-1) / weights
    matters = each > _NEGLIGIBLE * each.where(program.weights > 0, 0.0).amax(-1, keepdim=True)
    if risk.share < 1:
        matters = torch.ones_like(matters)
    return rows[..., program.T.shape[-2]] / weights, matters & (program.weights > 0)


def _risk(program: ScenarioProgram, risk: Risk, z: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    return program.first_stage_cost(z) + risk(program.recourse_cost(u), program.weights)


def _combined(before: Status, converged: bool) -> Status:
    """How a context ended, from how its mean and its search did."""
    if before is Status.UNBOUNDED:  # the mean is; its risk may not be
        return Status.INACCURATE
    if before is not Status.OPTIMAL:
        return before
    return Status.OPTIMAL if converged else Status.INACCURATE


def _anchored(program: ScenarioProgram, point: _Point) -> ScenarioProgram:
    """The program, with a little cost of moving away from a point; not for the threshold."""
    # A decision to do nothing has no size of its own; what the rows are about then has.
    size = point.z.square().sum(-1) + program.r.detach().square().mean((-1, -2))
    pull = _ANCHOR * torch.where(size > 0, point.value.abs() / size, 0.0)
    pull = torch.nn.functional.pad(pull[:, None].expand_as(point.z), (0, 1))
    z = torch.nn.functional.pad(point.z, (0, 1))
    changed = {"P": program.P + torch.diag_embed(pull), "q": program.q - pull * z}
    return program.map(lambda name, block: changed.get(name, block))


def _valued(derived: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """A value with the derivatives of another; with none where the other is not a number."""
    known = derived.isfinite()
    return torch.where(known, derived + (value - derived).detach(), value)


def _value(program: ScenarioProgram, found: Solution, centre: Centre) -> torch.Tensor:
    """The risk according to the tangents at a centre, with the constant that programs leave out."""
    bent = 0.5 * (centre.u * apply(program.D, centre.u)).sum(-1)
    return found.objective + (program.weights * centre.curvature * bent).sum(-1)
