"""Fit the distribution through the optimiser. May import: policy, predictors, solvers, `base`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from forewise.exceptions import InvalidInputError
from forewise.learners.base import Learner, Past
from forewise.learners.decoupled import cloned_predictor
from forewise.learners.objectives import (
    DecisionCost,
    Judge,
    cost_of_ignoring_context,
    require_gradients,
)
from forewise.policy.scenario import ScenarioPolicy
from forewise.predictors.base import Predictor, check_n_scenarios
from forewise.predictors.networks.base import NetworkPredictor, Rows
from forewise.predictors.networks.training import Training
from forewise.problems.base import Problem
from forewise.solvers.auto import AutoSolver, solve
from forewise.solvers.base import Solver
from forewise.solvers.reference import ReferenceSolver
from forewise.solvers.solution import Solution
from forewise.validation.arguments import require_instance


class CombinedLearner(Learner):
    """Trains a predictor through the solver, so that the cost of the decisions falls.

        min_Q  mean_i f(z*(x_i, Q), y_i) / scale  +  kl_weight · KL(Q, prior) / (N · n_outcomes)

    The scale is the regret of the best decision that ignores the context, so that `kl_weight`
    and the learning rate mean the same for costs of any size. Prefer it where few scenarios can
    be afforded when deciding, or where the predictor cannot represent the true distribution: it
    then learns whatever distribution makes the decisions good.

    Parameters
    ----------
    problem : Problem
    predictor : NetworkPredictor, optional
        `BayesianPredictor()` by default. Its `training` is used.
    n_scenarios : int
        Scenarios of each context in training.
    pretraining : Training, optional
        Fit the predictor decoupled first, with these settings: a warm start. Prefer it where most
        decisions cost nothing, as those of a portfolio that seldom loses: only rows that cost
        something say where to go, and training from nothing learns those few by heart. What the
        warm start decides is kept unless the validation rows say, beyond their noise, that
        training through the solver made it better.
    solver : Solver, optional
        `AutoSolver()` by default.
    n_scenarios_deciding : int
        Scenarios that decisions will be made from, about: validation, which says what weights are
        kept, decides with as many. What is best with 4 is not what is best with 64.
    """

    def __init__(
        self,
        problem: Problem,
        predictor: Predictor | None = None,
        n_scenarios: int = 16,
        pretraining: Training | None = None,
        solver: Solver | None = None,
        n_scenarios_deciding: int = 32,
    ) -> None:
        self.problem = problem
        self.predictor = predictor
        self.n_scenarios = n_scenarios
        self.pretraining = pretraining
        self.solver = solver
        self.n_scenarios_deciding = n_scenarios_deciding

    def _fit(self, X: Any, y: Any, X_val: Any, y_val: Any, past: Past) -> ScenarioPolicy:
        check_n_scenarios(self.n_scenarios)
        check_n_scenarios(self.n_scenarios_deciding)
        if self.pretraining is not None:
            require_instance("pretraining", self.pretraining, Training, "Training(epochs=20)")
        require_gradients(self.problem)
        predictor = self._differentiable(cloned_predictor(self.predictor))
        self._check_checkpoints(predictor)
        rows, validation = predictor.prepare(X, y, X_val, y_val)
        objective = self.objective(predictor, rows, validation, past)
        if self.pretraining is not None:
            predictor.train(predictor.likelihood(rows, validation), rows, self.pretraining)
            objective = objective.from_warm_start(predictor.seed_)

        predictor.train(objective, rows, predictor.training or Training())
        self.history_ = predictor.history_
        self._remember(predictor)
        return ScenarioPolicy(self.problem, predictor, self.solver or AutoSolver())

    def objective(
        self,
        predictor: NetworkPredictor,
        rows: Rows,
        validation: Rows | None,
        past: Past | None = None,
    ) -> DecisionCost:
        """The cost of the decisions that a prepared predictor's scenarios lead to."""

        def decide(problem: Problem, x: torch.Tensor, generator: torch.Generator) -> Solution:
            training = torch.is_grad_enabled()
            count = self.n_scenarios if training else self.n_scenarios_deciding
            scenarios = predictor.scenarios_with_gradients(x, count, generator)
            return solve(problem, scenarios, self.solver, on_failure="return")

        past = past or Past(self.problem, None)
        problem = past.of(rows)
        return DecisionCost(
            decide=decide,
            rows=rows,
            judge=Judge.of(problem, rows, self.solver),
            validation=validation,
            validation_judge=Judge.of(past.of_validation(validation), validation, self.solver)
            if validation
            else None,
            scale=cost_of_ignoring_context(problem, rows.y, self.solver),
            title="combined",
            learned_with={
                "the solver": self.solver or AutoSolver(),
                "n_scenarios": self.n_scenarios,
                "n_scenarios_deciding": self.n_scenarios_deciding,
                "pretraining": self.pretraining,
            },
        )

    def _check_checkpoints(self, predictor: NetworkPredictor) -> None:
        training, pretraining = predictor.training or Training(), self.pretraining or Training()
        folders = [s.checkpoint and Path(s.checkpoint).resolve() for s in (training, pretraining)]
        if folders[0] and folders[0] == folders[1]:
            raise InvalidInputError(
                "pretraining and the predictor's training must have a checkpoint folder each, but "
                f"both have {training.checkpoint}"
            )

    def _differentiable(self, predictor: Predictor) -> NetworkPredictor:
        if isinstance(self.solver, ReferenceSolver):
            raise InvalidInputError(
                "solver must be one with gradients, but is a ReferenceSolver: use AutoSolver() "
                "or InteriorPointSolver()"
            )
        if not isinstance(predictor, NetworkPredictor):
            raise InvalidInputError(
                f"predictor must have gradients for combined learning, but a "
                f"{type(predictor).__name__} has none: use BayesianPredictor, MixturePredictor, "
                "GaussianPredictor, EnsemblePredictor or PointPredictor, or a DecoupledLearner"
            )
        return predictor
