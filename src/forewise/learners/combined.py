"""Fit the distribution through the optimiser."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from forewise.exceptions import DiscardedTrainingWarning, InputTypeError, InvalidInputError
from forewise.learners.base import Learner, TrainingProblems, cloned_predictor
from forewise.learners.objectives import DecisionCost, require_gradients
from forewise.policy.base import ScenarioPolicy
from forewise.predictors import Predictor, Training
from forewise.predictors.networks.base import NetworkPredictor
from forewise.predictors.networks.rows import Rows
from forewise.predictors.networks.training import Figures, History
from forewise.problems.base import Problem
from forewise.solvers.auto import AutoSolver, solve
from forewise.solvers.base import Solver
from forewise.solvers.reference import ReferenceSolver
from forewise.solvers.solution import Solution
from forewise.validation.parameters import came_as, require_count, require_instance


class CombinedLearner(Learner):
    """Trains a predictor through the solver, so that the cost of the decisions falls.

        min_Q  mean_i f(z*(x_i, Q), y_i) / scale  +  kl_weight · KL(Q, prior) / (N · n_outcomes)

    The scale is the regret of the best decision that ignores the context, so that `kl_weight`
    and the learning rate mean the same for costs of any size.

    By default the predictor is first fitted decoupled, with its own `training`: a warm start, whose
    weights are kept unless training through the solver lowers the validation cost by more than one
    standard error. In `history_` the warm start's decisions have a record of epoch 0.

    When to use: where few scenarios can be afforded when deciding, or where the predictor cannot
    represent the true distribution.

    Parameters
    ----------
    problem : Problem
    predictor : NetworkPredictor, optional
        `BayesianPredictor()` by default. Its `training` is that of the warm start.
    n_scenarios : int
        Scenarios of each context in training.
    training : Training, optional
        Settings of training through the solver; by default 20 epochs with small steps.
    pretraining : bool
        False trains through the solver from the first step on, by default with the predictor's
        `training`: the paper's way. Most decisions should cost something then, or few rows have a
        gradient.
    solver : Solver, optional
        `AutoSolver()` by default.
    n_scenarios_deciding : int
        Scenarios of each context in validation, about as many as decisions will be made from.

    Examples
    --------
    A small network, trained through the solver from the first of two epochs on:

    >>> import forewise as fw
    >>> data = fw.datasets.nv1(128, random_state=0)
    >>> training = fw.Training(epochs=2)
    >>> network = fw.BayesianPredictor((8,), training=training, random_state=0)
    >>> learner = fw.CombinedLearner(
    ...     fw.datasets.nv_problem(), network, n_scenarios=8, training=training, pretraining=False
    ... )
    >>> learner.fit(data.X, data.y).decide(data.X[:3], n_scenarios=8).shape
    (3, 1)
    >>> round(learner.history_[-1]["epoch"])
    2
    """

    def __init__(
        self,
        problem: Problem,
        predictor: Predictor | None = None,
        n_scenarios: int = 16,
        training: Training | None = None,
        pretraining: bool = True,
        solver: Solver | None = None,
        n_scenarios_deciding: int = 32,
    ) -> None:
        self.problem = problem
        self.predictor = predictor
        self.n_scenarios = n_scenarios
        self.training = training
        self.pretraining = pretraining
        self.solver = solver
        self.n_scenarios_deciding = n_scenarios_deciding

    def _fit(
        self, X: Any, y: Any, X_val: Any, y_val: Any, problems: TrainingProblems
    ) -> ScenarioPolicy:
        self._check_parameters()
        predictor = self._checked_predictor()
        rows, validation = predictor.prepare(X, y, X_val, y_val, folds=False)
        objective = self.objective(predictor, rows, validation, problems)
        if self.pretraining:
            predictor.train(predictor.likelihood(rows, validation), rows)
            objective = objective.from_warm_start(predictor.seed_)
            predictor.history_.append({"epoch": 0.0} | objective.start_figures)
            settings = self.training or _shown_as(predictor.training)
            n_before = len(predictor.history_)
            predictor.train(objective, rows, settings, predictor.combined_defaults)
            _warn_if_discarded(objective.start_figures, predictor.history_[n_before:])
        else:
            predictor.train(objective, rows, self.training)
        self._remember(predictor)
        return ScenarioPolicy(self.problem, predictor, self.solver or AutoSolver())

    def _check_parameters(self) -> None:
        require_count("n_scenarios", self.n_scenarios)
        require_count("n_scenarios_deciding", self.n_scenarios_deciding)
        require_instance("training", self.training, Training, "Training(epochs=20)", optional=True)
        if not isinstance(self.pretraining, bool | np.bool_):
            raise InputTypeError(
                f"pretraining must be True or False, but is {came_as(self.pretraining)}: the "
                "settings of the warm start are the predictor's training"
            )
        require_gradients(self.problem)

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
            for settings in (predictor.training, self.training)
            if isinstance(settings, Training) and settings.checkpoint is not None
        ]
        if len(folders) == 2 and folders[0] == folders[1]:
            raise InvalidInputError(
                "training and the predictor's training must have a checkpoint folder each, but "
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
    pretraining: bool

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


def _shown_as(training: Training | None) -> Training:
    """Default settings, with a progress bar if the predictor's have one."""
    own = training or Training()
    return Training(
        progress=own.progress, on_interrupt=own.on_interrupt, ranks=own.ranks, device=own.device
    )


def _warn_if_discarded(start: Figures, trained: History) -> None:
    """Say so if no epoch was enough better than the warm start to be kept."""
    if not start or any(r["validation"] + r["penalty"] < start["validation"] for r in trained):
        return
    warnings.warn(
        f"training through the solver was discarded: the warm start has a regret of "
        f"{start['regret']:.4g} on the validation rows, and none of {len(trained)} epochs was "
        "better by more than one standard error (the best regret was "
        f"{min(record['regret'] for record in trained):.4g}). The policy is that of a "
        "DecoupledLearner. Fewer scenarios, more validation rows or a smaller learning_rate in "
        "training=Training(...) may help",
        DiscardedTrainingWarning,
        stacklevel=4,
    )
