"""The paper's experiments: fits of a method on the data of one seed, evaluated for every M."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, cast

import numpy as np
import torch

import forewise as fw
from forewise.evaluation.costs import informed_optimum
from forewise_lab.experiments.configuration import (
    DatasetTable,
    OracleTable,
    ProblemTable,
    Settings,
)
from forewise_lab.experiments.kinds import (
    DATASETS,
    FORECAST_METRICS,
    PROBLEM_NUMBERS,
    PROBLEMS,
    REAL,
    SOLVERS,
    WITHOUT_SCENARIOS,
)
from forewise_lab.experiments.methods import Method, Rule, Task, fit_rule
from forewise_lab.experiments.rows import Key, Product, Row, Work, hash_of, key_of
from forewise_lab.machine import peak_memory, restart_peak


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

    split: fw.datasets.Split
    problem: fw.Problem
    informed_cost: torch.Tensor  # (n_contexts,) of deciding with the outcome known
    true_scenarios: fw.Scenarios | None
    oracle: torch.Tensor | None
    few_oracle: torch.Tensor | None

    def metrics(
        self, decision: np.ndarray, scenarios: fw.Scenarios | None, names: Iterable[str]
    ) -> dict[str, float]:
        """Metrics of decisions (n_contexts, n_decisions) on the test rows.

        Raises an `InfeasibleDecisionError` rather than score what violates a constraint.
        """
        chosen, outcome = torch.from_numpy(decision), torch.from_numpy(self.split.test.y)
        problem, cost = self.problem, self.problem.cost(chosen, outcome)
        # Where there is no true distribution or no scenarios, their metrics are not asked for.
        oracle: Any = self.oracle
        true, few, given = cast(Any, (self.true_scenarios, self.few_oracle, scenarios))
        formulas: dict[str, Callable[[], Any]] = {
            "cost": lambda: cost.mean(),
            "R": lambda: (cost - self.informed_cost).mean(),
            "FR": lambda: (cost - problem.cost(oracle, outcome)).mean(),
            "FR32": lambda: (cost - problem.cost(few, outcome)).mean(),
            "EFR": lambda: fw.metrics.expected_regret(problem, chosen, true, oracle=oracle),
            "CRPS": lambda: fw.metrics.crps(given, outcome).mean(),
            "coverage90": lambda: fw.metrics.interval_coverage(given, outcome, 0.9).mean(),
        }
        return {name: float(formulas[name]()) for name in names}


def load_split(setting: Setting) -> fw.datasets.Split:
    """The data of a setting."""
    table = setting.dataset
    split = DATASETS[table.name](setting.seed, setting.n_train, table.n_assets, setting.data_dir)
    if split.train.n_contexts != setting.n_train:
        raise fw.InvalidInputError(
            f"n_train must be at most the {split.train.n_contexts} training rows of "
            f"{table.name}, but is {setting.n_train}"
        )
    return fw.datasets.Split(
        split.train, split.validation[: table.n_validation], split.test[: table.n_test]
    )


# The fits of one seed follow each other, and the oracle takes longer than many a fit.
@lru_cache(maxsize=1)
def make_evaluation(setting: Setting) -> Evaluation:
    """Data, problem and oracle of a setting; the last one is cached."""
    split = load_split(setting)
    numbers = setting.problem.model_dump(exclude={"name"}, exclude_none=True)
    extra = set(numbers) - PROBLEM_NUMBERS[setting.problem.name]
    if extra:
        raise fw.InvalidInputError(
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
    oracles = (fw.metrics.oracle_decision(problem, some, solver) for some in (draws, few))
    return Evaluation(split, problem, informed, draws, *oracles)


@dataclass(frozen=True)
class Fit(Work):
    """A method, for one experiment, seed, training size and M_train."""

    experiment: str
    method: Method
    setting: Setting
    m_train: int
    ms: tuple[int, ...]
    metrics: tuple[str, ...]
    config_hash: str = field(init=False)
    borrows: ClassVar[bool] = True

    def __post_init__(self) -> None:
        setting = self.setting
        identity = {
            "method": self.method.identity(),
            "dataset": setting.dataset.model_dump(),
            "problem": setting.problem.model_dump(),
            "solver": setting.solver,
            "oracle": None if setting.oracle is None else setting.oracle.model_dump(),
        }
        object.__setattr__(self, "config_hash", hash_of(identity))

    @property
    def name(self) -> str:
        return (
            f"{self.experiment} {self.method.name}, seed {self.setting.seed}, "
            f"{self.setting.n_train} rows, M_train {self.m_train}"
        )

    @property
    def measured(self) -> tuple[str, ...]:
        """The metrics that this method has: without scenarios there is no forecast to score."""
        if self.method.learner["kind"] in WITHOUT_SCENARIOS:
            return tuple(metric for metric in self.metrics if metric not in FORECAST_METRICS)
        return self.metrics

    def row_keys(self) -> Iterator[Key]:
        for m in self.ms:
            for metric in self.measured:
                yield key_of(self.columns() | {"m": m, "metric": metric})

    @property
    def source(self) -> Hashable | None:
        return self.setting.dataset if self.setting.dataset.name in REAL else None

    def require_data(self) -> None:
        load_split(self.setting)

    def columns(self) -> Row:
        return {
            "experiment": self.experiment,
            "method": self.method.name,
            "seed": self.setting.seed,
            "n_train": self.setting.n_train,
            "m_train": self.m_train,
            "config_hash": self.config_hash,
        }

    def produce(self) -> Product:
        return Product(self.evaluated()[1])

    def evaluated(self) -> tuple[Rule, list[Row]]:
        evaluation, seed = make_evaluation(self.setting), self.setting.seed
        split, test = evaluation.split, evaluation.split.test
        restart_peak()
        # Processor time: with one thread it is what a quiet machine's clock would show.
        started = time.process_time()
        task = Task(
            evaluation.problem, split.train, split.validation, test, m_train=self.m_train,
            seed=seed, solvers=SOLVERS[self.setting.solver],
        )  # fmt: skip
        rule = fit_rule(self.method, task)
        times = {"seconds": time.process_time() - started}
        rows = []
        for m in self.ms:
            started = time.process_time()
            decision = rule.decide(test.X, m, seed)
            times["decide_seconds"] = time.process_time() - started
            forecast = FORECAST_METRICS & set(self.measured)
            scenarios = rule.scenarios(test.X, m, seed) if forecast and rule.scenarios else None
            for metric, value in evaluation.metrics(decision, scenarios, self.measured).items():
                rows.append(self.columns() | {"m": m, "metric": metric, "value": value} | times)
        peak = peak_memory()
        return rule, [row | {"peak_memory_mib": peak} for row in rows]


class KeptFit(Fit):
    """A fit whose policy is kept, for figures that show what it decides."""

    borrows: ClassVar[bool] = False

    def produce(self) -> Product:
        rule, rows = self.evaluated()
        place = f"policies/{self.experiment}/seed{self.setting.seed}/{self.method.title}"
        return Product(rows, {} if rule.policy is None else _saved(rule.policy, place))


def _saved(policy: fw.Policy, place: str) -> dict[str, bytes]:
    """The files of a policy by their place in the results folder, which the run writes to."""
    with TemporaryDirectory() as folder:
        policy.save(Path(folder) / "policy")
        files = sorted((Path(folder) / "policy").iterdir())
        return {f"{place}/{file.name}": file.read_bytes() for file in files}


def all_fits(
    settings: Settings,
    experiments: Iterable[str],
    methods: Iterable[str] | None,
    seeds: Sequence[int] | None = None,
    data_dir: Path | None = None,
) -> list[Fit]:
    """The fits of some experiments, those that share data one after the other.

    Without `seeds`, every experiment has its own.
    """
    asked = None if methods is None else list(methods)
    fits: list[Fit] = []
    for name in settings.experiment_names(experiments):
        table = settings.experiments[name]
        chosen = [settings.method(name, method) for method in settings.method_names(name, asked)]
        kind = KeptFit if table.keep_policies else Fit
        own_seeds = range(table.n_seeds) if seeds is None else seeds
        for n_train, seed, method in product(table.n_train, own_seeds, chosen):
            shared = (table.dataset, table.problem, table.oracle, seed, n_train, table.solver)
            setting = Setting(*shared, data_dir)
            for m_train in dict.fromkeys(pair[0] for pair in table.scenarios):
                ms = method.m or tuple(m for pair, m in table.scenarios if pair == m_train)
                fits.append(kind(name, method, setting, m_train, ms, table.metrics))
    return fits
