"""Fit the distribution, then optimise; with a monitor, report the regret on the way."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import torch

from forewise.learners.base import Learner, TrainingProblems, cloned_predictor
from forewise.learners.objectives import CostEvaluator
from forewise.policy.base import ScenarioPolicy
from forewise.predictors import Predictor
from forewise.predictors.networks.base import NetworkPredictor
from forewise.predictors.networks.network import Network
from forewise.predictors.networks.rows import Rows
from forewise.predictors.networks.training import Figures, Objective
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

    Examples
    --------
    >>> import forewise as fw
    >>> data = fw.datasets.nv1(128, random_state=0)
    >>> network = fw.GaussianPredictor((8,), training=fw.Training(epochs=4), random_state=0)
    >>> monitor = fw.learners.RegretMonitor(n_scenarios=8, n_looks=2)
    >>> learner = fw.DecoupledLearner(fw.datasets.nv_problem(), network, monitor=monitor)
    >>> learner = learner.fit(data.X, data.y)
    >>> sum("regret" in record for record in learner.history_)
    3
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

    Examples
    --------
    >>> import numpy as np
    >>> import forewise as fw
    >>> random = np.random.default_rng(0)
    >>> X = random.uniform(10.0, 30.0, size=(200, 1))  # temperature
    >>> y = 5.0 * X[:, 0] + random.normal(size=200)  # ice creams
    >>> problem = fw.Newsvendor(shortage=3.0, excess=1.0)
    >>> learner = fw.DecoupledLearner(problem, fw.ForestPredictor(n_trees=20)).fit(X, y)
    >>> cold, hot = learner.decide([[12.0], [28.0]], n_scenarios=32).flatten()
    >>> bool(50 < cold < 70), bool(130 < hot < 150)
    (True, True)

    The distribution has nothing to do with the problem: the same one serves another.

    >>> dearer = fw.policy.ScenarioPolicy(fw.Newsvendor(9.0, 1.0), learner.policy_.predictor)
    >>> bool(dearer.decide([[28.0]])[0, 0] >= hot)
    True
    """

    censored_unsupported_reason = None

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
            rows, validation = predictor.prepare(
                X, y, X_val, y_val, censored=problems.censored, censored_val=problems.censored_val
            )
            objective = predictor.likelihood(rows, validation)
            if self.monitor is not None and validation is not None:
                objective = Monitored(
                    objective=objective,
                    monitor=self.monitor,
                    predictor=predictor,
                    validation=validation,
                    problem=problems.for_validation(validation),
                    solver=self.solver,
                    epochs=predictor.complete_training(objective).epochs,
                )
            elif self.monitor is not None and predictor.has_folds:
                warnings.warn(
                    "the RegretMonitor has no rows to watch: the members of a "
                    f"{type(predictor).__name__} hold out rows of their own. Pass X_val and y_val",
                    stacklevel=3,
                )
            predictor.train(objective, rows)
        else:
            bound = {} if problems.censored is None else {"censored": problems.censored}
            predictor.fit(X, y, **bound)
        self._remember(predictor)
        return ScenarioPolicy(self.problem, predictor, self.solver or AutoSolver())


@dataclass(frozen=True, kw_only=True)
class Monitored(Objective):
    """An objective, with the regret among the validation figures of some epochs."""

    objective: Objective
    monitor: RegretMonitor
    predictor: NetworkPredictor
    validation: Rows
    problem: Problem  # of these rows
    solver: Solver | None
    epochs: int
    title: str = "decoupled"
    failures: list[str] = field(default_factory=list)

    @property
    def n_rows(self) -> int:
        return self.objective.n_rows

    @property
    def identity(self) -> dict[str, Any]:
        return self.objective.identity

    def batches(self, size: int, generator: torch.Generator) -> Sequence[torch.Tensor]:
        return self.objective.batches(size, generator)

    def on(self, device: str) -> Monitored:
        return replace(self, objective=self.objective.on(device))

    def loss(
        self, network: Network, rows: torch.Tensor, generator: torch.Generator
    ) -> torch.Tensor:
        return self.objective.loss(network, rows, generator)

    def finish(self, network: Network) -> None:
        self.objective.finish(network)

    @cached_property
    def evaluator(self) -> CostEvaluator:
        """Of the validation rows; made when the regret is first wanted."""
        return CostEvaluator.from_rows(self.problem, self.validation, self.solver)

    def validate(self, network: Network, epoch: int, generator: torch.Generator) -> Figures:
        """The validation loss, and at some epochs the regret."""
        figures = self.objective.validate(network, epoch, generator)
        every = max(1, self.epochs // self.monitor.n_looks)
        if epoch % every and epoch != self.epochs - 1:
            return figures
        return figures | {"regret": self._regret(generator)}

    def _regret(self, generator: torch.Generator) -> float:
        x, count = self.validation.x_scaled, self.monitor.n_scenarios
        reason = "no decision has a cost"
        try:
            informed_cost = self.evaluator.informed_cost
            scenarios = self.predictor.scenarios_with_gradients(x, count, generator)
            solution = solve(self.problem, scenarios, self.solver, on_failure="return")
            regret = self.evaluator.decided_costs(solution).mean().item() - informed_cost
        except Exception as error:  # whatever a solver raises: hours of training depend on it
            regret, reason = math.nan, str(error)
        if not math.isfinite(regret):
            if not self.failures:
                warnings.warn(
                    f"the RegretMonitor cannot compute the regret, which is NaN in history_: "
                    f"{reason}; training goes on without it",
                    stacklevel=2,
                )
            self.failures.append(reason)
        return regret
