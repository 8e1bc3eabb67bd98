"""The estimator: from a table and the roles of its columns to a policy that decides."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
import pandas as pd
import torch
from sklearn.base import BaseEstimator, clone

from forewise.exceptions import ColumnWarning, InputTypeError, InvalidInputError
from forewise.learners import AutoLearner, DecoupledLearner, Learner
from forewise.learners.auto import default_candidates
from forewise.learners.out_of_fold import HeldOut, make_folds
from forewise.planner.certificate import Calibration, ScenarioCosts
from forewise.planner.contexts import Recipe, Rows
from forewise.planner.leaks import find_leaks, unlike_in_time
from forewise.planner.policy import Card, PastRows, PlannerPolicy
from forewise.planner.roles import Roles
from forewise.policy import ScenarioPolicy
from forewise.policy.base import collapsed
from forewise.predictors import Predictor, RelativePredictor
from forewise.predictors.base import require_fitted
from forewise.problems.base import Problem
from forewise.scenarios import Scenarios
from forewise.solvers.auto import solve
from forewise.validation.frames import take_rows
from forewise.validation.parameters import as_random_state, require_count, require_instance

_LARGE = 20_000  # rows from which on methods that keep all of them would decide slowly
_JUDGED, _FOLDS = 2000, 3  # rows that a calibration is made of, and windows, at most
_REMEMBERED = 5000  # rows that are stored for explanations


class Planner(BaseEstimator):
    """From a table of past days to decisions for the days to come.

    It reads the columns by their roles, makes contexts that know nothing later than `horizon` days
    before, learns a policy that was chosen by the cost of its decisions in the order of time, and
    calibrates what it says of each decision on decisions out of fold.

    Parameters
    ----------
    problem : Problem
        What is decided; `CvxpyProblem` and problems with `given` columns too.
    outcome : str or sequence of str
        Columns of what is uncertain, in the order of the problem's outcomes.
    date : str, optional
        Column of days. Without it the table is one of rows without an order.
    series : str or sequence of str
        Columns that tell series apart, such as store and product. Each series is a context of its
        own, and all are learned together.
    known : str or sequence of str
        Columns that are known for the day that is decided, when it is decided: promotions, prices,
        holidays. Of others only the past is used. Without a date, all columns are taken for known.
    given : str or sequence of str
        Columns with the problem's given parameters, by their names.
    sold_out : str or sequence of str, optional
        Column of yes and no: the outcome was at least what the table says. One for all outcomes,
        or one for each.
    closed : str, optional
        Column of yes and no: nothing is decided on this day, and its outcome is no outcome.
    horizon : int
        Days from the last known outcome to the day that is decided; 1: decided on the eve.
    kinds : mapping, optional
        Kinds of columns that are not what they look like; see `features.Columns.from_frame`.
    learner : Learner or Predictor, optional
        In place of an `AutoLearner`, with the planner's problem. It has to draw scenarios.
    time_limit : float, optional
        Seconds for the comparison of methods; see `AutoLearner`.
    n_scenarios : int
        Scenarios of each decision.
    n_jobs, random_state, progress
        As for `AutoLearner`.

    Attributes
    ----------
    columns_ : DataFrame
        What was made of each column: `role`, `kind`, `features`, `note`.
    notes_ : list of str
        What was read, what was left out, and why.
    leaderboard_, verdict_
        As of `AutoLearner`; None and "" with a learner of one's own.
    policy_ : PlannerPolicy
        What `save` stores and `fw.load_policy` reads.

    Notes
    -----
    *Closed days* and rows without an outcome are not learned from, and gaps are none: lags go by
    date. *Zero demand* is demand. *A series with a short past* is decided from what it has and what
    all series have in common; its level is the mean of what is known, or that of a typical series.
    *The first days* of a series, with no past at all, are not learned from, unless there are no
    others. *Sold-out days* count as at least so much, as far as the learner can tell; they are not
    used for calibration.
    """

    def __init__(
        self,
        problem: Problem,
        *,
        outcome: str | Sequence[str],
        date: str | None = None,
        series: str | Sequence[str] = (),
        known: str | Sequence[str] = (),
        given: str | Sequence[str] = (),
        sold_out: str | Sequence[str] | None = None,
        closed: str | None = None,
        horizon: int = 1,
        kinds: Mapping[str, str] | None = None,
        learner: Learner | Predictor | None = None,
        time_limit: float | None = None,
        n_scenarios: int = 64,
        n_jobs: int | None = None,
        random_state: Any = 0,
        progress: bool = False,
    ) -> None:
        self.problem = problem
        self.outcome = outcome
        self.date = date
        self.series = series
        self.known = known
        self.given = given
        self.sold_out = sold_out
        self.closed = closed
        self.horizon = horizon
        self.kinds = kinds
        self.learner = learner
        self.time_limit = time_limit
        self.n_scenarios = n_scenarios
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.progress = progress

    def fit(self, table: Any) -> Self:
        """Learn from a table (pandas, polars or Arrow), rows and columns in any order."""
        require_instance("problem", self.problem, Problem, "Newsvendor(shortage=3, excess=1)")
        n_scenarios = require_count("n_scenarios", self.n_scenarios)
        notes: list[str] = []
        recipe, rows = self._read(table, notes)
        learned, contexts = _training_rows(recipe, rows, notes)
        given = learned.frame[recipe.roles.given].reset_index(drop=True)
        data = _Data(recipe, learned, contexts, given if recipe.roles.given else None)
        seed = int(as_random_state(self.random_state).randint(2**31))
        learner = self._learner(data, seed)
        data.fit(learner)
        if not isinstance(learner.policy_, ScenarioPolicy):
            raise InputTypeError(
                f"learner must draw scenarios, which certificates are made of, but a "
                f"{type(learner).__name__} decides without: use a DecoupledLearner or a "
                "CombinedLearner"
            )
        held = getattr(learner, "held_out_", None) or data.held_out(learner, n_scenarios, seed)
        calibration = data.calibration(learner.policy_, held, notes)
        self.leaderboard_ = getattr(learner, "leaderboard_", None)
        self.verdict_ = getattr(learner, "verdict_", "")
        self.learner_ = learner
        self.columns_ = _columns_table(recipe)
        self.notes_ = notes
        card = _card(self.columns_, self.leaderboard_, self.verdict_, notes, learned)
        self.policy_ = PlannerPolicy(
            recipe, learner.policy_, calibration, _past_rows(learned, contexts), card, n_scenarios
        )
        return self

    def decide(
        self,
        table: Any,
        future: Any = None,
        *,
        n_scenarios: int | None = None,
        random_state: Any = 0,
        on_failure: str = "raise",
    ) -> pd.DataFrame:
        """Decide for every row of `future`; see `PlannerPolicy.decide`."""
        require_fitted(self)
        return self.policy_.decide(
            table, future, n_scenarios=n_scenarios, random_state=random_state, on_failure=on_failure
        )

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Store the policy with its columns and features: JSON and arrays, no pickle."""
        require_fitted(self)
        self.policy_.save(folder)

    def _roles(self) -> Roles:
        return Roles.from_arguments(
            self.outcome, self.date, self.series, self.known, self.given, self.sold_out,
            self.closed, self.horizon,
        )  # fmt: skip

    def _read(self, table: Any, notes: list[str]) -> tuple[Recipe, Rows]:
        """The recipe that a table leads to, and its rows."""
        roles = self._roles()
        frame = roles.checked(table, "table", [*roles.needed, *roles.outcome, *roles.sold_out])
        if not len(frame):
            raise InvalidInputError("table must have rows to learn from, but is empty")
        recipe = Recipe.from_table(roles, frame, self.kinds, notes)
        rows = recipe.read(frame, "table")
        recipe, rows = _without_leaks(recipe, rows, notes)
        if unlike_in_time(rows):
            note = (
                f"rows that follow each other in the table are alike, but days of {roles.date!r} "
                "are not: look whether each row has its own day"
            )
            notes.append(note)
            warnings.warn(note, ColumnWarning, stacklevel=3)
        return recipe.fitted(rows), rows

    def _learner(self, data: _Data, seed: int) -> Learner:
        """A learner of the planner's problem, not fitted yet."""
        own = self.learner
        if isinstance(own, Learner):
            return clone(own).set_params(problem=self.problem)
        if own is not None:
            require_instance("learner", own, Predictor, "AutoLearner(problem), or a predictor")
            return DecoupledLearner(self.problem, data.relative(own))
        ordered, n_rows = self.date is not None, len(data.rows)
        candidates = default_candidates(*data.shape, ordered, seed)
        if n_rows > _LARGE:
            candidates.pop("neighbours")
            candidates.pop("forest")
        return AutoLearner(
            self.problem,
            {name: data.relative(predictor) for name, predictor in candidates.items()},
            time_limit=self.time_limit,
            ordered=ordered,
            n_folds=5 if n_rows <= _LARGE else 3,
            n_scenarios=self.n_scenarios,
            n_jobs=self.n_jobs,
            random_state=seed,
            progress=self.progress,
        )


