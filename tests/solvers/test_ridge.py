"""RidgeSolver: the program it solves, what ties it breaks, its gradients, and bad settings."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
import torch

import forewise as fw


def portfolio(n=4, seed=0):
    random = np.random.default_rng(seed)
    return fw.Portfolio(random.uniform(0.2, 0.5, n), 1.0)


def returns(n_contexts=3, n_scenarios=6, n=4, seed=1):
    return np.random.default_rng(seed).normal(0.3, 1.0, (n_contexts, n_scenarios, n))


@pytest.mark.parametrize("weight", [1e-3, 0.1])
def test_against_clarabel(weight):
    problem, values = portfolio(), returns()
    found = fw.solve(problem, fw.Scenarios(values), fw.solvers.RidgeSolver(weight))
    for context, outcomes in enumerate(values):
        z = cp.Variable(4, nonneg=True)
        loss = cp.sum(cp.pos(-outcomes @ z)) / len(outcomes)
        constraint = problem.expected_return.numpy() @ z >= 1.0
        cp.Problem(cp.Minimize(loss + weight / 4 * cp.sum_squares(z)), [constraint]).solve(
            solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11
        )
        np.testing.assert_allclose(found.decision[context], z.value, atol=1e-5)
        np.testing.assert_allclose(found.objective[context], loss.value, atol=1e-5)


def test_of_equally_good_decisions_the_smallest():
    """Assets that never lose: least squares on the one constraint, p / |p|²."""
    problem = portfolio()
    p = problem.expected_return
    found = fw.solve(problem, fw.Scenarios(np.ones((1, 5, 4))), fw.solvers.RidgeSolver(1e-4))
    torch.testing.assert_close(found.decision[0], p / p.square().sum(), atol=1e-7, rtol=0)
    torch.testing.assert_close(found.objective, torch.zeros(1, dtype=torch.float64))


def test_the_term_is_of_the_decision_alone():
    """Where the tail of a risk begins is a variable, too, but no decision."""
    problem, values, weight = portfolio(), returns() - 3, 0.4  # all lose, so that it is not 0
    found = fw.solve(
        problem.with_risk(fw.CVaR(0.5)), fw.Scenarios(values), fw.solvers.RidgeSolver(weight)
    )
    for context, outcomes in enumerate(values):
        z, start = cp.Variable(4, nonneg=True), cp.Variable()
        tail = start + cp.sum(cp.pos(cp.pos(-outcomes @ z) - start)) / (0.5 * len(outcomes))
        constraint = problem.expected_return.numpy() @ z >= 1.0
        cp.Problem(cp.Minimize(tail + weight / 4 * cp.sum_squares(z)), [constraint]).solve(
            solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11
        )
        np.testing.assert_allclose(found.decision[context], z.value, atol=1e-5)
        np.testing.assert_allclose(found.objective[context], tail.value, atol=1e-5)


def test_gradients_against_differences():
    problem, values = portfolio(), returns(2)
    direction = np.random.default_rng(5).normal(size=values.shape)

    def decided(outcomes):
        scenarios = fw.Scenarios(torch.as_tensor(outcomes))
        return fw.solve(problem, scenarios, fw.solvers.RidgeSolver(0.05)).decision

    y = torch.tensor(values, requires_grad=True)
    pull = torch.linspace(1.0, 2.0, 4, dtype=torch.float64)
    (decided(y) @ pull).sum().backward()
    step = 1e-5
    ends = [decided(values + sign * step * direction) @ pull for sign in (1, -1)]
    difference = (ends[0] - ends[1]).sum() / (2 * step)
    torch.testing.assert_close(
        (y.grad * torch.from_numpy(direction)).sum(), difference, rtol=1e-4, atol=1e-8
    )


def test_combined_learning_through_it():
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 2))
    y = 0.3 + X @ random.normal(size=(2, 4)) + 0.1 * random.normal(size=(60, 4))
    predictor = fw.predictors.MeanFieldPredictor(
        (8,), training=fw.Training(epochs=8, learning_rate=0.01), random_state=0
    )
    learner = fw.CombinedLearner(
        portfolio(), predictor, 4, pretraining=False, solver=fw.solvers.RidgeSolver(0.01)
    ).fit(X, y)
    assert learner.history_[-1]["loss"] < learner.history_[0]["loss"]
    assert learner.policy_.solver == fw.solvers.RidgeSolver(0.01)


@pytest.mark.parametrize("weight", [0, -1.0, float("nan"), float("inf"), "small", True])
def test_bad_weights(weight):
    with pytest.raises(fw.InvalidInputError, match="weight must be a number above 0"):
        fw.solvers.RidgeSolver(weight)
