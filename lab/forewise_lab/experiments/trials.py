"""The settings of a method that are tried in a case, and the learning of one of them.

May import: exceptions, datasets, problems, predictors, policy, and its siblings `kinds`, `methods`,
`baselines`, `cases`, `case_schema`, `schema`, `loading`.
"""

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
from forewise.problems.base import without_risk
from forewise_lab.experiments.baselines import Rule, ScenarioRule
from forewise_lab.experiments.case_schema import CaseTable
from forewise_lab.experiments.cases import CaseRows
from forewise_lab.experiments.kinds import Solvers
from forewise_lab.experiments.loading import Settings, merged
from forewise_lab.experiments.methods import Method, Task, check_method, fit_rule
from forewise_lab.experiments.schema import Free, MethodTable, RollingTable

# Decoupled learning does not know the problem; networks look at the cost of decisions now and
# then while they train, and this one costs next to nothing to look at.
_QUICK_TO_WATCH = Newsvendor(shortage=1.0, excess=2.0)
_FEWEST_ROWS = 100  # of a series that has a model of its own
_BORROWED = np.timedelta64(28, "D")


@dataclass(frozen=True)
class Trial:
    """A method with the settings of one trial.

    Attributes
    ----------
    number : int
        0 for the first.
    method : Method
    rolling : RollingTable
        How it learns from the past; without the trials.
    change : dict
        What the trial changes, as the settings file says.
    """

    number: int
    method: Method
    rolling: RollingTable
    change: Free

    def identity(self) -> Free:
        """What decides the results, as plain values."""
        return self.method.identity() | {"rolling": self.rolling.model_dump()}

    def m(self, case: CaseTable) -> int:
        """Scenarios of a decision."""
        own = case.m if self.method.m is None else self.method.m[-1]
        return own if case.most_m is None else min(own, case.most_m)


def trials_of(settings: Settings, case: str, name: str) -> tuple[Trial, ...]:
    """The trials of a method in a case; one, if its settings list none."""
    table = settings.cases[case]
    whole: Free = {"training": table.network.training, "hidden_sizes": table.network.hidden_sizes}
    for change in (*_lineage(settings, name, ()), table.only.get(name, MethodTable())):
        whole = merged(whole, change.model_dump(exclude_unset=True, exclude={"like"}))
    rolling: Free = dict(whole.pop("rolling", {}))
    changes: tuple[Free, ...] = rolling.pop("trials", ()) or ({},)
    return tuple(
        _trial(f"[experiments.{case}] with [methods.{name}], trial {number}", number, name,
               whole | {"rolling": rolling}, dict(change))
        for number, change in enumerate(changes)
    )  # fmt: skip


def _lineage(settings: Settings, name: str, seen: tuple[str, ...]) -> list[MethodTable]:
    """The method's table, after those that it is `like`."""
    table = settings.methods[name]
    if table.like is None:
        return [table]
    if table.like not in settings.methods or table.like in (name, *seen):
        raise InvalidInputError(f"[methods.{name}] like: must be another method")
    return [*_lineage(settings, table.like, (*seen, name)), table]


def _trial(where: str, number: int, name: str, base: Free, change: Free) -> Trial:
    try:
        checked = MethodTable.model_validate(change).model_dump(exclude_unset=True)
        whole = merged(base, checked)
        rolling = RollingTable.model_validate(whole.pop("rolling"))
        method = Method.of(name, whole)
        check_method(method)
    except ValidationError as error:
        told = [f"{'.'.join(map(str, f['loc']))}: {f['msg']}" for f in error.errors()]
        raise InvalidInputError(f"{where}: {'; '.join(told)}") from error
    except ForewiseError as error:
        raise InvalidInputError(f"{where}: {error}") from error
    return Trial(number, method, rolling, change)


def fit_trial(
    trial: Trial,
    rows: CaseRows,
    places: np.ndarray,
    judged: np.ndarray,
    problems: Mapping[str, Problem],
    case: CaseTable,
    seed: int,
) -> dict[str, list[Rule]]:
    """Fit to some rows: for each problem a rule, or one for each series.

    Parameters
    ----------
    trial : Trial
    rows : CaseRows
    places : array of int
        Rows to learn from, in order of time.
    judged : array of int
        Rows that will be decided: seen by nobody but who is told the future.
    problems : mapping of name to Problem
    case : CaseTable
    seed : int

    Returns
    -------
    dict of list of Rule
        A list of one, or as many as there are series. A series with fewer than 100 rows has no
        model of its own: it learns from the last four weeks of all series.
    """
    groups = [places] if trial.rolling.each == "all" else _by_series(rows, places)
    method = _with_places(trial.method, rows, trial.m(case))
    fitted: dict[str, list[Rule]] = {name: [] for name in problems}
    for group in groups:
        if method.learner["kind"] == "decoupled":
            rule = _fit(method, trial, rows, group, judged, _QUICK_TO_WATCH, case, seed)
            for name, problem in problems.items():
                fitted[name].append(_deciding(rule, problem))
        else:
            for name, problem in problems.items():
                rule = _fit(method, trial, rows, group, judged, problem, case, seed)
                fitted[name].append(_deciding(rule, problem))
    return fitted


def _deciding(rule: Rule, problem: Problem) -> Rule:
    """The rule for a problem, whatever problem it was learned with."""
    if not (isinstance(rule, ScenarioRule) and isinstance(rule.policy, ScenarioPolicy)):
        return rule
    if isinstance(rule.policy.predictor, PointPredictor | BoostingPredictor):
        problem = without_risk(problem)  # they have one scenario
    return ScenarioRule(replace(rule.policy, problem=problem))


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
        decided = rules[0].decide(rows.X[places], m, seed)
    else:
        own = rows.series[places]
        parts = {s: rules[s].decide(rows.X[places[own == s]], m, seed) for s in np.unique(own)}
        decided = np.empty((len(places), next(iter(parts.values())).shape[1]))
        for s, part in parts.items():
            decided[own == s] = part
    return decided * rows.unit[places, None] if trial.rolling.relative else decided


def _fit(
    method: Method,
    trial: Trial,
    rows: CaseRows,
    places: np.ndarray,
    judged: np.ndarray,
    problem: Problem,
    case: CaseTable,
    seed: int,
) -> Rule:
    data, test = (_dataset(rows, some, trial.rolling.relative) for some in (places, judged))
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
