"""Constraints that hold with a probability."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
import torch

import forewise as fw


def served(level: float, n: int = 2) -> fw.CvxpyProblem:
    """Order as little as serves all demands together with a probability."""
    order, demand = cp.Variable(n, name="order"), cp.Parameter(n, name="demand")
    price = np.arange(1.0, n + 1)
    return fw.CvxpyProblem(
        cp.Minimize(price @ order), [fw.chance(demand <= order, level)], decision=order,
        outcome=demand,
    )  # fmt: skip


def extensive(Y: np.ndarray, w: np.ndarray, level: float) -> float:
    order, t = cp.Variable(Y.shape[1]), cp.Variable()
    violation = cp.max(Y - cp.reshape(order, (1, Y.shape[1]), order="C"), axis=1)
    rows = [t + w @ cp.pos(violation - t) / (1 - level) <= 0]
    price = np.arange(1.0, Y.shape[1] + 1)
    return float(cp.Problem(cp.Minimize(price @ order), rows).solve(solver="CLARABEL"))


@pytest.mark.parametrize("level", [0.5, 0.9, 0.97])
def test_it_is_the_cvar_approximation(level):
    random = np.random.default_rng(0)
    Y, w = random.gamma(4.0, 2.0, (3, 30, 2)), random.dirichlet(np.ones(30), 3)
    found = fw.solve(served(level), fw.Scenarios(Y, w))
    for b in range(3):
        assert found.objective[b].item() == pytest.approx(extensive(Y[b], w[b], level), rel=1e-6)


def test_it_holds_with_its_probability_on_fresh_draws():
    random = np.random.default_rng(1)
    draw = lambda n: random.normal([5.0, 8.0], [1.0, 2.0], (n, 2))  # noqa: E731
    decision = fw.solve(served(0.95), fw.Scenarios(draw(300)[None])).decision[0].numpy()
    held = (draw(100_000) <= decision).all(1).mean()
    assert 0.95 <= held < 0.999


def test_costs_do_not_know_of_it():
    problem = served(0.9)
    assert problem.cost([[1.0, 1.0]], [[9.0, 9.0]]).item() == pytest.approx(3.0)
    assert problem.n_decisions() == 2


def test_scenarios_without_weight_do_not_count():
    random = np.random.default_rng(2)
    Y, w = random.gamma(4.0, 2.0, (1, 12, 2)), random.dirichlet(np.ones(12), 1)
    without = fw.solve(served(0.8), fw.Scenarios(Y, w))
    more = np.concatenate([Y, np.full((1, 1, 2), 1e3)], 1)
    with_it = fw.solve(served(0.8), fw.Scenarios(more, np.append(w, [[0.0]], 1)))
    torch.testing.assert_close(with_it.decision, without.decision, rtol=0, atol=1e-5)


def test_gradients_and_recourse_and_risk_go_along():
    """A chance of needing more than a little help, with a quadratic cost of help."""
    order, demand = cp.Variable(nonneg=True, name="order"), cp.Parameter(name="demand")
    helped = cp.Variable(nonneg=True)
    rows = [order + helped >= demand, fw.chance(helped <= 0.5, 0.8)]
    cost = order + 0.2 * cp.square(order) + 2 * helped + cp.square(helped)
    problem = fw.CvxpyProblem(cp.Minimize(cost), rows, decision=order, outcome=demand)
    values = torch.from_numpy(np.random.default_rng(3).gamma(4.0, 1.0, (2, 9, 1)))

    def decided(values: torch.Tensor) -> torch.Tensor:
        return fw.solve(problem, fw.Scenarios(values)).decision[:, 0].sum()

    values.requires_grad_()
    (gradient,) = torch.autograd.grad(decided(values), values)
    move = torch.from_numpy(np.random.default_rng(4).normal(size=(2, 9, 1)))
    with torch.no_grad():
        change = (decided(values + 1e-5 * move) - decided(values - 1e-5 * move)) / 2e-5
    assert (gradient * move).sum().item() == pytest.approx(change.item(), rel=1e-4)
    averse = fw.solve(problem.with_risk(fw.CVaR(0.5)), fw.Scenarios(values.detach()))
    neutral = fw.solve(problem, fw.Scenarios(values.detach()))
    assert (averse.decision[:, 0] >= neutral.decision[:, 0] - 1e-6).all()


def test_it_can_be_learned_and_stored(tmp_path):
    random = np.random.default_rng(5)
    X = random.uniform(-1, 1, (300, 1))
    y = 5 + X @ [[1.0, -1.0]] + random.normal(size=(300, 2))
    learner = fw.DecoupledLearner(served(0.9), fw.NeighborPredictor(n_neighbors=60)).fit(X, y)
    decided = learner.decide(X, 60)
    assert (y <= decided).all(1).mean() > 0.9
    learner.policy_.save(tmp_path / "policy")
    np.testing.assert_allclose(fw.load_policy(tmp_path / "policy").decide(X, 60), decided)
    with pytest.raises(fw.exceptions.UnsupportedProblemError, match="no distribution: use"):
        fw.DirectLearner(served(0.9)).fit(X, y)


def bad(which: str) -> None:
    z, y = cp.Variable(name="z"), cp.Parameter(name="y")
    if which == "level":
        fw.chance(y <= z, 1.0)
    elif which == "equation":
        fw.chance(y == z, 0.9)
    elif which == "certain":
        rows = [fw.chance(z <= 3, 0.9), z >= y]
        fw.CvxpyProblem(cp.Minimize(z), rows, decision=z, outcome=y)
    else:
        count = cp.Variable(integer=True, name="count")
        fw.CvxpyProblem(cp.Minimize(count), [fw.chance(y <= count, 0.9)], decision=count, outcome=y)


@pytest.mark.parametrize(
    ("which", "message"),
    [
        ("level", "level must be between 0 and 1, but is 1.0"),
        ("equation", "chance takes an inequality"),
        ("certain", "neither an outcome nor recourse is in `z <= 3"),
        ("count", "can only stand in linear and quadratic problems"),
    ],
)
def test_what_it_cannot_be_is_said(which, message):
    with pytest.raises(fw.ForewiseError, match=message):
        bad(which)
