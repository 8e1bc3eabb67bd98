"""CvxpyProblem: built-in problems written in CVXPY, textbook programs, names, copies, given."""

from __future__ import annotations

import copy
import pickle
import sys

import cvxpy as cp
import numpy as np
import pytest
import torch

import forewise as fw
from forewise.testing import check_problem

N = 4


def rng(seed=0):
    return np.random.default_rng(seed)


def newsvendor():
    z, y = cp.Variable(N, nonneg=True, name="z"), cp.Parameter(N, name="y")
    cost = 100 * cp.sum(cp.pos(y - z)) + 900 * cp.sum(cp.pos(z - y))
    return fw.CvxpyProblem(cp.Minimize(cost), [], decision=z, outcome=y)


def quadratic_newsvendor(full):
    random = rng(1)
    Q, Qs, Qe = (np.diag(random.uniform(1, 2, N)) for _ in range(3))
    if full:
        Qs = Qs + np.ones((N, N)) / 2
    c, cs, ce, p = random.normal(size=N), *random.uniform(1, 9, (2, N)), random.uniform(1, 2, N)
    z, y = cp.Variable(N, nonneg=True, name="z"), cp.Parameter(N, name="y")
    short, over = cp.pos(y - z), cp.pos(z - y)
    cost = cp.quad_form(z, Q) + c @ z + cp.quad_form(short, Qs) + cs @ short
    cost += cp.quad_form(over, Qe) + ce @ cp.pos(z - y)
    written = fw.CvxpyProblem(cp.Minimize(cost), [p @ z <= 3.0 * N], decision=z, outcome=y)
    built_in = fw.QuadraticNewsvendor(
        quadratic=Q, linear=c, shortage_quadratic=Qs, shortage=cs, excess_quadratic=Qe, excess=ce,
        price=p, budget=3.0 * N,
    )  # fmt: skip
    return built_in, written


def portfolio():
    returns = rng(2).uniform(0.05, 0.2, N)
    z, y = cp.Variable(N, nonneg=True, name="z"), cp.Parameter(N, name="y")
    rows = [returns @ z >= 0.1, cp.sum(z) == 1]
    written = fw.CvxpyProblem(cp.Minimize(cp.pos(-y @ z)), rows, decision=z, outcome=y)
    return fw.Portfolio(returns, 0.1, budget=1.0), written


@pytest.mark.parametrize(
    ("pair", "values"),
    [
        (lambda: (fw.Newsvendor(100.0, 900.0), newsvendor()), rng().uniform(0, 10, (3, 8, N))),
        (lambda: quadratic_newsvendor(False), rng().uniform(0, 10, (3, 8, N))),
        (lambda: quadratic_newsvendor(True), rng().uniform(0, 10, (3, 8, N))),
        (portfolio, rng().normal(0.1, 1, (3, 8, N))),
    ],
    ids=["newsvendor", "quadratic", "full quadratic", "portfolio"],
)
def test_the_papers_problems_equal_the_built_in_ones(pair, values):
    built_in, written = pair()
    found = []
    for problem in (built_in, written):
        outcome = torch.tensor(values, requires_grad=True)
        solution = fw.solve(problem, fw.Scenarios(outcome), fw.InteriorPointSolver())
        (solution.decision * torch.arange(1.0, N + 1)).sum().backward()
        found.append((solution.decision, solution.objective, outcome.grad))
    for ours, theirs in zip(found[1], found[0], strict=True):
        assert torch.allclose(ours, theirs, rtol=1e-6, atol=1e-6)
    decision = rng(5).uniform(0, 5, (3, N))
    ours, theirs = (p.unchecked_cost(decision, values[:, 0]) for p in (written, built_in))
    assert torch.allclose(ours, theirs, rtol=1e-7)
    shapes = {
        name: block.shape for name, block in built_in.program(fw.Scenarios(values)).blocks().items()
    }
    ours = {
        name: block.shape for name, block in written.program(fw.Scenarios(values)).blocks().items()
    }
    assert ours == shapes


