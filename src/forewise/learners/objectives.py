"""What learners minimise: the cost of decisions."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import torch

from forewise.exceptions import SolveError, UnsupportedProblemError
from forewise.learners.base import TrainingProblems
from forewise.predictors.networks.base import NetworkPredictor
from forewise.predictors.networks.network import Network
from forewise.predictors.networks.rows import Rows
from forewise.predictors.networks.training import Figures, Objective, validation_generator
from forewise.problems.base import Problem
from forewise.scenarios import Scenarios
from forewise.solvers.auto import solve
from forewise.solvers.base import Solver
from forewise.solvers.solution import Solution, Status

_TOLERATED = 0.5  # share of a batch that may fail before training gives up
_SAMPLED = 512  # rows that the context-free regret is computed from
_POOLED = 64  # outcomes that stand for all, where each row has a problem of its own


@dataclass(frozen=True)
class CostEvaluator:
    """Costs of decisions on rows whose outcomes are known."""

    problem: Problem  # of these rows
    rows: Rows
    outcome: torch.Tensor  # (n_contexts, n_outcomes)
    informed_cost: float  # mean cost of deciding with the outcome known

    @classmethod
    def from_rows(cls, problem: Problem, rows: Rows, solver: Solver | None) -> Self:
        """The evaluator of some rows."""
        outcome = torch.from_numpy(rows.y)
        informed = solve(problem, Scenarios(outcome[:, None]), solver, on_failure="return")
        return cls(problem, rows, outcome, float(informed.objective.nanmean()))

    def decided_costs(self, solution: Solution, rows: torch.Tensor | None = None) -> torch.Tensor:
        """Costs of the contexts that have a decision, of all or of some of the rows."""
        outcome, problem, chosen = self.outcome, self.problem, solution.first_stage
        if rows is not None:
            outcome, problem = outcome[rows], problem.for_contexts(rows)
        decided = solution.optimal
        if not bool(decided.all()):
            failed = [status for status in solution.status if status is not Status.OPTIMAL]
            if len(failed) > _TOLERATED * len(decided):
                raise SolveError(
                    f"{len(failed)} of the {len(decided)} programs of a training batch have no "
                    f"optimal decision (the first is {failed[0]}: {failed[0].advice})",
                    solution,
                )
            chosen, outcome = chosen[decided], outcome[decided]
            problem = problem.for_contexts(decided.nonzero().squeeze(-1))
        return problem.training_cost(chosen, outcome)

    def costs(self, solution: Solution) -> torch.Tensor:
        """Cost of every context (n_contexts,), without gradients; NaN where it has no decision."""
        costs = torch.full_like(self.outcome[:, 0], torch.nan)
        costs[solution.optimal] = self.decided_costs(solution).detach().to(costs)
        return costs


@dataclass(frozen=True, kw_only=True)
class DecisionCost(Objective):
    """The cost of the decisions that a network leads to, in units of the context-free regret.

    After a warm start, whose decisions on the validation rows cost `start_costs`, the weights that
    are kept follow the one-standard-error rule: an epoch that is not better than the start by one
    standard error of the difference, row by row, has that error added to its validation loss.
    """

    predictor: NetworkPredictor
    training: CostEvaluator
    validation: CostEvaluator | None
    scale: float
    start_costs: torch.Tensor | None = None  # (n_contexts,) of the validation rows

    @classmethod
    def from_rows(
        cls,
        predictor: NetworkPredictor,
        problems: TrainingProblems,
        rows: Rows,
        validation_rows: Rows | None,
        evaluation_solver: Solver | None,
        **settings: Any,
    ) -> Self:
        """The objective of a prepared predictor; `settings` are the subclass's own fields."""
        problem, validation = problems.for_rows(rows), None
        training = CostEvaluator.from_rows(problem, rows, evaluation_solver)
        if validation_rows is not None:
            own = problems.for_validation(validation_rows)
            validation = CostEvaluator.from_rows(own, validation_rows, evaluation_solver)
        scale = context_free_regret(problem, rows.y, evaluation_solver)
        return cls(
            predictor=predictor, training=training, validation=validation, scale=scale, **settings
        )

    @abstractmethod
    def decide(self, problem: Problem, x: torch.Tensor, generator: torch.Generator) -> Solution:
        """Decisions of scaled contexts, with gradients unless they are off."""

    @property
    def n_rows(self) -> int:
        return len(self.training.rows)

    @property
    def identity(self) -> dict[str, Any]:
        """The problem with all its numbers; subclasses add what is decided with."""
        val = self.validation
        return {
            "the objective": self.title,
            "the validation rows": val and (val.rows.X, val.rows.y),
            "the problem or what is given": (self.training.problem, val and val.problem),
        }

    @torch.no_grad()
    def from_warm_start(self, seed: int) -> Self:
        """The same objective, with the one-standard-error rule against the present weights."""
        val = self.validation
        if val is None:
            return self
        solution = self.decide(val.problem, val.rows.x_scaled, validation_generator(seed))
        return replace(self, start_costs=val.costs(solution))

    @property
    def start_figures(self) -> Figures:
        """Figures of the warm start on the validation rows, empty without any."""
        if self.start_costs is None or self.validation is None:
            return {}
        return self._figures(self.start_costs, self.validation)

    def _figures(self, costs: torch.Tensor, validation: CostEvaluator) -> Figures:
        cost = costs.nanmean().item()
        return {"validation": cost / self.scale, "regret": cost - validation.informed_cost}

    def loss(
        self, network: Network, rows: torch.Tensor, generator: torch.Generator
    ) -> torch.Tensor:
        """Mean cost of the rows' decisions."""
        problem = self.training.problem.for_contexts(rows)
        solution = self.decide(problem, self.training.rows.x_scaled[rows], generator)
        return self.training.decided_costs(solution, rows).mean() / self.scale

    @torch.no_grad()
    def validate(self, network: Network, epoch: int, generator: torch.Generator) -> Figures:
        """Mean cost of the validation rows' decisions, and their regret in the user's units."""
        rows = self.training.rows.x_scaled
        network.update_posterior(rows.to(next(network.parameters()).device))
        val = self.validation
        if val is None:
            return {}
        costs = val.costs(self.decide(val.problem, val.rows.x_scaled, generator))
        figures = self._figures(costs, val)
        if self.start_costs is None:
            return figures
        error = _standard_error(costs - self.start_costs)
        better = costs.nanmean().item() + error < self.start_costs.nanmean().item()
        return figures | {"penalty": 0.0 if better else error / self.scale}


