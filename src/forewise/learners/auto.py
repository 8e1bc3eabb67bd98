"""The best policy by the cost of its decisions, chosen among several predictors."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.base import clone

from forewise.exceptions import ForewiseError, InvalidInputError
from forewise.learners.base import Learner, TrainingProblems
from forewise.learners.out_of_fold import (
    Evaluator,
    Fold,
    HeldOut,
    Record,
    Resamples,
    Trial,
    best_union,
    cost_of,
    make_folds,
    spread_rows,
    united,
)
from forewise.parallel import Map, Processes
from forewise.parallel.base import applied
from forewise.policy.base import ScenarioPolicy
from forewise.predictors import (
    BayesianPredictor,
    BoostingPredictor,
    EmpiricalPredictor,
    ForestPredictor,
    GaussianProcessPredictor,
    NeighborPredictor,
    Predictor,
    QuantileBoostingPredictor,
    ResidualPredictor,
    StackedPredictor,
    Training,
)
from forewise.predictors.trees import Completer
from forewise.problems.base import Problem
from forewise.solvers.auto import AutoSolver
from forewise.solvers.base import Solver
from forewise.validation.parameters import (
    as_random_state,
    require_count,
    require_instance,
    require_positive,
)
from forewise.validation.tables import check_training_data, check_validation_data

if TYPE_CHECKING:
    import pandas as pd

_EVALUATED = 1200  # rows: the error of more would hardly be smaller
_CLEARLY = 4.0  # standard errors by which a candidate must be worse to be dropped early
_KEPT, _FEW_ROWS = 3, 100  # candidates never dropped early, where the first fold has few rows
_QUANTILE_OUTCOMES = 3  # of which each quantile is boosted by itself: ten times the models
_PROCESS_ROWS = 2000  # up to which a Gaussian process of one outcome uses all of them
_TREATMENT = (
    "each is judged at one draw from beyond its bound, the same for all candidates, by a forest"
)
_FIRST_SHARE = 1 / 3  # of the time limit, within which the first fold must begin


class AutoLearner(Learner):
    """Model selection by the out-of-fold cost of decisions, among several predictors.

    Each candidate is cross-validated: fitted without a fold and evaluated by the cost of its
    decisions for that fold. The policy has the candidate of lowest cost, or a weighted union of
    several candidates' scenarios (`StackedPredictor`) where that costs less, refitted to all rows.

    When to use: first. It needs no settings; `leaderboard_` has the cost of each method, and
    `verdict_` says when a simple one is as good. It takes as long as up to six fits
    of each candidate.

    Parameters
    ----------
    problem : Problem
    candidates : dict or sequence of Predictor, optional
        Predictors by name, simple ones first. By default those that suit the number of rows and
        columns: see `default_candidates`.
    solver : Solver, optional
        `AutoSolver()` by default.
    time_limit : float, optional
        Seconds. Candidates that cannot be fitted in time are left out, and fewer folds are used; a
        fit is never interrupted. The result then depends on the machine's speed.
    ordered : bool
        Rows are in order of time: the folds are windows of the later half, each predicted from the
        rows before it, rather than rows at random.
    n_folds : int
        Folds or windows. Of large tables fewer are used: evaluation stops at 1,200 rows.
    n_scenarios : int
        Scenarios per decision in evaluation, about as many as `decide` will draw.
    n_jobs : int, optional
        Processes, as in joblib: -1 for one per core. The result does not depend on it.
    map : Map, optional
        Where candidates and folds are computed, in place of `n_jobs`: ``RayMap()``, a cluster.
    random_state : int, RandomState or None
        Assigns rows to folds, and seeds the default candidates.
    progress : bool
        Show a progress bar, where there is a terminal.

    Attributes
    ----------
    leaderboard_ : DataFrame
        A row per method, cheapest first: `method`, `cost` of its decisions on rows it was not
        fitted to, `lower` and `upper` end of a 95 % interval, `difference` to the best candidate
        with its standard `error`, `seconds` of a fit, `weight` in the policy, and a `note`. The
        row "union" is the weighted union; its cost is in-sample in the weights.
    verdict_ : str
        The choice and its margin, in a sentence or two.
    held_out_ : HeldOut
        Out-of-fold scenarios of the chosen methods for the evaluated rows.

    Examples
    --------
    Two candidates, to be quick; by default it takes those that suit the table.

    >>> import numpy as np
    >>> import forewise as fw
    >>> X = np.arange(120.0)[:, None] % 7  # weekday
    >>> y = 10.0 + 5.0 * (X[:, 0] >= 5) + np.random.default_rng(0).normal(size=120)
    >>> candidates = {"all days": fw.EmpiricalPredictor(), "weekday": fw.GroupedPredictor(by=0)}
    >>> learner = fw.AutoLearner(fw.Newsvendor(3, 1), candidates, ordered=True, random_state=0)
    >>> board = learner.fit(X, y).leaderboard_
    >>> bool(learner.decide([[6.0]])[0, 0] > learner.decide([[1.0]])[0, 0])
    True
    """

    censored_unsupported_reason = None

    def __init__(
        self,
        problem: Problem,
        candidates: Mapping[str, Predictor] | Sequence[Predictor] | None = None,
        solver: Solver | None = None,
        *,
        time_limit: float | None = None,
        ordered: bool = False,
        n_folds: int = 5,
        n_scenarios: int = 64,
        n_jobs: int | None = None,
        random_state: Any = None,
        progress: bool = False,
        map: Map | None = None,
    ) -> None:
        self.problem = problem
        self.candidates = candidates
        self.solver = solver
        self.time_limit = time_limit
        self.ordered = ordered
        self.n_folds = n_folds
        self.n_scenarios = n_scenarios
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.progress = progress
        self.map = map

    @property
    def validates(self) -> bool:
        """False: it makes folds of its own, so that no rows need to be set aside."""
        return False

    def _fit(
        self, X: Any, y: Any, X_val: Any, y_val: Any, problems: TrainingProblems
    ) -> ScenarioPolicy:
        n_folds = require_count("n_folds", self.n_folds, at_least=2)
        n_scenarios = require_count("n_scenarios", self.n_scenarios)
        require_instance("map", self.map, Map, "forewise.parallel.RayMap()", optional=True)
        where = self.map or Processes(self.n_jobs)
        limit = math.inf
        if self.time_limit is not None:
            limit = require_positive("time_limit", self.time_limit)
        contexts, outcome = check_training_data(self, X, y)
        seed = int(as_random_state(self.random_state).randint(2**31))
        table = (len(contexts), contexts.shape[1], outcome.shape[1])
        candidates = self._candidates(*table, seed)
        solver = self.solver or AutoSolver()
        completer = Completer.make(contexts, outcome, problems.censored)
        evaluator = Evaluator(
            X, y, X, torch.from_numpy(completer.outcomes(contexts, outcome, problems.censored)),
            problems.problem, solver, n_scenarios, seed, problems.censored,
        )  # fmt: skip
        all_rows = np.arange(len(outcome))
        at_most = max(1, min(_EVALUATED, 2**22 // (n_scenarios * outcome.shape[1])))
        folds = make_folds(len(outcome), n_folds, self.ordered, seed, at_most)
        judged = problems.censored
        validation = check_validation_data(self, X_val, y_val)
        if validation is not None:
            judged = problems.censored_val
            evaluator = replace(
                evaluator,
                contexts=X_val,
                outcome=torch.from_numpy(completer.outcomes(*validation, judged)),
                problem=problems.validation or problems.problem,
            )
            folds = [Fold(all_rows, spread_rows(len(validation[0]), at_most))]
        race = _Race(evaluator, candidates, folds, limit, where, bool(self.progress))
        race.run(Resamples.draw(len(folds[0].held), self.ordered, seed))
        choice = _Choice.make(race, Resamples.draw(len(race.evaluated_rows), self.ordered, seed))
        parts = race.refitted(choice.weights, all_rows)
        weights = {name: choice.weights[name] for name in parts}
        self.leaderboard_ = choice.leaderboard(race, weights)
        self.verdict_ = choice.verdict(race)
        self.held_out_ = HeldOut(race.evaluated_rows, united(race.records, weights, n_scenarios))
        if judged is not None:
            bounds = judged[race.evaluated_rows].any(axis=1)
            said = f"{int(bounds.sum())} of {len(bounds)} judged rows are censored: {_TREATMENT}"
            self.leaderboard_.attrs["censored"] = said
            self.verdict_ += f" {said}."
        if len(parts) == 1:
            (predictor,) = parts.values()
        else:
            predictor = StackedPredictor.from_fitted(list(parts.values()), list(weights.values()))
        self._remember(predictor)
        return ScenarioPolicy(self.problem, predictor, solver)

    def _candidates(
        self, n_rows: int, n_features: int, n_outcomes: int, seed: int
    ) -> dict[str, Predictor]:
        """The predictors by name, simple ones first."""
        given = self.candidates
        if given is None:
            return default_candidates(n_rows, n_features, n_outcomes, self.ordered, seed)
        if isinstance(given, Mapping):
            named = {str(name): predictor for name, predictor in given.items()}
        elif isinstance(given, Sequence) and not isinstance(given, str):
            named = _named(given)
        else:
            named = {}
        if not named:
            raise InvalidInputError(
                "candidates must be predictors by name, such as {'forest': ForestPredictor()}, or "
                f"a list of them, but is {given!r}"
            )
        for name, predictor in named.items():
            require_instance(f"candidate {name!r}", predictor, Predictor, "ForestPredictor()")
            if _has_checkpoint(predictor):
                raise InvalidInputError(
                    f"candidate {name!r} must have no checkpoint folder, because it is fitted to "
                    "several folds, and one fit's checkpoint is refused by the others: leave "
                    "Training(checkpoint=) out"
                )
        return named


def default_candidates(
    n_rows: int, n_features: int, n_outcomes: int, ordered: bool = False, seed: int = 0
) -> dict[str, Predictor]:
    """The predictors that `AutoLearner` tries on a table of this size, simple ones first.

    Examples
    --------
    >>> import forewise as fw
    >>> candidates = fw.learners.default_candidates(n_rows=500, n_features=8, n_outcomes=1)
    >>> "empirical" in candidates
    True
    """
    found: dict[str, Predictor] = {"empirical": EmpiricalPredictor()}
    if n_rows > 2 * n_features:
        found["linear residuals"] = ResidualPredictor(shuffle=not ordered, random_state=seed)
    found["neighbours"] = NeighborPredictor()
    found["forest"] = ForestPredictor(random_state=seed)
    if n_outcomes <= _QUANTILE_OUTCOMES:
        found["boosted quantiles"] = QuantileBoostingPredictor(random_state=seed)
    if n_outcomes > 1:  # whose scenarios have all outcomes at one level
        boosting = BoostingPredictor(random_state=seed)
        found["boosted residuals"] = ResidualPredictor(
            boosting, shuffle=not ordered, random_state=seed
        )
    if n_rows <= _PROCESS_ROWS / n_outcomes ** (1 / 3):  # each outcome has a search of its own
        found["Gaussian process"] = GaussianProcessPredictor(random_state=seed)
    found["Bayesian network"] = BayesianPredictor(random_state=seed)
    return found


def _named(predictors: Sequence[Predictor]) -> dict[str, Predictor]:
    """Predictors by the name of their class, numbered where there are several."""
    named: dict[str, Predictor] = {}
    for predictor in predictors:
        name = type(predictor).__name__
        more = sum(type(other) is type(predictor) for other in named.values())
        named[f"{name} {more + 1}" if more else name] = predictor
    return named


def _has_checkpoint(setting: Any) -> bool:
    """Whether a predictor, or any part of it, keeps checkpoints of its training."""
    if isinstance(setting, list | tuple):
        return any(map(_has_checkpoint, setting))
    if isinstance(setting, Predictor):
        return any(map(_has_checkpoint, setting.get_params(deep=False).values()))
    return isinstance(setting, Training) and setting.checkpoint is not None


@dataclass
class _Race:
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
class _Choice:
    """The result of the race: the best candidate, the union, and their standard errors."""

    best: str
    weights: dict[str, float]  # of the policy's parts
    union: Record | None  # on some of the evaluated rows; None where one candidate is best
    resamples: Resamples
    errors: dict[str, float]  # of the difference to the best

    @classmethod
    def make(cls, race: _Race, resamples: Resamples) -> _Choice:
        problem, records = race.evaluator.problem, race.records
        best = min(records, key=lambda name: records[name].rank(problem))
        errors = {
            name: resamples.standard_error(problem, record.costs, records[best].costs)
            for name, record in records.items()
        }
        weights, union = best_union(race.evaluator, records, race.evaluated_rows, errors)
        return cls(best, weights, union if len(weights) > 1 else None, resamples, errors)

    def leaderboard(self, race: _Race, weights: Mapping[str, float]) -> pd.DataFrame:
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

    def simplest(self, race: _Race) -> str:
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

    def verdict(self, race: _Race) -> str:
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
