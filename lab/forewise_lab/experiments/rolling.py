"""Cases: a method fitted on the past of a window, its decisions in it, and what they cost.

As `forewise.evaluation.evaluate_rolling`, but every window is a unit of work that a run computes
anywhere and can resume, a decoupled fit serves several problems, and trials are compared on days
before the first window. Costs of single decisions go into a file: intervals need them.
"""

from __future__ import annotations

import io
import json
import time
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

import forewise as fw
from forewise_lab.experiments.cases import (
    CaseRows,
    Trial,
    cost_or_risk,
    decide_rows,
    fit_trial,
    load_case,
    problems_of,
    trials_of,
)
from forewise_lab.experiments.configuration import CaseTable, Settings
from forewise_lab.experiments.rows import Key, Product, Row, Work, hash_of, key_of
from forewise_lab.machine import peak_memory, restart_peak

#: Number of the window that trials are compared on; test windows count from 0.
TUNING = -1
#: Metric of a trial on the tuning days, and of a test window: the mean cost, or its risk.
VALIDATION, COST = "validation", "cost"
# Bits of a stored cost that are dropped: it is right to 0.05 %, and the file half as large.
_DROPPED_BITS = 13
_PERIODS = {"week": "W-SUN", "month": "M", "quarter": "Q", "year": "Y"}


@dataclass(frozen=True)
class Window:
    """Some days that are decided; `end` is the first day after them."""

    number: int
    start: date
    end: date


@dataclass(frozen=True)
class RollingFit(Work):
    """A trial, fitted on the past of one window and evaluated in it."""

    experiment: str
    trial: Trial
    case: CaseTable
    window: Window
    seed: int
    data_dir: Path | None = None
    config_hash: str = field(init=False)

    def __post_init__(self) -> None:
        window = [self.window.start.isoformat(), self.window.end.isoformat()]
        object.__setattr__(self, "config_hash", hash_of([self.choice, window]))

    @property
    def choice(self) -> str:
        """Hash of the method's settings and the case, the same in all windows."""
        return hash_of([self.trial.identity(), self.case.scope()])

    @property
    def name(self) -> str:
        which = f"trial {self.trial.number}, " if self.window.number == TUNING else ""
        return f"{self.experiment} {self.trial.method.name}, {which}from {self.window.start}"

    @property
    def source(self) -> Hashable | None:
        return self.case.source

    def require_data(self) -> None:
        self._rows()

    def columns(self) -> Row:
        return {
            "experiment": self.experiment,
            "method": self.trial.method.name,
            "seed": self.seed,
            "n_train": None,
            "m_train": self.case.m_train,
            "config_hash": self.config_hash,
        }

    def row_keys(self) -> Iterator[Key]:
        for metric in self._metrics():
            yield key_of(self.columns() | {"m": self.trial.m(self.case), "metric": metric})

    def produce(self) -> Product:
        rows, problems = self._rows(), problems_of(self.case.decision)
        train, decided = train_and_decide(self, rows)
        restart_peak()
        started = time.process_time()
        rules = fit_trial(self.trial, rows, train, decided, problems, self.case, self.seed)
        seconds, started = time.process_time() - started, time.process_time()
        outcome = torch.from_numpy(rows.y[decided])
        costs = {}
        for name, problem in problems.items():
            decision = decide_rows(rules[name], self.trial, rows, decided, self.case, self.seed)
            # What breaks a constraint is refused, not scored.
            costs[name] = problem.cost(torch.from_numpy(decision), outcome).detach()
        common = self.columns() | {
            "m": self.trial.m(self.case),
            "seconds": seconds,
            "decide_seconds": time.process_time() - started,
            "peak_memory_mib": peak_memory(),
            "fold": self.window.number,
            "window": self.window.start.isoformat(),
            "choice": self.choice,
            "trial": self.trial.number,
            "trial_settings": json.dumps(self.trial.change, sort_keys=True),
            "n_rows": len(train),
            "n_decided": len(decided),
        }
        days, series = rows.days[decided], rows.series[decided]
        files = {}
        if self.window.number != TUNING:
            name = f"{self.trial.method.name}-{self.window.start}-{self.config_hash}.npz"
            common["costs_file"] = f"costs/{self.experiment}/{name}"
            files[common["costs_file"]] = pack_costs(days, series, costs)
        found = self._values(costs, days, series)
        return Product([common | {"metric": m, "value": v} for m, v in found.items()], files)

    def _rows(self) -> CaseRows:
        return load_case(self.case.source, self.data_dir, tuning_window(self.case).start)

    def _metrics(self) -> list[str]:
        if self.window.number == TUNING:
            return [VALIDATION]
        levels = [f"{COST} {level:g}" for level in self.case.decision.levels]
        return [COST, *levels, *([] if self.case.decision.cvar is None else ["mean cost"])]

    def _values(
        self, costs: dict[str, torch.Tensor], days: np.ndarray, series: np.ndarray
    ) -> dict[str, float]:
        """The values of `_metrics`: of each problem its own, and the mean of these."""
        cvar = self.case.decision.cvar
        own = [
            float(cost_or_risk(cost.numpy(), days, series, cvar).mean()) for cost in costs.values()
        ]
        mean = float(torch.stack(list(costs.values())).mean())
        values = [float(np.mean(own)), *(own if len(own) > 1 else ()), mean]
        return dict(zip(self._metrics(), values, strict=False))


