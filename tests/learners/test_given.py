"""What is given in each context goes through fitting, deciding, scoring and storing."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
import torch

import forewise as fw
from tests.predictors.interruption import interrupting

RANDOM = np.random.default_rng(7)
N = 120
X = RANDOM.normal(size=(N, 2))
Y = 5 + X @ [[1.0, 0.5], [-0.5, 1.0]] + RANDOM.normal(size=(N, 2))
BUDGET = RANDOM.uniform(2, 12, size=N)


def problem_with_budget() -> fw.CvxpyProblem:
    """Two products that share a budget, which is known."""
    z, y = cp.Variable(2, nonneg=True, name="order"), cp.Parameter(2, name="demand")
    budget = cp.Parameter(name="budget")
    cost = 4 * cp.sum(cp.pos(y - z)) + cp.sum(cp.pos(z - y))
    return fw.CvxpyProblem(
        cp.Minimize(cost), [cp.sum(z) <= budget], decision=z, outcome=y, given=budget
    )


def short_training() -> fw.Training:
    return fw.Training(epochs=3, batch_size=32, progress=False)


def learners(problem: fw.Problem) -> list[fw.Learner]:
    network = {"hidden_sizes": (8,), "training": short_training(), "random_state": 0}
    return [
        fw.DecoupledLearner(problem, fw.EmpiricalPredictor()),
        fw.DecoupledLearner(problem, fw.GaussianPredictor(**network)),
        fw.CombinedLearner(problem, fw.GaussianPredictor(**network), 4, pretraining=False),
        fw.DirectLearner(problem, fw.PointPredictor(**network)),
    ]


@pytest.mark.parametrize("k", range(4))
def test_decisions_keep_to_what_is_given(k):
    learner = learners(problem_with_budget())[k].fit(X, Y, given=BUDGET)
    tight, wide = (learner.decide(X, 16, given=np.full(N, b)) for b in (3.0, 100.0))
    assert (tight.sum(1) <= 3 + 1e-6).all()
    assert (wide.sum(1) > 3).all()
    assert learner.score(X, Y, given=np.full(N, 100.0)) > learner.score(X, Y, given=np.full(N, 3.0))


@pytest.mark.parametrize("k", range(4))
def test_rows_of_what_is_given_follow_the_rows_of_the_table(k):
    """Rows in another order, or a piece of them, have the decisions they had."""
    learner = learners(problem_with_budget())[k].fit(X, Y, given=BUDGET)
    all_rows = learner.decide(X, 16, given=BUDGET)
    order = RANDOM.permutation(N)[:50]
    np.testing.assert_allclose(
        learner.decide(X[order], 16, given=BUDGET[order]), all_rows[order], atol=1e-7
    )


def test_validation_rows_are_judged_with_their_own_budget():
    """The cost of validating on rows with no budget at all is that of ordering nothing."""
    learner = learners(problem_with_budget())[2]
    nothing = np.zeros(N)
    learner.fit(X, Y, X_val=X, y_val=Y, given=BUDGET, given_val=nothing)
    problem = problem_with_budget().bound(nothing)
    assert learner.history_[-1]["regret"] == pytest.approx(0, abs=1e-6)
    assert float(problem.cost(np.zeros_like(Y), Y).mean()) == pytest.approx(4 * Y.sum(1).mean())


def test_a_stored_policy_decides_the_same(tmp_path):
    learner = learners(problem_with_budget())[1].fit(X, Y, given=BUDGET)
    learner.policy_.save(tmp_path / "policy")
    loaded = fw.load_policy(tmp_path / "policy")
    np.testing.assert_array_equal(
        loaded.decide(X, 16, given=BUDGET), learner.decide(X, 16, given=BUDGET)
    )


def test_decisions_by_name_and_in_named_columns():
    learner = learners(problem_with_budget())[0].fit(X, Y, given=BUDGET)
    table = learner.decide(pd.DataFrame(X, columns=["a", "b"]).set_axis([0, 1], axis=1), 8,
                           given={"budget": BUDGET})  # fmt: skip
    assert list(table.columns) == ["order[0]", "order[1]"]
    named = learner.policy_.decide_by_name(X, 8, given=BUDGET)
    np.testing.assert_array_equal(named["order"], table.to_numpy())


@pytest.mark.parametrize("k", [2, 3])
def test_checkpoints_know_the_problem_and_what_was_given(k, tmp_path, monkeypatch):
    def fit(given):
        learner = learners(problem_with_budget())[k]
        network = learner.predictor if k == 2 else learner.network
        network.set_params(training=fw.Training(epochs=3, checkpoint=tmp_path / "checkpoint"))
        return learner.fit(X, Y, given=given)

    with monkeypatch.context() as patch:
        interrupting(patch, after=1)
        with pytest.raises(KeyboardInterrupt):
            fit(BUDGET)
    other = BUDGET.copy()
    other[N // 2] = np.nextafter(other[N // 2], 0)
    with pytest.raises(
        fw.exceptions.StorageError, match=r"differs in the problem or what is given:"
    ):
        fit(other)
    assert len(fit(BUDGET).history_) == 3


def test_metrics_take_a_bound_problem():
    problem = problem_with_budget().bound(BUDGET)
    decision = fw.solve(problem, fw.Scenarios(torch.from_numpy(Y)[:, None])).decision
    assert fw.regret(problem, decision, Y) == pytest.approx(0, abs=1e-6)


FORMS = {
    "array": lambda budget: budget.to_numpy(),
    "column": lambda budget: budget.to_numpy()[:, None],
    "series": lambda budget: budget,
    "frame": lambda budget: budget.to_frame(),
    "dict": lambda budget: {"budget": budget},
    "Given": lambda budget: fw.Given(budget=budget),
}


@pytest.mark.parametrize("form", FORMS)
def test_rolling_evaluation_decides_with_each_row_s_own_budget(form):
    """In every form it is what a loop over the windows does by hand."""
    days = pd.Series(pd.date_range("2024-01-01", periods=N))
    budget = pd.Series(BUDGET, name="budget")
    for predictor in (fw.EmpiricalPredictor(), fw.StackedPredictor([fw.EmpiricalPredictor()])):
        learner = fw.DecoupledLearner(problem_with_budget(), predictor)
        costs = fw.evaluate_rolling(
            learner,
            X,
            Y,
            days,
            window=30,
            min_train_days=60,
            n_scenarios=8,
            given=FORMS[form](budget),
        )
        assert (costs.filter(like="decision_").sum(axis=1) <= BUDGET[60:] + 1e-6).all()
        past, now = slice(0, 60), slice(60, 90)
        policy = learner.fit(X[past], Y[past], given=BUDGET[past])
        by_hand = policy.decide(X[now], 8, 0, given=BUDGET[now])
        np.testing.assert_allclose(costs.filter(like="decision_")[:30], by_hand)
    with pytest.raises(fw.InvalidInputError, match="same order"):
        fw.evaluate_rolling(
            learner, pd.DataFrame(X), Y, days, window=30, min_train_days=60, given=budget[::-1]
        )


def test_a_vector_does_for_a_parameter_of_one_entry():
    z, y = cp.Variable(1, nonneg=True), cp.Parameter(1)
    most = cp.Parameter(1, name="most")
    problem = fw.CvxpyProblem(
        cp.Minimize(cp.sum(cp.pos(y - z))), [z <= most], decision=z, outcome=y, given=most
    )
    for given in (BUDGET, pd.Series(BUDGET), {"most": pd.Series(BUDGET)}, BUDGET[:, None]):
        values = fw.Scenarios(np.full((N, 1, 1), 20.0))
        decision = fw.solve(problem.bound(given), values).decision
        np.testing.assert_allclose(decision[:, 0], BUDGET)
    with pytest.raises(fw.InvalidInputError, match=r"shape \(n_contexts, 1\), but"):
        problem.bound({"most": np.ones((N, 2))})


def test_what_is_missing_or_too_short_is_named():
    learner = learners(problem_with_budget())[1]
    with pytest.raises(fw.InvalidInputError, match="given must be passed"):
        learner.fit(X, Y)
    with pytest.raises(fw.InvalidInputError, match="given has 7 rows, but there are 120 contexts"):
        learner.fit(X, Y, given=BUDGET[:7])
    with pytest.raises(fw.InvalidInputError, match="given_val must be passed"):
        learner.fit(X, Y, X, Y, given=BUDGET)
    with pytest.raises(fw.InvalidInputError, match="given_val belongs to X_val"):
        learner.fit(X, Y, given=BUDGET, given_val=BUDGET)
    learner.fit(X, Y, given=BUDGET)
    with pytest.raises(fw.InvalidInputError, match="given must be passed"):
        learner.decide(X)
    with pytest.raises(fw.InvalidInputError, match="given must be None for a Newsvendor"):
        fw.DecoupledLearner(fw.Newsvendor(1, 1.5), fw.EmpiricalPredictor()).fit(
            X, Y[:, 0], given=BUDGET
        )
