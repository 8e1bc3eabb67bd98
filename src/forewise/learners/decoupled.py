"""Fit the distribution, then optimise. May import: policy, predictors, `base`, `objectives`."""

from __future__ import annotations

from typing import Any

import torch
from sklearn.base import clone

from forewise.exceptions import InvalidInputError
from forewise.learners.base import Learner, Past
from forewise.learners.objectives import Judge, Watched
from forewise.policy.scenario import ScenarioPolicy
from forewise.predictors.base import Predictor
from forewise.predictors.bayesian import BayesianPredictor
from forewise.predictors.networked import NetworkPredictor, Rows
from forewise.predictors.training import Training
from forewise.problems.base import Problem
from forewise.solvers.auto import AutoSolver, solve
from forewise.solvers.base import Solver
from forewise.solvers.solution import Solution


class DecoupledLearner(Learner):
    """Fits a distribution of the outcome as well as it can, and only then decides.

    Prefer it where the problem may change after training, where the distribution itself is
    wanted, and as the yardstick for combined learning. Works with every predictor and every
    problem.

    Parameters
    ----------
    problem : Problem
    predictor : Predictor, optional
        `BayesianPredictor()` by default; it is cloned, as scikit-learn does.
    solver : Solver, optional
        `AutoSolver()` by default.
    """

    def __init__(
        self, problem: Problem, predictor: Predictor | None = None, solver: Solver | None = None
    ) -> None:
        self.problem = problem
        self.predictor = predictor
        self.solver = solver

    def _fit(self, X: Any, y: Any, X_val: Any, y_val: Any, past: Past) -> ScenarioPolicy:
        predictor = cloned_predictor(self.predictor)
        if isinstance(predictor, NetworkPredictor):
            rows, validation = predictor.prepare(X, y, X_val, y_val)
            self._train(predictor, rows, validation, past)
            self.history_ = predictor.history_
        else:
            predictor.fit(X, y)
            self.history_ = []
        self._remember(predictor)
        return ScenarioPolicy(self.problem, predictor, self.solver or AutoSolver())

    def _train(
        self, predictor: NetworkPredictor, rows: Rows, validation: Rows | None, past: Past
    ) -> None:
        settings = predictor.training or Training()

        def decide(problem: Problem, x: torch.Tensor, generator: torch.Generator) -> Solution:
            scenarios = predictor.scenarios_with_gradients(x, 16, generator)
            return solve(problem, scenarios, self.solver, on_failure="return")

        objective = Watched(
            inner=predictor.likelihood(rows, validation),
            decide=decide,
            validation=validation,
            judge=Judge.of(past.of_validation(validation), validation, self.solver)
            if validation
            else None,
            epochs=settings.epochs,
            title="decoupled",
            identity="likelihood",
        )
        predictor.train(objective, rows, settings)


def cloned_predictor(predictor: Predictor | None) -> Predictor:
    """A fresh copy of the predictor a learner was given, or of the default one."""
    if predictor is None:
        return BayesianPredictor()
    if not isinstance(predictor, Predictor):
        raise InvalidInputError(
            f"predictor must be a forewise.Predictor, but is a {type(predictor).__name__}; "
            "a scikit-learn regressor can be wrapped: ResidualPredictor(regressor)"
        )
    return clone(predictor)
