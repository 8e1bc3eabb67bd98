"""What a planner stores and what decides: recipe, policy, calibration and model card.

Nothing here trains. Importing this module registers its classes, so that `load_policy` reads them.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

import numpy as np
import pandas as pd

from forewise.display import html_parts
from forewise.exceptions import ColumnWarning, InvalidInputError, SolveError
from forewise.explanation import explain
from forewise.planner.alternatives import alternatives
from forewise.planner.answers import Columns, Question, without_decided
from forewise.planner.batches import PlannerDecider, decided_tables
from forewise.planner.certificate import Calibration, Certificate
from forewise.planner.contexts import Recipe, Rows
from forewise.planner.records import Card, PastRows
from forewise.planner.roles import Roles
from forewise.policy import ScenarioPolicy, load_policy, register
from forewise.policy.base import StoredPolicy, collapsed
from forewise.policy.batches import options_of
from forewise.problems.base import Problem
from forewise.scenarios import Scenarios
from forewise.solvers.auto import solve
from forewise.solvers.solution import Solution, Status
from forewise.validation.parameters import as_random_state, require_choice, require_count

__all__ = ["Card", "PastRows", "PlannerPolicy", "load_policy"]

_PIECE = 2**20  # numbers in the scenarios of one piece
_SHORT = 28  # days with an outcome below which the past of a series is short
_USUAL = 0.99  # share of the training rows that tell how long ago an outcome may be
_SHOWN = 5  # failed rows that a message lists


@register
@dataclass(frozen=True, eq=False, repr=False)
class PlannerPolicy(StoredPolicy):
    """A fitted planner: from a table, and the rows of days to come, to decisions with certificates.

    Parameters
    ----------
    recipe : Recipe
        From rows to contexts.
    inner : ScenarioPolicy
        From contexts to decisions.
    calibration : Calibration
    past : PastRows
    card : Card
    n_scenarios : int
        Scenarios of each decision, unless `decide` has its own.

    Examples
    --------
    What `Planner.save` stores, and a service loads:

    >>> import forewise as fw
    >>> table = fw.datasets.shop_demand(60)
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
    >>> planner.fit(table[:-6]).save("planner_policy")
    >>> policy = fw.load_policy("planner_policy")
    >>> orders = policy.decide(table[:-6], future=table[-6:].drop(columns=["sales", "sold_out"]))
    >>> list(orders.columns)[:4]
    ['date', 'store', 'product', 'decision']
    """

    recipe: Recipe
    inner: ScenarioPolicy
    calibration: Calibration
    past: PastRows
    card: Card
    n_scenarios: int = 64

    @property
    def problem(self) -> Problem:
        """The problem that is decided."""
        return self.inner.problem

    @property
    def roles(self) -> Roles:
        """Which column is what."""
        return self.recipe.roles

    @property
    def decision_names(self) -> list[str]:
        """Columns of the decisions: `decision`, or `decision_` and the name of each."""
        names = self.inner.decision_names
        if len(names) == 1:
            return ["decision"]
        return [name if name.startswith("decision") else f"decision_{name}" for name in names]

    def decide(
        self,
        table: Any = None,
        future: Any = None,
        *,
        n_scenarios: int | None = None,
        random_state: Any = 0,
        on_failure: str = "raise",
    ) -> pd.DataFrame:
        """Decide for every row of `future`, with a certificate for each.

        Parameters
        ----------
        table : data frame
            The past, up to the horizon before the days to decide; rows in any order. Without a date
            it may be left out.
        future : data frame, optional
            The rows to decide, with all columns that are known ahead. Without it, rows of `table`
            without an outcome after the last known one are decided.
        n_scenarios : int, optional
        random_state : int, RandomState or None
        on_failure : {"raise", "return"}
            What to do if a row has no optimal decision: raise, or NaN and a note.

        Returns
        -------
        DataFrame (n_rows, ...), with the index of the rows
            The date and the series; the decisions (`decision_names`), NaN on closed days;
            `expected_cost`; `cost_lower` and `cost_upper`, the calibrated 90 % interval of the
            realised cost; `perfect_information`, what knowing the outcome would save; `mean_based`,
            the expected cost of deciding for the mean outcome; `monte_carlo_error` of the decision,
            of several the largest; `note`.
        """
        require_choice("on_failure", on_failure, ("raise", "return"))
        count = require_count(
            "n_scenarios", self.n_scenarios if n_scenarios is None else n_scenarios
        )
        seed = int(as_random_state(random_state).randint(2**31))
        ((result, status),) = self.answer([self.ask(table, future)], count, seed)
        failed = [(i, s) for i, s in zip(result.index, status, strict=True) if _is_failure(s)]
        if failed and on_failure == "raise":
            listed = "; ".join(f"row {row!r} is {s} ({s.advice})" for row, s in failed[:_SHOWN])
            more = f"; and {len(failed) - _SHOWN} more" if len(failed) > _SHOWN else ""
            raise SolveError(
                f"{len(failed)} of {len(result)} rows have no optimal decision: {listed}{more}. "
                'Use on_failure="return" to get the others',
                result,
            )
        return result

    def decide_batches(
        self,
        dataset: Iterable[Any],
        table: Any = None,
        *,
        n_scenarios: int | None = None,
        random_state: int = 0,
        on_failure: str = "raise",
    ) -> Iterator[Any]:
        """Decide table after table of any iterable, lazily; each by the past and its own rows.

        Parameters
        ----------
        dataset : iterable of Arrow tables, record batches or data frames
            Rows to decide. Days of a series whose outcomes decide others belong into one of them.
        table : data frame
            The past, as for `decide`; other arguments too.

        Yields
        ------
        Arrow tables with the columns of `decide`
        """
        options = options_of(n_scenarios, random_state, on_failure)
        return decided_tables(PlannerDecider(self, table, options), dataset)

    def as_udf(
        self,
        table: Any = None,
        *,
        n_scenarios: int | None = None,
        random_state: int = 0,
        on_failure: str = "raise",
    ) -> PlannerDecider:
        """The policy with its past as a plain function that engines take; it can be pickled.

        ``udf(frame)`` is a frame as of `decide`, ``udf(frames)`` an iterator of them: see
        `Policy.as_udf`. The past goes along: pass the rows that matter.
        """
        options = options_of(n_scenarios, random_state, on_failure)
        return PlannerDecider(self, table, options)

    def ask(self, table: Any = None, future: Any = None) -> Question:
        """The rows to decide with their contexts; arguments as for `decide`."""
        rows, wanted = self.rows(table, future)
        decided = rows.take(wanted)
        places = np.flatnonzero(~decided.closed)
        return Question(rows, wanted, decided, places, self.contexts(rows, wanted[places]))

    def answer(
        self, questions: Sequence[Question], n_scenarios: int, seed: int
    ) -> list[tuple[pd.DataFrame, list[Status | None]]]:
        """Decide several questions as one batch; each row to the bit as alone.

        Returns
        -------
        list of (DataFrame as of `decide`, statuses)
            One for each question. The status of a closed day is None.
        """
        asked = [q for q in questions if len(q.places)]
        n_rows = sum(len(q.places) for q in asked)
        out = Columns(n_rows, len(self.decision_names))
        status: list[Status | None] = []
        if asked:
            given = [self._given(q.decided.take(q.places)) for q in asked]
            for piece, problem, scenarios, solution in self.pieces(
                pd.concat([q.contexts for q in asked], ignore_index=True),
                None if given[0] is None else pd.concat(given, ignore_index=True),
                n_scenarios,
                seed,
            ):
                certificate = Certificate.make(
                    problem, solution, scenarios, self.inner.solver, self.calibration
                )
                out.fill(np.arange(n_rows)[piece], solution.decision.detach().numpy(), certificate)
                status += solution.status
        found, start = [], 0
        for question in questions:
            part = slice(start, start + len(question.places))
            start = part.stop
            found.append(self._answer(question, out, status, part))
        return found

    def inputs(self, question: Question) -> tuple[pd.DataFrame, pd.DataFrame | None]:
        """Contexts of a question's open rows, and what is given to the problem in them."""
        return question.contexts, self._given(question.decided.take(question.places))

    def _answer(
        self, question: Question, solved: Columns, status: list[Status | None], part: slice
    ) -> tuple[pd.DataFrame, list[Status | None]]:
        """The answer to one question, whose open rows are a part of what was solved."""
        decided, places = question.decided, question.places
        out = Columns(len(decided), len(self.decision_names))
        out.decisions[places] = solved.decisions[part]
        for name, column in out.figures.items():
            column[places] = solved.figures[name][part]
        own: list[Status | None] = [None] * len(decided)
        for i, s in zip(places, status[part], strict=True):
            own[i] = s
            if _is_failure(s):
                out.note[i] = f"no decision: {s} ({s.advice})"
        out.tell(decided.closed, "closed")
        self._tell_of_the_past(out, question.rows, question.wanted)
        self._tell_of_gaps(out, question.contexts, places)
        self._tell_of_extrapolation(out, question.contexts, places)
        if not np.isfinite(self.calibration.score):
            out.tell(~decided.closed, "too few past decisions for an interval of the cost")
        return self._result(decided, out), own

    def explain(
        self,
        table: Any = None,
        future: Any = None,
        *,
        n_scenarios: int | None = None,
        random_state: Any = 0,
    ) -> Any:
        """Why the rows of `future` are decided as they are; arguments as for `decide`.

        Returns
        -------
        Explanation, or a list of them where there are several rows; see `fw.explain`
        """
        rows, wanted = self.rows(table, future)
        wanted = wanted[~rows.closed[wanted]]
        if not len(wanted):
            raise InvalidInputError("future must have a row to explain, but all days are closed")
        past = self.past
        contexts = pd.DataFrame(past.contexts.astype(np.float64), columns=self.recipe.features)
        outcome = pd.DataFrame(past.outcome, columns=self.roles.outcome)
        own = self.contexts(rows, wanted)
        others = [
            alternatives(self.recipe, rows, int(row), context, contexts.to_numpy())
            for row, context in zip(wanted, own.to_numpy(), strict=True)
        ]
        return explain(
            self.inner,
            own,
            given=self._given(rows.take(wanted)),
            past=(contexts, outcome, past.labels),
            others=others,
            n_scenarios=self.n_scenarios if n_scenarios is None else n_scenarios,
            random_state=random_state,
        )

    def contexts(self, rows: Rows, wanted: np.ndarray) -> pd.DataFrame:
        """Contexts (n_wanted, n_features) of some of the rows, by their numbers."""
        if not len(wanted):
            return pd.DataFrame(np.empty((0, len(self.recipe.features or []))))
        return self.recipe.contexts(rows, wanted)

    def rows(self, table: Any, future: Any) -> tuple[Rows, np.ndarray]:
        """The rows that matter, and the numbers of those to decide, in their order.

        Known outcomes of days that are decided stay in the table, for the days after them.
        """
        roles, recipe = self.roles, self.recipe
        if future is None:
            if table is None:
                raise InvalidInputError("future must have the rows to decide, but is missing")
            return self._open_rows(table)
        needed = [*roles.needed, *([] if roles.date is not None else recipe.fixed.names)]
        ahead = recipe.read(roles.checked(future, "future", needed), "future")
        if roles.date is None or table is None:
            if roles.date is not None:
                raise InvalidInputError(
                    "table must have the past of the days to decide, but is missing"
                )
            return ahead, np.arange(len(ahead))
        frame = roles.checked(table, "table", [*roles.needed, *roles.outcome])
        frame = self._recent(frame, ahead)
        with warnings.catch_warnings():
            # Of the past, categories that training has not seen change nothing.
            warnings.simplefilter("ignore", ColumnWarning)
            past = recipe.read(frame, "table")
        past, ahead = without_decided(past, ahead)
        return past.joined(ahead), np.arange(len(past), len(past) + len(ahead))

    def pieces(
        self, contexts: pd.DataFrame, given: pd.DataFrame | None, n_scenarios: int, seed: int
    ) -> Iterator[tuple[slice, Problem, Scenarios, Solution]]:
        """Decisions piece by piece: the rows, their problem, scenarios and solution."""
        if not len(contexts):
            return
        problem = self.problem.bound_for(len(contexts), given)
        predictor, solver = self.inner.predictor, self.inner.solver
        checked = predictor.check_contexts(contexts)
        width = max(1, n_scenarios * max(self.inner.n_outcomes, 4))
        size = max(1, min(4096, _PIECE // width))
        for start in range(0, len(contexts), size):
            piece = slice(start, min(start + size, len(contexts)))
            own = problem.for_contexts(piece)
            scenarios = predictor.sample_checked(checked[piece], n_scenarios, seed)
            solution = solve(own, collapsed(own, scenarios), solver, on_failure="return")
            yield piece, own, scenarios, solution

    def _given(self, rows: Rows) -> pd.DataFrame | None:
        """What is given to the problem in some rows; None where it has no such parameters."""
        names = self.roles.given
        return rows.frame[names].reset_index(drop=True) if names else None

    def _open_rows(self, table: Any) -> tuple[Rows, np.ndarray]:
        """The rows of a table without an outcome after the last known one."""
        frame = self.roles.checked(table, "table", [*self.roles.needed, *self.recipe.fixed.names])
        rows = self.recipe.read(frame, "table")
        missing = np.isnan(rows.outcome).any(axis=1)
        if rows.days is not None:
            known = rows.days[~missing]
            if len(known):
                missing &= rows.days > known.max()
        wanted = np.flatnonzero(missing)
        if not len(wanted):
            raise InvalidInputError(
                "there is nothing to decide: every day has its outcome. Pass the rows of the days "
                f"to come as future=, or append them to the table with {self.roles.outcome} empty"
            )
        return rows, wanted

    def _recent(self, frame: pd.DataFrame, ahead: Rows) -> pd.DataFrame:
        """The rows of a table that the contexts of later rows are made of."""
        days = self.roles.days(frame, "table", self.recipe.day_first)
        assert ahead.days is not None
        if not len(ahead):
            return frame.iloc[:0]
        since = ahead.days.min() - np.timedelta64(self.recipe.memory, "D")
        return frame[(days >= since) & (days <= ahead.days.max())]

    def _tell_of_the_past(self, out: Columns, rows: Rows, wanted: np.ndarray) -> None:
        """Notes of rows whose series has a short past, or whose latest days are not known."""
        if rows.days is None:
            return
        known = pd.DataFrame({"key": rows.keys, "day": rows.days.astype("datetime64[s]")})
        known = known[~np.isnan(rows.outcome).any(axis=1)]
        counts = known.groupby("key")["day"].agg(["size", "max"])
        found = counts.reindex(rows.keys[wanted])
        size = found["size"].fillna(0).to_numpy()
        out.tell(size == 0, "no past of this series: decided as a typical one of its likes")
        short = (size > 0) & (size < _SHORT)
        out.tell(short, "short past of this series: decided from it and its likes")

    def _tell_of_gaps(self, out: Columns, contexts: pd.DataFrame, places: np.ndarray) -> None:
        """Notes of rows whose last known outcome is longer ago than it was in training."""
        if self.roles.date is None or not len(contexts):
            return
        assert self.recipe.features is not None
        for name in self.roles.outcome:
            column = f"{name}_days_since"
            known = self.past.contexts[:, self.recipe.features.index(column)]
            days = contexts[column].to_numpy()
            for count in np.unique(days[days > np.quantile(known, _USUAL)]):
                rows = np.zeros(len(out.note), dtype=bool)
                rows[places[days == count]] = True
                out.tell(rows, f"the last {name} known is {count:.0f} days ago, longer than usual")

    def _tell_of_extrapolation(
        self, out: Columns, contexts: pd.DataFrame, places: np.ndarray
    ) -> None:
        """Notes of rows that are unlike any in training."""
        if not len(contexts):
            return
        predictor, rows = self.inner.predictor, np.zeros(len(out.note), dtype=bool)
        rows[places] = predictor.extrapolates(predictor.check_contexts(contexts))
        out.tell(rows, "unlike any day in training: the forecast may be far off")

    def _result(self, decided: Rows, out: Columns) -> pd.DataFrame:
        frame: dict[str, Any] = {}
        if decided.days is not None:
            assert self.roles.date is not None
            frame[self.roles.date] = decided.days.astype("datetime64[s]")
        frame |= {name: decided.frame[name].to_numpy() for name in self.roles.series}
        frame |= dict(zip(self.decision_names, out.decisions.T, strict=True))
        frame |= out.figures | {"note": out.note}
        return pd.DataFrame(frame, index=decided.frame.index)

    def __repr__(self) -> str:
        return f"PlannerPolicy({self.problem!r}, {self.inner.predictor!r})"

    def _repr_html_(self) -> str:
        return html_parts(self.inner, learned_from=f"{self.card.n_rows} rows")


def _is_failure(status: Status | None) -> TypeGuard[Status]:
    return status is not None and status is not Status.OPTIMAL


for _class in (Roles, Recipe, Calibration):
    register(_class)
