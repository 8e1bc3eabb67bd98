"""Fit the distribution, then optimise. May import: policy, predictors, `base`, `monitor`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sklearn.base import clone

from forewise.exceptions import InvalidInputError
from forewise.learners.base import Learner, Past
from forewise.learners.monitor import Monitored, RegretMonitor
from forewise.policy.scenario import ScenarioPolicy
from forewise.predictors.base import Predictor
from forewise.predictors.networks.base import NetworkPredictor, Rows
from forewise.predictors.networks.kinds import BayesianPredictor
from forewise.predictors.networks.training import Objective, Training
from forewise.problems.base import Problem
from forewise.solvers.auto import AutoSolver
from forewise.solvers.base import Solver
from forewise.validation.arguments import require_instance


class DecoupledLearner(Learner):
    """Fits a distribution of the outcome as well as it can, and only then decides.

    Prefer it where the problem may change after training, where the distribution itself is
    wanted, and as the yardstick for combined learning. Works with every predictor and every
    problem; a problem that is hard to solve, or cannot be solved yet, does not matter to `fit`.

    Parameters
    ----------
    problem : Problem
    predictor : Predictor, optional
        `BayesianPredictor()` by default; it is cloned, as scikit-learn does.
    solver : Solver, optional
        `AutoSolver()` by default.
    monitor : RegretMonitor, optional
        Solves the problem of the validation rows now and then while a network is trained, for the
        regret in `history_`. By default `fit` solves nothing.
    """

    def __init__(
        self,
        problem: Problem,
        predictor: Predictor | None = None,
        solver: Solver | None = None,
        monitor: RegretMonitor | None = None,
    ) -> None:
        self.problem = problem
        self.predictor = predictor
        self.solver = solver
        self.monitor = monitor

    @property
    def validates(self) -> bool:
        """Only networks, which train in epochs, have a use for validation rows."""
        return self.predictor is None or isinstance(self.predictor, NetworkPredictor)

    def _fit(self, X: Any, y: Any, X_val: Any, y_val: Any, past: Past) -> ScenarioPolicy:
        if self.monitor is not None and not isinstance(self.monitor, RegretMonitor):
            raise InvalidInputError(
                "monitor must be a forewise.learners.RegretMonitor or None, but is a "
                f"{type(self.monitor).__name__}"
            )
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
        objective: Objective = replace(predictor.likelihood(rows, validation), title="decoupled")
        if self.monitor is not None and validation is not None:
            objective = Monitored(
                inner=objective,
                monitor=self.monitor,
                predictor=predictor,
                validation=validation,
                problem=past.of_validation(validation),
                solver=self.solver,
                epochs=settings.epochs,
            )
        predictor.train(objective, rows, settings)


def cloned_predictor(predictor: Predictor | None) -> Predictor:
    """A fresh copy of the predictor a learner was given, or of the default one."""
    if predictor is None:
        return BayesianPredictor()
    wrapped = "NeighborPredictor(), or ResidualPredictor(regressor) around a scikit-learn one"
    require_instance("predictor", predictor, Predictor, wrapped)
    return clone(predictor)
