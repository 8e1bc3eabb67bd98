"""By how much decisions break constraints: in the user's sense, in any units, never by rounding."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
import torch

import forewise as fw

SCALES = [1e-8, 1.0, 1e8]


def quadratic(price=(4.0, 1.0), budget=20.0):
    return fw.QuadraticNewsvendor([1.0, 1.0], 0.0, 1.0, 2.0, 1.0, 1.0, price=price, budget=budget)


def test_the_newsvendor_orders_nothing_negative():
    problem = fw.Newsvendor(3.0, 1.0)
    assert problem.violation([[0.0, 2.0], [5.0, -1.0]]).tolist() == [0.0, pytest.approx(0.2)]
    assert problem.violation([[-1.0], [2.0]]).tolist() == [1.0, 0.0]
    assert problem.violation(pd.Series([1.0, 2.0], index=[7, 9])).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("unit", SCALES)
@pytest.mark.parametrize("row", SCALES)
def test_the_budget_is_measured_in_any_unit(unit, row):
    problem = quadratic(np.array([4.0, 1.0]) * row, 20.0 * unit * row)
    decision = np.array([[5.0, 0.0], [4.0, 14.0], [9.0, 0.0], [0.0, -1.0]]) * unit
    expected = [0.0, 10 / 20, 16 / 36, 1.0]
    assert problem.violation(decision).tolist() == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize("scale", [1e-12, 1e-4, 1.0, 1e4, 1e12])
def test_a_portfolio_may_return_more_than_is_asked_for(scale):
    problem = fw.Portfolio([0.1, 0.2], 0.1 * scale, upper=2.0 * scale)
    decision = np.array([[1.0, 0.0], [0.0, 2.0], [0.4, 0.2], [3.0, 0.0], [2.0, -0.5]]) * scale
    expected = [0.0, 0.0, 0.2, 1 / 3, 1.0]
    assert problem.violation(decision).tolist() == pytest.approx(expected, abs=1e-12)
    with_budget = fw.Portfolio([0.1, 0.2], 0.1 * scale, budget=scale)
    assert with_budget.violation(np.array([[0.5, 0.5], [1.0, 1.0]]) * scale).tolist() == [0.0, 1.0]


def test_rounding_is_no_violation():
    assert fw.Newsvendor(3.0, 1.0).violation([[-1e-12]]).item() == 0
    assert fw.Newsvendor(3.0, 1.0).violation([[-1e-12, 5.0]]).item() < 1e-6
    assert fw.Newsvendor(3.0, 1.0).violation([[-1e-3], [1e6], [-2e-4]]).max() <= 1e-6
    assert quadratic().violation([[5.0 + 1e-9, 0.0], [-1e-11, 2.0]]).max() < 1e-6
    # Beside a demand of 1e9 a solver's zero may be -1e-4; beside one of 1 it is an order.
    problem = fw.Newsvendor(3.0, 1.0)
    assert problem.cost([[-1e-4]], [[1e9]]).item() == pytest.approx(3e9)
    with pytest.raises(fw.exceptions.InfeasibleDecisionError, match="item 0"):
        problem.cost([[-1e-4]], [[1.0]])


def test_a_right_hand_side_of_rounding_is_zero():
    z, y = cp.Variable(3, name="z"), cp.Parameter(3)
    rows = [z[0] - z[1] == 5.6e-17, z[2] >= 5.6e-17, z <= 10]
    problem = fw.CvxpyProblem(cp.Minimize(cp.sum(cp.abs(z - y))), rows, decision=z, outcome=y)
    assert problem.violation([[5.0, 5.0, 0.0], [5.0, 5.0, 5.0]]).max() < 1e-12
    assert problem.violation([[5.0, 4.0, 0.0]]).item() > 0.1


@pytest.mark.parametrize("unit", SCALES)
def test_a_small_bound_is_a_bound(unit):
    """z₁ ≤ 1e-3 beside a demand of 1: a decision of its size is not taken for zero."""
    z, y = cp.Variable(2, name="z"), cp.Parameter(2)
    problem = fw.CvxpyProblem(
        cp.Minimize(cp.sum(cp.abs(z - y))), [z <= 1e-10 * unit], decision=z, outcome=y
    )
    assert problem.violation(np.array([[3e-10, 0.0]]) * unit).item() == pytest.approx(2 / 3)
    with pytest.raises(fw.exceptions.InfeasibleDecisionError):
        problem.cost(np.array([[3e-10, 0.0]]) * unit, np.array([[1.0, 1.0]]) * unit)


# Constraints on three decisions in units of s; the decisions (1, 1, 1) and (2, 1, 1) in these
# units; whether they meet it.
ATOMS = {
    "norm": lambda z, s: [cp.norm(z) <= 2 * s],
    "squares": lambda z, s: [cp.sum_squares(z) <= 4 * s * s],
    "square root": lambda z, s: [cp.sqrt(z[1] - 0.9 * z[0]) >= np.sqrt(s) * 0.1, z >= 0],
    "sum of sizes": lambda z, s: [cp.norm1(z) <= 3.5 * s],
    "largest": lambda z, s: [cp.max(cp.abs(z)) <= 1.5 * s],
    "parts": lambda z, s: [cp.sum(cp.pos(z)) <= 3.5 * s],
    "norm of parts": lambda z, s: [cp.norm(cp.pos(z)) <= 2 * s],
    "two atoms": lambda z, s: [cp.norm1(z) + cp.norm(z) <= 5 * s],
    "exponential": lambda z, s: [cp.exp(z[0] / s) <= 3],
    "logarithm": lambda z, s: [cp.log(3 - z[0] / s) >= 0.5],
    "entropy": lambda z, s: [cp.entr(z[0] / s) >= -1],
    "quadratic over linear": lambda z, s: [cp.quad_over_lin(z[:2], z[2]) <= 2.5 * s, z >= 0],
    "cube": lambda z, s: [cp.power(z[0], 3) <= 2 * s**3, z >= 0],
    "largest two": lambda z, s: [cp.sum_largest(z, 2) <= 2.5 * s],
    "no bound": lambda z, s: [cp.abs(z[0] - z[1]) <= 0],
}


@pytest.mark.parametrize("unit", SCALES)
@pytest.mark.parametrize("name", ATOMS)
def test_cones_and_auxiliary_variables_are_measured_in_any_unit(name, unit):
    z, y = cp.Variable(3, name="z"), cp.Parameter(3)
    problem = fw.CvxpyProblem(
        cp.Minimize(cp.sum_squares(z / unit - y)), ATOMS[name](z, unit), decision=z, outcome=y
    )
    fine, broken = problem.violation(np.array([[1.0, 1.0, 1.0], [2.0, 1.0, 1.0]]) * unit).tolist()
    assert fine < 1e-9
    assert 0.02 < broken < 10
    with pytest.raises(fw.exceptions.InfeasibleDecisionError, match=r"z\[0\]"):
        problem.cost(np.array([[2.0, 1.0, 1.0]]) * unit, [[1.0, 1.0, 1.0]])


@pytest.mark.parametrize("seed", range(40))
def test_decisions_break_constraints_where_cvxpy_says_so(seed):
    """Points on the boundary, inside and outside of random constraints, over 16 magnitudes."""
    random = np.random.default_rng(seed)
    n, s = 3, 10.0 ** random.integers(-8, 9)
    z, y = cp.Variable(n, name="z"), cp.Parameter(n)
    e = random.normal(size=(3, n)) @ z / s + random.normal(size=3)
    atoms = [
        cp.norm(e), cp.norm1(e), cp.max(e), cp.sum_squares(e), cp.sum(cp.pos(e)), e[0] - e[1],
        cp.norm(cp.pos(e)), cp.log_sum_exp(e), cp.sum_largest(e, 2), cp.sum(cp.exp(e)),
        cp.max(cp.abs(e)) + cp.norm(e[:2]), cp.maximum(cp.norm(e[:2]), cp.abs(e[2])),
    ]  # fmt: skip
    atom = atoms[seed % len(atoms)]
    start = random.normal(size=n) * s
    points = start + s * np.array([0, 1e-2, 0.1, 1.0, 1.0, 1.0])[:, None] * random.normal(
        size=(6, n)
    )
    values = []
    for point in points:
        z.value = point
        values.append(float(atom.value))
    problem = fw.CvxpyProblem(
        cp.Minimize(cp.sum_squares(z / s - y)), [atom <= values[0]], decision=z, outcome=y
    )
    broken = problem.violation(points).numpy() > 1e-6
    assert broken.tolist() == (np.array(values) > values[0] + 1e-6 * abs(values[0])).tolist()


def test_variables_of_a_cost_are_no_constraints():
    """|z − 1|, a norm and a logarithm of the cost bound their own variables from one side only."""
    z, y = cp.Variable(2, name="z"), cp.Parameter(2)
    cost = cp.norm1(z - 1) + cp.norm(z) - cp.sum(cp.log(z + 3)) + cp.sum_squares(z - y)
    problem = fw.CvxpyProblem(cp.Minimize(cost), [cp.sum(z) <= 4], decision=z, outcome=y)
    decision = [[2.0, 2.0], [9.0, -1.0]]
    assert problem.violation(decision).tolist() == pytest.approx([0.0, 4 / 9])
    costs = problem.cost(decision, np.zeros((2, 2)), on_infeasible="infinite")
    assert costs.isinf().tolist() == [False, True]


def test_a_limit_of_zero_is_met_by_zero():
    z, y = cp.Variable(3, name="z"), cp.Parameter(3)
    rows = [cp.norm(cp.pos(z)) <= 0]
    problem = fw.CvxpyProblem(cp.Minimize(cp.sum_squares(z - y)), rows, decision=z, outcome=y)
    assert problem.violation([[-1.0, -2.0, 0.0]]).item() < 1e-9
    assert problem.violation([[-1.0, -2.0, 0.1]]).item() > 0.01


@pytest.mark.parametrize("integer", [{"integer": True}, {"boolean": True}])
def test_integers_are_integers(integer):
    z, y = cp.Variable(2, name="staff", **integer), cp.Parameter(2)
    problem = fw.CvxpyProblem(
        cp.Minimize(cp.sum(cp.abs(z - y))), [cp.sum(z) <= 1], decision=z, outcome=y
    )
    found = problem.violation([[1.0, 0.0], [0.5, 0.25], [1 - 1e-9, 0.0], [1.0, 1.0]])
    assert found.tolist() == pytest.approx([0.0, 0.5, 0.0, 1.0], abs=1e-8)
    with pytest.raises(fw.exceptions.InfeasibleDecisionError, match="is an integer"):
        problem.cost([[0.5, 0.25]], [[1.0, 1.0]])


def budgeted():
    z, y = cp.Variable(2, nonneg=True, name="order"), cp.Parameter(2, name="demand")
    budget, u = cp.Parameter(name="budget"), cp.Variable(2, nonneg=True, name="later")
    cost = cp.sum(z) + 3 * cp.sum(u)
    rows = [cp.sum(z) <= budget, z + u >= y]
    return fw.CvxpyProblem(cp.Minimize(cost), rows, decision=z, outcome=y, given=budget)


def test_what_is_given_is_the_bound_of_each_context():
    problem, decision = budgeted(), [[2.0, 1.0], [2.0, 1.0]]
    assert problem.violation(decision, given=[3.0, 2.0]).tolist() == [0.0, pytest.approx(0.5)]
    assert problem.bound([2.0]).violation(decision).tolist() == pytest.approx([0.5, 0.5])
    with pytest.raises(
        fw.exceptions.InfeasibleDecisionError, match=r"1 of 2 .*row 1.*order\[0\].* ≤ 2 "
    ):
        problem.cost(decision, [[1.0, 1.0], [1.0, 1.0]], [3.0, 2.0])
    with pytest.raises(fw.InvalidInputError, match="given"):
        problem.violation(decision)
    with pytest.raises(fw.InvalidInputError, match="3 rows"):
        problem.violation(decision, given=[1.0, 2.0, 3.0])


def test_recourse_is_no_business_of_the_decision():
    """What is missing is bought later: the first stage alone is checked."""
    problem = budgeted().bound([3.0])
    assert problem.violation([[0.0, 0.0]]).item() == 0
    assert problem.cost([[0.0, 0.0]], [[1.0, 1.0]]).item() == pytest.approx(6.0)


def test_risk_does_not_change_what_is_allowed():
    problem = quadratic().with_risk(fw.CVaR(0.9))
    assert problem.violation([[4.0, 14.0]]).item() == pytest.approx(0.5)
    with pytest.raises(fw.exceptions.InfeasibleDecisionError, match="budget"):
        problem.cost([[4.0, 14.0]], [[1.0, 1.0]])


def test_cost_refuses_names_counts_and_may_count_as_infinite():
    problem = quadratic()
    decision = pd.DataFrame([[1.0, 1.0], *[[9.0, 0.0]] * 8], index=[*"abcdefghi"])
    outcome = np.ones((9, 2))
    with pytest.raises(
        fw.exceptions.InfeasibleDecisionError,
        match=r"8 of 9 .*row b breaks budget by 0\.444.*and 3 more.*tol",
    ):
        problem.cost(decision, outcome)
    infinite = problem.cost(decision, outcome, on_infeasible="infinite")
    assert infinite.isinf().tolist() == [False] + [True] * 8
    assert infinite[0] == problem.cost([[1.0, 1.0]], [[1.0, 1.0]])[0]
    assert problem.cost(decision, outcome, tolerance=0.5).isfinite().all()
    with pytest.raises(fw.InvalidInputError, match="on_infeasible"):
        problem.cost(decision, outcome, on_infeasible="ignore")
    for tolerance in (-1, float("nan"), "much", True):
        with pytest.raises(fw.InvalidInputError, match="tolerance"):
            problem.cost(decision, outcome, tolerance=tolerance)


def test_rounded_orders_pass_with_a_tolerance():
    rounded = [[3.0, 9.0]]  # 21 of 20
    assert quadratic().cost(rounded, [[3.0, 9.0]], tolerance=0.06).isfinite().all()
    with pytest.raises(fw.exceptions.InfeasibleDecisionError):
        quadratic().cost(rounded, [[3.0, 9.0]])


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_decisions_that_are_not_finite_are_refused(wrong):
    problem, decision = quadratic(), [[1.0, 1.0], [wrong, 1.0]]
    for call in (
        lambda: problem.violation(decision),
        lambda: problem.cost(decision, np.ones((2, 2))),
        lambda: problem.cost(decision, np.ones((2, 2)), on_infeasible="infinite"),
        lambda: fw.regret(problem, decision, np.ones((2, 2)), on_infeasible="infinite"),
    ):
        with pytest.raises(fw.InvalidInputError, match=r"decision must be finite.*1 of 2"):
            call()


def test_the_unchecked_cost_is_the_formula():
    problem = quadratic()
    decision = torch.tensor([[9.0, 0.0]], dtype=torch.float64, requires_grad=True)
    cost = problem.unchecked_cost(decision, torch.ones(1, 2, dtype=torch.float64))
    allowed = problem.cost(decision, [[1.0, 1.0]], tolerance=1.0)
    assert cost.item() == allowed.item()
    (slope,) = torch.autograd.grad(allowed.sum(), decision)
    assert slope.isfinite().all()


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_optimal_decisions_meet_the_constraints(seed, scale):
    """Of every solver's, whatever the units; also where the best order is nothing."""
    random = np.random.default_rng(seed)
    demand = fw.Scenarios(random.uniform(0, 10, (6, 12, 2)) * scale)
    nothing = fw.QuadraticNewsvendor([1.0, 1.0], 1e3, 0.0, 1.0, 1.0, 1.0)
    returns = fw.Scenarios(random.normal(0.1, 1, (6, 12, 3)) * scale)
    for problem, scenarios in (
        (fw.Newsvendor(3.0, 1.0), demand),
        (quadratic(budget=20.0 * scale), demand),
        (nothing, demand),
        (fw.Portfolio([0.1, 0.2, 0.15], 0.12, budget=1.0), returns),
        (fw.Portfolio([0.1, 0.2, 0.15], 0.12, upper=0.7), returns),
    ):
        decision = fw.solve(problem, scenarios, on_failure="return").decision
        solved = decision.isfinite().all(1)
        cost = problem.cost(decision[solved], scenarios.values[solved, 0])
        assert cost.isfinite().all()