def tuning_window(case: CaseTable) -> Window:
    """The days before the first test window."""
    return Window(TUNING, case.first_day - timedelta(days=case.tuning_days), case.first_day)


def evaluation_windows(case: CaseTable) -> list[Window]:
    """Calendar windows from the first day to the last; the outer ones may be cut short."""
    periods = pd.period_range(case.first_day, case.last_day, freq=_PERIODS[case.window])
    after = case.last_day + timedelta(days=1)
    return [
        Window(
            number,
            max(period.start_time.date(), case.first_day),
            min((period + 1).start_time.date(), after),
        )
        for number, period in enumerate(periods)
    ]


def train_and_decide(fit: RollingFit, rows: CaseRows) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of the rows to train on, all before the window, and of those to decide."""
    start, end = np.datetime64(fit.window.start), np.datetime64(fit.window.end)
    limits = [fit.trial.rolling.history_days, fit.case.history_days]
    history = min((days for days in limits if days is not None), default=None)
    past = rows.days < start
    if history is not None:
        past &= rows.days >= start - np.timedelta64(history, "D")
    train = np.flatnonzero(past)
    decided = np.flatnonzero((rows.days >= start) & (rows.days < end))
    for what, some in (("to train on before", train), ("to decide from", decided)):
        if len(some) == 0:
            raise fw.InvalidInputError(
                f"there is no row {what} {fit.window.start} in {fit.experiment}"
            )
    return train, decided


def pack_costs(days: np.ndarray, series: np.ndarray, costs: dict[str, torch.Tensor]) -> bytes:
    """Costs (n_rows,) of each problem, with days and series, as a compressed file's content."""
    table = np.stack([cost.numpy() for cost in costs.values()]).astype(np.float32)
    # Adding half a step first rounds to nearest.
    whole = table.view(np.uint32) + np.uint32(1 << (_DROPPED_BITS - 1))
    rounded = (whole & np.uint32(0xFFFFFFFF << _DROPPED_BITS & 0xFFFFFFFF)).view(np.float32)
    content = io.BytesIO()
    np.savez_compressed(
        content,
        days=days.astype("datetime64[D]").astype(np.int32),
        series=series.astype(np.int16),
        problems=np.array(list(costs)),
        costs=rounded,
    )
    return content.getvalue()


def read_costs(path: Path) -> pd.DataFrame:
    """Costs of single decisions: `date`, `series` (its number), and a column for each problem."""
    with np.load(path, allow_pickle=False) as stored:
        costs = dict(zip(stored["problems"].tolist(), stored["costs"].astype(float), strict=True))
        days = stored["days"].astype("datetime64[D]").astype("datetime64[s]")
        return pd.DataFrame({"date": days, "series": stored["series"], **costs})


class CaseGrid:
    """The fits of some cases: the trials of each method, then the test windows of the best one."""

    def __init__(
        self,
        settings: Settings,
        cases: Iterable[str],
        methods: Iterable[str] | None,
        seeds: Sequence[int],
        data_dir: Path | None = None,
    ) -> None:
        asked = None if methods is None else list(methods)
        self._entries: list[tuple[str, CaseTable, tuple[Trial, ...], int]] = []
        self._data_dir = data_dir
        for name in cases:
            for method in settings.method_names(name, asked):
                case, trials = settings.cases[name], trials_of(settings, name, method)
                self._entries += [(name, case, trials, seed) for seed in seeds]

    @property
    def methods(self) -> set[str]:
        return {trials[0].method.name for _, _, trials, _ in self._entries}

    def trials(self) -> list[RollingFit]:
        """All trials on the tuning days; a method with one has nothing to choose."""
        return [
            RollingFit(name, trial, case, tuning_window(case), seed, self._data_dir)
            for name, case, trials, seed in self._entries
            if len(trials) > 1
            for trial in trials
        ]

    def windows(self, rows: Iterable[Row]) -> list[RollingFit]:
        """The test windows of each method's best trial by the trials' rows, where there is one."""
        found = {_key(row): float(row["value"]) for row in rows if row["metric"] == VALIDATION}
        fits = []
        for name, case, trials, seed in self._entries:
            best = trials[0]
            if len(trials) > 1:
                tuning = tuning_window(case)
                keys = [_key(RollingFit(name, t, case, tuning, seed).columns()) for t in trials]
                tried = {n: found[key] for n, key in enumerate(keys) if key in found}
                if not tried:
                    continue
                best = trials[min(tried, key=tried.__getitem__)]
            fits += [
                RollingFit(name, best, case, window, seed, self._data_dir)
                for window in evaluation_windows(case)
            ]
        return fits


def _key(row: Row) -> tuple[Any, ...]:
    return tuple(row[column] for column in ("experiment", "method", "seed", "config_hash"))