@pytest.mark.parametrize("rank", [30, 5, 0])
def test_large_matrices_of_quadratic_forms(rank):
    root = rng(3).normal(size=(30, rank))
    Q = root @ root.T
    z, y = cp.Variable(30, nonneg=True, name="z"), cp.Parameter(30, name="y")
    written = fw.CvxpyProblem(
        cp.Minimize(cp.quad_form(z, Q) + cp.sum(cp.pos(y - z))), [], decision=z, outcome=y
    )
    decision, outcome = rng(4).uniform(0, 1, (2, 3, 30))
    expected = np.einsum("ci,ij,cj->c", decision, Q, decision)
    expected += np.maximum(outcome - decision, 0).sum(1)
    assert np.allclose(written.cost(decision, outcome), expected)


def test_a_large_indefinite_matrix_is_refused():
    z, y = cp.Variable(30, name="z"), cp.Parameter(30, name="y")
    Q = np.ones((30, 30)) - 0.5 * np.eye(30)
    with pytest.raises(fw.exceptions.ModelError, match="not convex by CVXPY's rules"):
        fw.CvxpyProblem(cp.Minimize(cp.quad_form(z, Q) + y @ z), [], decision=z, outcome=y)


def test_conformance():
    check_problem(newsvendor(), rng().uniform(0, 10, (6, N)))
    check_problem(quadratic_newsvendor(True)[1], rng().uniform(0, 10, (6, N)))
    check_problem(farmer(), rng().uniform(2, 3, (4, 3)) * [1, 1.2, 8])


def farmer():
    """Birge and Louveaux, Introduction to Stochastic Programming, section 1.1."""
    acres = cp.Variable(3, nonneg=True, name="acres")  # wheat, corn, sugar beets
    bought, sold = cp.Variable(2, nonneg=True), cp.Variable(4, nonneg=True)
    yields = cp.Parameter(3, name="yields")
    cost = np.array([150, 230, 260]) @ acres + np.array([238, 210]) @ bought
    cost -= np.array([170, 150, 36, 10]) @ sold
    rows = [
        cp.sum(acres) <= 500,
        cp.multiply(yields[:2], acres[:2]) + bought - sold[:2] >= np.array([200, 240]),
        sold[2] + sold[3] <= yields[2] * acres[2],
        sold[2] <= 6000,
    ]
    return fw.CvxpyProblem(cp.Minimize(cost), rows, decision=acres, outcome=yields)


def test_the_farmers_problem():
    values = np.outer([1.2, 1.0, 0.8], [2.5, 3, 20])[None]
    problem, scenarios = farmer(), fw.Scenarios(values)
    solution = fw.solve(problem, scenarios)
    assert solution.objective.item() == pytest.approx(-108390, abs=0.01)
    assert torch.allclose(solution.decision, torch.tensor([[170.0, 80, 250]]).double(), atol=1e-4)
    # The book rounds each scenario's profit to whole dollars: 1,150 and 7,016.
    assert fw.metrics.value_of_stochastic_solution(problem, scenarios).item() == pytest.approx(
        1150, abs=0.5
    )
    assert fw.metrics.expected_value_of_perfect_information(
        problem, scenarios
    ).item() == pytest.approx(7015.56, abs=0.01)


