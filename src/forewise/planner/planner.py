"""The estimator: from a table and the roles of its columns to a policy that decides."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, clone

from forewise.exceptions import ColumnWarning, InputTypeError, InvalidInputError
from forewise.learners import AutoLearner, DecoupledLearner, DirectLearner, Learner
from forewise.learners.auto import default_candidates
from forewise.learners.base import cloned_predictor
from forewise.planner.certificate import Calibration
from forewise.planner.contexts import Recipe, Rows
from forewise.planner.evaluation import Evaluation, evaluate
from forewise.planner.leaks import find_leaks, unlike_in_time
from forewise.planner.policy import Card, PastRows, PlannerPolicy
from forewise.planner.roles import Roles
from forewise.planner.training import EvaluatedRows, TrainingData, training_rows
from forewise.policy import ScenarioPolicy
from forewise.predictors import Predictor
from forewise.predictors.base import require_fitted
from forewise.problems.base import Problem
from forewise.tuning import TunedLearner
from forewise.validation.parameters import as_random_state, require_count, require_instance

_LARGE = 20_000  # rows from which on fewer windows are enough
# Rows from which on methods that look at all of them would decide slowly, or learn slowly.
_TOO_MANY = {"neighbours": 2_000, "forest": 20_000}
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
    evaluated_ : EvaluatedRows
        Decisions out of fold, which the intervals are calibrated on.
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

    Examples
    --------
    Sales of two months in, the next day's orders out. Without `learner` methods are compared first.

    >>> import forewise as fw
    >>> table = fw.datasets.shop_demand(60)
    >>> past, tomorrow = table[:-6], table[-6:].drop(columns=["sales", "sold_out"])
    >>> planner = fw.Planner(
    ...     fw.Newsvendor(shortage=3, excess=1),
    ...     outcome="sales",
    ...     date="date",
    ...     series=["store", "product"],
    ...     known=["price", "promotion", "temperature_forecast"],
    ...     sold_out="sold_out",
    ...     closed="closed",
    ...     learner=fw.NeighborPredictor(20),
    ... )
    >>> orders = planner.fit(past).decide(past, future=tomorrow)
    >>> len(orders)
    6
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
        learned, contexts = training_rows(recipe, rows, notes)
        given = learned.frame[recipe.roles.given].reset_index(drop=True)
        data = TrainingData(recipe, learned, contexts, given if recipe.roles.given else None)
        seed = int(as_random_state(self.random_state).randint(2**31))
        equivalent = self.problem.certainty_equivalent()
        if equivalent is not None:
            notes.append(f"a forecast of the {equivalent.statistic} is enough: {equivalent.reason}")
        learner = self._learner(data, seed)
        data.fit(learner)
        if not isinstance(learner.policy_, ScenarioPolicy):
            raise _without_scenarios(learner)
        held = getattr(learner, "held_out_", None) or data.held_out(learner, n_scenarios, seed)
        evaluated = data.evaluated(learner.policy_, held.rows, held.scenarios)
        calibration = _calibration(evaluated, notes)
        self.evaluated_ = evaluated
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
        table: Any = None,
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

    def explain(
        self,
        table: Any = None,
        future: Any = None,
        *,
        n_scenarios: int | None = None,
        random_state: Any = 0,
    ) -> Any:
        """Why the rows of `future` are decided as they are; see `PlannerPolicy.explain`."""
        require_fitted(self)
        return self.policy_.explain(
            table, future, n_scenarios=n_scenarios, random_state=random_state
        )

    def evaluate(
        self,
        table: Any,
        current: str | Sequence[str] | None = None,
        window: str | int = "month",
        min_train_days: int | None = None,
        level: float = 0.95,
    ) -> Evaluation:
        """What the planner would have cost: window after window, learned from the rows before.

        The method is chosen once, on the rows before the first window, and fitted anew for each.
        The planner itself stays as it is, fitted or not.

        Parameters
        ----------
        table : data frame
        current : str or sequence of str, optional
            Column with the decision that was made then, or one for each decision.
        window : {"week", "month", "quarter", "year"} or int
            How long one fit is used, as for `metrics.rolling_folds`; without a date five random
            folds take the place of windows.
        min_train_days : int, optional
            Days before the first window; by default all but the last year, and at least half.
        level : float
            Of the intervals of mean costs.
        """
        return evaluate(clone(self), table, current, window, min_train_days, level)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Store the policy with its columns and features: JSON and arrays, no pickle."""
        require_fitted(self)
        self.policy_.save(folder)

    @property
    def roles(self) -> Roles:
        """Which column is what, as the arguments say it."""
        return Roles.from_arguments(
            self.outcome, self.date, self.series, self.known, self.given, self.sold_out,
            self.closed, self.horizon,
        )  # fmt: skip

    def _read(self, table: Any, notes: list[str]) -> tuple[Recipe, Rows]:
        """The recipe that a table leads to, and its rows."""
        roles = self.roles
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

    def _learner(self, data: TrainingData, seed: int) -> Learner:
        """A learner of the planner's problem, not fitted yet."""
        own = self.learner
        if isinstance(own, DirectLearner):
            raise _without_scenarios(own)
        if isinstance(own, TunedLearner):
            tuned = data.relative(cloned_predictor(own.predictor))
            return clone(own).set_params(problem=self.problem, predictor=tuned)
        if isinstance(own, Learner):
            return clone(own).set_params(problem=self.problem)
        if own is not None:
            require_instance("learner", own, Predictor, "AutoLearner(problem), or a predictor")
            return DecoupledLearner(self.problem, data.relative(own))
        ordered, n_rows = self.date is not None, len(data.rows)
        candidates = default_candidates(*data.shape, ordered, seed)
        for slow, most in _TOO_MANY.items():
            if n_rows > most:
                candidates.pop(slow, None)
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


def _without_scenarios(learner: Learner) -> InputTypeError:
    return InputTypeError(
        f"learner must draw scenarios, which certificates are made of, but a "
        f"{type(learner).__name__} decides without: use a DecoupledLearner or a CombinedLearner"
    )


def _calibration(evaluated: EvaluatedRows, notes: list[str]) -> Calibration:
    """From decisions out of fold; what stands in its way is noted."""
    if evaluated.sold_out.any():
        notes.append(
            f"{int(evaluated.sold_out.sum())} sold-out rows are left out of the calibration of "
            "intervals: what they cost is not known"
        )
    made = Calibration.from_scores(evaluated.scores, evaluated.nonnegative)
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
            rows[part.name] = [role, part.kind, ", ".join(own), part.note]
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
