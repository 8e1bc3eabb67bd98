"""What decisions are measured with: regrets, the oracle, forecasts, and feasibility.

May import: exceptions, scenarios, problems, datasets, metrics, and its siblings `kinds`, `schema`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch

from forewise.datasets import Split
from forewise.evaluation import crps, expected_regret, interval_coverage, oracle_decision
from forewise.evaluation.costs import informed_optimum
from forewise.exceptions import InvalidInputError
from forewise.problems import Problem
from forewise.scenarios import Scenarios
from forewise_lab.experiments.kinds import DATASETS, PROBLEM_NUMBERS, PROBLEMS, SOLVERS
from forewise_lab.experiments.schema import DatasetTable, OracleTable, ProblemTable


@dataclass(frozen=True)
class Setting:
    """What the runs of one seed share: data, problem, and what is needed to judge decisions."""

    dataset: DatasetTable
    problem: ProblemTable
    oracle: OracleTable | None
    seed: int
    n_train: int
    solver: str = "auto"
    data_dir: Path | None = None


@dataclass(frozen=True, eq=False)
class Court:
    """The data and the problem of a setting, and the oracle's decisions on the test rows.

    `true_scenarios`, `oracle` and `few_oracle` are None where the distribution is not known.
    """

    split: Split
    problem: Problem
    informed_cost: torch.Tensor  # (n_contexts,) of deciding with the outcome known
    true_scenarios: Scenarios | None
    oracle: torch.Tensor | None
    few_oracle: torch.Tensor | None

    def figures(
        self, decision: np.ndarray, scenarios: Scenarios | None, metrics: Iterable[str]
    ) -> dict[str, float]:
        """The metrics of decisions (n_contexts, n_decisions) on the test rows.

        Raises an `InfeasibleDecisionError` rather than score what violates a constraint.
        """
        chosen = torch.from_numpy(decision)
        outcome = torch.from_numpy(self.split.test.y)
        cost = self.problem.cost(chosen, outcome)
        return {
            metric: self._figure(metric, chosen, outcome, cost, scenarios) for metric in metrics
        }

    def _figure(
        self,
        metric: str,
        decision: torch.Tensor,
        outcome: torch.Tensor,
        cost: torch.Tensor,
        scenarios: Scenarios | None,
    ) -> float:
        if metric == "cost":
            return cost.mean().item()
        if metric == "R":
            return (cost - self.informed_cost).mean().item()
        if metric in ("FR", "FR32"):
            oracle = self.oracle if metric == "FR" else self.few_oracle
            assert oracle is not None
            return (cost - self.problem.cost(oracle, outcome)).mean().item()
        if metric == "EFR":
            assert self.true_scenarios is not None
            return expected_regret(self.problem, decision, self.true_scenarios, oracle=self.oracle)
        assert scenarios is not None
        if metric == "CRPS":
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


# The runs of one seed follow each other: whoever computes them needs one court at a time, and
# the oracle is dearer than many a fit.
@lru_cache(maxsize=1)
def hold_court(setting: Setting) -> Court:
    """Data, problem and oracle of a setting; the last one is remembered."""
    split = load_split(setting)
    numbers = setting.problem.model_dump(exclude={"name"}, exclude_none=True)
    extra = set(numbers) - PROBLEM_NUMBERS[setting.problem.name]
    if extra:
        raise InvalidInputError(
            f"problem {setting.problem.name} has no {', '.join(sorted(extra))} to set"
        )
    problem = PROBLEMS[setting.problem.name](split, **numbers)
    outcome = torch.from_numpy(split.test.y)
    informed = informed_optimum(problem, outcome, None).cost
    if setting.oracle is None:
        return Court(split, problem, informed, None, None, None)
    solver = SOLVERS[setting.solver].oracle
    draws, few = (
        split.test.true_scenarios(count, np.random.default_rng([setting.seed, count]))
        for count in (setting.oracle.draws, setting.oracle.few_draws)
    )
    return Court(
        split,
        problem,
        informed,
        draws,
        oracle_decision(problem, draws, solver),
        oracle_decision(problem, few, solver),
    )
