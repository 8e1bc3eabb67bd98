"""Conformance: what every problem, solver, predictor and learner promises, as checks to run.

For whoever writes one more: `check_problem(MyProblem(...), outcome)` and so on raise an
AssertionError that says which promise is broken. `check_no_future` does so for whoever builds
contexts from a table of days. forewise's own classes pass through the same
checks in its tests. May import: everything but the command line.
"""

from __future__ import annotations

import pickle
import tempfile
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.base import clone

from forewise.exceptions import ForewiseError, UnfittedError, UnsupportedProblemError
from forewise.learners.base import Learner
from forewise.policy.base import ScenarioPolicy
from forewise.policy.files import load_policy
from forewise.predictors.base import Predictor
from forewise.problems.base import Problem
from forewise.scenarios import Scenarios
from forewise.solvers.auto import solve
from forewise.solvers.base import Solver
from forewise.solvers.reference import ReferenceSolver
from forewise.solvers.solution import Status

__all__ = [
    "check_learner",
    "check_no_future",
    "check_predictor",
    "check_problem",
    "check_solver",
]


def check_problem(problem: Problem, outcome: Any) -> None:
    """Check a problem on outcomes (n_contexts, n_outcomes) of its own kind, at least two rows.

    The program's optimal value is the mean cost of its decision; no decision that was optimal
    for other scenarios is better; the cost is differentiable and convex in the decision; copies
    are equal.
    """
    outcome = torch.as_tensor(outcome, dtype=torch.float64)
    scenarios = Scenarios(outcome[None])
    solution = solve(problem, scenarios, ReferenceSolver())
    decision = solution.decision[0]

    def mean_cost(z: torch.Tensor) -> torch.Tensor:
        return problem.unchecked_cost(z.expand(len(outcome), -1), outcome).mean()

    best = mean_cost(decision)
    _require(
        torch.isclose(best, solution.objective[0], rtol=1e-6, atol=1e-6),
        f"the program's value is {solution.objective[0]:g}, but its decision costs {best:g}",
    )
    halves = Scenarios(torch.stack([outcome[: len(outcome) // 2], outcome[-(len(outcome) // 2) :]]))
    for other in solve(problem, halves, ReferenceSolver()).decision:
        _require(
            mean_cost(other) >= best - 1e-6 * (1 + best.abs()),
            "a decision for other scenarios costs less than the program's own",
        )
        middle = mean_cost((decision + other) / 2)
        _require(
            middle <= (best + mean_cost(other)) / 2 + 1e-6 * (1 + best.abs()),
            "the cost is not convex in the decision",
        )
    # A point where nothing is at a kink.
    random = torch.Generator().manual_seed(0)
    at = (
        decision + 0.1 * torch.rand(len(decision), generator=random, dtype=torch.float64)
    ).detach()
    at.requires_grad_()
    (gradient,) = torch.autograd.grad(mean_cost(at), at)
    step, tolerance = 1e-6, 1e-4 * (1 + gradient.abs().max().item())
    for i in range(len(decision)):
        shift = torch.zeros_like(at)
        shift[i] = step
        slope = (mean_cost(at + shift) - mean_cost(at - shift)) / (2 * step)
        _require(
            torch.isclose(gradient[i], slope, rtol=1e-4, atol=tolerance),
            f"the cost's gradient in decision {i} is {gradient[i]:g}, differences say {slope:g}",
        )
    copy = pickle.loads(pickle.dumps(problem))
    again = solve(copy, scenarios, ReferenceSolver()).objective
    _require(torch.equal(again, solution.objective), "a copy of the problem is another problem")


def check_solver(solver: Solver, problem: Problem, scenarios: Scenarios) -> None:
    """Check a solver on scenarios of a problem that it does not refuse.

    Agrees with the reference in the optimal value, and the decision is one that has it (looked at
    where all scenarios count alike); contexts do not depend on each other, nor on the order of
    scenarios; a context with NaN is told, and touches no other.
    """
    try:
        solution = solve(problem, scenarios, solver)
    except UnsupportedProblemError as unsupported_reason:
        raise AssertionError(
            f"the solver refuses this problem: {unsupported_reason}"
        ) from unsupported_reason
    reference = solve(problem, scenarios, ReferenceSolver()).objective
    scale = reference.abs().clamp_min(1e-3)
    _require(
        bool(((solution.objective - reference).abs() <= 1e-6 * scale).all()),
        "the optimal values differ from the reference's",
    )
    if bool((scenarios.weights == scenarios.weights[:, :1]).all()):
        paid = _paid(problem, solution.decision, scenarios)
        _require(
            bool(((paid - reference).abs() <= 1e-6 * scale).all()),
            "the optimal value is not what the decision costs",
        )
    alone = solve(problem, scenarios[:1], solver)
    _require(
        torch.equal(alone.decision[0], solution.decision[0]), "a context depends on its neighbours"
    )
    order = torch.randperm(scenarios.n_scenarios, generator=torch.Generator().manual_seed(0))
    shuffled = Scenarios(scenarios.values[:, order], scenarios.weights[:, order])
    moved = solve(problem, shuffled, solver).objective
    _require(
        bool(((moved - solution.objective).abs() <= 1e-6 * scale).all()),
        "the order of scenarios changes the optimal value",
    )
    broken = scenarios.values.clone()
    broken[-1, 0, 0] = torch.nan
    told = solve(problem, Scenarios(broken, scenarios.weights), solver, on_failure="return")
    _require(told.status[-1] is Status.INVALID, "NaN in a context is not told as invalid")
    _require(
        torch.equal(told.decision[:-1], solution.decision[:-1]), "NaN in a context touches others"
    )


def check_predictor(predictor: Predictor, X: Any, y: Any) -> None:
    """Check a predictor on a training table.

    Scenarios have the promised shape, are finite, repeatable, and do not depend on the
    neighbours' rows; bad input is a clear error; storing it changes nothing.
    """
    fresh = clone(predictor)
    _require_raises(UnfittedError, lambda: fresh.sample(X, 4))
    fitted = clone(predictor).fit(X, y)
    X = np.asarray(X, dtype=np.float64)
    n_outcomes = 1 if np.ndim(y) == 1 else np.shape(y)[1]
    for count in (1, 7, 64):
        scenarios = fitted.sample(X, count, random_state=3)
        expected = (len(X), scenarios.n_scenarios, n_outcomes)
        _require(tuple(scenarios.values.shape) == expected, f"scenarios have shape {expected}")
        _require(scenarios.n_scenarios <= count, "more scenarios came than were asked for")
        _require(bool(scenarios.values.isfinite().all()), "scenarios are not finite")
    again = fitted.sample(X, 64, random_state=3)
    _require(
        torch.equal(again.values, scenarios.values)
        and torch.equal(again.weights, scenarios.weights),
        "the same random state gives other scenarios",
    )
    part = fitted.sample(X[3:5], 64, random_state=3)
    _require(
        torch.allclose(part.values, scenarios.values[3:5], rtol=1e-4, atol=1e-4)
        and torch.allclose(part.weights, scenarios.weights[3:5], rtol=1e-4, atol=1e-6),
        "a context's scenarios depend on the other contexts",
    )
    for bad in (0, -1, 2.5, None):
        _require_raises(ForewiseError, lambda bad=bad: fitted.sample(X, bad))
    _require_raises(ForewiseError, lambda: fitted.sample(X[:, :-1] if X.shape[1] > 1 else X[:0], 4))
    hole = X.copy()
    hole[0, 0] = np.nan
    _require_raises(ForewiseError, lambda: fitted.sample(hole, 4))
    second = clone(predictor).fit(X, y).sample(X, 64, random_state=3)
    if isinstance(getattr(predictor, "random_state", 0), int):
        _require(torch.equal(second.values, scenarios.values), "a second fit gives other scenarios")


def check_learner(learner: Learner, X: Any, y: Any) -> None:
    """Check a learner on a training table.

    Decisions have the promised shape and container, are repeatable, do not depend on the
    neighbours' rows, and are the same after storing; the score is minus the mean cost.
    """
    _require_raises(UnfittedError, lambda: clone(learner).decide(X))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that uncertainty cannot matter, say
        fitted = clone(learner).fit(X, y)
        second = clone(learner).fit(X, y)
    X = np.asarray(X, dtype=np.float64)
    outcome = np.asarray(y, dtype=np.float64).reshape(len(X), -1)
    decided = fitted.decide(X, n_scenarios=8)
    shape = (len(X), fitted.problem.n_decisions(outcome.shape[1]))
    _require(isinstance(decided, np.ndarray) and decided.shape == shape, f"decisions are {shape}")
    _require(
        np.array_equal(decided, fitted.decide(X, n_scenarios=8)), "decisions are not repeatable"
    )
    _require(np.array_equal(decided, second.decide(X, n_scenarios=8)), "fits are not repeatable")
    part = fitted.decide(X[2:4], n_scenarios=8)
    _require(np.allclose(part, decided[2:4], rtol=1e-3, atol=1e-3), "a decision depends on others")
    cost = fitted.problem.cost(fitted.decide(X), outcome).mean().item()
    _require(np.isclose(fitted.score(X, outcome), -cost), "the score is not minus the mean cost")
    with tempfile.TemporaryDirectory() as folder:
        fitted.policy_.save(Path(folder) / "policy")
        loaded = load_policy(Path(folder) / "policy")
        _require(
            np.array_equal(loaded.decide(X, n_scenarios=8), decided),
            "the policy decides otherwise after it was stored",
        )
    if isinstance(fitted.policy_, ScenarioPolicy):
        _require(fitted.policy_.predictor is not learner.predictor, "the predictor was not cloned")


def check_no_future(
    build: Callable[[pd.DataFrame], pd.DataFrame],
    table: pd.DataFrame,
    *,
    date: str = "date",
    known: Sequence[str] = (),
    n_days: int = 6,
) -> None:
    """Check that no feature sees its own day's outcome or a later one.

    From some day on, every value that is not known in advance is changed, and in another trial
    taken away; no feature of that day or of an earlier one may change by a bit.

    Parameters
    ----------
    build : function
        From a table to its features, a data frame with the same rows.
    table : DataFrame
        One row per series and day; its values should vary, or nothing can be seen.
    date : str
        Column of days.
    known : sequence of str
        Columns that are known in advance, and stay as they are: names of series, holidays, plans.
    n_days : int
        Number of days, spread over the table, from which on values are changed.
    """
    before = build(table.copy())
    _require(before.index.equals(table.index), "the features have other rows than the table")
    _require(before.equals(build(table.copy())), "the same table gives other features")
    unknown = [name for name in table.columns if name not in {date, *known}]
    days, number = np.unique(table[date], return_inverse=True)
    for day in days[np.unique(np.linspace(0, len(days) - 1, n_days).astype(int))]:
        later, told = (table[date] >= day).to_numpy(), f"{pd.Timestamp(day):%Y-%m-%d}"
        kept = (table[date] <= day).to_numpy()
        # Days are shifted differently, so that differences between them change as well; rows of one
        # day alike, because they may have to agree (on the weather, say).
        shift = np.where(later, 3 + number * 7 % 101, 0)
        others = {name: _other(table[name], later, shift) for name in unknown}
        missing = {name: _missing(table[name], later) for name in unknown}
        for how, columns in (("changed", others), ("taken away", missing)):
            after = build(table.assign(**columns))
            _require(
                before.columns.equals(after.columns),
                f"there are other features when values from {told} on are {how}",
            )
            for name in before.columns:
                same = before[name][kept].equals(after[name][kept])
                _require(
                    same, f"feature {name!r} sees the future: values from {told} on were {how}"
                )


def _paid(problem: Problem, decision: torch.Tensor, scenarios: Scenarios) -> torch.Tensor:
    """What each context's decision costs in its scenarios, as the problem sums costs up."""
    values = []
    for context, (chosen, outcomes) in enumerate(zip(decision, scenarios.values, strict=True)):
        own = problem.for_contexts(torch.full((len(outcomes),), context))
        values.append(own.summary(own.unchecked_cost(chosen.expand(len(outcomes), -1), outcomes)))
    return torch.stack(values)


def _other(column: pd.Series, rows: np.ndarray, shift: np.ndarray) -> pd.Series:
    """Other values of the same kind in these rows: numbers far off, by multiples of `shift`."""
    if pd.api.types.is_bool_dtype(column):
        return column ^ rows
    if pd.api.types.is_numeric_dtype(column):
        spread = int(np.ceil(column.max() - column.min())) if column.notna().any() else 0
        return column + (spread + 1) * shift
    # Values of other rows: texts and days remain such.
    return column.where(~rows, column.to_numpy()[::-1])


def _missing(column: pd.Series, rows: np.ndarray) -> pd.Series:
    """No values in these rows, where a column of its kind can have none."""
    if pd.api.types.is_bool_dtype(column) or not pd.api.types.is_numeric_dtype(column):
        return column
    return column.astype("float64").where(~rows)


def _require(holds: Any, told: str) -> None:
    if not bool(holds):
        raise AssertionError(told)


def _require_raises(kind: type[Exception], action: Any) -> None:
    try:
        action()
    except kind:
        return
    raise AssertionError(f"no {kind.__name__} was raised")
