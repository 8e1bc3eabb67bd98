"""What a planner would have cost, against what was decided then and against plain SAA."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from sklearn.base import clone

from forewise.display import html_table
from forewise.evaluation import compare_rolling, rolling_folds
from forewise.exceptions import ColumnWarning, InvalidInputError
from forewise.learners import AutoLearner, DecoupledLearner, Learner
from forewise.learners.out_of_fold import make_folds
from forewise.planner.certificate import LEVEL, Calibration
from forewise.planner.roles import numbers
from forewise.planner.training import EvaluatedRows, TrainingData, training_rows
from forewise.policy import ScenarioPolicy
from forewise.predictors import GroupedPredictor
from forewise.validation.parameters import require_count

#: A `Planner`, whose module imports this one.
_Planner: TypeAlias = Any

_YEAR, _FOLDS = 365, 5
_ROUNDED = 0.01  # by how much decisions of the past may break a constraint, relatively
PLANNER, TODAY, SAA = "planner", "today", "SAA"


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Costs of decisions that were made knowing only what came before.

    Attributes
    ----------
    summary : DataFrame
        A row per method, cheapest first, from `metrics.compare_rolling`: mean cost of a decision,
        difference to the baseline and its share, with intervals. Methods are the planner, "today"
        (what was decided then, if `current` names it) and "SAA", the best constant decision of each
        series: all its past outcomes are scenarios.
    costs : DataFrame
        A row per decision: the date and the series, `window`, the costs of each method
        (`cost_planner`, ...), the planner's decisions, `expected_cost`, `cost_lower`, `cost_upper`,
        and `sold_out`, where the outcome, and so the cost, is a bound.
    baseline : str
        "today", if there is one, or else "SAA".
    notes : list of str
        What has to be known to read the figures.
    """

    summary: pd.DataFrame
    costs: pd.DataFrame
    baseline: str
    notes: list[str]

    @property
    def saving(self) -> dict[str, float]:
        """What the planner saves in a decision against the baseline.

        `estimate`, `lower`, `upper`, the same as `share` of the baseline's cost with its ends, and
        `total` over all decisions.
        """
        row = self.summary.loc[PLANNER]
        saved = {
            "estimate": -row["difference"],
            "lower": -row["difference_upper"],
            "upper": -row["difference_lower"],
            "share": -row["relative"],
            "share_lower": -row["relative_upper"],
            "share_upper": -row["relative_lower"],
            "total": -row["difference"] * len(self.costs),
        }
        return {name: float(value) for name, value in saved.items()}

    @property
    def coverage(self) -> pd.DataFrame:
        """Share of realised costs within their 90 % interval, month by month, and `n_rows`.

        Without sold-out days, whose cost is not known, and without rows that have no interval. Of a
        table without a date there is one row.
        """
        known = self.costs[~self.costs["sold_out"] & self.costs["cost_upper"].notna()]
        inside = known[f"cost_{PLANNER}"].between(known["cost_lower"], known["cost_upper"])
        month = pd.Series("all", index=known.index)
        if "date" in known:
            month = known["date"].dt.strftime("%Y-%m")
        found = inside.groupby(month).agg(["mean", "size"])
        return found.set_axis(["covered", "n_rows"], axis=1).rename_axis("month")

    @property
    def interval_text(self) -> str:
        """How many costs the intervals held, in a sentence; empty where there are none."""
        months = self.coverage
        if not len(months):
            return ""
        share = float((months["covered"] * months["n_rows"]).sum() / months["n_rows"].sum())
        count = int(months["n_rows"].sum())
        said = (
            f"The {100 * LEVEL:.0f} % intervals of the cost held {100 * share:.0f} % of "
            f"{count:,} costs"
        )
        if len(months) == 1:
            return f"{said}."
        least = months["covered"].idxmin()
        return f"{said}, and {100 * months['covered'][least]:.0f} % in the worst month, {least}."

    @property
    def text(self) -> str:
        """The answer in a sentence or two."""
        saved, row = self.saving, self.summary.loc[PLANNER]
        sign = -1 if saved["estimate"] < 0 else 1
        effect = "it costs more by" if sign < 0 else "it saves"
        if saved["lower"] <= 0 <= saved["upper"]:
            effect = f"the difference may be chance: {effect}"
        amount, low, high = (sign * saved[name] for name in ("estimate", "lower", "upper"))
        low, high = min(low, high), max(low, high)
        other = "the best constant decision (SAA)" if self.baseline == SAA else self.baseline
        said = (
            f"Over {len(self.costs)} decisions the planner costs {row['cost']:.4g} each, and "
            f"{other} {self.summary.loc[self.baseline, 'cost']:.4g}: {effect} {amount:.4g} "
            f"a decision [{low:.4g}, {high:.4g}]"
        )
        if np.isfinite(saved["share"]):
            said += f", {sign * saved['share']:.1%}"
        return ". ".join([said, *self.notes]) + "."

    def __repr__(self) -> str:
        return f"Evaluation: {self.text}"

    def _repr_html_(self) -> str:
        columns = ["method", *self.summary.columns]
        rows = [[name, *row] for name, row in self.summary.iterrows()]
        return html_table("Evaluation", columns, rows, self.text)