def test_capacity_expansion_with_recourse():
    """Birge and Louveaux, section 5.1, example 1: min 100 x1 + 150 x2 + E q'y; optimum −855.83."""
    x, y = cp.Variable(2, name="x"), cp.Variable(2, nonneg=True)
    demand, price = cp.Parameter(2, name="d"), cp.Parameter(2, name="q")
    rows = [
        cp.sum(x) <= 120, x >= np.array([40, 20]), 6 * y[0] + 10 * y[1] <= 60 * x[0],
        8 * y[0] + 5 * y[1] <= 80 * x[1], y <= demand,
    ]  # fmt: skip
    objective = cp.Minimize(np.array([100, 150]) @ x + price @ y)
    problem = fw.CvxpyProblem(objective, rows, decision=x, outcome=[demand, price])
    values = np.array([[[500, 100, -24, -28], [300, 300, -28, -32]]], dtype=float)
    solution = fw.solve(problem, fw.Scenarios(values, weights=[0.4, 0.6]))
    assert solution.objective.item() == pytest.approx(-5135 / 6, rel=1e-6)
    assert solution.decision[0].tolist() == pytest.approx([140 / 3, 36.25], rel=1e-6)


def test_simple_recourse_of_two_oils():
    """Kall and Wallace, Stochastic Programming, section 1.2: deterministic optimum 126 at (36, 18).

    Their stochastic version replaces demands by four scenarios here; its optimum is checked
    against HiGHS on the extensive form, not against a printed number.
    """
    x = cp.Variable(2, nonneg=True, name="x")
    missing = cp.Variable(2, nonneg=True)
    demand = cp.Parameter(2, name="h")
    rows = [
        cp.sum(x) <= 100,
        cp.hstack([2 * x[0] + 6 * x[1], 3 * x[0] + 3 * x[1]]) + missing >= demand,
    ]
    objective = cp.Minimize(np.array([2, 3]) @ x + np.array([7, 12]) @ missing)
    problem = fw.CvxpyProblem(objective, rows, decision=x, outcome=demand)
    certain = fw.solve(problem, fw.Scenarios([[[180.0, 162.0]]]))
    assert certain.objective.item() == pytest.approx(126, rel=1e-6)
    assert certain.decision[0].tolist() == pytest.approx([36, 18], rel=1e-6)
    values = np.array([180, 162]) + rng().normal(0, 10, (2, 4, 2))
    ours = fw.solve(problem, fw.Scenarios(values)).objective
    theirs = fw.solve(problem, fw.Scenarios(values), fw.ReferenceSolver()).objective
    assert torch.allclose(ours, theirs, rtol=1e-6)


def test_a_decision_that_meets_the_outcome_but_for_rounding_has_a_cost():
    """What is left to do is then nothing, and not a program of size 1e-15."""
    make = cp.Variable(2, nonneg=True)
    demand, lent, short = cp.Parameter(2), cp.Variable(2, nonneg=True), cp.Variable(2, nonneg=True)
    rows = [lent <= make, short >= demand - make + lent - lent[::-1]]
    cost = np.array([1.0, 1.2]) @ make + 9 * cp.sum(short) + 1.5 * cp.sum(lent)
    problem = fw.CvxpyProblem(cp.Minimize(cost), rows, decision=make, outcome=demand)
    outcome = torch.tensor([[8.3539, 4.4996]], dtype=torch.float64)
    decision = outcome - torch.tensor([[5.3e-15, 8.9e-16]], dtype=torch.float64)
    expected = decision @ torch.tensor([1.0, 1.2], dtype=torch.float64)
    torch.testing.assert_close(problem.cost(decision, outcome), expected)


def test_a_decision_in_single_precision_misses_its_rows_by_more_and_has_a_cost():
    """Σ|z₂ − z₁| ≤ 1.75 has variables of its own, which rounding of z must not make impossible."""
    schedule, load = cp.Variable(6, nonneg=True), cp.Parameter(6)
    battery = cp.Variable(6)
    missing = load - schedule - battery
    rows = [cp.norm1(cp.diff(schedule)) <= 1.75, cp.abs(battery) <= 0.3, cp.cumsum(battery) <= 0.5]
    problem = fw.CvxpyProblem(
        cp.Minimize(cp.sum_squares(missing)), rows, decision=schedule, outcome=load
    )
    steep = 5 + torch.arange(6, dtype=torch.float64) % 2 * 0.35 + 0.1 * torch.arange(8)[:, None]
    outcome = torch.full((8, 6), 8.0, dtype=torch.float64)
    single = steep.float()
    assert float(single.double().diff(dim=1).abs().sum(1).max()) > 1.75 + 3e-7
    torch.testing.assert_close(
        problem.cost(single, outcome), problem.cost(steep, outcome), rtol=1e-4, atol=0
    )
    assert problem.cost(steep * 1.001, outcome, on_infeasible="infinite").isinf().all()


