"""Watching the regret of a training that minimises something else.

May import: exceptions, predictors, problems, solvers, `objectives`.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field
from typing import Any

import torch

from forewise.learners.objectives import Judge
from forewise.predictors.base import check_n_scenarios
from forewise.predictors.networks.base import NetworkPredictor, Rows
from forewise.predictors.networks.network import Network
from forewise.predictors.networks.training import Objective
from forewise.problems.base import Problem
from forewise.solvers.auto import solve
from forewise.solvers.base import Solver
from forewise.validation.parameters import require_count


@dataclass(frozen=True)
class RegretMonitor:
    """Looks at the regret of the decisions on the validation rows now and then.

    A decoupled fit solves nothing; with a monitor it solves the problem of every validation row at
    each look, for figures in `history_` and on the progress bar. What is learned is the same to
    the bit. A look that fails is NaN, with one warning, and training goes on. Without validation
    rows, and with predictors that do not train in epochs, there is nothing to look at.

    Parameters
    ----------
    n_scenarios : int
        Scenarios of each decision.
    n_looks : int
        Looks in the course of a training, evenly spread; the last epoch is always one of them.
    """

    n_scenarios: int = 16
    n_looks: int = 20

    def __post_init__(self) -> None:
        check_n_scenarios(self.n_scenarios)
        require_count("n_looks", self.n_looks, at_least=1)


@dataclass
class Monitored(Objective):
    """Another objective, with looks at the regret."""

    inner: Objective
    monitor: RegretMonitor
    predictor: NetworkPredictor
    validation: Rows
    problem: Problem  # of the validation rows
    solver: Solver | None
    epochs: int
    _judge: Judge | None = field(default=None, init=False)
    _warned: bool = field(default=False, init=False)

    @property
    def title(self) -> str:  # type: ignore[override]
        """The other's."""
        return self.inner.title

    @property
    def identity(self) -> dict[str, Any]:
        """The other's: looking changes nothing."""
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
        told = "no decision has a cost"
        try:
            if self._judge is None:
                self._judge = Judge.of(self.problem, self.validation, self.solver)
            scenarios = self.predictor.scenarios_with_gradients(x, count, generator)
            solution = solve(self.problem, scenarios, self.solver, on_failure="return")
            regret = self._judge.regret(solution)
        except Exception as error:  # whatever a solver says: hours of training hang on it
            regret, told = math.nan, str(error)
        if not math.isfinite(regret) and not self._warned:
            self._warned = True
            warnings.warn(
                f"the RegretMonitor cannot tell the regret, which is NaN in history_: {told}; "
                "training goes on without it",
                stacklevel=2,
            )
        return regret
