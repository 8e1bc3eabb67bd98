"""Fit the distribution, then optimise; with a monitor, report the regret on the way."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from forewise.learners.base import Learner, TrainingProblems, cloned_predictor
from forewise.learners.objectives import CostEvaluator
from forewise.policy.base import ScenarioPolicy
from forewise.predictors.base import Predictor
from forewise.predictors.networks.base import NetworkPredictor, Rows
from forewise.predictors.networks.network import Network
from forewise.predictors.networks.training import Objective, Training
from forewise.problems.base import Problem
from forewise.solvers.auto import AutoSolver, solve
from forewise.solvers.base import Solver
from forewise.validation.parameters import require_count, require_instance


@dataclass(frozen=True)
class RegretMonitor:
    """Computes the regret of the decisions on the validation rows now and then.

    A decoupled fit solves nothing; with a monitor it solves the problem of every validation row at
    some epochs, for figures in `history_` and on the progress bar. The weights are the same to the
    bit. A failure is NaN, with one warning, and training goes on. It needs validation rows and a
    predictor that trains in epochs.

    Parameters
    ----------
    n_scenarios : int
        Scenarios of each decision.
    n_looks : int
        Evaluations in the course of a training, evenly spread, the last epoch included.
    """

    n_scenarios: int = 16
    n_looks: int = 20

    def __post_init__(self) -> None:
        require_count("n_scenarios", self.n_scenarios)
        require_count("n_looks", self.n_looks)


class DecoupledLearner(Learner):
    """Fits a distribution of the outcome as well as it can, and only then decides.

    Works with every predictor and every problem. When to use: where the problem may change after
    training, where the distribution itself is wanted, and as the baseline for combined learning.

    Parameters
    ----------
    problem : Problem
    predictor : Predictor, optional
        `BayesianPredictor()` by default; it is cloned, as scikit-learn does.
    solver : Solver, optional
        `AutoSolver()` by default.
    monitor : RegretMonitor, optional
        Reports the regret in `history_` while a network is trained. By default `fit` solves
        nothing.
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

    def _fit(
        self, X: Any, y: Any, X_val: Any, y_val: Any, problems: TrainingProblems
    ) -> ScenarioPolicy:
        require_instance("monitor", self.monitor, RegretMonitor, "RegretMonitor()", optional=True)
        predictor = cloned_predictor(self.predictor)
        if isinstance(predictor, NetworkPredictor):
            rows, validation = predictor.prepare(X, y, X_val, y_val)
            training = predictor.training or Training()
            objective: Objective = replace(
                predictor.likelihood(rows, validation), title="decoupled"
            )
            if self.monitor is not None and validation is not None:
                problem = problems.for_validation(validation)
                objective = Monitored(
                    objective, self.monitor, predictor, validation, problem, self.solver,
                    training.epochs,
                )  # fmt: skip
            predictor.train(objective, rows, training)
        else:
            predictor.fit(X, y)
        self._remember(predictor)
        return ScenarioPolicy(self.problem, predictor, self.solver or AutoSolver())


@dataclass
class Monitored(Objective):
    """Another objective, with the regret among its validation figures."""

    inner: Objective
    monitor: RegretMonitor
    predictor: NetworkPredictor
    validation: Rows
    problem: Problem  # of the validation rows
    solver: Solver | None
    epochs: int
    _evaluator: CostEvaluator | None = field(default=None, init=False)
    _warned: bool = field(default=False, init=False)

    @property
    def title(self) -> str:  # type: ignore[override]
        """The other's."""
        return self.inner.title

    @property
    def identity(self) -> dict[str, Any]:
        """The other's: monitoring changes nothing."""
        return self.inner.identity

    def loss(
        self, network: Network, rows: torch.Tensor, generator: torch.Generator
    ) -> torch.Tensor:
        """The other's."""
        return self.inner.loss(network, rows, generator)

    def validate(
        self, network: Network, epoch: int, generator: torch.Generator
    ) -> dict[str, float]:
        """The other's, and the regret."""
        figures = self.inner.validate(network, epoch, generator)
        every = max(1, self.epochs // self.monitor.n_looks)
        if epoch % every and epoch != self.epochs - 1:
            return figures
        return figures | {"regret": self._regret(generator)}

    def _regret(self, generator: torch.Generator) -> float:
        x, count = self.validation.x_scaled, self.monitor.n_scenarios
        reason = "no decision has a cost"
        try:
            if self._evaluator is None:
                rows = self.validation
                self._evaluator = CostEvaluator.from_rows(self.problem, rows, self.solver)
            scenarios = self.predictor.scenarios_with_gradients(x, count, generator)
            solution = solve(self.problem, scenarios, self.solver, on_failure="return")
            cost = self._evaluator.decided_costs(solution).mean().item()
            regret = cost - self._evaluator.informed_cost
        except Exception as error:  # whatever a solver raises: hours of training depend on it
            regret, reason = math.nan, str(error)
        if not math.isfinite(regret) and not self._warned:
            self._warned = True
            warnings.warn(
                f"the RegretMonitor cannot compute the regret, which is NaN in history_: {reason}; "
                "training goes on without it",
                stacklevel=2,
            )
        return regret
