"""Fitting on the past and deciding the next window.

May import: exceptions, problems, policy, learners, metrics, and its sibling `folds`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from forewise.evaluation.blocks import as_days
from forewise.evaluation.folds import DAY, Fold, as_day_count, rolling_folds
from forewise.exceptions import InvalidInputError
from forewise.learners.base import Learner
from forewise.policy.base import Policy
from forewise.problems.base import Problem
from forewise.problems.feasibility import FEASIBILITY_TOLERANCE
from forewise.validation.arguments import as_tensor, require_instance
from forewise.validation.given import given_rows, take_rows
from forewise.validation.tables import check_same_rows


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
    n_scenarios: int = 64,
    random_state: int = 0,
    on_infeasible: str = "raise",
    tolerance: float = FEASIBILITY_TOLERANCE,
) -> pd.DataFrame:
    """What a method's decisions would have cost: trained on the past, window after window.

    Prefer it to a random split wherever rows have dates. The method is made anew for every window
    and sees no row of that window or of a later one.

    Parameters
    ----------
    method : Learner or function
        A learner is cloned for every window. A function is called with the contexts and outcomes
        to train on, in order of time, and returns a fitted policy or learner, or a function from
        contexts to decisions. Both functions get their rows of `given` under that name, where
        there is one.
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
    given : table, dict or `Given`, optional
        What was known in each row before its decision, where the problem has such parameters: see
        `CvxpyProblem.bound`. Every window is trained, decided and costed with its own rows.
    n_scenarios : int
        Scenarios of each decision.
    random_state : int
        Seed of the decisions' scenarios; that of training is the method's own.
    on_infeasible : {"raise", "infinite"}
        What to do with decisions that break a constraint: raise an `InfeasibleDecisionError`, or
        count them as infinitely dear.
    tolerance : float
        The `Problem.violation` up to which a decision meets the constraints; rounded orders need
        more than the default.

    Returns
    -------
    DataFrame (n_decided, 4 + n_decisions)
        In order of time, rows named as in X: `date`, `fold` (number of the window), `n_train` (rows
        that were trained on), `cost`, and the decisions, columns such as `decision_demand`.
    """
    problem = _problem_of(method, problem)
    outcomes = _as_matrix("y", y)
    days = as_days(dates)
    lengths = {"X": len(X), "y": len(outcomes), "dates": len(days)}
    if len(set(lengths.values())) > 1:
        raise InvalidInputError(f"X, y and dates must have the same rows, but have {lengths} rows")
    check_same_rows(X=X, y=y, dates=dates, given=given)
    problem.bound_for(len(days), given)
    parts = []
    for fold in rolling_folds(days, window, min_train_days, max_train_days):
        decide = _fitted(method, _Past(X, y, given), days, fold, validation_days)
        index = X.index[fold.decide] if isinstance(X, pd.DataFrame) else pd.Index(fold.decide)
        now = given_rows(given, fold.decide)
        decisions = _decisions(decide, take_rows(X, fold.decide), now, n_scenarios, random_state)
        if len(decisions) != len(index):
            raise InvalidInputError(
                f"method must decide for every context, but decided {len(decisions)} of "
                f"{len(index)} in the window that begins on {fold.start:%Y-%m-%d}"
            )
        cost = problem.cost(
            decisions.set_axis(index), outcomes[fold.decide], now,
            on_infeasible=on_infeasible, tolerance=tolerance,
        )  # fmt: skip
        table = pd.DataFrame(
            {
                "date": days[fold.decide].astype("datetime64[s]"),
                "fold": fold.number,
                "n_train": len(fold.train),
                "cost": cost.detach().numpy(),
            },
            index=decisions.index,
        )
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
    if problem is None:
        raise InvalidInputError("problem must be given for a method that is a function")
    require_instance("problem", problem, Problem, "Newsvendor(shortage=3, excess=1)")
    return problem


@dataclass(frozen=True, eq=False)
class _Past:
    """All rows; those of the past are taken of them."""

    X: Any
    y: Any
    given: Any

    def rows(self, numbers: np.ndarray) -> tuple[Any, Any, dict[str, Any]]:
        """Contexts, outcomes, and what is given by name, where something is."""
        given = {} if self.given is None else {"given": given_rows(self.given, numbers)}
        return take_rows(self.X, numbers), take_rows(self.y, numbers), given


def _fitted(
    method: Any, past: _Past, days: np.ndarray, fold: Fold, validation_days: int | None
) -> Any:
    """What decides in the fold's window."""
    train = fold.train
    X, y, given = past.rows(train)
    if not isinstance(method, Learner):
        return method(X, y, **given)
    learner = clone(method)
    if validation_days is None or not learner.validates:
        return learner.fit(X, y, **given)
    since = fold.start.to_datetime64() - as_day_count("validation_days", validation_days) * DAY
    late = days[train] >= since
    if late.all() or not late.any():
        which = "no row to train on" if late.all() else "no row to validate on"
        raise InvalidInputError(
            f"validation_days={validation_days} leaves {which} before {fold.start:%Y-%m-%d}"
        )
    X, y, given = past.rows(train[~late])
    X_val, y_val, given_val = past.rows(train[late])
    given |= {f"{name}_val": values for name, values in given_val.items()}
    return learner.fit(X, y, X_val=X_val, y_val=y_val, **given)


def _decisions(
    decide: Any, X: Any, given: Any, n_scenarios: int, random_state: int
) -> pd.DataFrame:
    """Decisions (n_contexts, n_decisions), with names for the table."""
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
    names = decided.columns if isinstance(decided, pd.DataFrame) else range(values.shape[1])
    columns = [str(name) for name in names]
    columns = [name if name.startswith("decision_") else f"decision_{name}" for name in columns]
    return pd.DataFrame(values, columns=columns)


def _as_matrix(name: str, values: Any) -> np.ndarray:
    """Outcomes or decisions as (n_rows, n_columns); a vector is one column."""
    matrix = as_tensor(name, values).detach().cpu().numpy()
    return matrix.reshape(len(matrix), -1)