def evaluate(
    planner: _Planner,
    table: Any,
    current: str | Sequence[str] | None,
    window: str | int,
    min_train_days: int | None,
    level: float,
) -> Evaluation:
    """See `Planner.evaluate`; the planner is one to be fitted."""
    roles = planner.roles
    named = [current] if isinstance(current, str) else list(current or ())
    frame = roles.checked(table, "table", [*roles.needed, *roles.outcome, *named])
    wanted = planner.problem.n_decisions(len(roles.outcome))
    if named and len(named) != wanted:
        raise InvalidInputError(
            f"current must name a column for each of the {wanted} decision(s), but names {named}"
        )
    frame = frame.set_axis(pd.RangeIndex(len(frame)))
    spare = [name for name in named if name not in {*roles.needed, *roles.outcome}]
    windows, first = _windows(planner, frame, window, min_train_days)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ColumnWarning)  # given by the planner's own fit
        planner.fit(frame.loc[first].drop(columns=spare))
        data = _all_rows(planner, frame)
    parts = _Rolled(planner, data).run(windows)
    return _evaluation(planner, frame, data, parts, named, level)


def _windows(
    planner: _Planner, frame: pd.DataFrame, window: str | int, min_train_days: int | None
) -> tuple[list[tuple[np.ndarray, np.ndarray]], np.ndarray]:
    """Row numbers to learn from and to decide, window by window, and those to choose by."""
    roles = planner.roles
    if roles.date is None:
        dealt = make_folds(len(frame), _FOLDS, False, 0, len(frame))
        return [(fold.train, fold.held) for fold in dealt], dealt[0].train
    days = roles.days(frame, "table", None)
    known = ~roles.flags(frame, roles.closed) & ~np.isnan(roles.outcomes(frame)).any(axis=1)
    places = np.flatnonzero(known)
    if not len(places):
        raise InvalidInputError("table must have days with an outcome, but has none")
    span = int((days[places].max() - days[places].min()).astype(int)) + 1
    shortest = max(span // 2, span - _YEAR, 1)
    if min_train_days is not None:
        shortest = require_count("min_train_days", min_train_days)
    folds = rolling_folds(days[places].astype("datetime64[s]"), window, shortest)
    windows = []
    for fold in folds:
        train, start = places[fold.train], fold.start.to_datetime64().astype("datetime64[D]")
        # The last days before a window are not known yet when its first day is decided.
        train = train[days[train] <= start - np.timedelta64(roles.horizon, "D")]
        windows.append((train, places[fold.decide]))
    last = days[windows[0][0]].max()
    return windows, np.flatnonzero(days <= last)


def _all_rows(planner: _Planner, frame: pd.DataFrame) -> TrainingData:
    """All rows by the recipe of those before the first window; nothing is learned from them yet."""
    recipe = planner.policy_.recipe
    rows = recipe.read(frame, "table")
    learned, contexts = training_rows(recipe, rows, [])
    given = learned.frame[recipe.roles.given].reset_index(drop=True)
    return TrainingData(recipe, learned, contexts, given if recipe.roles.given else None)


@dataclass
class _Part:
    """One window: numbers of its rows in the data, the planner's decisions, and SAA's."""

    rows: np.ndarray
    planner: EvaluatedRows
    saa: EvaluatedRows
    lower: np.ndarray
    upper: np.ndarray


class _Rolled:
    """The planner's method and plain SAA, fitted anew for every window."""

    def __init__(self, planner: _Planner, data: TrainingData) -> None:
        self.planner, self.data = planner, data
        # Where each row of the table is among the rows that are learned from.
        self.place = {row: i for i, row in enumerate(data.rows.frame.index)}
        keys = pd.factorize(data.rows.keys)[0].astype(float)
        self.series = TrainingData(
            data.recipe, data.rows, pd.DataFrame({"series": keys}), data.given
        )
        self.series.censored = None  # plain SAA takes sold-out days as they are

    def run(self, windows: list[tuple[np.ndarray, np.ndarray]]) -> list[_Part]:
        """All windows; intervals are calibrated on the decisions before."""
        planner, count = self.planner, self.planner.policy_.n_scenarios
        scores, nonnegative = planner.evaluated_.scores, planner.evaluated_.nonnegative
        policy, parts = planner.policy_.inner, []
        for number, (train, decided) in enumerate(windows):
            learned, rows = self._places(train), self._places(decided)
            if not len(rows):
                continue
            if number:  # the first window's is the one that was chosen
                policy = self._refitted(learned)
            evaluated = self.data.evaluated(policy, rows, self.data.drawn(policy, rows, count, 0))
            saa = self._saa(learned, rows, count)
            calibration = Calibration.from_scores(scores, nonnegative)
            parts.append(_Part(rows, evaluated, saa, *calibration.interval(evaluated.costs)))
            scores = np.concatenate([scores, evaluated.scores])
            nonnegative &= evaluated.nonnegative
        return parts

    def _places(self, rows: np.ndarray) -> np.ndarray:
        found = [self.place[row] for row in rows.tolist() if row in self.place]
        return np.array(sorted(found), dtype=np.intp)

    def _refitted(self, rows: np.ndarray) -> ScenarioPolicy:
        """What the planner chose, fitted to some rows."""
        own, inner = self.planner.learner, self.planner.policy_.inner
        learner: Learner = DecoupledLearner(inner.problem, clone(inner.predictor), inner.solver)
        if isinstance(own, Learner) and not isinstance(self.planner.learner_, AutoLearner):
            learner = clone(self.planner.learner_)
        self.data.fit(learner, rows)
        assert isinstance(learner.policy_, ScenarioPolicy)
        return learner.policy_

    def _saa(self, learned: np.ndarray, rows: np.ndarray, n_scenarios: int) -> EvaluatedRows:
        """The best constant decision of each series; of all, where a series has no past."""
        predictor = GroupedPredictor("series", unseen="pool")
        learner = DecoupledLearner(self.planner.problem, predictor)
        self.series.fit(learner, learned)
        policy = learner.policy_
        assert isinstance(policy, ScenarioPolicy)
        drawn = self.series.drawn(policy, rows, n_scenarios, 0)
        return self.series.evaluated(policy, rows, drawn)


def _evaluation(
    planner: _Planner,
    frame: pd.DataFrame,
    data: TrainingData,
    parts: list[_Part],
    current: list[str],
    level: float,
) -> Evaluation:
    """The windows together."""
    rows = np.concatenate([part.rows for part in parts])
    own = data.rows.take(rows)
    costs: dict[str, Any] = {}
    if own.days is not None:
        costs["date"] = own.days.astype("datetime64[s]")
    costs |= {name: own.frame[name].to_numpy() for name in data.recipe.roles.series}
    costs["window"] = np.concatenate([np.full(len(p.rows), k) for k, p in enumerate(parts)])
    methods = {
        PLANNER: np.concatenate([part.planner.realised for part in parts]),
        SAA: np.concatenate([part.saa.realised for part in parts]),
    }
    if current:
        methods[TODAY] = _current_costs(planner, data, rows, current)
    costs |= {f"cost_{name}": values for name, values in methods.items()}
    decisions = np.concatenate([part.planner.decision for part in parts])
    costs |= dict(zip(planner.policy_.decision_names, decisions.T, strict=True))
    costs["expected_cost"] = np.concatenate([part.planner.costs.mean for part in parts])
    costs["cost_lower"] = np.concatenate([part.lower for part in parts])
    costs["cost_upper"] = np.concatenate([part.upper for part in parts])
    costs["sold_out"] = own.censored.any(axis=1)
    made = pd.DataFrame(costs, index=own.frame.index)
    notes, whole = _notes(made, methods)
    baseline = TODAY if current else SAA
    dates, block = made["date"] if own.days is not None else _numbered(made), 7
    if own.days is None:
        block = 1
    tables = {
        name: pd.DataFrame({"date": dates, "cost": values}, index=made.index)[whole]
        for name, values in methods.items()
    }
    return Evaluation(compare_rolling(tables, baseline, block, level), made, baseline, notes)


def _numbered(made: pd.DataFrame) -> pd.Series:
    """Days in the place of rows without an order, each a block of its own."""
    days = pd.date_range("2000-01-01", periods=len(made))
    return pd.Series(days, index=made.index)


def _notes(made: pd.DataFrame, methods: dict[str, np.ndarray]) -> tuple[list[str], np.ndarray]:
    """What has to be said, and the rows that all methods have a cost for."""
    whole = np.all([np.isfinite(values) for values in methods.values()], axis=0)
    notes = []
    if not whole.all():
        notes.append(f"{int((~whole).sum())} rows without a decision or a cost are left out")
    sold_out = int(made["sold_out"].sum())
    if sold_out:
        notes.append(
            f"{sold_out} decided days were sold out: they count as if demand had been what was "
            "sold, so that costs are bounds, and what larger orders save is at least this"
        )
    return notes, whole


def _current_costs(
    planner: _Planner, data: TrainingData, rows: np.ndarray, current: list[str]
) -> np.ndarray:
    """Costs of the decisions that were made then; NaN where none is written."""
    frame = data.rows.frame.iloc[rows]
    decisions = np.column_stack([numbers(frame[name]) for name in current])
    costs = np.full(len(rows), np.nan)
    made = ~np.isnan(decisions).any(axis=1)
    given = None if data.given is None else data.given.iloc[rows[made]].reset_index(drop=True)
    outcome = data.outcome.to_numpy()[rows[made]]
    cost = planner.problem.cost(decisions[made], outcome, given, tolerance=_ROUNDED)
    costs[made] = cost.detach().numpy()
    return costs
