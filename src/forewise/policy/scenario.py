"""The policy of predict, draw and solve. May import: predictors, problems, solvers, `base`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from forewise.policy.base import Policy
from forewise.predictors.base import Predictor
from forewise.problems.base import Problem
from forewise.scenarios import Scenarios
from forewise.solvers.auto import AutoSolver, solve
from forewise.solvers.base import Solver
from forewise.solvers.solution import Solution


@dataclass(frozen=True, eq=False, repr=False)
class ScenarioPolicy(Policy):
    """Draws scenarios of the outcome, and solves one stochastic program per context.

    Where uncertainty cannot matter (`certainty_equivalent`), the mean or the median of the
    scenarios is all that is looked at.

    Parameters
    ----------
    problem : Problem
    predictor : Predictor
        Fitted.
    solver : Solver
    """

    problem: Problem
    predictor: Predictor
    solver: Solver = field(default_factory=AutoSolver)

    @property
    def n_outcomes(self) -> int:
        """Number of outcomes the predictor was fitted on."""
        return self.predictor.n_outcomes_

    @property
    def outcome_names(self) -> list[str] | None:
        """Names of the outcomes, where the training table had them."""
        return self.predictor.outcome_names_

    def _check(self, X: Any) -> np.ndarray:
        return self.predictor.check_contexts(X)

    def _extrapolates(self, X: np.ndarray) -> np.ndarray:
        return self.predictor.extrapolates(X)

    def _decide(self, problem: Problem, X: np.ndarray, n_scenarios: int, seed: int) -> Solution:
        scenarios = self.predictor.sample_checked(X, n_scenarios, seed)
        equivalent = self.problem.certainty_equivalent()
        if equivalent is not None:
            collapse = {"mean": mean_scenario, "median": median_scenario}
            scenarios = collapse[equivalent.statistic](scenarios)
        return solve(problem, scenarios, self.solver, on_failure="return")


def mean_scenario(scenarios: Scenarios) -> Scenarios:
    """One scenario per context: the weighted mean."""
    return Scenarios((scenarios.weights[..., None] * scenarios.values).sum(1, keepdim=True))


def median_scenario(scenarios: Scenarios) -> Scenarios:
    """One scenario per context: the weighted median of each outcome."""
    values, order = scenarios.values.sort(dim=1)
    weights = scenarios.weights[..., None].expand_as(values).gather(1, order)
    reached = weights.cumsum(1) >= 0.5 - 1e-12
    first = reached.to(torch.uint8).argmax(1, keepdim=True)
    return Scenarios(values.gather(1, first))
