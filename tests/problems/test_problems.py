"""Problems: their costs by hand, and what they say of bad data."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import linprog

import forewise as fw

QUADRATIC = {
    "quadratic": [1.0, 2.0], "linear": [1.0, -1.0], "shortage_quadratic": [1.0, 0.0],
    "shortage": [4.0, 5.0], "excess_quadratic": [0.5, 1.0], "excess": [1.0, 2.0],
    "price": [1.0, 2.0], "budget": 10.0,
}  # fmt: skip


def test_newsvendor_cost():
    problem = fw.Newsvendor(shortage=100.0, excess=900.0)
    cost = problem.cost([[3.0], [5.0]], [[4.0], [4.0]])
    assert cost.tolist() == [100.0, 900.0]


def test_quadratic_newsvendor_cost():
    problem = fw.QuadraticNewsvendor(**QUADRATIC)
    # z = (1, 3), y = (3, 1): short (2, 0), over (0, 2).
    expected = (1 * 1 + 2 * 9) + (1 - 3) + (1 * 4 + 4 * 2) + (1 * 4 + 2 * 2)
    assert problem.cost([[1.0, 3.0]], [[3.0, 1.0]]).tolist() == [expected]


def test_diagonal_matrices_and_vectors_cost_the_same():
    full = {k: np.diag(v) if "quadratic" in k else v for k, v in QUADRATIC.items()}
    decision, outcome = [[1.0, 3.0]], [[3.0, 1.0]]
    a, b = fw.QuadraticNewsvendor(**QUADRATIC), fw.QuadraticNewsvendor(**full)
    assert torch.equal(a.cost(decision, outcome), b.cost(decision, outcome))
    scenarios = fw.Scenarios(np.random.default_rng(0).uniform(0, 9, (3, 5, 2)))
    assert torch.allclose(
        fw.solve(a, scenarios).decision, fw.solve(b, scenarios).decision, atol=1e-7
    )


def test_portfolio_cost_is_the_loss_beyond_zero():
    problem = fw.Portfolio([0.1, 0.2], 0.1)
    assert problem.cost([[1.0, 2.0], [1.0, 2.0]], [[1.0, 1.0], [1.0, -1.0]]).tolist() == [0.0, 1.0]


def test_one_asset_holds_just_what_the_return_asks_for():
    values = np.random.default_rng(0).normal(-0.1, 1, (4, 30, 1))
    decision = fw.solve(fw.Portfolio([0.25], 1.0), fw.Scenarios(values)).decision
    assert torch.allclose(decision, torch.full_like(decision, 4.0))


def test_portfolio_bounds_and_budget_hold():
    values = np.random.default_rng(1).normal(0.05, 1, (6, 40, 4))
    problem = fw.Portfolio([0.1, 0.2, 0.3, 0.1], 0.15, budget=1.0, upper=0.5, lower=[0.1, 0, 0, 0])
    decision = fw.solve(problem, fw.Scenarios(values)).decision
    assert torch.allclose(decision.sum(-1), torch.ones(6, dtype=torch.float64))
    assert float(decision.max()) <= 0.5 + 1e-8
    assert float(decision[:, 0].min()) >= 0.1 - 1e-8
    assert float((decision @ problem.expected_return).min()) >= 0.15 - 1e-8


def at_least(problem, values):
    """The smallest loss of a portfolio that may return more than it must, by HiGHS."""
    n = problem.n_outcomes
    M = len(values)
    lower = [*problem.lower.tolist(), *[0.0] * M]
    upper = [*([np.inf] * n if problem.upper is None else problem.upper.tolist()), *[np.inf] * M]
    rows = np.hstack([-values, -np.eye(M)])
    enough = np.hstack([-problem.expected_return.numpy(), np.zeros(M)])
    found = linprog(
        np.repeat([0.0, 1.0 / M], [n, M]),
        A_ub=np.vstack([rows, enough]),
        b_ub=[*[0.0] * M, -float(problem.minimum_return)],
        bounds=np.column_stack([lower, upper]),
    )
    assert found.success
    return found.fun


@pytest.mark.parametrize("mean", [1.0, 0.1, -0.5], ids=["cannot lose", "may lose", "loses"])
@pytest.mark.parametrize(
    "bounds", [{}, {"upper": 2.0}, {"lower": -0.5}], ids=["long", "bounded", "short"]
)
def test_a_portfolio_returns_no_more_than_it_must_and_loses_no_more_for_it(mean, bounds):
    values = np.random.default_rng(2).normal(mean, 0.3, (4, 12, 3))
    problem = fw.Portfolio([0.9, 1.0, 1.1], 2.0, **bounds)
    solution = fw.solve(problem, fw.Scenarios(values))
    returned = solution.decision @ problem.expected_return
    assert torch.allclose(returned, torch.full_like(returned, 2.0))
    assert solution.objective.tolist() == pytest.approx([at_least(problem, v) for v in values])


@pytest.mark.parametrize(
    ("problem", "least"),
    [
        # Holdings that must not be given up return 0.6; any loss is theirs.
        (fw.Portfolio([0.1, 0.2], 0.1, lower=2.0), 0.6),
        # Nothing is asked for, and a debt of one that is good to have.
        (fw.Portfolio([0.1, 0.2], -1.0, upper=[-1.0, 0.0], lower=-2.0), -1.0),
    ],
    ids=["kept", "owed"],
)
def test_a_portfolio_that_cannot_shrink_may_return_more(problem, least):
    values = np.random.default_rng(3).normal(-0.2, 0.3, (2, 9, 2))
    solution = fw.solve(problem, fw.Scenarios(values))
    assert float((solution.decision @ problem.expected_return).min()) >= least - 1e-7
    assert solution.objective.tolist() == pytest.approx([at_least(problem, v) for v in values])


def test_a_return_that_no_holding_reaches_is_infeasible():
    problem = fw.Portfolio([0.1, 0.2], 5.0, budget=1.0)
    solution = fw.solve(problem, fw.Scenarios(np.ones((2, 3, 2))), on_failure="return")
    assert set(solution.status) == {fw.Status.INFEASIBLE}


def test_costs_are_differentiable():
    for problem in (
        fw.Newsvendor([1.0, 2.0], [2.0, 1.0]),
        fw.QuadraticNewsvendor(**QUADRATIC),
        fw.Portfolio([0.1, 0.2], 0.1),
    ):
        decision = torch.tensor([[1.0, 3.0]], dtype=torch.float64, requires_grad=True)
        outcome = torch.tensor([[3.0, -1.5]], dtype=torch.float64, requires_grad=True)
        assert torch.autograd.gradcheck(problem.cost, (decision, outcome))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: fw.Newsvendor(0.0, 0.0), r"shortage \+ excess must be positive"),
        (lambda: fw.Newsvendor(-1.0, 2.0), "shortage must be at least 0, but its smallest .* -1"),
        (lambda: fw.Newsvendor(1.0, np.nan), "excess must be finite"),
        (lambda: fw.Newsvendor([1.0, 2.0], [1.0] * 3), "same items, but have 2 and 3"),
        (lambda: fw.Newsvendor([[1.0]], 1.0), r"shortage must be a vector, but has shape \(1, 1\)"),
        (lambda: fw.Newsvendor("many", 1.0), "shortage must be numbers"),
        (lambda: quadratic(quadratic=[[1.0, 2.0], [0.0, 1.0]]), "quadratic must be symmetric"),
        (
            lambda: quadratic(shortage_quadratic=[[1.0, 2.0], [2.0, 1.0]]),
            "shortage_quadratic must be positive semidefinite, but its smallest eigenvalue is -1",
        ),
        (lambda: quadratic(excess_quadratic=[-1.0, 1.0]), "excess_quadratic must be positive semi"),
        (lambda: quadratic(quadratic=np.eye(3)), "must be a scalar.*length 3|2 × 2|length 2"),
        (lambda: quadratic(linear=[np.inf, 0.0]), "linear must be finite, but 1 of its 2"),
        (lambda: quadratic(shortage=[-1.0, 1.0]), "shortage must be at least 0"),
        (lambda: quadratic(price=None), "price and budget must be given together"),
        (lambda: quadratic(budget=[1.0, 2.0]), "budget must be one number"),
        (lambda: quadratic(linear=[1.0, 2.0, 3.0]), "must be a scalar or a vector of length 3"),
        (lambda: fw.Portfolio([0.1, np.nan], 1.0), "expected_return must be finite"),
        (lambda: fw.Portfolio([0.1, 0.2], [1.0, 2.0]), "minimum_return must be one number"),
        (
            lambda: fw.Portfolio([0.1, 0.2], 1.0, upper=[1.0, -1.0]),
            "lower must not exceed upper, but for asset 1 lower is 0 and upper -1",
        ),
        (lambda: fw.Portfolio([0.1, 0.2], 1.0, upper=[1.0] * 3), "upper must be .* length 2"),
    ],
)
def test_bad_data_are_named(make, message):
    with pytest.raises(fw.InvalidInputError, match=message):
        make()


def quadratic(**changes):
    return fw.QuadraticNewsvendor(**{**QUADRATIC, **changes})


@pytest.mark.parametrize(
    ("decision", "outcome", "message"),
    [
        ([[1.0]], [[1.0, 2.0]], r"decision must have shape .*\(1, 2\), but has shape \(1, 1\)"),
        ([[1.0, 2.0]], [[[1.0, 2.0]]], "outcome must have .* shape"),
        ([[1.0, 2.0]], [1.0, 2.0], "outcome must have 2 outcome.s. .*, but has 1"),
        ([[1.0, 2.0, 3.0]], [[1.0, 2.0, 3.0]], "outcome must have 2 outcome.s. .*, but has 3"),
    ],
)
def test_bad_shapes_are_named(decision, outcome, message):
    with pytest.raises(fw.InvalidInputError, match=message):
        quadratic().cost(decision, outcome)


def test_scenarios_of_another_width_are_named():
    with pytest.raises(
        fw.InvalidInputError, match=r"scenarios must have 2 outcome.s. .*, but has 3"
    ):
        fw.solve(quadratic(), fw.Scenarios(np.ones((1, 2, 3))))
    with pytest.raises(
        fw.InvalidInputError, match=r"must be a forewise.Scenarios, but is a ndarray"
    ):
        fw.solve(quadratic(), np.ones((1, 2, 2)))
    with pytest.raises(fw.InvalidInputError, match=r'must be "raise" or "return", but is .maybe.'):
        fw.solve(quadratic(), fw.Scenarios(np.ones((1, 2, 2))), on_failure="maybe")
