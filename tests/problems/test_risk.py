"""Risks of costs: their limits, their programs, and what they are worth in learning."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
import torch

import forewise as fw
from forewise_lab.datasets.real import oven_problem

RISKS = [fw.CVaR(0.5), fw.CVaR(0.9), fw.MeanCVaR(0.3, 0.8), fw.WorstCase()]


def quadratic(n: int, seed: int, full: bool = False) -> fw.QuadraticNewsvendor:
    random = np.random.default_rng(seed)

    def curved() -> np.ndarray:
        root = random.normal(size=(n, n)) / n
        return root @ root.T + 0.1 * np.eye(n) if full else random.uniform(0.1, 1, n)

    return fw.QuadraticNewsvendor(
        quadratic=random.uniform(0, 0.2, n),
        linear=random.uniform(0, 1, n),
        shortage_quadratic=curved(),
        shortage=random.uniform(0, 5, n),
        excess_quadratic=curved(),
        excess=random.uniform(0, 2, n),
        price=np.ones(n),
        budget=2.0 * n,
    )


def linear() -> fw.Newsvendor:
    return fw.Newsvendor([4.0, 3.0], [1.0, 2.0])


def draws(n_contexts: int, n_scenarios: int, n: int, seed: int = 0) -> fw.Scenarios:
    generator = torch.Generator().manual_seed(seed)
    values = 4 * torch.rand(n_contexts, n_scenarios, n, generator=generator, dtype=torch.float64)
    weights = torch.rand(n_contexts, n_scenarios, generator=generator, dtype=torch.float64)
    return fw.Scenarios(values, weights / weights.sum(-1, keepdim=True))


def costs_of(problem: fw.Problem, decision: torch.Tensor, scenarios: fw.Scenarios) -> torch.Tensor:
    M = scenarios.n_scenarios
    repeated = decision.repeat_interleave(M, 0)
    return problem.cost(repeated, scenarios.values.flatten(0, 1)).reshape(-1, M)


def clarabel_value(
    problem: fw.QuadraticNewsvendor, Y: np.ndarray, w: np.ndarray, risk: fw.problems.Risk
):
    """The risk's least value by a cone program, written out in CVXPY."""
    M, n = Y.shape
    form = {name: getattr(problem, name).numpy() for name in
            ("quadratic", "linear", "shortage", "excess", "price")}  # fmt: skip
    curved = [getattr(problem, f"{kind}_quadratic").numpy() for kind in ("shortage", "excess")]
    curved = [np.diag(matrix) if matrix.ndim == 1 else matrix for matrix in curved]
    z, cost = cp.Variable(n, nonneg=True), cp.Variable(M)
    short, over = cp.Variable((M, n), nonneg=True), cp.Variable((M, n), nonneg=True)
    rows = [form["price"] @ z <= float(problem.budget)]
    for j in range(M):
        rows += [short[j] >= Y[j] - z, over[j] >= z - Y[j]]
        rows += [
            form["shortage"] @ short[j] + cp.quad_form(short[j], cp.psd_wrap(curved[0]))
            + form["excess"] @ over[j] + cp.quad_form(over[j], cp.psd_wrap(curved[1])) <= cost[j]
        ]  # fmt: skip
    tail = cp.max(cost)
    if risk.level < 1:
        t, v = cp.Variable(), cp.Variable(M, nonneg=True)
        rows.append(v >= cost - t)
        tail = t + w @ v / (1 - risk.level)
    first = form["linear"] @ z + form["quadratic"] @ cp.square(z)
    total = first + (1 - risk.share) * (w @ cost) + risk.share * tail
    return cp.Problem(cp.Minimize(total), rows).solve(solver="CLARABEL")


@pytest.mark.parametrize("risk", RISKS, ids=str)
@pytest.mark.parametrize("full", [False, True])
def test_the_risk_of_a_quadratic_cost_equals_the_cone_program_s(risk, full):
    problem, scenarios = quadratic(3, seed=3, full=full), draws(3, 12, 3)
    solution = fw.solve(problem.with_risk(risk), scenarios)
    for b in range(3):
        Y, w = scenarios.values[b].numpy(), scenarios.weights[b].numpy()
        assert solution.objective[b].item() == pytest.approx(
            clarabel_value(problem, Y, w, risk), rel=2e-7
        )


