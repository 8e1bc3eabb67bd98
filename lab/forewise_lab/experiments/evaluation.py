"""What decisions on the test rows are measured with: regrets, the oracle, forecast scores."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch

from forewise.datasets import Split
from forewise.evaluation import crps, expected_regret, interval_coverage, oracle_decision
from forewise.evaluation.optima import informed_optimum
from forewise.exceptions import InvalidInputError
from forewise.problems import Problem
from forewise.scenarios import Scenarios
from forewise_lab.experiments.configuration import DatasetTable, OracleTable, ProblemTable
from forewise_lab.experiments.kinds import DATASETS, PROBLEM_NUMBERS, PROBLEMS, SOLVERS


@dataclass(frozen=True)
class Setting:
    """What the fits of one seed share: data, problem, oracle."""

    dataset: DatasetTable
    problem: ProblemTable
    oracle: OracleTable | None
    seed: int
    n_train: int
    solver: str = "auto"
    data_dir: Path | None = None


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Data and problem of a setting, and the oracle's decisions on the test rows.

    `true_scenarios`, `oracle` and `few_oracle` are None where the distribution is not known.
    """

    split: Split
    problem: Problem
    informed_cost: torch.Tensor  # (n_contexts,) of deciding with the outcome known
    true_scenarios: Scenarios | None
    oracle: torch.Tensor | None
    few_oracle: torch.Tensor | None

    def metrics(
        self, decision: np.ndarray, scenarios: Scenarios | None, names: Iterable[str]
    ) -> dict[str, float]:
        """Metrics of decisions (n_contexts, n_decisions) on the test rows.

        Raises an `InfeasibleDecisionError` rather than score what violates a constraint.
        """
        chosen = torch.from_numpy(decision)
        outcome = torch.from_numpy(self.split.test.y)
        cost = self.problem.cost(chosen, outcome)
        return {name: self._metric(name, chosen, outcome, cost, scenarios) for name in names}

    def _metric(
        self,
        name: str,
        decision: torch.Tensor,
        outcome: torch.Tensor,
        cost: torch.Tensor,
        scenarios: Scenarios | None,
    ) -> float:
        if name == "cost":
            return cost.mean().item()
        if name == "R":
            return (cost - self.informed_cost).mean().item()
        if name in ("FR", "FR32"):
            oracle = self.oracle if name == "FR" else self.few_oracle
            assert oracle is not None
            return (cost - self.problem.cost(oracle, outcome)).mean().item()
        if name == "EFR":
            assert self.true_scenarios is not None
            return expected_regret(self.problem, decision, self.true_scenarios, oracle=self.oracle)
        assert scenarios is not None
        if name == "CRPS":
            return crps(scenarios, outcome).mean().item()
        return interval_coverage(scenarios, outcome, 0.9).mean().item()


def load_split(setting: Setting) -> Split:
    """The data of a setting."""
    table = setting.dataset
    split = DATASETS[table.name](setting.seed, setting.n_train, table.n_assets, setting.data_dir)
    if split.train.n_contexts != setting.n_train:
        raise InvalidInputError(
            f"n_train must be at most the {split.train.n_contexts} training rows of "
            f"{table.name}, but is {setting.n_train}"
        )
    return Split(split.train, split.validation[: table.n_validation], split.test[: table.n_test])


# The fits of one seed follow each other, and the oracle takes longer than many a fit.
@lru_cache(maxsize=1)
def make_evaluation(setting: Setting) -> Evaluation:
    """Data, problem and oracle of a setting; the last one is cached."""
    split = load_split(setting)
    numbers = setting.problem.model_dump(exclude={"name"}, exclude_none=True)
    extra = set(numbers) - PROBLEM_NUMBERS[setting.problem.name]
    if extra:
        raise InvalidInputError(
            f"problem {setting.problem.name} has no {', '.join(sorted(extra))} to set"
        )
    problem = PROBLEMS[setting.problem.name](split, **numbers)
    informed = informed_optimum(problem, torch.from_numpy(split.test.y), None).cost
    if setting.oracle is None:
        return Evaluation(split, problem, informed, None, None, None)
    solver = SOLVERS[setting.solver].oracle
    draws, few = (
        split.test.true_scenarios(count, np.random.default_rng([setting.seed, count]))
        for count in (setting.oracle.draws, setting.oracle.few_draws)
    )
    oracles = (oracle_decision(problem, some, solver) for some in (draws, few))
    return Evaluation(split, problem, informed, draws, *oracles)
