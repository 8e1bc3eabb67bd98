"""A network from context to decision, with no distribution at all.

May import: policy, predictors, solvers, `base`, `objectives`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sklearn.base import clone

from forewise.exceptions import InvalidInputError, SolveError, UnsupportedProblemError
from forewise.learners.base import Learner, Past
from forewise.learners.objectives import (
    DecisionCost,
    Judge,
    cost_of_ignoring_context,
    require_gradients,
)
from forewise.policy.direct import DirectPolicy
from forewise.predictors.networks.kinds import PointPredictor
from forewise.predictors.networks.training import Training
from forewise.problems.base import Problem
from forewise.scenarios import Scenarios
from forewise.solvers.auto import solve
from forewise.solvers.base import ProgramSolver
from forewise.solvers.interior_point.solver import InteriorPointSolver
from forewise.solvers.projection import project
from forewise.solvers.solution import Solution
from forewise.validation.arguments import came_as, require_instance
from forewise.validation.tables import check_outcomes, column_names

_GROUPS, _GROUP_SIZE = 64, 16  # small groups of rows whose decisions say where decisions lie


class DirectLearner(Learner):
    """Learns the decision itself: a plain network, trained on the cost.

    Its output is brought into the feasible set by the solver, in training and when deciding.
    Prefer it where only the decision is wanted, the feasible set never changes and data are
    plenty: on easy problems it is hard to beat. It has no scenarios, so nothing can be asked of
    it but its decision.

    Parameters
    ----------
    problem : Problem
    network : PointPredictor, optional
        Hidden sizes, training and random state of the network; `PointPredictor()` by default.
    solver : ProgramSolver, optional
        What projects; `InteriorPointSolver()` by default.
    """

    def __init__(
        self,
        problem: Problem,
        network: PointPredictor | None = None,
        solver: ProgramSolver | None = None,
    ) -> None:
        self.problem = problem
        self.network = network
        self.solver = solver

    def _fit(self, X: Any, y: Any, X_val: Any, y_val: Any, past: Past) -> DirectPolicy:
        if self.solver is not None:
            require_instance("solver", self.solver, ProgramSolver, "InteriorPointSolver()")
        require_gradients(self.problem)
        unsupported_reason = self.problem.direct_unsupported_reason()
        if unsupported_reason is not None:
            raise UnsupportedProblemError(unsupported_reason)
        rule = self._cloned_rule()
        outcomes = check_outcomes(self, y)
        near = _decisions_of_groups(past.problem, outcomes)
        rows, validation = rule.prepare(X, y, X_val, y_val, predicted=near)

        def decide(problem: Problem, x: torch.Tensor, generator: torch.Generator) -> Solution:
            wanted = rule.scenarios_with_gradients(x, 1, generator).values[:, 0]
            return project(problem, wanted, outcomes.shape[1], self.solver)

        problem = past.of(rows)
        objective = DecisionCost(
            decide=decide,
            rows=rows,
            judge=Judge.of(problem, rows, None),
            validation=validation,
            validation_judge=Judge.of(past.of_validation(validation), validation, None)
            if validation
            else None,
            scale=cost_of_ignoring_context(problem, rows.y, None),
            title="direct",
            learned_with={"the solver": self.solver or InteriorPointSolver()},
        )
        rule.train(objective, rows, rule.training or Training())
        self.history_ = rule.history_
        self._remember(rule)
        solver = self.solver or InteriorPointSolver()
        return DirectPolicy(self.problem, rule, outcomes.shape[1], column_names(y), solver)

    def _cloned_rule(self) -> PointPredictor:
        if self.network is None:
            return PointPredictor()
        if not isinstance(self.network, PointPredictor):
            raise InvalidInputError(
                f"network must be a PointPredictor, for a decision is one value, with no "
                f"distribution, but is {came_as(self.network)}"
            )
        return clone(self.network)


def _decisions_of_groups(problem: Problem, outcome: np.ndarray) -> np.ndarray:
    """Best decisions of small random groups of rows: where good decisions lie, and how far apart.

    The network's outputs are centred and scaled with them, so that training starts inside.
    """
    random = np.random.default_rng(0)
    groups = random.integers(len(outcome), size=(_GROUPS, min(_GROUP_SIZE, len(outcome))))
    own = problem.for_contexts(torch.from_numpy(groups[:, 0]))
    found = solve(own, Scenarios(outcome[groups]), on_failure="return")
    decided = found.decision[found.optimal]
    if len(decided) == 0:
        raise SolveError(
            "no group of training rows has an optimal decision (the first is "
            f"{found.status[0]}: {found.status[0].advice})",
            found,
        )
    return decided.numpy()
