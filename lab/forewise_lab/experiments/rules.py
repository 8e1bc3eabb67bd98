"""What decides for the test rows: fitted policies, constants, the oracle, perfect foresight."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from forewise.datasets import Dataset
from forewise.evaluation import oracle_decision
from forewise.policy import Policy, ScenarioPolicy
from forewise.problems import Problem
from forewise.problems.base import without_risk
from forewise.scenarios import Scenarios
from forewise.solvers import Solver


class Rule(ABC):
    """Decides for the contexts of a test set, with M scenarios."""

    @abstractmethod
    def decide(self, X: np.ndarray, m: int, seed: int) -> np.ndarray:
        """Decisions (n_contexts, n_decisions); called once for each M."""

    def scenarios(self, X: np.ndarray, m: int, seed: int) -> Scenarios | None:
        """The scenarios of `decide`; None where there are none."""
        return None


@dataclass(frozen=True)
class PolicyRule(Rule):
    """A fitted policy."""

    policy: Policy

    def decide(self, X: np.ndarray, m: int, seed: int) -> np.ndarray:
        return np.asarray(self.policy.decide(X, m, random_state=seed))

    def scenarios(self, X: np.ndarray, m: int, seed: int) -> Scenarios | None:
        if not isinstance(self.policy, ScenarioPolicy):
            return None
        return self.policy.predictor.sample(X, m, random_state=seed)


@dataclass(frozen=True)
class ConstantRule(Rule):
    """The same decision in every context."""

    decision: Any

    def decide(self, X: np.ndarray, m: int, seed: int) -> np.ndarray:
        return np.tile(np.asarray(self.decision, dtype=np.float64), (len(X), 1))


@dataclass(frozen=True)
class OracleRule(Rule):
    """Decides with M draws from the true distribution.

    Its draws are not those of the oracle that decisions are compared with, so that its own fair
    regret is the price of having M scenarios only.
    """

    problem: Problem
    test: Dataset
    seed: int
    solver: Solver

    def scenarios(self, X: np.ndarray, m: int, seed: int) -> Scenarios:
        return self.test.true_scenarios(m, np.random.default_rng([self.seed, m, 1]))

    def decide(self, X: np.ndarray, m: int, seed: int) -> np.ndarray:
        return oracle_decision(self.problem, self.scenarios(X, m, seed), self.solver).numpy()


@dataclass(frozen=True)
class ForesightRule(Rule):
    """Decides for the test rows with their outcomes known: a lower bound of the cost."""

    problem: Problem
    test: Dataset
    solver: Solver

    def decide(self, X: np.ndarray, m: int, seed: int) -> np.ndarray:
        known = Scenarios(self.test.y[:, None])
        return oracle_decision(without_risk(self.problem), known, self.solver).numpy()