def transport():
    """Two decisions, one a matrix; outcomes a matrix and a vector; a matrix that is given."""
    ship, spare = cp.Variable((2, 3), nonneg=True, name="ship"), cp.Variable(name="spare")
    need, extra = cp.Parameter((2, 3), name="need"), cp.Parameter(name="extra")
    price, room = cp.Parameter((2, 3), name="price"), cp.Parameter(2, name="room")
    cost = cp.sum(cp.multiply(price, ship)) + 9 * cp.sum(cp.pos(need - ship)) + cp.square(spare)
    cost += 5 * cp.abs(spare - extra) + cp.sum(cp.square(ship))
    return fw.CvxpyProblem(
        cp.Minimize(cost), [cp.sum(ship, axis=1) <= room], decision=[ship, spare],
        outcome=[need, extra], given=[price, room],
    )  # fmt: skip


def test_names_shapes_and_orders():
    problem = transport()
    assert problem.decision_shapes == {"ship": (2, 3), "spare": ()}
    assert (problem.n_outcomes, problem.n_decisions()) == (7, 7)
    ship = np.arange(6.0).reshape(2, 3)
    decision = np.concatenate([ship.reshape(-1), [7.0]])  # decisions are as NumPy's
    parts = problem.split_decision(np.stack([decision, decision]))
    assert np.array_equal(parts["ship"], np.stack([ship, ship]))
    assert parts["spare"].tolist() == [7, 7]
    assert torch.equal(problem.join_decision(parts), torch.tensor(np.stack([decision, decision])))
    assert problem.split_decision(torch.tensor(decision))["ship"].tolist() == ship.tolist()
    need = rng().uniform(0, 6, (2, 3))
    outcome = np.concatenate([need.reshape(-1), [6.0]])  # and so are outcomes
    price = rng(1).uniform(0, 2, (2, 3))
    bound = problem.bound({"price": price[None], "room": np.array([[20.0, 20.0]])})
    expected = (price * ship).sum() + 9 * np.clip(need - ship, 0, None).sum() + 49 + 5
    expected += (ship**2).sum()
    assert bound.cost(decision[None], outcome[None]).item() == pytest.approx(expected)
    assert "ship (2, 3), spare; outcome: need (2, 3), extra; given: price" in repr(problem)


def test_matrices_are_decided_row_by_row():
    """Of decision and outcome of one shape, the same column is the same entry."""
    ship, need = cp.Variable((2, 3), name="ship"), cp.Parameter((2, 3), name="need")
    problem = fw.CvxpyProblem(cp.Minimize(cp.sum_squares(ship - need)), decision=ship, outcome=need)
    outcome = rng(4).uniform(1, 9, (5, 2, 3))
    flat = outcome.reshape(5, 6)
    solution = fw.solve(problem, fw.Scenarios(flat[:, None]))
    torch.testing.assert_close(solution.decision, torch.tensor(flat), rtol=1e-6, atol=1e-6)
    assert problem.cost(flat, flat).tolist() == pytest.approx([0.0] * 5, abs=1e-12)
    assert np.array_equal(problem.split_decision(flat)["ship"], outcome)
    assert torch.equal(problem.join_decision({"ship": outcome}), torch.tensor(flat))
    assert problem.decision_names() == [f"ship[{i},{j}]" for i in range(2) for j in range(3)]
    policy = fw.DecoupledLearner(problem, fw.NeighborPredictor(1)).fit(flat, flat).policy_
    assert np.allclose(policy.decide(flat, n_scenarios=1), flat, atol=1e-6)
    assert np.allclose(policy.decide_by_name(flat, n_scenarios=1)["ship"], outcome, atol=1e-6)


