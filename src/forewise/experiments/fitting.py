"""One fit: a method on the data of one seed, judged for every M; its rows of the results table.

Runs in the driver or in a worker, one thread each, and writes nothing: the rows go back to the
driver. May import: exceptions, learners' words through its siblings, and its siblings `methods`,
`judging`, `kinds`, `resources`.
"""

from __future__ import annotations

import hashlib
import json
import time
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from forewise.exceptions import ForewiseError
from forewise.experiments.judging import Court, Setting, hold_court
from forewise.experiments.kinds import FORECAST_METRICS, SOLVERS, WITHOUT_SCENARIOS
from forewise.experiments.methods import Method, Task, fit_rule
from forewise.experiments.resources import one_thread, peak_memory, restart_peak, versions

#: Columns that say which row it is. No two rows of a table agree in all of them.
KEY = (
    "experiment",
    "method",
    "seed",
    "n_train",
    "m_train",
    "m",
    "metric",
    "config_hash",
)
#: Metric of the row that stands for a fit that failed; its `note` says why.
ERROR = "error"

Key = tuple[Any, ...]


@dataclass(frozen=True)
class Fit:
    """One thing to compute: a method, for one experiment, seed, training size and M_train."""

    experiment: str
    method: Method
    setting: Setting
    m_train: int
    ms: tuple[int, ...]
    metrics: tuple[str, ...]
    config_hash: str = field(init=False)

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
    def identifier(self) -> str:
        """A name for files, no two alike; M and metrics do not count."""
        told = json.dumps(self._columns(), sort_keys=True)
        return hashlib.sha256(told.encode()).hexdigest()[:20]

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
                yield key_of(self._columns() | {"m": m, "metric": metric})

    def _columns(self) -> dict[str, Any]:
        return {
            "experiment": self.experiment,
            "method": self.method.name,
            "seed": self.setting.seed,
            "n_train": self.setting.n_train,
            "m_train": self.m_train,
            "config_hash": self.config_hash,
        }


@dataclass(frozen=True)
class FitResult:
    """The rows of a fit, and what it took altogether."""

    fit: Fit
    rows: list[dict[str, Any]]
    seconds: float
    error: str | None = None


def key_of(row: dict[str, Any]) -> Key:
    """The key of a row."""
    return tuple(row[column] for column in KEY)


def compute(fit: Fit) -> FitResult:
    """Fit and judge; a failure becomes a row that says so, never a figure.

    All randomness follows from the seed, and all arithmetic is done by one thread: the values do
    not depend on where it runs.
    """
    started = time.perf_counter()
    rows: list[dict[str, Any]] = []
    error = None
    with one_thread(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            rows = list(_rows(fit))
        except Exception as failure:
            error = _told(failure)
            rows = [fit._columns() | {"m": 0, "metric": ERROR, "value": None}]
    notes = list(dict.fromkeys(str(warning.message) for warning in caught))
    finished = datetime.now(UTC).isoformat(timespec="seconds")
    common = {
        **versions(),
        "finished_at": finished,
        "note": error or "; ".join(notes) or None,
    }
    return FitResult(fit, [row | common for row in rows], time.perf_counter() - started, error)


def _rows(fit: Fit) -> Iterator[dict[str, Any]]:
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
        solver=SOLVERS[fit.setting.solver],
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
    for m, figures in measured.items():
        for metric, value in figures.items():
            yield fit._columns() | {
                "m": m,
                "metric": metric,
                "value": value,
                "seconds": seconds,
                "decide_seconds": deciding[m],
                "peak_memory_mib": peak,
            }


def _figures(court: Court, draw: Any, fit: Fit, m: int, decision: Any) -> dict[str, float]:
    scenarios = None
    if FORECAST_METRICS & set(fit.measured):
        scenarios = draw(court.split.test.X, m, fit.setting.seed)
    return court.figures(decision, scenarios, fit.measured)


def _told(failure: Exception) -> str:
    """What happened; with the place where it is not one of forewise's own errors."""
    told = f"{type(failure).__name__}: {failure}"
    if not isinstance(failure, ForewiseError):
        place = traceback.extract_tb(failure.__traceback__)[-1]
        told += f" (in {place.name}, line {place.lineno} of {place.filename.rsplit('/', 1)[-1]})"
    return told


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
