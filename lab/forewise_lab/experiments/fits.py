"""Fits of the paper's experiments: a method on the data of one seed, evaluated for every M."""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

from forewise.policy import Policy
from forewise_lab.experiments.configuration import ExperimentTable, Settings
from forewise_lab.experiments.evaluation import Setting, load_split, make_evaluation
from forewise_lab.experiments.kinds import FORECAST_METRICS, REAL, SOLVERS, WITHOUT_SCENARIOS
from forewise_lab.experiments.methods import Method, Task, fit_rule
from forewise_lab.experiments.rules import PolicyRule, Rule
from forewise_lab.experiments.work import Key, Product, Row, Work, hash_of, key_of
from forewise_lab.machine import peak_memory, restart_peak

# The quick version: everything so small that a whole table is a matter of minutes.
_QUICK_ROWS, _QUICK_EPOCHS, _QUICK_DRAWS, _QUICK_M = 120, 2, 100, 32
_QUICK_SIZES = (16, 16)


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
        """Name in progress messages."""
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
        """Keys of the rows it gives."""
        for m in self.ms:
            for metric in self.measured:
                yield key_of(self.columns() | {"m": m, "metric": metric})

    @property
    def source(self) -> Hashable | None:
        """Real data are read from files."""
        return self.setting.dataset if self.setting.dataset.name in REAL else None

    def require_data(self) -> None:
        """Load them."""
        load_split(self.setting)

    def columns(self) -> Row:
        """Which fit it is; M and metric are not among them."""
        return {
            "experiment": self.experiment,
            "method": self.method.name,
            "seed": self.setting.seed,
            "n_train": self.setting.n_train,
            "m_train": self.m_train,
            "config_hash": self.config_hash,
        }

    def produce(self) -> Product:
        """Fit once, evaluate for every M."""
        return Product(self.evaluated()[1])

    def evaluated(self) -> tuple[Rule, list[Row]]:
        """The fitted rule, and the rows of its metrics."""
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
            scenarios = rule.scenarios(test.X, m, seed) if forecast else None
            for metric, value in evaluation.metrics(decision, scenarios, self.measured).items():
                rows.append(self.columns() | {"m": m, "metric": metric, "value": value} | times)
        peak = peak_memory()
        return rule, [row | {"peak_memory_mib": peak} for row in rows]


class KeptFit(Fit):
    """A fit whose policy is kept, for figures that show what it decides."""

    borrows: ClassVar[bool] = False

    def produce(self) -> Product:
        """Fit and evaluate, and save the policy; constants and the oracle have none."""
        rule, rows = self.evaluated()
        place = f"policies/{self.experiment}/seed{self.setting.seed}/{self.method.title}"
        return Product(rows, _saved(rule.policy, place) if isinstance(rule, PolicyRule) else {})


def _saved(policy: Policy, place: str) -> dict[str, bytes]:
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
    quick: bool = False,
) -> list[Fit]:
    """The fits of some experiments, those that share data one after the other.

    Without `seeds`, every experiment has its own.
    """
    asked = None if methods is None else list(methods)
    names = settings.experiment_names(experiments)
    return [fit for name in names for fit in _fits(settings, name, asked, seeds, data_dir, quick)]


def _fits(
    settings: Settings,
    name: str,
    asked: list[str] | None,
    seeds: Sequence[int] | None,
    data_dir: Path | None,
    quick: bool,
) -> Iterable[Fit]:
    table = settings.experiments[name]
    methods = [settings.method(name, method) for method in settings.method_names(name, asked)]
    if quick:
        table, methods = _quick_table(table), [_quick_method(method) for method in methods]
    kind = KeptFit if table.keep_policies else Fit
    for n_train in table.n_train:
        for seed in range(table.n_seeds) if seeds is None else seeds:
            setting = Setting(
                table.dataset, table.problem, table.oracle, seed, n_train, table.solver, data_dir
            )
            for method in methods:
                for m_train in dict.fromkeys(pair[0] for pair in table.scenarios):
                    own = tuple(pair[1] for pair in table.scenarios if pair[0] == m_train)
                    yield kind(name, method, setting, m_train, method.m or own, table.metrics)


def _quick_table(table: ExperimentTable) -> ExperimentTable:
    """The experiment with few rows and draws."""
    few = {"n_validation": _QUICK_ROWS, "n_test": _QUICK_ROWS}
    oracle = table.oracle and table.oracle.model_copy(update={"draws": _QUICK_DRAWS})
    pairs = ((min(a, _QUICK_M), min(b, _QUICK_M)) for a, b in table.scenarios)
    update: dict[str, Any] = {
        "dataset": table.dataset.model_copy(update=few),
        "oracle": oracle,
        "n_train": tuple(dict.fromkeys(min(n, _QUICK_ROWS) for n in table.n_train)),
        "scenarios": tuple(dict.fromkeys(pairs)),
    }
    return table.model_copy(update=update)


def _quick_method(method: Method) -> Method:
    learner, predictor = dict(method.learner), dict(method.predictor)
    if "pretraining" in learner:
        learner["pretraining"] = learner["pretraining"] | {"epochs": _QUICK_EPOCHS}
    if "n_restarts" in predictor:
        predictor["n_restarts"] = 0
    return replace(
        method,
        learner=learner,
        predictor=predictor,
        hidden_sizes=_QUICK_SIZES,
        training=method.training | {"epochs": _QUICK_EPOCHS},
        m=None if method.m is None else (_QUICK_M,),
    )