def test_what_was_stored_column_by_column_is_refused():
    state = transport().state()
    assert fw.CvxpyProblem.from_state(state).decision_names() == transport().decision_names()
    del state["layout"]["order"]  # as it was before decisions stood row by row
    with pytest.raises(fw.exceptions.StorageError, match=r"ship.*column by column.*again"):
        fw.CvxpyProblem.from_state(state)
    state["layout"]["decision"] = {"flat": [1, 6], "spare": []}  # in which both orders are one
    assert fw.CvxpyProblem.from_state(state).n_decisions() == 7


def test_given_equals_a_loop_over_contexts():
    problem, random = transport(), rng(3)
    price, room = random.uniform(0, 2, (5, 2, 3)), random.uniform(1, 3, (5, 2))
    values = random.uniform(0, 3, (5, 6, 7))
    bound = problem.bound({"price": price, "room": room})
    flat = problem.bound(np.concatenate([price.reshape(5, -1), room], axis=1))
    together = fw.solve(bound, fw.Scenarios(values)).objective
    assert torch.equal(fw.solve(flat, fw.Scenarios(values)).objective, together)
    decision = fw.solve(bound, fw.Scenarios(values)).decision
    costs = bound.cost(decision, values[:, 0])
    for i in range(5):
        alone = problem.bound({"price": price[i : i + 1], "room": room[i : i + 1]})
        scenarios = fw.Scenarios(values[i : i + 1])
        assert fw.solve(alone, scenarios).objective[0] == together[i]
        assert torch.allclose(alone.cost(decision[i : i + 1], values[i : i + 1, 0])[0], costs[i])
    rows = torch.tensor([4, 1])
    part = fw.solve(bound[rows], fw.Scenarios(values[[4, 1]])).objective
    assert torch.equal(part, together[rows])
    assert torch.equal(fw.solve(bound[1:3], fw.Scenarios(values[1:3])).objective, together[1:3])
    values_of = fw.metrics.expected_value_of_perfect_information(bound, fw.Scenarios(values))
    first = fw.metrics.expected_value_of_perfect_information(bound[:1], fw.Scenarios(values[:1]))
    assert values_of[0] == pytest.approx(first[0].item())
    assert (
        float(fw.metrics.value_of_stochastic_solution(bound, fw.Scenarios(values)).min()) >= -1e-6
    )


def test_decisions_are_differentiable_in_what_is_given():
    problem, random = transport(), rng(4)
    values = random.uniform(0, 3, (2, 5, 7))
    given = torch.tensor(random.uniform(1, 2, (2, 8)), requires_grad=True)

    def decide(given):
        return fw.solve(problem.bound(given), fw.Scenarios(values)).decision

    assert torch.autograd.gradcheck(decide, (given,), eps=1e-5, atol=1e-4, rtol=1e-3)
    decision = torch.tensor(random.uniform(0, 1, (2, 7)), requires_grad=True)
    outcome = torch.tensor(values[:, 0], requires_grad=True)

    def cost(decision, outcome, given):
        return problem.bound(given).unchecked_cost(decision, outcome)

    assert torch.autograd.gradcheck(cost, (decision, outcome, given), eps=1e-6, atol=1e-5)


def test_a_problem_without_given_is_bound_to_nothing():
    problem = newsvendor()
    assert problem.bound(None) is problem
    for built_in in (fw.Newsvendor(1.0, 2.0), fw.Portfolio([0.1], 0.1)):
        assert built_in.bound(None) is built_in
        assert built_in.for_contexts(slice(0, 1)) is built_in


