"""The policy of a network that names the decision itself. May import: predictors, solvers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from forewise.policy.base import Policy
from forewise.predictors.networks.kinds import PointPredictor
from forewise.problems.base import Problem
from forewise.solvers.base import ProgramSolver
from forewise.solvers.interior_point.solver import InteriorPointSolver
from forewise.solvers.projection import project
from forewise.solvers.solution import Solution


@dataclass(frozen=True, eq=False, repr=False)
class DirectPolicy(Policy):
    """A network from context to decision, brought into the feasible set by the solver.

    Parameters
    ----------
    problem : Problem
    rule : PointPredictor
        Fitted; what it predicts is a decision.
    outcomes : int
        Number of outcomes it was trained on.
    names : list of str or None
        Their names.
    solver : ProgramSolver
    """

    problem: Problem
    rule: PointPredictor
    outcomes: int
    names: list[str] | None = None
    solver: ProgramSolver = field(default_factory=InteriorPointSolver)

    @property
    def n_outcomes(self) -> int:
        """Number of outcomes the policy was trained on."""
        return self.outcomes

    @property
    def outcome_names(self) -> list[str] | None:
        """Names of the outcomes, where the training table had them."""
        return self.names

    def _check(self, X: Any) -> np.ndarray:
        return self.rule.check_contexts(X)

    def _extrapolates(self, X: np.ndarray) -> np.ndarray:
        return self.rule.extrapolates(X)

    def _decide(self, problem: Problem, X: np.ndarray, n_scenarios: int, seed: int) -> Solution:
        wanted = self.rule.sample_checked(X, 1, seed).values[:, 0]
        return project(problem, wanted, self.n_outcomes, self.solver)
