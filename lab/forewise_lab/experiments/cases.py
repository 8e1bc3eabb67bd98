"""Cases: real data in order of time, what is decided in them, and the trials of a method."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pydantic import ValidationError

import forewise as fw
from forewise.datasets.bakeries import columns_in_pieces
from forewise.problems.base import without_risk
from forewise_lab.datasets.real import (
    bakery_newsvendor,
    bakery_store_days,
    day_ahead_problem,
    oven_problem,
)
from forewise_lab.experiments.configuration import (
    CaseTable,
    DecisionTable,
    Free,
    MethodTable,
    RollingTable,
    Settings,
    SourceTable,
    merged,
)
from forewise_lab.experiments.kinds import Solvers
from forewise_lab.experiments.methods import Method, Rule, Task, check_method, fit_rule, policy_rule

_MEGAWATTS = 1000.0
#: Column with a recent mean of the series, and the least that outcomes are divided by.
_RECENT, _LEAST_UNIT = "demand_mean_28", 1.0
# Decoupled learning does not use the problem, but networks report the cost of decisions while they
# train: this one is cheap to solve.
_CHEAP = fw.Newsvendor(shortage=1.0, excess=2.0)
_FEWEST_ROWS = 100  # of a series that has a model of its own
_BORROWED = np.timedelta64(28, "D")


@dataclass(frozen=True, eq=False)
class CaseRows:
    """Contexts and outcomes, row by row, in order of time.

    `series` are numbers of `series_names`. Relative outcomes are multiples of `unit`, a recent
    mean known before; 1 if there is none. `columns` of X say together which series, or which
    weekday, a row is of.
    """

    X: np.ndarray
    y: np.ndarray
    days: np.ndarray
    series: np.ndarray
    unit: np.ndarray
    columns: Mapping[str, tuple[int, ...]]
    series_names: tuple[str, ...]


# Fits of one case follow each other, and making contexts takes longer than many a fit.
@lru_cache(maxsize=1)
def load_case(source: SourceTable, data_dir: Path | None, sized_before: date) -> CaseRows:
    """The rows of a case; `sized_before` is the day before which ovens are sized."""
    if source.name == "victoria":
        return _victoria(data_dir)
    table = fw.datasets.bakery(data_dir)
    if source.stores is not None:
        table = table[table["store"].isin(source.stores)].reset_index(drop=True)
    if source.name == "bakery-series":
        return _series(table)
    return _stores(table, sized_before, source.oven)


def problems_of(decision: DecisionTable) -> dict[str, fw.Problem]:
    """What is decided, by name: one problem, or one for each service level."""
    if decision.name == "newsvendor":
        return {f"{level:g}": bakery_newsvendor(level) for level in decision.levels}
    if decision.name == "oven":
        return {"oven": oven_problem(cvar=decision.cvar)}
    return {"day-ahead": day_ahead_problem()}


def _series(table: pd.DataFrame) -> CaseRows:
    contexts = fw.datasets.bakery_contexts(table)
    pieces = [name for name in columns_in_pieces(contexts) if name != _RECENT]
    unit = contexts[_RECENT].clip(lower=_LEAST_UNIT)
    contexts = fw.features.relative_to(contexts, _RECENT, pieces, least=_LEAST_UNIT)
    # The first open days of a series have no past: they are not used.
    kept = ~table["closed"] & (contexts[f"{_RECENT}_missing"] == 0)
    table, contexts = table[kept], contexts[kept]
    names = table["store"].astype(str) + "/" + table["product"].astype(str)
    return _in_order(
        contexts, table["demand"].to_numpy()[:, None], table["date"], names, unit[kept].to_numpy()
    )


def _stores(table: pd.DataFrame, sized_before: date, share: float) -> CaseRows:
    days = bakery_store_days(table, pd.Timestamp(sized_before), share=share)
    unit = np.ones(len(days.demand))
    names = days.store.astype(str)
    return _in_order(days.contexts, days.demand.to_numpy(), days.date, names, unit)


def _victoria(data_dir: Path | None) -> CaseRows:
    data = fw.datasets.victoria(data_dir)
    contexts = fw.datasets.victoria_contexts(data)
    whole = contexts.notna().all(axis=1).to_numpy()  # the first week lacks a week before
    contexts = contexts[whole]
    dates = pd.Series(contexts.index)
    demand = data.demand.to_numpy()[whole] / _MEGAWATTS
    return _in_order(
        contexts, demand, dates, dates.map(lambda day: "Victoria"), np.ones(len(dates))
    )


def _in_order(
    contexts: pd.DataFrame, y: np.ndarray, dates: pd.Series, names: pd.Series, unit: np.ndarray
) -> CaseRows:
    days = dates.to_numpy().astype("datetime64[D]")
    series, listed = pd.factorize(names.to_numpy(), sort=True)
    order = np.lexsort([series, days])
    return CaseRows(
        contexts.to_numpy(dtype=np.float64)[order],
        y[order],
        days[order],
        series[order],
        unit[order],
        {
            "series": _named(contexts, ("store_", "product_")),
            "weekday": _named(contexts, ("weekday_",)),
        },
        tuple(str(name) for name in listed),
    )


def _named(contexts: pd.DataFrame, beginnings: tuple[str, ...]) -> tuple[int, ...]:
    return tuple(i for i, name in enumerate(contexts.columns) if name.startswith(beginnings))


def cost_or_risk(
    cost: np.ndarray, days: np.ndarray, series: np.ndarray, cvar: float | None
) -> np.ndarray:
    """One number per row whose mean is the metric of the case: the cost, or its CVaR.

    For a CVaR it is t + (cost − t)₊ / (1 − cvar), with t the quantile at `cvar` of the method's own
    costs on the same weekday of the same series: the mean CVaR of such groups.
    """
    if cvar is None:
        return cost
    weekday = pd.DatetimeIndex(days.astype("datetime64[s]")).day_of_week.to_numpy()
    column = pd.Series(cost)
    threshold = column.groupby([series, weekday]).transform(lambda own: own.quantile(cvar))
    return (threshold + (column - threshold).clip(lower=0) / (1 - cvar)).to_numpy()


@dataclass(frozen=True)
class Trial:
    """A method with the settings of one trial, which `change` lists; `rolling` has no trials."""

    number: int
    method: Method
    rolling: RollingTable
    change: Free

    def identity(self) -> Free:
        return self.method.identity() | {"rolling": self.rolling.model_dump()}

    def m(self, case: CaseTable) -> int:
        own = case.m if self.method.m is None else self.method.m[-1]
        return own if case.most_m is None else min(own, case.most_m)


def trials_of(settings: Settings, case: str, name: str) -> tuple[Trial, ...]:
    """The trials of a method in a case; one, if its settings list none."""
    whole = settings.method_table(case, name)
    rolling: Free = dict(whole.pop("rolling", {}))
    changes: tuple[Free, ...] = rolling.pop("trials", ()) or ({},)
    return tuple(
        _trial(f"[experiments.{case}] with [methods.{name}], trial {number}", number, name,
               whole | {"rolling": rolling}, dict(change))
        for number, change in enumerate(changes)
    )  # fmt: skip


def _trial(where: str, number: int, name: str, base: Free, change: Free) -> Trial:
    try:
        checked = MethodTable.model_validate(change).model_dump(exclude_unset=True)
        whole = merged(base, checked)
        rolling = RollingTable.model_validate(whole.pop("rolling"))
        method = Method.from_table(name, whole)
        check_method(method)
    except ValidationError as error:
        faults = [f"{'.'.join(map(str, f['loc']))}: {f['msg']}" for f in error.errors()]
        raise fw.InvalidInputError(f"{where}: {'; '.join(faults)}") from error
    except fw.ForewiseError as error:
        raise fw.InvalidInputError(f"{where}: {error}") from error
    return Trial(number, method, rolling, change)


def fit_trial(
    trial: Trial,
    rows: CaseRows,
    places: np.ndarray,
    decided: np.ndarray,
    problems: Mapping[str, fw.Problem],
    case: CaseTable,
    seed: int,
) -> dict[str, list[Rule]]:
    """Fit to some rows: for each problem a list of one rule, or of one for each series.

    `places` are rows to train on, in order of time; `decided` will be decided, and only perfect
    foresight sees their outcomes. A series with fewer than 100 rows has no model of its own: it is
    trained on the last four weeks of all series.
    """
    groups = [places] if trial.rolling.each == "all" else _by_series(rows, places)
    method = _with_places(trial.method, rows, trial.m(case))
    fitted: dict[str, list[Rule]] = {name: [] for name in problems}
    for group in groups:
        if method.learner["kind"] == "decoupled":
            rule = _fit(method, trial, rows, group, decided, _CHEAP, case, seed)
            for name, problem in problems.items():
                fitted[name].append(_deciding(rule, problem))
        else:
            for name, problem in problems.items():
                rule = _fit(method, trial, rows, group, decided, problem, case, seed)
                fitted[name].append(_deciding(rule, problem))
    return fitted


def _deciding(rule: Rule, problem: fw.Problem) -> Rule:
    """The rule for a problem, whatever problem it was learned with."""
    if not isinstance(rule.policy, fw.policy.ScenarioPolicy):
        return rule
    if isinstance(rule.policy.predictor, fw.PointPredictor | fw.BoostingPredictor):
        problem = without_risk(problem)  # they have one scenario
    return policy_rule(replace(rule.policy, problem=problem))


def _by_series(rows: CaseRows, places: np.ndarray) -> list[np.ndarray]:
    """The rows of each series; a young one borrows the last four weeks of all."""
    recent = places[rows.days[places] > rows.days[places[-1]] - _BORROWED]
    own = [places[rows.series[places] == s] for s in range(len(rows.series_names))]
    return [group if len(group) >= _FEWEST_ROWS else recent for group in own]


def decide_rows(
    rules: list[Rule], trial: Trial, rows: CaseRows, places: np.ndarray, case: CaseTable, seed: int
) -> np.ndarray:
    """Decisions (n_places, n_decisions) for some rows, in the outcomes' own units."""
    m = trial.m(case)
    if trial.rolling.each == "all":
        decision = rules[0].decide(rows.X[places], m, seed)
    else:
        own = rows.series[places]
        parts = {s: rules[s].decide(rows.X[places[own == s]], m, seed) for s in np.unique(own)}
        decision = np.empty((len(places), next(iter(parts.values())).shape[1]))
        for s, part in parts.items():
            decision[own == s] = part
    return decision * rows.unit[places, None] if trial.rolling.relative else decision


