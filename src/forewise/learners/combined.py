"""Fit the distribution through the optimiser."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from forewise.exceptions import InvalidInputError
from forewise.learners.base import Learner, TrainingProblems, cloned_predictor
from forewise.learners.objectives import DecisionCost, require_gradients
from forewise.policy.base import ScenarioPolicy
from forewise.predictors import Predictor, Training
from forewise.predictors.networks.base import NetworkPredictor, Rows
from forewise.problems.base import Problem
from forewise.solvers.auto import AutoSolver, solve
from forewise.solvers.base import Solver
from forewise.solvers.reference import ReferenceSolver
from forewise.solvers.solution import Solution
from forewise.validation.parameters import require_count, require_instance


class CombinedLearner(Learner):
    """Trains a predictor through the solver, so that the cost of the decisions falls.

        min_Q  mean_i f(z*(x_i, Q), y_i) / scale  +  kl_weight · KL(Q, prior) / (N · n_outcomes)

    The scale is the regret of the best decision that ignores the context, so that `kl_weight`
    and the learning rate mean the same for costs of any size.

    When to use: where few scenarios can be afforded when deciding, or where the predictor cannot
    represent the true distribution.

    Parameters
    ----------
    problem : Problem
    predictor : NetworkPredictor, optional
        `BayesianPredictor()` by default. Its `training` is used.
    n_scenarios : int
        Scenarios of each context in training.
    pretraining : Training, optional
        Fit the predictor decoupled first, with these settings: a warm start. Its weights are kept
        unless training through the solver lowers the validation loss by more than one standard
        error. When to use: where most decisions cost nothing, so that few rows have a gradient.
    solver : Solver, optional
        `AutoSolver()` by default.
    n_scenarios_deciding : int
        Scenarios of each context in validation, about as many as decisions will be made from.
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

    def _fit(
        self, X: Any, y: Any, X_val: Any, y_val: Any, problems: TrainingProblems
    ) -> ScenarioPolicy:
        require_count("n_scenarios", self.n_scenarios)
        require_count("n_scenarios_deciding", self.n_scenarios_deciding)
        example = "Training(epochs=20)"
        require_instance("pretraining", self.pretraining, Training, example, optional=True)
        require_gradients(self.problem)
        predictor = self._checked_predictor()
        training = predictor.training or Training()
        rows, validation = predictor.prepare(X, y, X_val, y_val)
        objective = self.objective(predictor, rows, validation, problems)
        if self.pretraining is not None:
            predictor.train(predictor.likelihood(rows, validation), rows, self.pretraining)
            objective = objective.from_warm_start(predictor.seed_)
        predictor.train(objective, rows, training)
        self._remember(predictor)
        return ScenarioPolicy(self.problem, predictor, self.solver or AutoSolver())

    def objective(
        self,
        predictor: NetworkPredictor,
        rows: Rows,
        validation: Rows | None,
        problems: TrainingProblems | None = None,
    ) -> ScenarioCost:
        """The cost of the decisions that a prepared predictor's scenarios lead to."""
        own = ("solver", "n_scenarios", "n_scenarios_deciding", "pretraining")
        return ScenarioCost.from_rows(
            predictor, problems or TrainingProblems(self.problem), rows, validation, self.solver,
            **{name: getattr(self, name) for name in own},
        )  # fmt: skip

    def _checked_predictor(self) -> NetworkPredictor:
        predictor = cloned_predictor(self.predictor)
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
        folders = [
            Path(settings.checkpoint).resolve()
            for settings in (predictor.training, self.pretraining)
            if isinstance(settings, Training) and settings.checkpoint is not None
        ]
        if len(folders) == 2 and folders[0] == folders[1]:
            raise InvalidInputError(
                "pretraining and the predictor's training must have a checkpoint folder each, but "
                f"both have {folders[0]}"
            )
        return predictor


@dataclass(frozen=True, kw_only=True)
class ScenarioCost(DecisionCost):
    """The cost of decisions made from a network's scenarios."""

    title: str = "combined"
    solver: Solver | None
    n_scenarios: int
    n_scenarios_deciding: int
    pretraining: Training | None

    @property
    def identity(self) -> dict[str, Any]:
        """With the learner's own arguments."""
        own = ("n_scenarios", "n_scenarios_deciding", "pretraining")
        settings = {"the solver": self.solver or AutoSolver()}
        return super().identity | settings | {name: getattr(self, name) for name in own}

    def decide(self, problem: Problem, x: torch.Tensor, generator: torch.Generator) -> Solution:
        """Draw scenarios, as many as training or deciding has, and solve."""
        count = self.n_scenarios if torch.is_grad_enabled() else self.n_scenarios_deciding
        scenarios = self.predictor.scenarios_with_gradients(x, count, generator)
        return solve(problem, scenarios, self.solver, on_failure="return")