def test_copies_need_no_cvxpy(monkeypatch):
    problem = transport()
    stored = pickle.dumps(problem)
    monkeypatch.setitem(sys.modules, "cvxpy", None)
    scenarios = fw.Scenarios(rng().uniform(0, 3, (2, 4, 7)))
    given = rng().uniform(1, 2, (2, 8))
    expected = fw.solve(problem.bound(given), scenarios).decision
    for again in (pickle.loads(stored), copy.deepcopy(problem)):
        assert torch.equal(fw.solve(again.bound(given), scenarios).decision, expected)
    bound = pickle.loads(pickle.dumps(problem.bound(given)))
    assert torch.equal(fw.solve(bound, scenarios).decision, expected)
    with pytest.raises(
        fw.exceptions.MissingDependencyError, match=r'pip install "forewise\[cvxpy\]"'
    ):
        fw.CvxpyProblem(None, [], decision=None, outcome=None)


def test_what_needs_no_outcome_is_decided_once():
    z, y = cp.Variable(3, name="z"), cp.Parameter(3, name="y")
    held = np.ones(3)
    cost = cp.norm1(z - held) + cp.sum_squares(z - y) + cp.sum(cp.abs(z - y))
    problem = fw.CvxpyProblem(cp.Minimize(cost), [], decision=z, outcome=y)
    values = rng().normal(size=(1, 4, 3))
    program = problem.program(fw.Scenarios(values))
    assert program.n_decisions == 6  # the decision, and its distance from what is held
    assert program.n_recourse == 3  # one per absolute value; squares have none
    assert program.T.shape[-2] == 3
    assert program.F.shape[-2] == 0
    solution = fw.solve(problem, fw.Scenarios(values))
    truth = cp.Problem(cp.Minimize(
        cp.norm1(z - held) + sum(cp.sum_squares(z - v) + cp.norm1(z - v) for v in values[0]) / 4
    ))  # fmt: skip
    assert solution.objective.item() == pytest.approx(truth.solve(solver=cp.CLARABEL), rel=1e-6)


def test_a_constant_parameter_may_multiply_an_outcome():
    z, y = cp.Variable(2, nonneg=True, name="z"), cp.Parameter(2, name="y")
    rate = cp.Parameter(name="rate", value=2.0)
    objective = cp.Minimize(rate * (y @ z) + cp.sum_squares(z))
    problem = fw.CvxpyProblem(objective, [], decision=z, outcome=y)
    assert problem.cost([[1.0, 2.0]], [[3.0, 1.0]]).tolist() == [15.0]
    assert rate.value == 2.0


def test_a_decision_that_leaves_no_recourse_costs_infinitely_much():
    z, y = cp.Variable(1, name="z"), cp.Parameter(1, name="y")
    u = cp.Variable(2, nonneg=True)
    rows = [cp.sum(u) + z == y, u[0] <= 1, u[1] <= 1]
    problem = fw.CvxpyProblem(cp.Minimize(cp.sum(u) - z[0]), rows, decision=z, outcome=y)
    decision = torch.tensor([[1.0], [5.0], [3.0]], dtype=torch.float64, requires_grad=True)
    cost = problem.cost(decision, [[2.0]] * 3)
    assert cost.tolist()[1:] == [torch.inf] * 2
    assert cost[0].item() == pytest.approx(0.0, abs=1e-7)
    cost[0].backward()
    assert decision.grad[0, 0].item() == pytest.approx(-2.0)
    # A decision that misses by rounding does not.
    assert problem.cost([[2 + 1e-9]], [[2.0]]).item() == pytest.approx(-2, abs=1e-5)


def test_uncertain_constraints_hold_in_every_scenario():
    z, y = cp.Variable(2, nonneg=True, name="z"), cp.Parameter(2, name="y")
    problem = fw.CvxpyProblem(cp.Minimize(cp.sum(z)), [y @ z >= 1], decision=z, outcome=y)
    values = rng().uniform(0.5, 2, (3, 6, 2))
    decision = fw.solve(problem, fw.Scenarios(values)).decision
    products = (torch.tensor(values) * decision.unsqueeze(1)).sum(-1)
    assert float(products.min()) >= 1 - 1e-7
    assert problem.cost([[0.1, 0.1]], [[1.0, 1.0]]).item() == torch.inf
    assert problem.cost([[1.0, 0.5]], [[1.0, 1.0]]).item() == 1.5