def _fit(
    method: Method,
    trial: Trial,
    rows: CaseRows,
    places: np.ndarray,
    decided: np.ndarray,
    problem: fw.Problem,
    case: CaseTable,
    seed: int,
) -> Rule:
    data, test = (_dataset(rows, some, trial.rolling.relative) for some in (places, decided))
    days = rows.days[places]
    late = days > days[-1] - np.timedelta64(case.stopping_days, "D")
    if not method.is_network or method.keep == "last":
        learned, held_out = data, data  # nothing to stop: no row is spared
    elif late.all():
        raise fw.InvalidInputError(
            f"stopping_days={case.stopping_days} leaves no row to train on: lower it"
        )
    else:
        learned, held_out = data[~late], data[late]
    task = Task(problem, learned, held_out, test, case.m_train, seed, Solvers())
    return fit_rule(method, task)


def _dataset(rows: CaseRows, places: np.ndarray, relative: bool) -> fw.datasets.Dataset:
    y = rows.y[places] / rows.unit[places, None] if relative else rows.y[places]
    names = [f"x{i}" for i in range(rows.X.shape[1])], [f"y{i}" for i in range(y.shape[1])]
    return fw.datasets.Dataset(rows.X[places], y, *names)


def _with_places(method: Method, rows: CaseRows, m: int) -> Method:
    """The method with words such as "weekday" replaced by columns, and with M."""
    learner: dict[str, Any] = dict(method.learner)
    predictor: dict[str, Any] = dict(method.predictor)
    if learner["kind"] == "combined":
        learner.setdefault("n_scenarios_deciding", m)
    if "by" in predictor:
        places = [place for word in predictor["by"] for place in rows.columns[word]]
        # A single series needs no column to say which it is.
        predictor = predictor | {"by": places} if places else {"kind": "empirical"}
    return replace(method, learner=learner, predictor=predictor)
