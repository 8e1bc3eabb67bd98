"""What learners minimise: the cost of decisions.

May import: exceptions, predictors, problems, solvers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from forewise.exceptions import SolveError, UnsupportedProblemError
from forewise.predictors.networks.base import Rows
from forewise.predictors.networks.network import Network
from forewise.predictors.networks.training import Objective, validation_generator
from forewise.problems.base import Problem
from forewise.scenarios import Scenarios
from forewise.solvers.auto import solve
from forewise.solvers.base import Solver
from forewise.solvers.solution import Solution, Status

#: Decide: the problem and the scaled contexts of some rows to a solution, with gradients unless
#: they are off.
Decide = Callable[[Problem, torch.Tensor, torch.Generator], Solution]

_TOLERATED = 0.5  # share of a batch that may fail before training gives up
_SAMPLED = 512  # rows that say what ignoring the context costs
_POOLED = 64  # outcomes that stand for all, where each row has a problem of its own


@dataclass(frozen=True)
class Judge:
    """Costs of decisions on rows whose outcomes are known."""

    problem: Problem  # of these rows
    outcome: torch.Tensor  # (n_contexts, n_outcomes)
    informed_cost: float  # mean cost of deciding with the outcome known

    @classmethod
    def of(cls, problem: Problem, rows: Rows, solver: Solver | None) -> Judge:
        """The judge of some rows."""
        outcome = torch.from_numpy(rows.y)
        informed = solve(problem, Scenarios(outcome[:, None]), solver, on_failure="return")
        return cls(problem, outcome, float(informed.objective.nanmean()))

    def cost(self, solution: Solution, rows: torch.Tensor | None = None) -> torch.Tensor:
        """Mean cost over the contexts that have a decision."""
        return self._decided_costs(solution, rows).mean()

    def costs(self, solution: Solution) -> torch.Tensor:
        """Cost of every context (n_contexts,), without gradients; NaN where it has no decision."""
        costs = torch.full_like(self.outcome[:, 0], torch.nan)
        costs[solution.optimal] = self._decided_costs(solution, None).detach().to(costs)
        return costs

    def _decided_costs(self, solution: Solution, rows: torch.Tensor | None) -> torch.Tensor:
        outcome, problem, chosen = self.outcome, self.problem, solution.first_stage
        if rows is not None:
            outcome, problem = outcome[rows], problem.for_contexts(rows)
        decided = solution.optimal
        if not bool(decided.all()):
            _require_most(solution)
            chosen, outcome = chosen[decided], outcome[decided]
            problem = problem.for_contexts(decided.nonzero().squeeze(-1))
        return problem.training_cost(chosen, outcome)

    def regret(self, solution: Solution) -> float:
        """Mean cost above that of deciding with the outcome known."""
        return self.cost(solution).item() - self.informed_cost


@dataclass(frozen=True)
class DecisionCost(Objective):
    """The cost of the decisions themselves, in units of what ignoring the context costs.

    Costs of single outcomes are noisy: of many epochs the one that seems best on the validation
    rows may have been lucky. Where training starts from a forecast that is good already
    (`start_costs` are those of its decisions on the validation rows), an epoch that is not better
    than the start by one standard error of the difference, row by row, has that error on top.
    """

    decide: Decide
    rows: Rows
    judge: Judge
    validation: Rows | None
    validation_judge: Judge | None
    scale: float
    title: str
    learned_with: dict[str, Any]  # the learner's own part in `identity`
    start_costs: torch.Tensor | None = None  # (n_contexts,) of the validation rows

    @property
    def identity(self) -> dict[str, Any]:
        """The problem with all its numbers, and what is decided with."""
        rows, judge = self.validation, self.validation_judge
        return {
            "the objective": self.title,
            "the validation rows": None if rows is None else (rows.X, rows.y),
            "the problem or what is given": (self.judge.problem, judge and judge.problem),
            **self.learned_with,
        }

    def from_warm_start(self, seed: int) -> DecisionCost:
        """The same, with its start as what is to be left for good reasons only."""
        return replace(self, start_costs=self._validation_costs(validation_generator(seed)))

    def loss(
        self, network: Network, rows: torch.Tensor, generator: torch.Generator
    ) -> torch.Tensor:
        """Mean cost of the rows' decisions."""
        problem = self.judge.problem.for_contexts(rows)
        solution = self.decide(problem, self.rows.x_scaled[rows], generator)
        return self.judge.cost(solution, rows) / self.scale

    def validate(
        self, network: Network, epoch: int, generator: torch.Generator
    ) -> dict[str, float]:
        """Mean cost of the validation rows' decisions, and their regret in the user's units."""
        costs = self._validation_costs(generator)
        if costs is None or self.validation_judge is None:
            return {}
        cost = costs.nanmean().item()
        figures = {
            "validation": cost / self.scale,
            "regret": cost - self.validation_judge.informed_cost,
        }
        if self.start_costs is None:
            return figures
        error = _standard_error(costs - self.start_costs)
        better = cost + error < self.start_costs.nanmean().item()
        return figures | {"penalty": 0.0 if better else error / self.scale}

    @torch.no_grad()
    def _validation_costs(self, generator: torch.Generator) -> torch.Tensor | None:
        if self.validation is None or self.validation_judge is None:
            return None
        judge = self.validation_judge
        return judge.costs(self.decide(judge.problem, self.validation.x_scaled, generator))


def cost_of_ignoring_context(problem: Problem, y: np.ndarray, solver: Solver | None) -> float:
    """Mean regret of the one decision that is best for all rows together: a natural unit.

    Where rows have problems of their own, each has its best decision for the outcomes of all. 1
    where it cannot be told (no such decision, or it has no regret).
    """
    outcome = torch.from_numpy(y)
    places = _spread(len(outcome), _SAMPLED)
    some, own = outcome[places], problem.for_contexts(places)
    pool = some[None]
    if own.n_contexts is not None:
        pool = some[_spread(len(some), _POOLED)].expand(len(some), -1, -1)
    ignorant = solve(own, Scenarios(pool), solver, on_failure="return")
    informed = solve(own, Scenarios(some[:, None]), solver, on_failure="return")
    decision = ignorant.decision.expand(len(some), -1)
    regret = (own.unchecked_cost(decision, some) - informed.objective).nanmean().item()
    return regret if regret > 1e-9 * abs(ignorant.objective.nanmean().item()) else 1.0


def require_gradients(problem: Problem) -> None:
    """Raise with what is possible instead, where decisions have no gradients."""
    unsupported_reason = problem.gradient_unsupported_reason()
    if unsupported_reason is not None:
        raise UnsupportedProblemError(
            f"this problem cannot be learned through: {unsupported_reason}"
        )


def _standard_error(values: torch.Tensor) -> float:
    """Of the mean of independent values; NaN are left out, and one value alone has none."""
    known = values[~values.isnan()]
    return float(known.std() / math.sqrt(len(known))) if len(known) > 1 else 0.0


def _spread(n_rows: int, at_most: int) -> torch.Tensor:
    """Some rows, evenly spread."""
    return torch.linspace(0, n_rows - 1, min(n_rows, at_most)).long()


def _require_most(solution: Solution) -> None:
    failed = [status for status in solution.status if status is not Status.OPTIMAL]
    if len(failed) > _TOLERATED * len(solution.status):
        raise SolveError(
            f"{len(failed)} of the {len(solution.status)} programs of a training batch have no "
            f"optimal decision (the first is {failed[0]}: {failed[0].advice})",
            solution,
        )
