"""Candidates evaluated fold after fold, and the choice among them by the cost of decisions."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from forewise.exceptions import ForewiseError
from forewise.learners.out_of_fold import (
    Evaluator,
    Fold,
    Record,
    Resamples,
    Trial,
    best_union,
    cost_of,
    spread_rows,
)
from forewise.parallel import Map
from forewise.parallel.base import applied
from forewise.predictors import (
    Predictor,
)
from forewise.problems.base import Problem

if TYPE_CHECKING:
    import pandas as pd

_CLEARLY = 4.0  # standard errors by which a candidate must be worse to be dropped early
_KEPT, _FEW_ROWS = 3, 100  # candidates never dropped early, where the first fold has few rows
_FIRST_SHARE = 1 / 3  # of the time limit, within which the first fold must begin


@dataclass
class Race:
    """Candidates evaluated fold after fold; those that are clearly worse are dropped early."""

    evaluator: Evaluator
    candidates: dict[str, Predictor]
    folds: list[Fold]
    limit: float  # seconds
    where: Map
    progress: bool
    trials: dict[str, list[Trial]] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    records: dict[str, Record] = field(default_factory=dict)  # of those evaluated on all folds
    dropped: dict[str, Record] = field(default_factory=dict)  # of those evaluated on the first only

    def run(self, resamples: Resamples) -> None:
        """Evaluate on the first fold, then on as many others as there is time for."""
        start = time.time()
        self._round(list(self.candidates), self.folds[0], start + _FIRST_SHARE * self.limit)
        alive = list(self.trials)
        if not alive:
            listed = "; ".join(f"{name}: {note}" for name, note in self.notes.items())
            raise ForewiseError(f"every candidate failed, the first ones with: {listed}")
        self._drop_worst(alive, resamples)
        alive = [name for name in alive if name not in self.dropped]
        left = self.limit - (time.time() - start)
        a_round = sum(self.trials[name][0].seconds for name in alive)
        # The last fit, of all rows, may be of several candidates.
        n_more = min(len(self.folds) - 1, max(0.0, left / max(a_round, 1e-9) - 1))
        self.folds = self.folds[: 1 + int(n_more)]
        for fold in self.folds[1:]:
            self._round([name for name in alive if name in self.trials], fold, math.inf)
        for name in alive:
            if name in self.trials:
                self.records[name] = Record.of(self.trials[name])
        if not self.records:
            listed = "; ".join(f"{name}: {self.notes[name]}" for name in alive)
            raise ForewiseError(f"no candidate could be fitted in every fold: {listed}")
        if all(record.failures == len(record.costs) for record in self.records.values()):
            raise ForewiseError(
                f"no candidate's scenarios led to a decision of finite cost in any of the "
                f"{len(self.evaluated_rows)} rows that were judged: solve(problem, "
                "predictor.sample(X, 64)) says why"
            )

    @property
    def evaluated_rows(self) -> np.ndarray:
        """Indices of the rows that all records are about."""
        return np.concatenate([fold.held for fold in self.folds])

    def _round(self, names: list[str], fold: Fold, deadline: float) -> None:
        tasks = [(clone(self.candidates[name]), fold, deadline) for name in names]
        for name, trial in zip(names, self._map(self.evaluator.trial, tasks), strict=True):
            self._remember(name, trial)
            if trial.error:
                self.trials.pop(name, None)
            else:
                self.trials.setdefault(name, []).append(trial)

    def _remember(self, name: str, trial: Trial) -> None:
        note = trial.error or (trial.warning and f"warned: {trial.warning}")
        if note and not self.notes.get(name):
            self.notes[name] = note

    def _drop_worst(self, names: list[str], resamples: Resamples) -> None:
        """Drop candidates several standard errors worse than the best.

        But never the best few where the first fold has few rows, whose standard errors are rough.
        """
        problem = self.evaluator.problem
        first = {name: Record.of(self.trials[name]) for name in names}
        ranked = sorted(first, key=lambda name: first[name].rank(problem))
        best = first[ranked[0]]
        if len(self.folds) == 1 or best.failures == len(best.costs):
            return
        for name in ranked[_KEPT if len(best.costs) < _FEW_ROWS else 1 :]:
            worse = cost_of(problem, first[name].costs) - cost_of(problem, best.costs)
            error = resamples.standard_error(problem, first[name].costs, best.costs)
            if first[name].failures > best.failures or worse > _CLEARLY * error:
                self.dropped[name] = first[name]
                self.notes.setdefault(name, "clearly worse in the first fold, dropped")

    def refitted(self, weights: Mapping[str, float], rows: np.ndarray) -> dict[str, Predictor]:
        """The chosen candidates, fitted to all rows; where one cannot be, the others."""
        names = list(weights)
        tasks = [(clone(self.candidates[name]), rows) for name in names]
        fitted = {}
        for name, trial in zip(names, self._map(self.evaluator.fit, tasks), strict=True):
            if trial.fitted is None:
                self.notes[name] = f"failed on all rows: {trial.error}"
            else:
                fitted[name] = trial.fitted
        if not fitted:
            raise ForewiseError(f"the best candidates cannot be fitted to all rows: {self.notes}")
        return fitted

    def _map(self, function: Callable[..., Trial], tasks: list[tuple[Any, ...]]) -> Iterable[Trial]:
        """The function of each task, in parallel."""
        from rich.console import Console
        from rich.progress import track

        console = Console(stderr=True)
        shown = self.progress and console.is_terminal
        done = self.where.imap(partial(applied, function), tasks)
        title = "evaluating" if function == self.evaluator.trial else "fitting"
        return track(done, title, total=len(tasks), console=console, disable=not shown)

    def seconds(self, name: str) -> float:
        """Mean time of a trial."""
        taken = [trial.seconds for trial in self.trials.get(name, [])]
        return float(np.mean(taken)) if taken else math.nan


@dataclass(frozen=True)
class Choice:
    """The result of the race: the best candidate, the union, and their standard errors."""

    best: str
    weights: dict[str, float]  # of the policy's parts
    union: Record | None  # on some of the evaluated rows; None where one candidate is best
    resamples: Resamples
    errors: dict[str, float]  # of the difference to the best

    @classmethod
    def make(cls, race: Race, resamples: Resamples) -> Choice:
        problem, records = race.evaluator.problem, race.records
        best = min(records, key=lambda name: records[name].rank(problem))
        errors = {
            name: resamples.standard_error(problem, record.costs, records[best].costs)
            for name, record in records.items()
        }
        weights, union = best_union(race.evaluator, records, race.evaluated_rows, errors)
        return cls(best, weights, union if len(weights) > 1 else None, resamples, errors)

    def leaderboard(self, race: Race, weights: Mapping[str, float]) -> pd.DataFrame:
        """A row per method, cheapest first, then those that failed."""
        import pandas as pd

        problem, total = race.evaluator.problem, sum(weights.values())
        records = race.records | race.dropped
        lowest = race.records[self.best]
        rows = []
        for name in race.candidates:
            row: dict[str, Any] = {"method": name, "weight": weights.get(name, 0.0) / total}
            row |= {"seconds": race.seconds(name), "note": race.notes.get(name, "")}
            if name in records:
                costs = records[name].costs
                row |= self._figures(problem, costs, lowest.costs[: len(costs)])
                if records[name].failures:
                    row["note"] = f"{records[name].failures} rows without a decision or recourse"
                elif name == self.simplest(race) and not row["note"]:
                    row["note"] = "simplest within one standard error of the best"
            rows.append(row)
        if self.union is not None:
            some = spread_rows(len(lowest.costs), len(self.union.costs))
            figures = self._figures(problem, self.union.costs, lowest.costs[some])
            note = "scenarios of several methods, by weight"
            rows.append({"method": "union", "weight": 1.0, "note": note} | figures)
        columns = ["method", "cost", "lower", "upper", "difference", "error", "seconds", "weight"]
        table = pd.DataFrame(rows, columns=[*columns, "note"])
        return table.sort_values("cost", kind="stable", ignore_index=True)

    def _figures(self, problem: Problem, costs: np.ndarray, best: np.ndarray) -> dict[str, float]:
        """Cost and difference to the best candidate on the same rows, with their errors."""
        draws = self.resamples
        if len(costs) < draws.rows.shape[1]:  # evaluated on some of the rows only
            draws = Resamples.draw(len(costs), ordered=False, seed=0)
        lower, upper = draws.interval(problem, costs)
        cost = cost_of(problem, costs)
        return {
            "cost": cost,
            "lower": lower,
            "upper": upper,
            "difference": cost - cost_of(problem, best),
            "error": draws.standard_error(problem, costs, best),
        }

    def simplest(self, race: Race) -> str:
        """The first candidate that costs no more than one standard error above the best."""
        problem, lowest = (
            race.evaluator.problem,
            race.records[self.best].rank(race.evaluator.problem),
        )
        for name in race.candidates:
            if name in race.records:
                failures, cost = race.records[name].rank(problem)
                if failures <= lowest[0] and cost <= lowest[1] + self.errors[name]:
                    return name
        return self.best

    def verdict(self, race: Race) -> str:
        """The choice in a sentence or two."""
        problem = race.evaluator.problem
        cost = cost_of(problem, race.records[self.best].costs)
        text = f"{self.best} costs least of the candidates ({cost:.4g})"
        if failures := race.records[self.best].failures:
            n_rows = len(race.records[self.best].costs)
            text += f", without {failures} of {n_rows} rows that have no decision or recourse"
        if self.union is not None:
            listed = ", ".join(f"{weight:.0%} {name}" for name, weight in self.weights.items())
            text += f"; a union costs {cost_of(problem, self.union.costs):.4g}: {listed}"
        simplest = self.simplest(race)
        if simplest != self.best:
            text += f". {simplest} is as good within one standard error, and simpler"
        return text + "."
