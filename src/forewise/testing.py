"""Conformance checks of problems, solvers, predictors, learners and features.

For authors of new classes: `check_problem(MyProblem(...), outcome)` and the others raise an
AssertionError that names the broken promise. forewise's own classes pass the same checks.
"""

from __future__ import annotations

import pickle
import tempfile
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.base import clone

from forewise.exceptions import ForewiseError, StorageError, UnfittedError, UnsupportedProblemError
from forewise.learners.base import Learner
from forewise.policy import Policy, ScenarioPolicy, load_policy
from forewise.predictors.base import Predictor
from forewise.problems import Newsvendor, Problem
from forewise.scenarios import Scenarios
from forewise.solvers import ReferenceSolver, Solver, Status, solve

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["check_learner", "check_no_future", "check_predictor", "check_problem", "check_solver"]


def check_problem(problem: Problem, outcome: Any) -> None:
    """Check a problem on outcomes (n_contexts, n_outcomes) of its own kind, at least two rows.

    The program's optimal value is the mean cost of its decision; no decision that is optimal for
    other scenarios is better; the cost is convex in the decision and has its derivative; a copy is
    the same problem.

    Examples
    --------
    >>> import numpy as np
    >>> import forewise as fw
    >>> demand = np.random.default_rng(0).gamma(4.0, 3.0, size=(6, 1))
    >>> fw.testing.check_problem(fw.Newsvendor(shortage=3.0, excess=1.0), demand)
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
    half = len(outcome) // 2
    halves = Scenarios(torch.stack([outcome[:half], outcome[-half:]]))
    tolerance = 1e-6 * (1 + best.abs())
    for other in solve(problem, halves, ReferenceSolver()).decision:
        _require(
            mean_cost(other) >= best - tolerance,
            "a decision for other scenarios costs less than the program's own",
        )
        _require(
            mean_cost((decision + other) / 2) <= (best + mean_cost(other)) / 2 + tolerance,
            "the cost is not convex in the decision",
        )
    # Gradients at a point that is at no kink, against central differences.
    random = torch.Generator().manual_seed(0)
    at = decision + 0.1 * torch.rand(len(decision), generator=random, dtype=torch.float64)
    at = at.detach().requires_grad_()
    (gradient,) = torch.autograd.grad(mean_cost(at), at)
    step, largest = 1e-6, gradient.abs().max().item()
    for i, shift in enumerate(step * torch.eye(len(at), dtype=torch.float64)):
        slope = (mean_cost(at + shift) - mean_cost(at - shift)) / (2 * step)
        _require(
            torch.isclose(gradient[i], slope, rtol=1e-4, atol=1e-4 * (1 + largest)),
            f"the cost's gradient in decision {i} is {gradient[i]:g}, differences say {slope:g}",
        )
    copy = pickle.loads(pickle.dumps(problem))
    again = solve(copy, scenarios, ReferenceSolver()).objective
    _require(torch.equal(again, solution.objective), "a copy of the problem is another problem")


def check_solver(solver: Solver, problem: Problem, scenarios: Scenarios) -> None:
    """Check a solver on scenarios of a problem that it supports.

    Agrees with `ReferenceSolver` in the optimal value, which is what the decision costs (checked
    for equal weights); contexts do not depend on each other, nor on the order of scenarios; a
    context with NaN is `Status.INVALID` and changes no other.

    Examples
    --------
    >>> import numpy as np
    >>> import forewise as fw
    >>> demand = fw.Scenarios(np.random.default_rng(0).gamma(4.0, 3.0, size=(3, 10, 1)))
    >>> problem = fw.Newsvendor(shortage=3.0, excess=1.0)
    >>> fw.testing.check_solver(fw.InteriorPointSolver(), problem, demand)
    """
    try:
        solution = solve(problem, scenarios, solver)
    except UnsupportedProblemError as error:
        raise AssertionError(f"the solver refuses this problem: {error}") from error
    reference = solve(problem, scenarios, ReferenceSolver()).objective
    scale = reference.abs().clamp_min(1e-3)

    def near(value: torch.Tensor, expected: torch.Tensor) -> bool:
        return bool(((value - expected).abs() <= 1e-6 * scale).all())

    _require(near(solution.objective, reference), "the optimal values differ from the reference's")
    if bool((scenarios.weights == scenarios.weights[:, :1]).all()):
        costs = []
        for i, (chosen, outcomes) in enumerate(
            zip(solution.decision, scenarios.values, strict=True)
        ):
            own = problem.for_contexts(torch.full((len(outcomes),), i))
            paid = own.unchecked_cost(chosen.expand(len(outcomes), -1), outcomes)
            costs.append(own.summary(paid))
        _require(
            near(torch.stack(costs), reference), "the optimal value is not what the decision costs"
        )
    alone = solve(problem, scenarios[:1], solver)
    _require(
        torch.equal(alone.decision[0], solution.decision[0]), "a context depends on its neighbours"
    )
    order = torch.randperm(scenarios.n_scenarios, generator=torch.Generator().manual_seed(0))
    shuffled = Scenarios(scenarios.values[:, order], scenarios.weights[:, order])
    _require(
        near(solve(problem, shuffled, solver).objective, solution.objective),
        "the order of scenarios changes the optimal value",
    )
    values = scenarios.values.clone()
    values[-1, 0, 0] = torch.nan
    broken = solve(problem, Scenarios(values, scenarios.weights), solver, on_failure="return")
    _require(broken.status[-1] is Status.INVALID, "NaN in a context is not Status.INVALID")
    _require(
        torch.equal(broken.decision[:-1], solution.decision[:-1]),
        "NaN in a context changes other contexts",
    )


def check_predictor(predictor: Predictor, X: Any, y: Any) -> None:
    """Check a predictor on a training table.

    Scenarios have the promised shape, are finite, repeatable, and do not depend on other rows; bad
    input is a `ForewiseError`; a saved and loaded predictor draws the same scenarios, for which its
    class must be registered (`forewise.policy.register`).

    Examples
    --------
    >>> import numpy as np
    >>> import forewise as fw
    >>> X = np.random.default_rng(0).normal(size=(40, 2))
    >>> fw.testing.check_predictor(fw.NeighborPredictor(5), X, 10 + X[:, 0])
    """
    _require_raises(UnfittedError, lambda: clone(predictor).sample(X, 4))
    fitted = clone(predictor).fit(X, y)
    X = np.asarray(X, dtype=np.float64)
    n_outcomes = 1 if np.ndim(y) == 1 else np.shape(y)[1]
    for count in (1, 7, 64):
        scenarios = fitted.sample(X, count, random_state=3)
        expected = (len(X), scenarios.n_scenarios, n_outcomes)
        _require(tuple(scenarios.values.shape) == expected, f"scenarios have shape {expected}")
        _require(scenarios.n_scenarios <= count, "more scenarios came than were asked for")
        _require(bool(scenarios.values.isfinite().all()), "scenarios are not finite")

    def same(other: Predictor) -> bool:
        again = other.sample(X, 64, random_state=3)
        return torch.equal(again.values, scenarios.values) and torch.equal(
            again.weights, scenarios.weights
        )

    _require(same(fitted), "the same random state gives other scenarios")
    part = fitted.sample(X[3:5], 64, random_state=3)
    _require(
        torch.allclose(part.values, scenarios.values[3:5], rtol=1e-4, atol=1e-4)
        and torch.allclose(part.weights, scenarios.weights[3:5], rtol=1e-4, atol=1e-6),
        "a context's scenarios depend on the other contexts",
    )
    for bad in (0, -1, 2.5, None):
        _require_raises(ForewiseError, partial(fitted.sample, X, bad))
    _require_raises(ForewiseError, lambda: fitted.sample(X[:, :-1] if X.shape[1] > 1 else X[:0], 4))
    hole = X.copy()
    hole[0, 0] = np.nan
    _require_raises(ForewiseError, lambda: fitted.sample(hole, 4))
    if isinstance(getattr(predictor, "random_state", 0), int):
        _require(same(clone(predictor).fit(X, y)), "a second fit gives other scenarios")
    stored = _stored(ScenarioPolicy(Newsvendor(1.0, 9.0), fitted))
    assert isinstance(stored, ScenarioPolicy)
    _require(same(stored.predictor), "the predictor draws other scenarios after it was stored")


def check_learner(learner: Learner, X: Any, y: Any) -> None:
    """Check a learner on a training table.

    Decisions have the promised shape and container, are repeatable, do not depend on other rows,
    and are the same after the policy was saved and loaded; the score is minus the mean cost.

    Examples
    --------
    >>> import numpy as np
    >>> import forewise as fw
    >>> X = np.random.default_rng(0).normal(size=(40, 2))
    >>> learner = fw.DecoupledLearner(fw.Newsvendor(3.0, 1.0), fw.NeighborPredictor(5))
    >>> fw.testing.check_learner(learner, X, 10 + X[:, 0])
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
    again, fitted_again = fitted.decide(X, n_scenarios=8), second.decide(X, n_scenarios=8)
    _require(np.array_equal(again, decided), "decisions are not repeatable")
    _require(np.array_equal(fitted_again, decided), "fits are not repeatable")
    part = fitted.decide(X[2:4], n_scenarios=8)
    _require(np.allclose(part, decided[2:4], rtol=1e-3, atol=1e-3), "a decision depends on others")
    cost = fitted.problem.cost(fitted.decide(X), outcome).mean().item()
    _require(np.isclose(fitted.score(X, outcome), -cost), "the score is not minus the mean cost")
    if isinstance(fitted.policy_, ScenarioPolicy):
        given = learner.get_params(deep=False).get("predictor")
        _require(fitted.policy_.predictor is not given, "the predictor was not cloned")
    stored = _stored(fitted.policy_).decide(X, n_scenarios=8)
    _require(np.array_equal(stored, decided), "the policy decides otherwise after it was stored")