class _Data:
    """Contexts and outcomes of the rows that are learned from, in the order of time."""

    def __init__(
        self, recipe: Recipe, rows: Rows, contexts: pd.DataFrame, given: pd.DataFrame | None
    ) -> None:
        self.recipe, self.rows, self.contexts, self.given = recipe, rows, contexts, given
        self.outcome = pd.DataFrame(rows.outcome, columns=recipe.roles.outcome)
        self.censored = rows.censored if rows.censored.any() else None

    @property
    def shape(self) -> tuple[int, int, int]:
        """Numbers of rows, features and outcomes."""
        return (*self.contexts.shape, self.outcome.shape[1])

    def relative(self, predictor: Predictor) -> Predictor:
        """The predictor in units of the level, where outcomes are relative."""
        if not self.recipe.relative:
            return predictor
        return RelativePredictor(predictor, self.recipe.levels)

    def fit(self, learner: Learner, rows: Any = slice(None)) -> None:
        """Fit a learner to some of the rows."""
        more = {} if self.given is None else {"given": self.given.iloc[rows].reset_index(drop=True)}
        if self.censored is not None:
            more["censored"] = self.censored[rows]
        X, y = (take_rows(part, rows) for part in (self.contexts, self.outcome))
        learner.fit(X.reset_index(drop=True), y.reset_index(drop=True), **more)

    def held_out(self, learner: Learner, n_scenarios: int, seed: int) -> HeldOut:
        """Scenarios of rows that a learner was not fitted to, window by window."""
        ordered = self.rows.days is not None
        held, drawn = [], []
        for fold in make_folds(len(self.rows), _FOLDS, ordered, seed, _JUDGED):
            copy = clone(learner)
            self.fit(copy, fold.train)
            predictor = copy.policy_.predictor
            contexts = predictor.check_contexts(self.contexts.iloc[fold.held])
            held.append(fold.held)
            drawn.append(predictor.sample_checked(contexts, n_scenarios, seed))
        width = min(part.n_scenarios for part in drawn)
        return HeldOut(
            np.concatenate(held),
            Scenarios(
                torch.cat([part.values[:, :width].double() for part in drawn]),
                torch.cat([part.weights[:, :width] for part in drawn]),
            ),
        )

    def calibration(self, policy: ScenarioPolicy, held: HeldOut, notes: list[str]) -> Calibration:
        """From the decisions that scenarios of rows held out lead to."""
        full = ~self.rows.censored[held.rows].any(axis=1)
        if not full.all():
            notes.append(
                f"{int((~full).sum())} sold-out rows are left out of the calibration of intervals: "
                "what they cost is not known"
            )
        places = torch.from_numpy(np.flatnonzero(full))
        rows = held.rows[full]
        problem = policy.problem.bound_for(len(self.rows), self.given)
        own, scenarios = problem.for_contexts(torch.from_numpy(rows)), held.scenarios[places]
        solution = solve(own, collapsed(own, scenarios), policy.solver, on_failure="return")
        outcome = torch.from_numpy(self.outcome.to_numpy()[rows])
        with torch.no_grad():
            realised = own.unchecked_cost(solution.decision.double(), outcome).numpy()
        costs = ScenarioCosts.of(own, solution.decision.detach(), scenarios)
        made = Calibration.from_past(realised, costs)
        if not np.isfinite(made.score):
            notes.append(
                f"there are too few past decisions ({made.n_rows}) to calibrate an interval of the "
                "cost: cost_lower and cost_upper stay empty"
            )
        return made


