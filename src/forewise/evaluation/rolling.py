"""Rolling evaluation: train on the past, decide the next window, compare methods."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from forewise.evaluation.bootstrap import (
    MONDAY,
    Difference,
    as_days,
    block_bootstrap,
    block_bootstrap_difference,
)
from forewise.exceptions import InvalidInputError
from forewise.learners.base import Learner
from forewise.policy.base import Policy
from forewise.problems import Newsvendor
from forewise.problems.base import Problem
from forewise.problems.feasibility import FEASIBILITY_TOLERANCE
from forewise.validation.arguments import as_tensor
from forewise.validation.censored import check_censored
from forewise.validation.frames import column_names, row_labels, take_rows
from forewise.validation.given import given_rows
from forewise.validation.parameters import require_count, require_instance
from forewise.validation.tables import check_same_rows

if TYPE_CHECKING:
    import pandas as pd

_DAY = np.timedelta64(1, "D")
_MONTHS = {"month": 1, "quarter": 3, "year": 12}


@dataclass(frozen=True, eq=False)
class Fold:
    """One window of time: the rows to decide, and the rows before it to train on.

    Examples
    --------
    >>> import pandas as pd
    >>> import forewise as fw
    >>> days = pd.date_range("2023-01-01", "2024-03-31")
    >>> fold = fw.metrics.rolling_folds(days)[0]
    >>> str(fold.start.date()), len(fold.train), len(fold.decide)
    ('2024-01-01', 365, 31)
    """

    number: int  # 0 for the first
    start: pd.Timestamp  # first day of the window
    end: pd.Timestamp  # first day after it
    train: np.ndarray  # row numbers, in order of time
    decide: np.ndarray  # row numbers, in order of time


def rolling_folds(
    dates: Any,
    window: str | int = "month",
    min_train_days: int = 365,
    max_train_days: int | None = None,
) -> list[Fold]:
    """Consecutive windows of time, each with the rows before it to train on.

    Parameters
    ----------
    dates : array or Series of days (n_rows,)
        In any order; many rows may have the same.
    window : {"week", "month", "quarter", "year"} or int
        Calendar weeks (from Monday), months and so on, or a number of days, counted from the
        first day that is decided. Windows without rows are left out.
    min_train_days : int
        Days before the first window.
    max_train_days : int, optional
        Train on at most so many days before a window; on all by default.

    Examples
    --------
    >>> import pandas as pd
    >>> import forewise as fw
    >>> days = pd.date_range("2023-01-01", "2024-03-31")
    >>> [len(fold.train) for fold in fw.metrics.rolling_folds(days, window="month")]
    [365, 396, 425]
    """
    import pandas as pd

    days = as_days(dates)
    shortest = require_count("min_train_days", min_train_days, 1)
    longest = None if max_train_days is None else require_count("max_train_days", max_train_days, 1)
    order = np.argsort(days, kind="stable")
    in_order = days[order]
    folds: list[Fold] = []
    for start, end in pairwise(_starts(in_order[0] + shortest * _DAY, in_order[-1], window)):
        oldest = in_order[0] if longest is None else start - longest * _DAY
        first, now, after = np.searchsorted(in_order, [oldest, start, end])
        if now == after:
            continue
        if first == now:
            raise InvalidInputError(
                f"there is no row to train on in the {longest} day(s) before {start}: raise "
                "max_train_days, or leave out the rows after the gap"
            )
        span = pd.Timestamp(start), pd.Timestamp(end)
        folds.append(Fold(len(folds), *span, order[first:now], order[now:after]))
    if not folds:
        n_days = int((in_order[-1] - in_order[0]) // _DAY) + 1
        raise InvalidInputError(
            f"no {window} begins after min_train_days={shortest} days: the dates span {n_days} "
            f"day(s), from {in_order[0]} to {in_order[-1]}, in {len(days)} row(s). Lower "
            "min_train_days, or learn from more rows (of other shops, say) together"
        )
    return folds


def _starts(first: np.datetime64, last: np.datetime64, window: str | int) -> np.ndarray:
    """First days of all windows from `first` to `last`, and the first day behind them."""
    if isinstance(window, Integral) and not isinstance(window, bool) and window >= 1:
        origin, unit, length = first, "D", int(window)
    elif window == "week":
        origin, unit, length = MONDAY, "D", 7
    elif isinstance(window, str) and window in _MONTHS:
        origin, unit, length = np.datetime64("1970-01", "M"), "M", _MONTHS[window]
    else:
        raise InvalidInputError(
            "window must be one of 'week', 'month', 'quarter', 'year' or an integer number of days "
            f"of at least 1, but is {window!r}"
        )

    def number(day: np.datetime64) -> int:
        return int((day.astype(f"datetime64[{unit}]") - origin).astype(int)) // length

    counts = np.arange(number(first), number(last) + 2) * length
    starts = (origin + counts.astype(f"timedelta64[{unit}]")).astype("datetime64[D]")
    # A window that has begun already is left out.
    return starts[starts >= first]


def evaluate_rolling(
    method: Learner | Callable[..., Any],
    X: Any,
    y: Any,
    dates: Any,
    *,
    window: str | int = "month",
    min_train_days: int = 365,
    max_train_days: int | None = None,
    validation_days: int | None = None,
    problem: Problem | None = None,
    given: Any = None,
    censored: Any = None,
    n_scenarios: int = 64,
    random_state: int = 0,
    on_infeasible: str = "raise",
    tolerance: float = FEASIBILITY_TOLERANCE,
) -> pd.DataFrame:
    """Costs of a method's decisions, window after window, each trained on the rows before it.

    *When to use*: rows have dates; a random split would train on the future.

    Parameters
    ----------
    method : Learner or function
        A learner is cloned for every window. A function is called with the contexts and outcomes
        to train on, in order of time, and returns a fitted policy or learner, or a function from
        contexts to decisions; both functions get their rows as `given=`, if there is a `given`.
    X : table (n_rows, n_features)
        What is known before each row's decision; see `forewise.features`.
    y : table (n_rows, n_outcomes) or (n_rows,)
    dates, window, min_train_days, max_train_days
        As for `rolling_folds`.
    validation_days : int, optional
        The last days before the window that a learner gets as X_val and y_val. Without it, a
        network splits off rows at random. Learners that do not validate train on them too.
    problem : Problem, optional
        Needed if the method is a function; a learner has its own.
    n_scenarios, random_state : int
        Number and seed of each decision's scenarios; the seed of training is the method's own.
    given, on_infeasible, tolerance
        As for `regrets`.
    censored : truth values of the shape of y, optional
        True where the outcome was at least y; passed to `fit`, or to the function, as `censored=`.
        The costs of such rows are marked: of a `Newsvendor` they are the least that the decision
        can have cost, of other problems what it would have cost had the outcome been y.

    Returns
    -------
    DataFrame (n_decided, 4 + n_decisions), with `censored` one more column
        In order of time, with X's row labels: `date`, `fold` (number of the window), `n_train`
        (rows trained on), `cost`, and the decisions, in columns such as `decision_demand`.

    Examples
    --------
    Fitted before each month, and judged on it:

    >>> import numpy as np
    >>> import pandas as pd
    >>> import forewise as fw
    >>> days = pd.Series(pd.date_range("2023-01-01", periods=500))
    >>> X = fw.features.calendar(days)
    >>> y = 20 + 10 * (X["weekday"] >= 5) + np.random.default_rng(0).normal(size=500)
    >>> learner = fw.DecoupledLearner(fw.Newsvendor(3, 1), fw.GroupedPredictor(by="weekday"))
    >>> table = fw.evaluate_rolling(learner, X, y, days)
    >>> len(table), table["fold"].nunique(), bool(table["cost"].mean() < 5)
    (135, 5, True)
    """
    import pandas as pd

    problem = _problem_of(method, problem)
    outcomes = _as_matrix("y", y)
    days = as_days(dates)
    lengths = {"X": len(X), "y": len(outcomes), "dates": len(days)}
    if len(set(lengths.values())) > 1:
        raise InvalidInputError(f"X, y and dates must have the same rows, but have {lengths} rows")
    check_same_rows(X=X, y=y, dates=dates, given=given)
    problem.bound_for(len(days), given)
    flags = check_censored(censored, y, outcomes)
    tables = []
    for fold in rolling_folds(days, window, min_train_days, max_train_days):
        decide = _fitted(method, X, y, given, days, fold, validation_days, flags)
        X_now, now = take_rows(X, fold.decide), given_rows(given, fold.decide)
        index = pd.Index(fold.decide) if row_labels(X) is None else X_now.index
        decisions, names = _decisions(decide, X_now, now, n_scenarios, random_state)
        if len(decisions) != len(index):
            raise InvalidInputError(
                f"method must decide for every context, but decided {len(decisions)} of "
                f"{len(index)} in the window that begins on {fold.start:%Y-%m-%d}"
            )
        decided = pd.DataFrame(decisions, index=index, columns=names)
        realised = outcomes[fold.decide]
        if flags is not None and isinstance(problem, Newsvendor):
            # A demand of what was ordered costs least.
            realised = np.where(flags[fold.decide], np.maximum(realised, decisions), realised)
        cost = problem.cost(
            decided, realised, now, on_infeasible=on_infeasible, tolerance=tolerance
        )
        described = {
            "date": days[fold.decide].astype("datetime64[s]"),
            "fold": fold.number,
            "n_train": len(fold.train),
            "cost": cost.detach().numpy(),
        }
        if flags is not None:
            described["censored"] = flags[fold.decide].any(axis=1)
        tables.append(pd.concat([pd.DataFrame(described, index=index), decided], axis=1))
    return pd.concat(tables)


def compare_rolling(
    tables: Mapping[str, pd.DataFrame],
    baseline: str,
    block_days: int = 7,
    level: float = 0.95,
    n_resamples: int = 2000,
    random_state: int = 0,
) -> pd.DataFrame:
    """Mean costs of methods, and their differences to a baseline, with intervals.

    `tables` are those of `evaluate_rolling` by the method's name, all with the same rows;
    `baseline` is one of the names. Other parameters as for `block_bootstrap`: all methods have the
    same blocks drawn.

    Returns
    -------
    DataFrame (n_methods, 9)
        Cheapest first: `cost`, `difference` (to the baseline) and `relative` (share of the
        baseline's cost, NaN where that is not positive), each followed by its ends, `cost_lower`,
        `cost_upper` and so on.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> import forewise as fw
    >>> days = pd.Series(pd.date_range("2023-01-01", periods=500))
    >>> X = fw.features.calendar(days)
    >>> y = 20 + 10 * (X["weekday"] >= 5) + np.random.default_rng(0).normal(size=500)
    >>> problem, tables = fw.Newsvendor(3, 1), {}
    >>> by_weekday = fw.GroupedPredictor(by="weekday")
    >>> predictors = {"all days": fw.EmpiricalPredictor(), "weekday": by_weekday}
    >>> for name, predictor in predictors.items():
    ...     learner = fw.DecoupledLearner(problem, predictor)
    ...     tables[name] = fw.evaluate_rolling(learner, X, y, days)
    >>> list(fw.metrics.compare_rolling(tables, baseline="all days").index)
    ['weekday', 'all days']
    """
    import pandas as pd

    if baseline not in tables:
        raise InvalidInputError(f"baseline must be one of {list(tables)}, but is {baseline!r}")
    other = tables[baseline]
    settings = (block_days, level, n_resamples, random_state)
    rows = {}
    for name, table in tables.items():
        if not (table.index.equals(other.index) and table["date"].equals(other["date"])):
            raise InvalidInputError(
                f"tables must have the same rows, but those of {name!r} ({len(table)}) differ from "
                f"those of {baseline!r} ({len(other)})"
            )
        costs, dates = table["cost"], table["date"]
        pair = (costs, other["cost"], dates, *settings)
        intervals = {
            "cost": block_bootstrap(costs, dates, *settings),
            "difference": block_bootstrap_difference(*pair),
            "relative": _relative(pair),
        }
        rows[name] = {
            f"{figure}{end}": getattr(interval, attribute)
            for figure, interval in intervals.items()
            for end, attribute in (("", "estimate"), ("_lower", "lower"), ("_upper", "upper"))
        }
    return pd.DataFrame.from_dict(rows, orient="index").sort_values("cost")


def _relative(pair: tuple[Any, ...]) -> Difference:
    """The difference as a share of the second costs; NaN where that says nothing."""
    try:
        return block_bootstrap_difference(*pair, relative=True)
    except InvalidInputError:
        block_bootstrap_difference(*pair)  # raises where that was not the reason
        return Difference(np.nan, np.nan, np.nan, pair[4])


def _problem_of(method: Any, problem: Problem | None) -> Problem:
    if isinstance(method, Learner):
        if problem is not None and problem is not method.problem:
            raise InvalidInputError("problem must be left out for a learner: it has its own")
        return method.problem
    if not callable(method) or isinstance(method, type):
        raise InvalidInputError(
            "method must be a learner or a function of X and y, but is "
            f"{method!r}; a predictor becomes a learner by DecoupledLearner(problem, predictor)"
        )
    if problem is None:
        raise InvalidInputError("problem must be given for a method that is a function")
    require_instance("problem", problem, Problem, "Newsvendor(shortage=3, excess=1)")
    return problem


def _fitted(
    method: Any,
    X: Any,
    y: Any,
    given: Any,
    days: np.ndarray,
    fold: Fold,
    validation_days: int | None,
    censored: np.ndarray | None = None,
) -> Any:
    """What decides in the fold's window."""

    def data(rows: np.ndarray, suffix: str = "") -> dict[str, Any]:
        taken = {f"X{suffix}": take_rows(X, rows), f"y{suffix}": take_rows(y, rows)}
        if censored is not None:
            taken[f"censored{suffix}"] = censored[rows]
        return taken if given is None else taken | {f"given{suffix}": given_rows(given, rows)}

    train = fold.train
    if not isinstance(method, Learner):
        past = data(train)
        return method(past.pop("X"), past.pop("y"), **past)
    learner = clone(method)
    if validation_days is None or not learner.validates:
        return learner.fit(**data(train))
    since = fold.start.to_datetime64() - require_count("validation_days", validation_days, 1) * _DAY
    late = days[train] >= since
    if late.all() or not late.any():
        which = "no row to train on" if late.all() else "no row to validate on"
        raise InvalidInputError(
            f"validation_days={validation_days} leaves {which} before {fold.start:%Y-%m-%d}"
        )
    return learner.fit(**data(train[~late]), **data(train[late], "_val"))


def _decisions(
    decide: Any, X: Any, given: Any, n_scenarios: int, random_state: int
) -> tuple[np.ndarray, list[str]]:
    """Decisions (n_contexts, n_decisions), and names for their columns."""
    if isinstance(decide, Learner | Policy):
        decided = decide.decide(X, n_scenarios, random_state, given=given)
    elif callable(decide):
        decided = decide(X) if given is None else decide(X, given=given)
    else:
        raise InvalidInputError(
            "method must return a policy, a learner or a function of contexts, but returned a "
            f"{type(decide).__name__}"
        )
    check_same_rows(X=X, decisions=decided)
    values = _as_matrix("decisions", decided)
    named = column_names(decided) if np.ndim(decided) == 2 else None
    names = named or [str(i) for i in range(values.shape[1])]
    return values, [name if name.startswith("decision_") else f"decision_{name}" for name in names]


def _as_matrix(name: str, values: Any) -> np.ndarray:
    """Outcomes or decisions as (n_rows, n_columns); a vector is one column."""
    matrix = as_tensor(name, values).detach().cpu().numpy()
    return matrix.reshape(len(matrix), -1)
