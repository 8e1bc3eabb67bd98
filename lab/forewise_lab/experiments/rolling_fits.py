"""One window of a case: a method learned from the past, its decisions, what they cost.

Costs of single decisions go into a file beside the table, because intervals need them. May
import: exceptions, problems, and its siblings `baselines`, `case_schema`, `cases`, `judging`,
`resources`, `tails`, `trials`, `work`.
"""

from __future__ import annotations

import hashlib
import io
import json
import time
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from forewise.exceptions import InvalidInputError
from forewise.problems import Problem
from forewise_lab.experiments.baselines import Rule
from forewise_lab.experiments.case_schema import CaseTable
from forewise_lab.experiments.cases import CaseRows, load_case, problems_of
from forewise_lab.experiments.resources import peak_memory, restart_peak
from forewise_lab.experiments.tails import judged_costs
from forewise_lab.experiments.trials import Trial, decide_rows, fit_trial
from forewise_lab.experiments.work import Key, Product, Row, Work, key_of

#: Number of the window that trials are compared on; those that are judged count from 0.
TUNING = -1
#: Figure of a trial on the tuning days, and that of a window: the mean cost, or its risk.
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
    """A trial, fitted on the past of one window and judged in it."""

    experiment: str
    trial: Trial
    case: CaseTable
    window: Window
    seed: int
    data_dir: Path | None = None
    config_hash: str = field(init=False)

    def __post_init__(self) -> None:
        window = [self.window.start.isoformat(), self.window.end.isoformat()]
        object.__setattr__(self, "config_hash", _hash_of([self.choice, window]))

    @property
    def choice(self) -> str:
        """A mark of the method's settings and the case, the same in all windows."""
        return _hash_of([self.trial.identity(), self.case.scope()])

    @property
    def name(self) -> str:
        """What people call it."""
        which = f"trial {self.trial.number}, " if self.window.number == TUNING else ""
        return f"{self.experiment} {self.trial.method.name}, {which}from {self.window.start}"

    @property
    def alike(self) -> tuple[object, ...]:
        """Case and method."""
        return self.experiment, self.trial.method.name

    @property
    def rough_seconds(self) -> float:
        """Networks take longer, those that are trained through the solver most."""
        if not self.trial.method.is_network:
            return 20.0
        return 60.0 if self.trial.method.learner["kind"] == "decoupled" else 240.0

    @property
    def source(self) -> Hashable | None:
        """The case's files."""
        return self.case.source

    def require_data(self) -> None:
        """Load them."""
        self._rows()

    def columns(self) -> Row:
        """Which window, trial and case it is, through the hash."""
        return {
            "experiment": self.experiment,
            "method": self.trial.method.name,
            "seed": self.seed,
            "n_train": None,
            "m_train": self.case.m_train,
            "config_hash": self.config_hash,
        }

    def row_keys(self) -> Iterator[Key]:
        """Keys of the rows it will have."""
        for metric in self._metrics():
            yield key_of(self.columns() | {"m": self.trial.m(self.case), "metric": metric})

    def produce(self) -> Product:
        """Learn from the past, decide the window's rows, and see what that cost."""
        rows, problems = self._rows(), problems_of(self.case.decision)
        learned, decided = places_of(self, rows)
        restart_peak()
        started = time.process_time()
        rules = fit_trial(self.trial, rows, learned, decided, problems, self.case, self.seed)
        seconds, started = time.process_time() - started, time.process_time()
        costs = {
            name: _costs(problem, self._decisions(rules[name], rows, decided), rows.y[decided])
            for name, problem in problems.items()
        }
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
            "n_rows": len(learned),
            "n_decided": len(decided),
        }
        figures = self._figures(costs, rows.days[decided], rows.series[decided])
        if self.window.number == TUNING:
            return Product([common | {"metric": m, "value": v} for m, v in figures.items()])
        place = (
            f"costs/{self.experiment}/{self.trial.method.name}-{self.window.start}-"
            f"{self.config_hash}.npz"
        )
        common["costs_file"] = place
        packed = pack_costs(rows.days[decided], rows.series[decided], costs)
        return Product(
            [common | {"metric": m, "value": v} for m, v in figures.items()], {place: packed}
        )

    def _rows(self) -> CaseRows:
        return load_case(self.case.source, self.data_dir, tuning_window(self.case).start)

    def _decisions(self, rules: list[Rule], rows: CaseRows, places: np.ndarray) -> torch.Tensor:
        decided = decide_rows(rules, self.trial, rows, places, self.case, self.seed)
        return torch.from_numpy(decided)

    def _metrics(self) -> list[str]:
        if self.window.number == TUNING:
            return [VALIDATION]
        levels = [f"{COST} {level:g}" for level in self.case.decision.levels]
        mean = [] if self.case.decision.cvar is None else ["mean cost"]
        return [COST, *levels, *mean]

    def _figures(
        self, costs: dict[str, torch.Tensor], days: np.ndarray, series: np.ndarray
    ) -> dict[str, float]:
        """The figures of `_metrics`: of each problem its own, and the mean of these."""
        cvar = self.case.decision.cvar
        own = [
            float(judged_costs(cost.numpy(), days, series, cvar).mean()) for cost in costs.values()
        ]
        mean = float(torch.stack(list(costs.values())).mean())
        values = [float(np.mean(own)), *(own if len(own) > 1 else ()), mean]
        return dict(zip(self._metrics(), values, strict=False))


def tuning_window(case: CaseTable) -> Window:
    """The days before the first that is judged."""
    return Window(TUNING, case.first_day - timedelta(days=case.tuning_days), case.first_day)


def judged_windows(case: CaseTable) -> list[Window]:
    """Calendar windows from the first day to the last; the outer ones may be cut short."""
    frequency = _PERIODS[case.window]
    periods = pd.period_range(case.first_day, case.last_day, freq=frequency)
    after = case.last_day + timedelta(days=1)
    return [
        Window(
            number,
            max(period.start_time.date(), case.first_day),
            min((period + 1).start_time.date(), after),
        )
        for number, period in enumerate(periods)
    ]


def places_of(fit: RollingFit, rows: CaseRows) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of the rows to learn from, all before the window, and of those to decide."""
    start, end = np.datetime64(fit.window.start), np.datetime64(fit.window.end)
    limits = [fit.trial.rolling.history_days, fit.case.history_days]
    history = min((days for days in limits if days is not None), default=None)
    past = rows.days < start
    if history is not None:
        past &= rows.days >= start - np.timedelta64(history, "D")
    learned, decided = (
        np.flatnonzero(past),
        np.flatnonzero((rows.days >= start) & (rows.days < end)),
    )
    for what, places in (("to learn from before", learned), ("to decide from", decided)):
        if len(places) == 0:
            raise InvalidInputError(
                f"there is no row {what} {fit.window.start} in {fit.experiment}"
            )
    return learned, decided


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
        return pd.DataFrame(
            {
                "date": stored["days"].astype("datetime64[D]").astype("datetime64[s]"),
                "series": stored["series"],
                **dict(
                    zip(stored["problems"].tolist(), stored["costs"].astype(float), strict=True)
                ),
            }
        )


def _costs(problem: Problem, decision: torch.Tensor, outcome: np.ndarray) -> torch.Tensor:
    """Costs (n_rows,); what breaks a constraint is refused, not scored."""
    return problem.cost(decision, torch.from_numpy(outcome)).detach()


def _hash_of(identity: object) -> str:
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:12]
