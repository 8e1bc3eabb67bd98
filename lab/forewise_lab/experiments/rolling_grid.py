"""Which works a case consists of: the trials of each method first, then the chosen one's windows.

May import: exceptions, and its siblings `case_schema`, `loading`, `rolling_fits`, `trials`, `work`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pandas as pd

from forewise_lab.experiments.case_schema import CaseTable
from forewise_lab.experiments.loading import Settings
from forewise_lab.experiments.rolling_fits import (
    VALIDATION,
    RollingFit,
    judged_windows,
    tuning_window,
)
from forewise_lab.experiments.trials import Trial, trials_of

# The quick version: two stores, two weeks, two epochs and two trials (one through the solver). A
# schedule of 48 half-hours takes half a second: of these, fewer days.
_QUICK_STORES, _QUICK_TRIALS, _QUICK_EPOCHS = (2, 17), 2, 2
_QUICK_DAYS = {"bakery-series": 14, "bakery-stores": 14, "victoria": 5}
_QUICK_HISTORY = {"bakery-series": 150, "bakery-stores": 150, "victoria": 35}
_QUICK_STOPPING, _QUICK_M, _QUICK_SIZES, _QUICK_TREES, _QUICK_NEIGHBORS = 14, 4, (16,), 10, 20


class CaseGrid:
    """The works of some cases.

    Parameters
    ----------
    settings : Settings
    cases : list of str
    methods : list of str, optional
        Those of the cases' methods to run; all by default.
    seeds : sequence of int
    data_dir : path, optional
    quick : bool
        A tiny version: figures mean nothing, but everything is run.
    """

    def __init__(
        self,
        settings: Settings,
        cases: Iterable[str],
        methods: Iterable[str] | None,
        seeds: Sequence[int],
        data_dir: Path | None = None,
        quick: bool = False,
    ) -> None:
        asked = None if methods is None else list(methods)
        self._entries: list[tuple[str, CaseTable, tuple[Trial, ...], int]] = []
        self._data_dir = data_dir
        for name in cases:
            for method in settings.method_names(name, asked):
                case, trials = settings.cases[name], trials_of(settings, name, method)
                if quick:
                    case = _quick_case(case)
                    decoupled = trials[0].method.learner["kind"] == "decoupled"
                    kept = trials[: _QUICK_TRIALS if decoupled else 1]
                    trials = tuple(_quick_trial(trial) for trial in kept)
                self._entries += [(name, case, trials, seed) for seed in seeds]

    @property
    def methods(self) -> set[str]:
        """Names of the methods."""
        return {trials[0].method.name for _, _, trials, _ in self._entries}

    def trials(self) -> list[RollingFit]:
        """All trials on the tuning days; a method with one has nothing to choose."""
        return [
            RollingFit(name, trial, case, tuning_window(case), seed, self._data_dir)
            for name, case, trials, seed in self._entries
            if len(trials) > 1
            for trial in trials
        ]

    def windows(self, rows: pd.DataFrame | None) -> list[RollingFit]:
        """The windows of each method's best trial, of those methods that have one.

        Parameters
        ----------
        rows : DataFrame or None
            The results table, with the trials' rows.
        """
        figures = {} if rows is None else _validation_figures(rows)
        works = []
        for name, case, trials, seed in self._entries:
            tuning = tuning_window(case)
            tried = {
                trial: figures[key]
                for trial, key in (
                    (number, _key(RollingFit(name, trial, case, tuning, seed)))
                    for number, trial in enumerate(trials)
                )
                if key in figures
            }
            if len(trials) > 1 and not tried:
                continue
            best = trials[min(tried, key=lambda number: tried[number]) if len(trials) > 1 else 0]
            works += [
                RollingFit(name, best, case, window, seed, self._data_dir)
                for window in judged_windows(case)
            ]
        return works


def _key(fit: RollingFit) -> tuple[Any, ...]:
    return fit.experiment, fit.trial.method.name, fit.seed, fit.config_hash


def _validation_figures(rows: pd.DataFrame) -> dict[tuple[Any, ...], float]:
    found = rows[rows["metric"] == VALIDATION]
    columns = (found[c] for c in ("experiment", "method", "seed", "config_hash", "value"))
    return {tuple(key): float(value) for *key, value in zip(*columns, strict=True)}


def _quick_case(case: CaseTable) -> CaseTable:
    stores = case.source.name != "victoria"
    history, days = _QUICK_HISTORY[case.source.name], _QUICK_DAYS[case.source.name]
    return case.model_copy(
        update={
            "source": case.source.model_copy(update={"stores": _QUICK_STORES} if stores else {}),
            "last_day": min(case.last_day, case.first_day + timedelta(days=days - 1)),
            "window": "quarter",
            "history_days": min(case.history_days or history, history),
            "tuning_days": days,
            "stopping_days": min(case.stopping_days, _QUICK_STOPPING),
            "m": min(case.m, _QUICK_M),
            "m_train": min(case.m_train, _QUICK_M),
            "most_m": _QUICK_M,
        }
    )


def _quick_trial(trial: Trial) -> Trial:
    method, learner = trial.method, dict(trial.method.learner)
    epochs = _QUICK_EPOCHS if learner["kind"] == "decoupled" else 1
    if "pretraining" in learner:
        learner["pretraining"] = learner["pretraining"] | {"epochs": _QUICK_EPOCHS}
    predictor = dict(method.predictor)
    if "n_trees" in predictor:
        predictor["n_trees"] = _QUICK_TREES
    if "n_neighbors" in predictor:
        predictor["n_neighbors"] = min(predictor["n_neighbors"], _QUICK_NEIGHBORS)
    if "regressor" in predictor:
        predictor["regressor"] = predictor["regressor"] | {"n_trees": _QUICK_TREES}
    quick = replace(
        method,
        learner=learner,
        predictor=predictor,
        hidden_sizes=_QUICK_SIZES,
        training=method.training | {"epochs": epochs},
    )
    return replace(trial, method=quick)