def _without_leaks(recipe: Recipe, rows: Rows, notes: list[str]) -> tuple[Recipe, Rows]:
    """Columns that know the outcome are refused where they were named, and else left out."""
    leaks = find_leaks(recipe, rows)
    named = [str(leak) for leak in leaks if leak.column in recipe.roles.known]
    if named:
        raise InvalidInputError(
            f"known must have columns that are known when deciding, but {'; '.join(named)}: "
            "leave it out of known"
        )
    if not leaks:
        return recipe, rows
    notes += [f"{leak}: it is left out" for leak in leaks]
    warnings.warn("; ".join(str(leak) for leak in leaks), ColumnWarning, stacklevel=4)
    dropped = {leak.column for leak in leaks}
    lagged = [part for part in recipe.lagged if part.name not in dropped]
    fixed = replace(recipe.fixed, parts=[p for p in recipe.fixed.parts if p.name not in dropped])
    recipe = replace(recipe, lagged=lagged, fixed=fixed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ColumnWarning)
        return recipe, recipe.read(rows.frame, "table")


def _training_rows(recipe: Recipe, rows: Rows, notes: list[str]) -> tuple[Rows, pd.DataFrame]:
    """The rows that are learned from, in the order of time, and their contexts."""
    known = ~np.isnan(rows.outcome).any(axis=1)
    past = known & recipe.past_known(rows)
    chosen = past if past.sum() >= max(2, known.sum() / 2) else known
    if not chosen.any():
        raise InvalidInputError(
            f"table must have rows with an outcome, but {recipe.roles.outcome} is empty in all "
            f"{len(rows)} rows, or all days are closed"
        )
    n_series = len(set(rows.keys))
    span = "" if rows.days is None else f" from {rows.days.min()} to {rows.days.max()}"
    series = f" of {n_series} series" if recipe.roles.series else ""
    notes.insert(0, f"{len(rows)} rows{series}{span} were read, {int(chosen.sum())} learned from")
    left_out = {
        "closed": rows.closed,
        "without an outcome": ~known & ~rows.closed,
        "without a past": known & ~chosen,
    }
    notes += [f"{int(w.sum())} rows are {why}" for why, w in left_out.items() if w.any()]
    censored = int((rows.censored.any(axis=1) & chosen).sum())
    if censored:
        notes.append(f"{censored} rows are sold out: their outcome was at least what is written")
    places = np.flatnonzero(chosen)
    if rows.days is not None:
        places = places[np.lexsort([rows.keys[places].astype(str), rows.days[places]])]
    return rows.take(places), recipe.contexts(rows, places).reset_index(drop=True)