def test_a_solution_has_the_users_decisions_and_its_other_variables_aside():
    """|z − held| ≤ 1 brings a variable of its own into the first stage, and so does a risk."""
    z, y = cp.Variable(2, name="z"), cp.Parameter(2, name="y")
    held = np.array([1.0, 2.0])
    problem = fw.CvxpyProblem(
        cp.Minimize(cp.sum(cp.abs(z - y))), [cp.norm1(z - held) <= 1], decision=z, outcome=y
    )
    scenarios = fw.Scenarios(torch.tensor([[[4.0, 2.0], [5.0, 2.0]]], dtype=torch.float32))
    for chosen in (problem, problem.with_risk(fw.CVaR(0.5))):
        solution = fw.solve(chosen, scenarios)
        assert solution.decision.shape == (1, 2)
        np.testing.assert_allclose(solution.decision, [[2.0, 2.0]], atol=1e-6)
        assert solution.auxiliary.dtype == torch.float32
        assert solution.auxiliary.shape[1] >= 1
        assert torch.equal(solution.first_stage[:, :2], solution.decision)
        assert torch.equal(solution.first_stage[:, 2:], solution.auxiliary)
    assert fw.solve(fw.Newsvendor(1.0, 2.0), scenarios).auxiliary is None


def limits(written):
    """A plan near the outcome, changed by little from one step to the next, within limits."""
    z, y = cp.Variable(N, name="z"), cp.Parameter(N, name="y")
    help_, step = cp.Variable(N), cp.diff(z)
    if written == "atoms":
        rows = [cp.abs(step) <= 0.5, cp.norm_inf(help_) <= 0.3, cp.maximum(z, help_) <= y + 2]
        rows += [cp.minimum(z, 5.0) >= 1]
    else:
        rows = [step <= 0.5, -step <= 0.5, help_ <= 0.3, -help_ <= 0.3, z <= y + 2, help_ <= y + 2]
        rows += [z >= 1]
    cost = cp.sum_squares(y - z - help_) + 0.1 * cp.sum(z)
    return fw.CvxpyProblem(cp.Minimize(cost), rows, decision=z, outcome=y)


def test_limits_of_absolute_values_and_maxima_cost_no_variables():
    """They become the rows that one would write by hand, also where a limit is uncertain."""
    scenarios = fw.Scenarios(rng(6).uniform(0.5, 6, (3, 5, N)))
    atoms, by_hand = limits("atoms"), limits("by hand")
    ours, theirs = atoms.program(scenarios), by_hand.program(scenarios)
    assert (ours.n_decisions, ours.n_recourse) == (theirs.n_decisions, theirs.n_recourse)
    assert ours.h.shape == theirs.h.shape
    assert ours.r.shape == theirs.r.shape
    one, other = fw.solve(atoms, scenarios), fw.solve(by_hand, scenarios)
    true = fw.solve(by_hand, scenarios, fw.ReferenceSolver())
    assert torch.allclose(one.objective, true.objective, rtol=1e-7)
    assert torch.allclose(other.objective, true.objective, rtol=1e-7)
    assert torch.allclose(one.decision, true.decision, atol=1e-4)


def test_limits_that_nothing_can_meet_are_still_infeasible():
    z, y = cp.Variable(2, name="z"), cp.Parameter(2, name="y")
    rows = [cp.abs(z) <= -1.0]
    problem = fw.CvxpyProblem(cp.Minimize(cp.sum_squares(z - y)), rows, decision=z, outcome=y)
    solution = fw.solve(problem, fw.Scenarios(torch.rand(1, 3, 2).double()), on_failure="return")
    assert solution.status[0] is fw.Status.INFEASIBLE