def check_no_future(
    build: Callable[[pd.DataFrame], pd.DataFrame],
    table: pd.DataFrame,
    *,
    date: str = "date",
    known: Sequence[str] = (),
    n_days: int = 6,
) -> None:
    """Check that no feature uses its own day's outcome or a later one.

    From each of `n_days` days on, every value that is not known in advance is changed, and in
    another trial removed; no feature of that day or of an earlier one may change by a bit.

    Parameters
    ----------
    build : function
        From a table to its features, a data frame with the same rows.
    table : DataFrame
        One row per series and day; constant values would hide a leak.
    known : sequence of str
        Columns that are known in advance and stay as they are: names of series, holidays, plans.

    Examples
    --------
    A lag of the day itself would be caught; one of the day before is what it says:

    >>> import numpy as np
    >>> import pandas as pd
    >>> import forewise as fw
    >>> days = pd.date_range("2024-01-01", periods=30)
    >>> table = pd.DataFrame({"date": days, "sold": np.random.default_rng(0).normal(size=30)})
    >>> fw.testing.check_no_future(lambda rows: fw.features.lag(rows, "sold", days=1), table)
    >>> try:
    ...     fw.testing.check_no_future(lambda rows: rows[["sold"]], table)
    ... except AssertionError:
    ...     print("a leak")
    a leak
    """
    before = build(table.copy())
    _require(before.index.equals(table.index), "the features have other rows than the table")
    _require(before.equals(build(table.copy())), "the same table gives other features")
    unknown = [name for name in table.columns if name not in {date, *known}]
    days, number = np.unique(table[date], return_inverse=True)
    for day in days[np.unique(np.linspace(0, len(days) - 1, n_days).astype(int))]:
        later, kept = (table[date] >= day).to_numpy(), (table[date] <= day).to_numpy()
        # Days are shifted differently, so that differences between them change as well; rows of one
        # day alike, because they may have to agree (on the weather, say).
        shift = np.where(later, 3 + number * 7 % 101, 0)
        altered = {name: _altered(table[name], later, shift) for name in unknown}
        for trial, how in enumerate(("changed", "removed")):
            after = build(table.assign(**{name: pair[trial] for name, pair in altered.items()}))
            when = f"values from {np.datetime_as_string(day, 'D')} on were {how}"
            _require(before.columns.equals(after.columns), f"there are other features when {when}")
            for name in before.columns:
                same = before[name][kept].equals(after[name][kept])
                _require(same, f"feature {name!r} sees the future: {when}")


def _altered(column: pd.Series, rows: np.ndarray, shift: np.ndarray) -> tuple[pd.Series, pd.Series]:
    """A column with other values of the same kind in some rows, and with none, where it can."""
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    if is_bool_dtype(column):
        return column ^ rows, column
    if is_numeric_dtype(column):
        spread = int(np.ceil(column.max() - column.min())) if column.notna().any() else 0
        return column + (spread + 1) * shift, column.astype("float64").where(~rows)
    # Values of other rows: texts and days remain such.
    return column.where(~rows, column.to_numpy()[::-1]), column


def _stored(policy: Policy) -> Policy:
    """The policy, saved and loaded."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            policy.save(Path(folder) / "policy")
            return load_policy(Path(folder) / "policy")
        except StorageError as error:
            raise AssertionError(f"it cannot be stored and loaded: {error}") from error


def _require(holds: Any, message: str) -> None:
    if not bool(holds):
        raise AssertionError(message)


def _require_raises(kind: type[Exception], action: Callable[[], Any]) -> None:
    try:
        action()
    except kind:
        return
    raise AssertionError(f"no {kind.__name__} was raised")
