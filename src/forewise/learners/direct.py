"""A network from context to decision, with no distribution at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from sklearn.base import clone

from forewise.exceptions import SolveError, UnsupportedProblemError
from forewise.learners.base import Learner, TrainingProblems
from forewise.learners.objectives import DecisionCost, require_gradients
from forewise.policy.base import DirectPolicy
from forewise.predictors import PointPredictor
from forewise.problems.base import Problem
from forewise.scenarios import Scenarios
from forewise.solvers.auto import solve
from forewise.solvers.base import ProgramSolver
from forewise.solvers.interior_point.solver import InteriorPointSolver
from forewise.solvers.projection import project
from forewise.solvers.solution import Solution
from forewise.validation.frames import column_names
from forewise.validation.parameters import require_instance
from forewise.validation.tables import check_outcomes

_GROUPS, _GROUP_SIZE = 64, 16  # random groups of rows whose decisions set the network's scale


class DirectLearner(Learner):
    """Learns the decision itself: a plain network, trained on the cost.

    Its output is projected onto the feasible set by the solver, in training and when deciding.
    When to use: where only the decision is wanted, the feasible set never changes and data are
    plenty.

    Parameters
    ----------
    problem : Problem
    network : PointPredictor, optional
        Hidden sizes, training and random state of the network; `PointPredictor()` by default.
    solver : ProgramSolver, optional
        What projects; `InteriorPointSolver()` by default.

    Examples
    --------
    >>> import forewise as fw
    >>> data = fw.datasets.nv1(128, random_state=0)
    >>> network = fw.PointPredictor((8,), training=fw.Training(epochs=2), random_state=0)
    >>> learner = fw.DirectLearner(fw.datasets.nv_problem(), network).fit(data.X, data.y)
    >>> learner.decide(data.X[:3]).shape
    (3, 1)
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

    def _fit(
        self, X: Any, y: Any, X_val: Any, y_val: Any, problems: TrainingProblems
    ) -> DirectPolicy:
        example = "InteriorPointSolver()"
        require_instance("solver", self.solver, ProgramSolver, example, optional=True)
        require_instance("network", self.network, PointPredictor, "PointPredictor()", optional=True)
        require_gradients(self.problem)
        reason = self.problem.direct_unsupported_reason()
        if reason is not None:
            raise UnsupportedProblemError(reason)
        network = PointPredictor() if self.network is None else clone(self.network)
        outcomes = check_outcomes(self, y)
        decisions = _decisions_of_groups(problems.problem, outcomes)
        rows, validation = network.prepare(X, y, X_val, y_val, predicted=decisions)
        objective = ProjectionCost.from_rows(
            network, problems, rows, validation, None, solver=self.solver
        )
        network.train(objective, rows)
        self._remember(network)
        solver = self.solver or InteriorPointSolver()
        return DirectPolicy(self.problem, network, outcomes.shape[1], column_names(y), solver)


@dataclass(frozen=True, kw_only=True)
class ProjectionCost(DecisionCost):
    """The cost of a network's outputs, projected onto the feasible set."""

    title: str = "direct"
    solver: ProgramSolver | None

    @property
    def identity(self) -> dict[str, Any]:
        """With what projects."""
        return super().identity | {"the solver": self.solver or InteriorPointSolver()}

    def decide(self, problem: Problem, x: torch.Tensor, generator: torch.Generator) -> Solution:
        """Project the network's outputs."""
        wanted = self.predictor.scenarios_with_gradients(x, 1, generator).values[:, 0]
        return project(problem, wanted, self.training.rows.y.shape[1], self.solver)


def _decisions_of_groups(problem: Problem, outcome: np.ndarray) -> np.ndarray:
    """Best decisions of small random groups of rows, (any number, n_decisions).

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