def _columns_table(recipe: Recipe) -> pd.DataFrame:
    """What was made of each column."""
    roles = recipe.roles
    rows: dict[str, list[str]] = {}
    made = recipe.features or []
    for name in roles.outcome:
        own = [feature for feature in made if feature.startswith(f"{name}_")]
        rows[name] = ["outcome", "number", ", ".join(own), "its past is features"]
    single = {"date": roles.date, "closed": roles.closed}
    rows |= {name: [role, role, "", ""] for role, name in single.items() if name is not None}
    if roles.date is not None:
        rows[roles.date][2] = ", ".join(
            f for f in made if f.startswith(("weekday", "month", "year"))
        )
    rows |= {name: ["sold_out", "boolean", "", ""] for name in roles.sold_out}
    for role, parts in (("series", recipe.series.parts), ("known", recipe.fixed.parts)):
        for part in parts:
            own = [*part.features, *({f"{part.name}_lag_1"} & set(made))]
            rows[part.name] = [role, part.kind, ", ".join(own), part.told]
    for part in recipe.lagged:
        own = [feature for feature in made if feature.startswith(f"{part.name}_")]
        rows[part.name] = ["past only", part.kind, ", ".join(own), "not known ahead"]
    rows |= {name: ["given", "number", "", ""] for name in roles.given if name not in rows}
    index = pd.Index(list(rows), name="column")
    return pd.DataFrame(rows.values(), index=index, columns=["role", "kind", "features", "note"])


def _card(
    columns: pd.DataFrame, leaderboard: Any, verdict: str, notes: list[str], rows: Rows
) -> Card:
    days = [] if rows.days is None else [str(rows.days.min()), str(rows.days.max())]
    first, last = days or ["", ""]
    tables = [columns.reset_index(), pd.DataFrame() if leaderboard is None else leaderboard]
    lists = [{str(name): column.tolist() for name, column in table.items()} for table in tables]
    return Card(list(notes), verdict, lists[0], lists[1], len(rows), first, last)


def _past_rows(rows: Rows, contexts: pd.DataFrame) -> PastRows:
    """The latest rows."""
    last = slice(max(0, len(rows) - _REMEMBERED), None)
    series, names = pd.factorize(rows.keys[last])
    days = np.array([], dtype=np.int64)
    if rows.days is not None:
        days = rows.days[last].astype("datetime64[D]").astype(np.int64)
    return PastRows(
        contexts.to_numpy(dtype=np.float32)[last],
        rows.outcome[last],
        rows.censored[last],
        days,
        series,
        [str(name) for name in names],
    )
