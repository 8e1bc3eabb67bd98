"""Fitting on the past and deciding the next window.

May import: exceptions, problems, policy, learners, metrics, and its sibling `folds`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.base import clone

from forewise.exceptions import InvalidInputError
from forewise.learners.base import Learner
from forewise.metrics.blocks import as_days
from forewise.policy.base import Policy
from forewise.problems.base import Problem
from forewise.rolling.folds import DAY, Fold, as_day_count, rolling_folds


def evaluate_rolling(
    method: Learner | Callable[[Any, Any], Any],
    X: Any,
    y: Any,
    dates: Any,
    *,
    window: str | int = "month",
    min_train_days: int = 365,
    max_train_days: int | None = None,
    validation_days: int | None = None,
    problem: Problem | None = None,
    n_scenarios: int = 64,
    random_state: int = 0,
) -> pd.DataFrame:
    """What a method's decisions would have cost: trained on the past, window after window.

    Prefer it to a random split wherever rows have dates. The method is made anew for every window
    and sees no row of that window or of a later one.

    Parameters
    ----------
    method : Learner or function
        A learner is cloned for every window. A function is called with the contexts and outcomes
        to train on, in order of time, and returns a fitted policy or learner, or a function from
        contexts to decisions.
    X : table (n_rows, n_features)
        What is known before each row's decision; see `forewise.features`.
    y : table (n_rows, n_outcomes) or (n_rows,)
    dates : array or Series of days (n_rows,)
    window, min_train_days, max_train_days
        As for `rolling_folds`.
    validation_days : int, optional
        The last so many days before the window are given to a learner as X_val and y_val. Without
        it, a network splits off a share of the rows at random. Learners that do not validate
        train on these days too.
    problem : Problem, optional
        Needed if the method is a function; a learner has its own.
    n_scenarios : int
        Scenarios of each decision.
    random_state : int
        Seed of the decisions' scenarios; that of training is the method's own.

    Returns
    -------
    DataFrame (n_decided, 4 + n_decisions)
        In order of time, rows named as in X: `date`, `fold` (number of the window), `n_train` (rows
        that were trained on), `cost`, and the decisions, columns such as `decision_demand`.
    """
    problem = _problem_of(method, problem)
    outcomes = _as_matrix(y)
    days = as_days(dates)
    lengths = {"X": len(X), "y": len(outcomes), "dates": len(days)}
    if len(set(lengths.values())) > 1:
        raise InvalidInputError(f"X, y and dates must have the same rows, but have {lengths} rows")
    parts = []
    for fold in rolling_folds(days, window, min_train_days, max_train_days):
        decide = _fitted(method, X, y, days, fold, validation_days)
        decisions = _decisions(decide, _rows(X, fold.decide), n_scenarios, random_state)
        cost = problem.cost(decisions.to_numpy(), outcomes[fold.decide]).detach().numpy()
        table = pd.DataFrame(
            {
                "date": days[fold.decide].astype("datetime64[s]"),
                "fold": fold.number,
                "n_train": len(fold.train),
                "cost": cost,
            },
            index=decisions.index,
        )
        index = X.index[fold.decide] if isinstance(X, pd.DataFrame) else pd.Index(fold.decide)
        parts.append(pd.concat([table, decisions], axis=1).set_axis(index))
    return pd.concat(parts)


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
    if not isinstance(problem, Problem):
        raise InvalidInputError("problem must be given for a method that is a function")
    return problem


def _fitted(
    method: Any, X: Any, y: Any, days: np.ndarray, fold: Fold, validation_days: int | None
) -> Any:
    """What decides in the fold's window."""
    train = fold.train
    if not isinstance(method, Learner):
        return method(_rows(X, train), _rows(y, train))
    learner = clone(method)
    if validation_days is None or not learner.validates:
        return learner.fit(_rows(X, train), _rows(y, train))
    since = fold.start.to_datetime64() - as_day_count("validation_days", validation_days) * DAY
    late = days[train] >= since
    if late.all() or not late.any():
        which = "no row to train on" if late.all() else "no row to validate on"
        raise InvalidInputError(
            f"validation_days={validation_days} leaves {which} before {fold.start:%Y-%m-%d}"
        )
    early, late = train[~late], train[late]
    return learner.fit(_rows(X, early), _rows(y, early), X_val=_rows(X, late), y_val=_rows(y, late))


def _decisions(decide: Any, X: Any, n_scenarios: int, random_state: int) -> pd.DataFrame:
    """Decisions (n_contexts, n_decisions), with names for the table."""
    if isinstance(decide, Learner | Policy):
        decided = decide.decide(X, n_scenarios, random_state)
    elif callable(decide):
        decided = decide(X)
    else:
        raise InvalidInputError(
            "method must return a policy, a learner or a function of contexts, but returned a "
            f"{type(decide).__name__}"
        )
    values = _as_matrix(decided)
    names = decided.columns if isinstance(decided, pd.DataFrame) else range(values.shape[1])
    columns = [str(name) for name in names]
    columns = [name if name.startswith("decision_") else f"decision_{name}" for name in columns]
    return pd.DataFrame(values, columns=columns)


def _as_matrix(values: Any) -> np.ndarray:
    """Outcomes or decisions as (n_rows, n_columns); a vector is one column."""
    plain = values.detach().cpu().numpy() if isinstance(values, torch.Tensor) else values
    matrix = np.array(plain, dtype=np.float64)
    return matrix.reshape(len(matrix), -1)


def _rows(table: Any, rows: np.ndarray) -> Any:
    """Rows of a data frame, series, array, tensor or list, by number."""
    if isinstance(table, pd.DataFrame | pd.Series):
        return table.iloc[rows]
    return [table[i] for i in rows] if isinstance(table, list | tuple) else table[rows]
