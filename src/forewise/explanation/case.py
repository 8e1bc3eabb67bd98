"""One context as its policy sees it: scenarios, the solution, and ways to ask what if."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from forewise.policy.base import ScenarioPolicy, collapsed
from forewise.problems.base import Problem, RiskAverseProblem
from forewise.problems.feasibility import feasible_contexts
from forewise.scenarios import Scenarios
from forewise.solvers.auto import AutoSolver, solve
from forewise.solvers.closed_form import DualSearchSolver, WeightedQuantileSolver
from forewise.solvers.solution import Solution
from forewise.validation.arguments import WORKING_DTYPE

#: Decisions that are explained one by one: the largest, where there are more.
EXPLAINED = 12
# Reweightings of the scenarios; sorting is so fast that it can have many.
_REWEIGHTINGS, _MANY_REWEIGHTINGS = 32, 256
_ENTRIES = 2**19  # numbers of a piece of work


@dataclass(frozen=True, eq=False)
class Case:
    """A context, the problem as it stands in it, its scenarios, and the decision.

    Attributes
    ----------
    row : table (1, n_features), as the user has it
    context : array (1, n_inputs), as `Predictor.check_contexts` returns it
    scenarios : those of positive weight, in double precision
    explained : array of int, numbers of the decisions that are explained one by one
    """

    policy: ScenarioPolicy
    problem: Problem
    row: Any
    context: np.ndarray
    n_scenarios: int
    seed: int
    scenarios: Scenarios
    solution: Solution
    explained: np.ndarray

    @classmethod
    def of(cls, policy: ScenarioPolicy, problem: Problem, row: Any, n: int, seed: int) -> Case:
        """Draw the scenarios of a context, and decide as `Policy.decide` does."""
        context = policy.predictor.check_contexts(row)
        drawn = policy.predictor.sample_checked(context, n, seed)
        solution = solve(problem, collapsed(problem, drawn), policy.solver)
        possible = drawn.weights[0] > 0
        values = drawn.values[:, possible].to(WORKING_DTYPE)
        weights = None if drawn.equally_weighted else drawn.weights[:, possible].to(WORKING_DTYPE)
        size = solution.decision[0].detach().abs().numpy()
        explained = np.sort(np.argsort(-size, kind="stable")[:EXPLAINED])
        kept = Scenarios(values, weights)
        return cls(policy, problem, row, context, n, seed, kept, solution, explained)

    @property
    def decision(self) -> torch.Tensor:
        """The decision, ``(n_decisions,)``."""
        return self.solution.decision[0].detach().to(WORKING_DTYPE)

    @property
    def names(self) -> list[str]:
        """Names of all decisions."""
        return self.policy.decision_names

    @property
    def outcome_names(self) -> list[str]:
        """Names of the outcomes; numbers where the table had none."""
        n = self.scenarios.n_outcomes
        return self.policy.outcome_names or [f"outcome_{i}" for i in range(n)]

    def named(self, values: Any) -> dict[str, float]:
        """Numbers of the explained decisions by name."""
        numbers = np.asarray(values, dtype=float)
        return {self.names[i]: float(v) for i, v in zip(self.explained, numbers, strict=True)}

    @property
    def is_quantile(self) -> bool:
        """Whether the decision is a quantile: piecewise constant in the costs."""
        return isinstance(self._choice, WeightedQuantileSolver)

    @property
    def _choice(self) -> Any:
        solver = self.policy.solver
        return solver.choice(self.problem) if isinstance(solver, AutoSolver) else solver

    def decisions_at(self, contexts: np.ndarray) -> np.ndarray:
        """What the policy decides in other contexts ``(n, n_inputs)``, NaN where it cannot."""
        found = np.empty((len(contexts), len(self.decision)))
        entries = self.n_scenarios * max(4, self.scenarios.n_outcomes)
        for part in _pieces(len(contexts), entries):
            own = self.policy._decide(self.problem, contexts[part], self.n_scenarios, self.seed)
            found[part] = own.decision.detach().numpy()
        return found

    def costs_of(self, decisions: torch.Tensor) -> torch.Tensor:
        """Cost of decisions ``(n, n_decisions)`` in every scenario, ``(n, n_scenarios)``.

        Infinite where a decision breaks a constraint.
        """
        values = self.scenarios.values[0]
        M, width = values.shape
        found = decisions.new_empty(len(decisions), M)
        for part in _pieces(len(decisions), M * (width + decisions.shape[1])):
            chosen = decisions[part].repeat_interleave(M, 0)
            outcome = values.repeat(len(decisions[part]), 1)
            with torch.no_grad():
                found[part] = self.problem.unchecked_cost(chosen, outcome).reshape(-1, M)
        like = values.abs().amax().expand(len(decisions), 1)
        constraints = self.problem.constraints(decisions.shape[1])
        allowed = feasible_contexts(constraints, decisions, like, "infinite")
        return torch.where(allowed[:, None], found, torch.inf)

    def expected(self, costs: torch.Tensor) -> torch.Tensor:
        """What the problem minimises of costs ``(n, n_scenarios)``: their mean, or their risk."""
        weights = self.scenarios.weights.expand_as(costs)
        if isinstance(self.problem, RiskAverseProblem):
            return self.problem.risk(costs, weights)
        return (weights * costs).sum(-1)

    def solved(self, problem: Problem) -> Solution:
        """The solution of another problem with the same scenarios."""
        return solve(problem, collapsed(problem, self.scenarios), self.policy.solver, "return")

    def reweighted(self, problem: Problem, values: torch.Tensor | None = None) -> torch.Tensor:
        """Decisions ``(n, n_decisions)`` with the scenarios' weights drawn anew n times.

        The weights are w_j e_j with exponential e_j, normalised: the same in every call.
        """
        closed = isinstance(self._choice, WeightedQuantileSolver | DualSearchSolver)
        n = _MANY_REWEIGHTINGS if closed else _REWEIGHTINGS
        values = self.scenarios.values if values is None else values
        generator = torch.Generator().manual_seed(0)
        uniform = torch.rand(n, values.shape[1], generator=generator, dtype=WORKING_DTYPE)
        weights = self.scenarios.weights * -torch.log1p(-uniform)
        many = Scenarios(values.expand(n, -1, -1), weights)
        solution = solve(problem, collapsed(problem, many), self.policy.solver, "return")
        return solution.decision[solution.optimal]


def _pieces(count: int, entries: int) -> Iterator[slice]:
    """Slices that cover `count` things of so many numbers, each of a bounded size."""
    size = max(1, _ENTRIES // entries)
    for start in range(0, count, size):
        yield slice(start, min(start + size, count))