@pytest.mark.parametrize("risk", RISKS, ids=str)
@pytest.mark.parametrize("problem", [linear(), quadratic(2, seed=1)], ids=["linear", "quadratic"])
def test_the_objective_is_the_risk_of_the_decision_s_own_costs(problem, risk):
    scenarios = draws(4, 20, 2)
    solution = fw.solve(problem.with_risk(risk), scenarios)
    own = risk(costs_of(problem, solution.decision, scenarios), scenarios.weights)
    torch.testing.assert_close(solution.objective, own, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("risk", RISKS, ids=str)
@pytest.mark.parametrize("problem", [linear(), quadratic(2, seed=1)], ids=["linear", "quadratic"])
def test_no_other_decision_has_less_risk(problem, risk):
    scenarios = draws(4, 20, 2)
    best = fw.solve(problem.with_risk(risk), scenarios)
    generator = torch.Generator().manual_seed(5)
    for size in (1e-3, 1e-1, 1.0):
        moved = best.decision + size * torch.randn(4, 2, generator=generator, dtype=torch.float64)
        moved = moved.clamp_min(0)
        if isinstance(problem, fw.QuadraticNewsvendor):
            moved = moved * (problem.budget / moved.sum(-1, keepdim=True)).clamp_max(1)
        other = risk(costs_of(problem, moved, scenarios), scenarios.weights)
        assert (other >= best.objective - 1e-7).all()


@pytest.mark.parametrize("problem", [linear(), quadratic(2, seed=1)], ids=["linear", "quadratic"])
def test_levels_have_the_mean_and_the_worst_case_for_limits(problem):
    scenarios = draws(5, 15, 2)

    def value(risk: fw.problems.Risk) -> torch.Tensor:
        return fw.solve(problem.with_risk(risk), scenarios).objective

    mean, worst = fw.solve(problem, scenarios).objective, value(fw.WorstCase())
    torch.testing.assert_close(value(fw.CVaR(0.0)), mean, rtol=1e-8, atol=1e-8)
    torch.testing.assert_close(value(fw.CVaR(1e-6)), mean, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(value(fw.CVaR(0.9999)), worst, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(value(fw.MeanCVaR(0.0, 0.9)), mean, rtol=1e-8, atol=1e-8)
    torch.testing.assert_close(
        value(fw.MeanCVaR(1.0, 0.9)), value(fw.CVaR(0.9)), rtol=1e-6, atol=1e-6
    )
    levels = [value(fw.CVaR(level)) for level in (0.1, 0.5, 0.9, 0.99)]
    for lower, higher in zip([mean, *levels], [*levels, worst], strict=True):
        assert (lower <= higher + 1e-7).all()


def test_risks_of_plain_numbers():
    costs = torch.arange(1.0, 11.0, dtype=torch.float64)
    assert fw.Expectation()(costs).item() == pytest.approx(5.5)
    assert fw.CVaR(0.8)(costs).item() == pytest.approx(9.5)
    assert fw.CVaR(0.85)(costs).item() == pytest.approx((10 + 0.5 * 9) / 1.5)
    assert fw.MeanCVaR(0.5, 0.8)(costs).item() == pytest.approx(7.5)
    assert fw.WorstCase()(costs).item() == 10
    weights = torch.zeros(10, dtype=torch.float64)
    weights[:2] = 0.5
    assert fw.WorstCase()(costs, weights).item() == 2
    assert fw.CVaR(0.5)(costs, weights).item() == pytest.approx(2)


@pytest.mark.parametrize("risk", RISKS, ids=str)
@pytest.mark.parametrize("full", [False, True])
def test_gradients_equal_finite_differences(risk, full):
    problem, scenarios = quadratic(2, seed=2, full=full), draws(2, 7, 2, seed=4)
    averse = problem.with_risk(risk)
    direction = torch.tensor([1.0, -0.7], dtype=torch.float64)

    def decided(values: torch.Tensor) -> torch.Tensor:
        solution = fw.solve(averse, fw.Scenarios(values, scenarios.weights))
        return (solution.decision @ direction).sum() + solution.objective.sum()

    values = scenarios.values.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(decided(values), values)
    random = np.random.default_rng(0)
    step = 1e-5
    for _ in range(4):
        move = torch.from_numpy(random.normal(size=tuple(values.shape)))
        with torch.no_grad():
            change = (decided(values + step * move) - decided(values - step * move)) / (2 * step)
        assert (gradient * move).sum().item() == pytest.approx(change.item(), rel=2e-4, abs=2e-4)


def test_many_equally_good_decisions():
    """Shortages that cost in proportion leave decisions loose; what is not the tail limits them."""
    problem = oven_problem(cvar=0.9)
    generator = torch.Generator().manual_seed(0)
    spread = torch.exp(0.5 * torch.randn(60, 12, 3, generator=generator, dtype=torch.float64))
    usual = torch.tensor([70.0, 15.0, 20.0], dtype=torch.float64)
    scenarios = fw.Scenarios((usual * spread).round()[10:50])
    solution = fw.solve(problem, scenarios)
    costs = costs_of(problem.problem, solution.decision[:, :3], scenarios)
    torch.testing.assert_close(solution.objective, problem.risk(costs), rtol=1e-8, atol=0)
    for i in (0, 5, 30, 33):
        Y, w = scenarios.values[i].numpy(), scenarios.weights[i].numpy()
        expected = clarabel_value(problem.problem, Y, w, problem.risk)
        assert solution.objective[i].item() == pytest.approx(expected, rel=1e-6)


def test_ordering_nothing_is_a_decision():
    """Where excess costs far more than shortage, of demand that may be 0."""
    problem = fw.QuadraticNewsvendor(0.0, [5.0], 1.0, [1.0], 1.0, [9.0]).with_risk(fw.CVaR(0.8))
    values = torch.tensor([[[0.0], [0.1], [0.0], [0.2]]], dtype=torch.float64, requires_grad=True)
    solution = fw.solve(problem, fw.Scenarios(values))
    assert solution.decision[0, 0].item() == pytest.approx(0, abs=1e-6)
    assert solution.objective.item() == pytest.approx(0.2 + 0.2**2, rel=1e-6)
    (gradient,) = torch.autograd.grad(solution.objective.sum(), values)
    expected = torch.tensor([0.0, 0.0, 0.0, 1.4], dtype=torch.float64)
    torch.testing.assert_close(gradient.flatten(), expected, rtol=1e-4, atol=1e-4)


def test_what_the_first_stage_costs_by_outcome_is_part_of_the_risk():
    """The loss −y'z is linear in z with uncertain coefficients: CVaR of a portfolio."""
    z, y = cp.Variable(3, nonneg=True), cp.Parameter(3)
    problem = fw.CvxpyProblem(
        cp.Minimize(-y @ z + 0.1 * cp.sum_squares(z)), [cp.sum(z) == 1], decision=z, outcome=y
    )
    random = np.random.default_rng(3)
    Y = random.normal([0.1, 0.2, 0.3], [0.1, 0.5, 1.0], size=(40, 3))
    for risk in RISKS:
        solution = fw.solve(problem.with_risk(risk), fw.Scenarios(Y[None]))
        w, loss, t = cp.Variable(3, nonneg=True), None, cp.Variable()
        loss = -Y @ w
        tail = cp.max(loss)
        if risk.level < 1:
            tail = t + cp.sum(cp.pos(loss - t)) / 40 / (1 - risk.level)
        total = (1 - risk.share) * cp.sum(loss) / 40 + risk.share * tail
        least = cp.Problem(
            cp.Minimize(total + 0.1 * cp.sum_squares(w)), [cp.sum(w) == 1]
        ).solve(solver="CLARABEL")  # fmt: skip
        assert solution.objective.item() == pytest.approx(least, abs=1e-7)
        np.testing.assert_allclose(solution.decision[0], w.value, atol=5e-4)


def test_a_scenario_of_no_weight_is_not_the_worst():
    scenarios = draws(1, 10, 2)
    weights = scenarios.weights.clone()
    weights[0, 3] = 0
    values = scenarios.values.clone()
    values[0, 3] = 1e3
    for problem in (linear(), quadratic(2, seed=1)):
        averse = problem.with_risk(fw.WorstCase())
        with_it = fw.solve(averse, fw.Scenarios(values, weights))
        keep = [j for j in range(10) if j != 3]
        without = fw.solve(averse, fw.Scenarios(values[:, keep], weights[:, keep]))
        torch.testing.assert_close(with_it.objective, without.objective, rtol=1e-7, atol=1e-7)


def test_infeasible_contexts_say_so_and_leave_the_others():
    z, y = cp.Variable(nonneg=True), cp.Parameter()
    room = cp.Parameter()
    problem = fw.CvxpyProblem(
        cp.Minimize(cp.square(cp.pos(y - z)) + z), [z <= room], decision=z, outcome=y, given=room
    )
    averse = problem.with_risk(fw.CVaR(0.8)).bound([1.0, -1.0, 2.0])
    values = draws(1, 10, 1).values.expand(3, -1, -1)
    solution = fw.solve(averse, fw.Scenarios(values), on_failure="return")
    assert solution.status == (fw.Status.OPTIMAL, fw.Status.INFEASIBLE, fw.Status.OPTIMAL)
    assert 1 in solution.certificates
    alone = fw.solve(problem.with_risk(fw.CVaR(0.8)).bound([2.0]), fw.Scenarios(values[:1]))
    torch.testing.assert_close(solution.decision[2:], alone.decision, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: fw.CVaR(1.0), r"level must be below 1, but is 1: use WorstCase\(\)"),
        (lambda: fw.CVaR(-0.1), "level must be at least 0 and below 1, but is -0.1"),
        (lambda: fw.MeanCVaR(1.2, 0.5), "weight must be between 0 and 1, but is 1.2"),
        (
            lambda: linear().with_risk(0.9),
            r"risk must be",
        ),
        (lambda: fw.CVaR(0.5)([]), "costs must be at least one number"),
    ],
)
def test_bad_risks_are_named(make, message):
    with pytest.raises(fw.InvalidInputError, match=message):
        make()


def test_solvers_of_programs_say_that_quadratic_risks_have_none():
    averse = quadratic(2, seed=1).with_risk(fw.CVaR(0.9))
    with pytest.raises(fw.exceptions.UnsupportedProblemError, match="solve it with AutoSolver"):
        fw.solve(averse, draws(1, 5, 2), fw.InteriorPointSolver())
    with pytest.raises(fw.exceptions.UnsupportedProblemError, match="has no risk"):
        fw.solve(linear(), draws(1, 5, 2), fw.solvers.RiskSolver())
