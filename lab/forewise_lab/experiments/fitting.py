"""One fit of the paper's kind: a method on the data of one seed, judged for every M.

May import: exceptions, policy, learners' words through its siblings, and its siblings `methods`,
`baselines`, `judging`, `kinds`, `resources`, `rough_times`, `work`.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

from forewise.policy import Policy
from forewise_lab.experiments.baselines import Rule, ScenarioRule
from forewise_lab.experiments.judging import Court, Setting, hold_court, load_split
from forewise_lab.experiments.kinds import FORECAST_METRICS, REAL, SOLVERS, WITHOUT_SCENARIOS
from forewise_lab.experiments.methods import Method, Task, fit_rule
from forewise_lab.experiments.resources import peak_memory, restart_peak
from forewise_lab.experiments.rough_times import rough_seconds
from forewise_lab.experiments.work import Key, Product, Row, Work, key_of


@dataclass(frozen=True)
class Fit(Work):
    """One thing to compute: a method, for one experiment, seed, training size and M_train."""

    experiment: str
    method: Method
    setting: Setting
    m_train: int
    ms: tuple[int, ...]
    metrics: tuple[str, ...]
    config_hash: str = field(init=False)
    borrows: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "config_hash", _config_hash(self))

    @property
    def name(self) -> str:
        """What people call it."""
        return (
            f"{self.experiment} {self.method.name}, seed {self.setting.seed}, "
            f"{self.setting.n_train} rows, M_train {self.m_train}"
        )

    @property
    def alike(self) -> tuple[object, ...]:
        """Experiment, method and sizes."""
        return self.experiment, self.method.name, self.setting.n_train, self.m_train

    @property
    def rough_seconds(self) -> float:
        """From the sizes of network and data."""
        setting = self.setting
        return rough_seconds(self.method, setting.problem.name, setting.n_train, self.m_train)

    @property
    def measured(self) -> tuple[str, ...]:
        """The metrics that this method has: without scenarios there is no forecast to score."""
        if self.method.learner["kind"] in WITHOUT_SCENARIOS:
            return tuple(metric for metric in self.metrics if metric not in FORECAST_METRICS)
        return self.metrics

    def row_keys(self) -> Iterator[Key]:
        """Keys of the rows it will have."""
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

    def produce(self) -> Product:
        """Fit once, judge for every M."""
        return Product(_judged(self)[1])

    def columns(self) -> Row:
        """Which fit it is; M and metrics do not count."""
        return {
            "experiment": self.experiment,
            "method": self.method.name,
            "seed": self.setting.seed,
            "n_train": self.setting.n_train,
            "m_train": self.m_train,
            "config_hash": self.config_hash,
        }


class KeptFit(Fit):
    """A fit whose policy is kept, for figures that show what it decides."""

    borrows: ClassVar[bool] = False

    def produce(self) -> Product:
        """Fit and judge, and save the policy; constants and the oracle have none."""
        rule, rows = _judged(self)
        place = f"policies/{self.experiment}/seed{self.setting.seed}/{self.method.title}"
        kept = _saved(rule.policy, place) if isinstance(rule, ScenarioRule) else {}
        return Product(rows, kept)


def _saved(policy: Policy, place: str) -> dict[str, bytes]:
    """The files of a policy in a folder of results: the driver writes them, not the worker."""
    with TemporaryDirectory() as folder:
        policy.save(Path(folder) / "policy")
        files = sorted((Path(folder) / "policy").iterdir())
        return {f"{place}/{file.name}": file.read_bytes() for file in files}


def _judged(fit: Fit) -> tuple[Rule, list[Row]]:
    """What was fitted, and the rows of its figures."""
    court = hold_court(fit.setting)
    restart_peak()
    # Processor time: with one thread it is what a quiet machine's clock would show, and it does
    # not grow when the machine has other work.
    started = time.process_time()
    split = court.split
    task = Task(
        court.problem,
        split.train,
        split.validation,
        split.test,
        m_train=fit.m_train,
        seed=fit.setting.seed,
        solvers=SOLVERS[fit.setting.solver],
    )
    rule = fit_rule(fit.method, task)
    seconds = time.process_time() - started
    measured: dict[int, dict[str, float]] = {}
    deciding: dict[int, float] = {}
    for m in fit.ms:
        started = time.process_time()
        decision = rule.decide(split.test.X, m, fit.setting.seed)
        deciding[m] = time.process_time() - started
        measured[m] = _figures(court, rule.scenarios, fit, m, decision)
    peak = peak_memory()
    rows = [
        fit.columns()
        | {
            "m": m,
            "metric": metric,
            "value": value,
            "seconds": seconds,
            "decide_seconds": deciding[m],
            "peak_memory_mib": peak,
        }
        for m, figures in measured.items()
        for metric, value in figures.items()
    ]
    return rule, rows


def _figures(court: Court, draw: Any, fit: Fit, m: int, decision: Any) -> dict[str, float]:
    scenarios = None
    if FORECAST_METRICS & set(fit.measured):
        scenarios = draw(court.split.test.X, m, fit.setting.seed)
    return court.figures(decision, scenarios, fit.measured)


def _config_hash(fit: Fit) -> str:
    """Of everything that decides the values and is not a column of its own."""
    setting = fit.setting
    identity = {
        "method": fit.method.identity(),
        "dataset": setting.dataset.model_dump(),
        "problem": setting.problem.model_dump(),
        "solver": setting.solver,
        "oracle": None if setting.oracle is None else setting.oracle.model_dump(),
    }
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:12]
