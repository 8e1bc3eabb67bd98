"""What the methods of a case cost, decision by decision, as the page about real data reads it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

import forewise as fw
from forewise_lab.experiments.cases import cost_or_risk, trials_of
from forewise_lab.experiments.configuration import CaseTable, Settings
from forewise_lab.experiments.kinds import FORESIGHT
from forewise_lab.experiments.rolling import evaluation_windows, read_costs
from forewise_lab.experiments.rows import read_rows

_COST = "cost"


@dataclass(frozen=True, eq=False)
class MethodCosts:
    """What a method's decisions cost in all windows of a case.

    `costs` (n_decided, 2 + n_problems) has `date`, `series`, and a column for each problem, means
    over seeds. `learner` says whether it is a network of forewise; `seconds` are those of one fit,
    `chosen` the settings of the trial that was chosen.
    """

    name: str
    title: str
    costs: pd.DataFrame
    learner: bool
    seconds: float
    chosen: str
    n_seeds: int

    def scored(self, cvar: float | None) -> np.ndarray:
        """One number per row whose mean is the metric of the case; see `cost_or_risk`."""
        cost = self.costs.iloc[:, 2:].to_numpy().mean(axis=1)
        days, series = self.costs["date"].to_numpy(), self.costs["series"].to_numpy()
        return cost_or_risk(cost, days.astype("datetime64[D]"), series, cvar)


@dataclass(frozen=True, eq=False)
class CaseResult:
    """A case: its finished methods, the missing ones, and perfect foresight, the lower bound."""

    name: str
    table: CaseTable
    methods: tuple[MethodCosts, ...]
    missing: tuple[str, ...]
    foresight: MethodCosts | None = None

    def method(self, name: str) -> MethodCosts | None:
        return next((method for method in self.methods if method.name == name), None)

    @property
    def dates(self) -> pd.Series:
        return self.methods[0].costs["date"]


def gather_cases(folder: str | os.PathLike[str], settings: Settings) -> tuple[CaseResult, ...]:
    """The cases of the settings, with what a results folder has of them.

    A method counts when all its windows are there, for the seeds that have them all. Of a method
    that was run with several settings, those that finished last are taken. Raises an
    `InvalidInputError` if the folder has no rows of cases, or rows of a quick run.
    """
    rows = read_rows(folder)
    if "fold" not in rows.columns:
        raise fw.InvalidInputError(
            f"{str(folder)!r} has no rows of real cases: `forewise-lab run real`"
        )
    if rows["quick"].any():
        raise fw.InvalidInputError(
            f"{str(folder)!r} has rows of a quick run, whose numbers mean nothing: run the same "
            "without --quick, into a folder of its own"
        )
    rows = rows[(rows["metric"] == _COST) & (rows["fold"] >= 0)]
    results = []
    for name, table in settings.cases.items():
        found, missing, foresight = [], [], None
        for method in table.methods:
            own = rows[(rows["experiment"] == name) & (rows["method"] == method)]
            n_windows = len(evaluation_windows(table))
            made = _method(settings, name, method, own, n_windows, Path(folder))
            if made is None:
                there = own["window"].nunique()
                title = settings.methods[method].title or method
                missing.append(f"{title}: {there} of {n_windows} windows")
            elif settings.methods[method].learner.get("kind") == FORESIGHT:
                foresight = made
            else:
                found.append(made)
        _require_same_rows(name, found if foresight is None else [*found, foresight])
        results.append(CaseResult(name, table, tuple(found), tuple(missing), foresight))
    return tuple(results)


def _method(
    settings: Settings, case: str, name: str, rows: pd.DataFrame, n_windows: int, folder: Path
) -> MethodCosts | None:
    rows = rows.sort_values("finished_at", kind="stable")
    rows = rows[rows["choice"] == rows["choice"].iloc[-1]] if len(rows) else rows
    whole = [own for _, own in rows.groupby("seed") if own["fold"].nunique() == n_windows]
    if not whole:
        return None
    tables = list(_tables(whole, folder))
    costs = tables[0].copy()
    problems = costs.columns[2:]
    costs[problems] = np.mean([table[problems].to_numpy() for table in tables], axis=0)
    trial = trials_of(settings, case, name)[0]
    return MethodCosts(
        name,
        settings.methods[name].title or name,
        costs,
        trial.method.is_network,
        float(np.mean([own["seconds"].mean() for own in whole])),
        _in_words(str(whole[0]["trial_settings"].iloc[0])),
        len(whole),
    )


def _tables(seeds: list[pd.DataFrame], folder: Path) -> Iterator[pd.DataFrame]:
    for own in seeds:
        files = own.drop_duplicates("fold", keep="last").sort_values("fold")["costs_file"]
        yield pd.concat([read_costs(folder / file) for file in files], ignore_index=True)


def _require_same_rows(case: str, methods: list[MethodCosts]) -> None:
    for method in methods[1:]:
        same = ["date", "series"]
        if not method.costs[same].equals(methods[0].costs[same]):
            raise fw.InvalidInputError(
                f"{method.title} and {methods[0].title} decided different rows of {case}: were "
                "they run with different settings of the case?"
            )


def _in_words(settings: str) -> str:
    """``{"training": {"learning_rate": 0.002}}`` as "learning_rate 0.002"."""
    found: list[str] = []

    def walk(table: dict[str, object]) -> None:
        for key, value in table.items():
            if isinstance(value, dict):
                walk(value)
            else:
                found.append(f"{key} {value}")

    walk(json.loads(settings))
    return ", ".join(found)
