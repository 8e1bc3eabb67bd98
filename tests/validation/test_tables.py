"""Rows are matched by place, and labels that say otherwise are an error."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest

import forewise as fw

N = 40
LABELS = [f"day {i}" for i in range(N)]
random = np.random.default_rng(0)
X = pd.DataFrame(random.normal(size=(N, 2)), columns=["a", "b"], index=LABELS)
y = pd.Series(random.uniform(1, 9, N), index=LABELS, name="demand")
DATES = pd.Series(pd.date_range("2024-01-01", periods=N), index=LABELS)
PROBLEM = fw.Newsvendor(3, 1)
SHUFFLED = {
    "in another order": lambda table: table.sample(frac=1, random_state=1),
    "other labels": lambda table: table.rename(lambda label: f"{label}'"),
    "default labels": lambda table: table.reset_index(drop=True),
}


def learner(problem=PROBLEM):
    return fw.DecoupledLearner(problem, fw.NeighborPredictor())


def capped():
    z, demand = cp.Variable(1, nonneg=True, name="z"), cp.Parameter(1, name="demand")
    limit = cp.Parameter(name="limit")
    cost = 3 * cp.sum(cp.pos(demand - z)) + cp.sum(cp.pos(z - demand))
    return fw.CvxpyProblem(cp.Minimize(cost), [z <= limit], decision=z, outcome=demand, given=limit)


LIMIT = pd.Series(9.0, index=LABELS)
ROLLING = {"window": 10, "min_train_days": 20}
FITTED = {
    "policy": lambda: learner().fit(X, y),
    "capped": lambda: learner(capped()).fit(X, y, given=LIMIT),
}
USES = {
    "fit of a predictor": lambda other: fw.EmpiricalPredictor().fit(X, other(y)),
    "fit of a network": lambda other: fw.PointPredictor().fit(X, other(y)),
    "X_val": lambda other: fw.PointPredictor().fit(X, y, X_val=X, y_val=other(y)),
    "fit of a learner": lambda other: learner().fit(X, other(y)),
    "fit of a combined learner": lambda other: fw.CombinedLearner(PROBLEM).fit(X, other(y)),
    "fit of a direct learner": lambda other: fw.DirectLearner(PROBLEM).fit(X, other(y)),
    "a frame of outcomes": lambda other: learner().fit(X, other(y.to_frame())),
    "given": lambda other: learner(capped()).fit(X, y, given=other(LIMIT)),
    "given by name": lambda other: learner(capped()).fit(X, y, given={"limit": other(LIMIT)}),
    "a Given": lambda other: learner(capped()).fit(X, y, given=fw.Given(limit=other(LIMIT))),
    "given to decide": lambda other: FITTED["capped"]().decide(X, given=other(LIMIT)),
    "score": lambda other: FITTED["policy"]().score(X, other(y)),
    "cost": lambda other: PROBLEM.cost(y.to_frame(), other(y.to_frame())),
    "given to a cost": lambda other: capped().cost(y, y, given=other(LIMIT)),
    "given to a violation": lambda other: capped().violation(y, given=other(LIMIT)),
    "given to a regret": lambda other: fw.regret(capped(), y, y, given={"limit": other(LIMIT)}),
    "regret": lambda other: fw.regret(PROBLEM, y.to_frame(), other(y.to_frame())),
    "rolling outcomes": lambda other: fw.evaluate_rolling(learner(), X, other(y), DATES, **ROLLING),
    "rolling dates": lambda other: fw.evaluate_rolling(learner(), X, y, other(DATES), **ROLLING),
    "rolling decisions": lambda other: fw.evaluate_rolling(
        lambda X, y: lambda X: other(pd.DataFrame({"order": 5.0}, index=X.index)),
        X, y, DATES, problem=PROBLEM, **ROLLING,
    ),
    "costs of two methods": lambda other: fw.metrics.bootstrap_difference(y, other(y)),
    "costs and dates": lambda other: fw.metrics.block_bootstrap(y, other(DATES)),
}  # fmt: skip


@pytest.mark.parametrize("other", SHUFFLED)
@pytest.mark.parametrize("use", USES)
def test_labels_that_differ_are_refused_and_say_how_to_align(use, other):
    with pytest.raises(fw.InvalidInputError, match=r"must have the(ir| same) rows.*\.loc\[.*index"):
        USES[use](SHUFFLED[other])


def test_aligned_rows_decide_as_before():
    shuffled = y.sample(frac=1, random_state=1)
    aligned = learner().fit(X, shuffled.loc[X.index]).decide(X)
    pd.testing.assert_frame_equal(aligned, learner().fit(X, y).decide(X))
    assert np.array_equal(aligned, learner().fit(X.to_numpy(), y.to_numpy()).decide(X.to_numpy()))


def test_what_has_no_labels_goes_with_everything():
    for outcome in (y.to_numpy(), y.tolist(), y):
        learner().fit(X, outcome)
    learner().fit(X.to_numpy(), y.sample(frac=1))
    table = fw.evaluate_rolling(learner(), X, y, pd.DatetimeIndex(DATES), **ROLLING)
    assert set(table.index) <= set(LABELS)


def test_equal_labels_of_other_kinds_are_equal():
    learner().fit(X.set_axis(np.arange(N)), y.set_axis(np.arange(N, dtype=np.float64)))
    twice = ["a"] * (N // 2) + ["b"] * (N // 2)
    learner().fit(X.set_axis(twice), y.set_axis(twice))
    with pytest.raises(fw.InvalidInputError, match="twice"):
        learner().fit(X.set_axis(twice), y.set_axis(twice[::-1]))