def context_free_regret(problem: Problem, y: np.ndarray, solver: Solver | None) -> float:
    """Mean regret of the one decision that is best for all rows together.

    Where rows have problems of their own, each has its best decision for the outcomes of all. 1
    where there is no such decision, or it has no regret.
    """
    outcome = torch.from_numpy(y)
    places = _spread(len(outcome), _SAMPLED)
    some, own = outcome[places], problem.for_contexts(places)
    pool = some[None]
    if own.n_contexts is not None:
        pool = some[_spread(len(some), _POOLED)].expand(len(some), -1, -1)
    context_free = solve(own, Scenarios(pool), solver, on_failure="return")
    informed = solve(own, Scenarios(some[:, None]), solver, on_failure="return")
    decision = context_free.decision.expand(len(some), -1)
    regret = (own.unchecked_cost(decision, some) - informed.objective).nanmean().item()
    return regret if regret > 1e-9 * abs(context_free.objective.nanmean().item()) else 1.0


def require_gradients(problem: Problem) -> None:
    """Raise with what is possible instead, where decisions have no gradients."""
    reason = problem.gradient_unsupported_reason()
    if reason is not None:
        raise UnsupportedProblemError(f"this problem cannot be learned through: {reason}")


def _standard_error(values: torch.Tensor) -> float:
    """Of the mean of independent values; NaN are left out, and one value alone has none."""
    known = values[~values.isnan()]
    return float(known.std() / math.sqrt(len(known))) if len(known) > 1 else 0.0


def _spread(n_rows: int, at_most: int) -> torch.Tensor:
    """Some rows, evenly spread."""
    return torch.linspace(0, n_rows - 1, min(n_rows, at_most)).long()
