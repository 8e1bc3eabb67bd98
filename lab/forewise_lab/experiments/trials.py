"""The settings of a method that are tried in a case, and the fit of one of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from pydantic import ValidationError

from forewise.datasets import Dataset
from forewise.exceptions import ForewiseError, InvalidInputError
from forewise.policy import ScenarioPolicy
from forewise.predictors import BoostingPredictor, PointPredictor
from forewise.problems import Newsvendor, Problem
from forewise.problems.risk_averse import without_risk
from forewise_lab.experiments.cases import CaseRows
from forewise_lab.experiments.configuration import (
    CaseTable,
    Free,
    MethodTable,
    RollingTable,
    Settings,
    merged,
)
from forewise_lab.experiments.kinds import Solvers
from forewise_lab.experiments.methods import Method, Task, check_method, fit_rule
from forewise_lab.experiments.rules import PolicyRule, Rule

# Decoupled learning does not use the problem, but networks report the cost of decisions while they
# train: this one is cheap to solve.
_CHEAP = Newsvendor(shortage=1.0, excess=2.0)
_FEWEST_ROWS = 100  # of a series that has a model of its own
_BORROWED = np.timedelta64(28, "D")


@dataclass(frozen=True)
class Trial:
    """A method with the settings of one trial, which `change` lists; `rolling` has no trials."""

    number: int
    method: Method
    rolling: RollingTable
    change: Free

    def identity(self) -> Free:
        """The settings that decide the results, for the configuration hash."""
        return self.method.identity() | {"rolling": self.rolling.model_dump()}

    def m(self, case: CaseTable) -> int:
        """Scenarios of a decision."""
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
        raise InvalidInputError(f"{where}: {'; '.join(faults)}") from error
    except ForewiseError as error:
        raise InvalidInputError(f"{where}: {error}") from error
    return Trial(number, method, rolling, change)


def fit_trial(
    trial: Trial,
    rows: CaseRows,
    places: np.ndarray,
    decided: np.ndarray,
    problems: Mapping[str, Problem],
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


def _deciding(rule: Rule, problem: Problem) -> Rule:
    """The rule for a problem, whatever problem it was learned with."""
    if not (isinstance(rule, PolicyRule) and isinstance(rule.policy, ScenarioPolicy)):
        return rule
    if isinstance(rule.policy.predictor, PointPredictor | BoostingPredictor):
        problem = without_risk(problem)  # they have one scenario
    return PolicyRule(replace(rule.policy, problem=problem))


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
    problem: Problem,
    case: CaseTable,
    seed: int,
) -> Rule:
    data, test = (_dataset(rows, some, trial.rolling.relative) for some in (places, decided))
    days = rows.days[places]
    late = days > days[-1] - np.timedelta64(case.stopping_days, "D")
    if not method.is_network or method.keep == "last":
        learned, held_out = data, data  # nothing to stop: no row is spared
    elif late.all():
        raise InvalidInputError(
            f"stopping_days={case.stopping_days} leaves no row to train on: lower it"
        )
    else:
        learned, held_out = data[~late], data[late]
    task = Task(problem, learned, held_out, test, case.m_train, seed, Solvers())
    return fit_rule(method, task)


def _dataset(rows: CaseRows, places: np.ndarray, relative: bool) -> Dataset:
    y = rows.y[places] / rows.unit[places, None] if relative else rows.y[places]
    names = [f"x{i}" for i in range(rows.X.shape[1])], [f"y{i}" for i in range(y.shape[1])]
    return Dataset(rows.X[places], y, *names)


def _with_places(method: Method, rows: CaseRows, m: int) -> Method:
    """The method with words such as "weekday" replaced by columns, and told of M."""
    learner: dict[str, Any] = dict(method.learner)
    predictor: dict[str, Any] = dict(method.predictor)
    if learner["kind"] == "combined":
        learner.setdefault("n_scenarios_deciding", m)
    if "by" in predictor:
        places = [place for word in predictor["by"] for place in rows.columns[word]]
        # A single series needs no column to say which it is.
        predictor = predictor | {"by": places} if places else {"kind": "empirical"}
    return replace(method, learner=learner, predictor=predictor)
