"""Verdicts on programs whose numbers are of very different size, or rounding noise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

import forewise as fw
from tests.solvers.programs import planted_program, random_shape

EXPECTED = [0.1, 0.2, 0.15, 0.1, 0.12]
SOLVERS = [fw.AutoSolver(), fw.InteriorPointSolver(), fw.ReferenceSolver()]


def in_other_units(rng: np.random.Generator, program: fw.ScenarioProgram, orders: float):
    """The same program in units of rows and variables that lie orders of magnitude apart.

    Right-hand sides get rounding noise, zeros among them.
    """

    def units(*size: int) -> torch.Tensor:
        return torch.tensor(10.0 ** rng.uniform(-orders / 2, orders / 2, size))

    B, t = program.n_contexts, program.T.shape[-2]
    z, u = units(B, program.n_decisions), units(B, 1, program.n_recourse)
    rows = {name: units(B, getattr(program, name).shape[-1]) for name in "he"}
    rows |= {name: units(B, 1, getattr(program, name).shape[-1]) for name in "rs"}

    def change(name: str, block: torch.Tensor) -> torch.Tensor:
        match name:
            case "q":
                return block * z
            case "P":
                return block * z[:, :, None] * z[:, None]
            case "d":
                return block * u
            case "D":
                return block * u[..., :, None] * u[..., None, :]
            case "G" | "E":
                return block * z[:, None] * rows["h" if name == "G" else "e"][..., None]
            case "T":
                return block * z[:, None, None] * rows["r"][..., :t, None]
            case "F":
                return block * z[:, None, None] * rows["s"][..., None]
            case "W" | "V":
                return block * u[..., None, :] * rows["r" if name == "W" else "s"][..., None]
            case "h" | "e" | "r" | "s":
                noise = 1e-16 * torch.tensor(rng.normal(size=block.shape))
                return (block + noise) * rows[name]
        return block

    return program.map(change)


def count_not_optimal(seed: int, n_batches: int, linked: bool = True) -> int:
    """Contexts of planted programs that are not optimal; all others have the planted cost."""
    rng = np.random.default_rng(seed)
    failed = 0
    for number in range(n_batches):
        shape = random_shape(rng, 10)
        planted = planted_program(
            rng,
            shape if linked or not shape.k else replace(shape, t=0, s=0),
            linear=number % 2 == 0,
            degenerate=number % 4 < 2,
            recourse=["dense", "separable", "mixed"][number % 3],
        )
        program = in_other_units(rng, planted.program, orders=12)
        solution = fw.solve_program(program, on_failure="return")
        found = solution.optimal
        assert not solution.certificates, number
        failed += int((~found).sum())
        torch.testing.assert_close(
            solution.objective[found], planted.objective[found], rtol=5e-5, atol=1e-6
        )
    return failed


def test_feasible_programs_are_never_proved_infeasible():
    assert count_not_optimal(5, 20) == 0


def test_stages_that_no_row_links_are_each_solved_to_their_own_accuracy():
    assert count_not_optimal(2, 60, linked=False) <= 1


@pytest.mark.slow
def test_two_thousand_feasible_programs_are_never_proved_infeasible():
    assert count_not_optimal(6, 200) <= 4


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda solver: type(solver).__name__)
@pytest.mark.parametrize("exponent", [-12, -9, -6, -3, 3, 6, 7, 8, 10, 12])
def test_a_portfolio_is_the_same_in_every_unit_of_its_returns(exponent, solver):
    returns = np.random.default_rng(0).normal(size=(50, 20, 5))
    problem = fw.Portfolio(EXPECTED, 0.1, budget=1.0)
    plain = fw.solve(problem, fw.Scenarios(returns), fw.ReferenceSolver())
    scale = 10.0**exponent
    scaled = fw.solve(problem, fw.Scenarios(returns * scale), solver)
    torch.testing.assert_close(scaled.objective / scale, plain.objective, rtol=1e-7, atol=1e-8)
    torch.testing.assert_close(scaled.decision.sum(1), torch.ones(50).double())


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda solver: type(solver).__name__)
@pytest.mark.parametrize("risk", [fw.CVaR(0.9), fw.MeanCVaR(0.5, 0.8), fw.WorstCase()], ids=repr)
@pytest.mark.parametrize("exponent", [-12, 6, 9, 12])
def test_a_portfolio_s_risk_is_the_same_in_every_unit_of_its_returns(exponent, risk, solver):
    """Losses are linked to holdings by rows of returns, and to the tail by rows of ones."""
    returns = np.random.default_rng(0).normal(size=(3, 100, 10))
    problem = fw.Portfolio(EXPECTED * 2, 0.1, budget=1.0).with_risk(risk)
    plain = fw.solve(problem, fw.Scenarios(returns), fw.ReferenceSolver())
    scale = 10.0**exponent
    scaled = fw.solve(problem, fw.Scenarios(returns * scale), solver)
    torch.testing.assert_close(scaled.objective / scale, plain.objective, rtol=1e-7, atol=0)
    torch.testing.assert_close(scaled.decision.sum(1), torch.ones(3).double())


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda solver: type(solver).__name__)
@pytest.mark.parametrize("budget", [None, 8.0])
@pytest.mark.parametrize("exponent", [-18, -12, -9, -8, 8, 9, 12, 18])
def test_an_objective_is_the_cost_of_its_decision_in_every_unit(exponent, budget, solver):
    scale = 10.0**exponent
    demand = np.random.default_rng(1).uniform(1, 10, (3, 30, 2)) * scale
    money = {} if budget is None else {"price": [1.0, 1.0], "budget": budget * scale}
    problem = fw.QuadraticNewsvendor([1, 1], [0, 0], [1, 1], [3, 3], [1, 1], [1, 1], **money)
    solution = fw.solve(problem, fw.Scenarios(demand), solver)
    costs = [problem.cost(solution.decision, demand[:, j]) for j in range(30)]
    cost = torch.stack(costs).mean(0)
    torch.testing.assert_close(solution.objective, cost, rtol=1e-8, atol=0)


@pytest.mark.parametrize("noise", [0.0, 0.1 + 0.2 - 0.3, 1e-13])
def test_a_stock_balance_with_noise_in_the_place_of_zero(noise):
    """stock_t = stock_(t-1) + order_t - sold_t, with right-hand sides that should be 0."""
    steps = 5
    demand = torch.tensor([3.0, 5.0, 2.0, 4.0, 1.0])
    eye, back = torch.eye(steps), torch.diag(torch.ones(steps - 1), -1)
    E = torch.cat([-eye, eye - back, eye], 1).double()
    bounds = torch.eye(3 * steps).double()
    program = fw.ScenarioProgram(
        weights=torch.ones(1, 1).double(),
        q=torch.cat([torch.full((5,), 1.0), torch.full((5,), 0.1), torch.full((5,), -3.0)])[None],
        G=torch.cat([-bounds, bounds])[None],
        h=torch.cat([torch.zeros(15), torch.full((5,), 4.0), torch.full((5,), 20.0), demand])[None],
        E=E[None],
        e=torch.full((1, steps), noise).double(),
    )
    for solver in (fw.InteriorPointSolver(), fw.ReferenceSolver()):
        solution = fw.solve_program(program, solver)
        assert float(solution.objective) == pytest.approx(-29.9)


@pytest.mark.parametrize("large", [1e2, 1e5, 1e8, 1e11])
def test_a_small_variable_beside_a_large_one_that_nothing_links_to_it(large):
    """max x + y / large with x in [0, 1e-6], y in [0, large]: both count."""
    program = fw.ScenarioProgram(
        weights=torch.ones(1, 1).double(),
        q=torch.tensor([[-1e6, -1 / large]]).double(),
        G=torch.cat([torch.eye(2), -torch.eye(2)]).double()[None],
        h=torch.tensor([[1e-6, large, 0.0, 0.0]]).double(),
    )
    for solver in SOLVERS:
        solution = fw.solve_program(program, solver)
        expected = torch.tensor([[1e-6, large]]).double()
        torch.testing.assert_close(solution.decision, expected, rtol=1e-7, atol=0)
        assert float(solution.objective) == pytest.approx(-2.0, rel=1e-7)


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda solver: type(solver).__name__)
@pytest.mark.parametrize("curvature", [0.0, 2.0])
@pytest.mark.parametrize("bound", [1e4, 1e6, 1e8, 1e10, 1e12, 1e15])
def test_a_bound_that_is_as_good_as_none_makes_nothing_else_inaccurate(bound, curvature, solver):
    """A newsvendor, and a variable of its own, x in [0, bound], of cost x + ½ c (x² − 2x)."""
    demand = torch.linspace(1.0, 10.0, 31).double()
    T = torch.tensor([[0.0, -1.0], [0.0, 1.0]]).double().expand(1, 31, 2, 2)
    zeros = torch.zeros(31, 2).double()
    program = fw.ScenarioProgram(
        weights=torch.full((1, 31), 1 / 31).double(),
        q=torch.tensor([[1.0 - curvature, 0.0]]).double(),
        P=torch.tensor([[[curvature, 0.0], [0.0, 0.0]]]).double(),
        G=torch.tensor([[[1.0, 0.0], [-1.0, 0.0], [0.0, -1.0]]]).double(),
        h=torch.tensor([[bound, 0.0, 0.0]]).double(),
        d=torch.tensor([[[3.0, 1.0]]]).double(),
        T=T,
        W=torch.cat([-torch.eye(2), -torch.eye(2)]).double()[None, None],
        r=torch.cat([-demand[:, None], demand[:, None], zeros], 1)[None],
    )
    solution = fw.solve_program(program, solver, on_failure="return")
    short, over = (demand - 7.9).clamp_min(0), (7.9 - demand).clamp_min(0)
    x = 1 - 1 / curvature if curvature else 0.0
    alone = x + 0.5 * curvature * (x**2 - 2 * x)
    expected = alone + float((3 * short + over).mean())
    assert float(solution.objective) == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda solver: type(solver).__name__)
@pytest.mark.parametrize("bound", [1e6, 1e9, 1e12, 1e16, 1e20, 1e25])
def test_a_limit_that_is_as_good_as_none_is_none(bound, solver):
    random = np.random.default_rng(0)
    returns, demand = random.normal(size=(3, 30, 2)), random.uniform(1, 9, (3, 30, 2))
    full = [[1.0, 0.3], [0.3, 1.0]]

    def solved(scenarios, make):
        limited = fw.solve(make(bound), fw.Scenarios(scenarios), solver, on_failure="return")
        free = fw.solve(make(1e3), fw.Scenarios(scenarios), fw.ReferenceSolver())
        torch.testing.assert_close(limited.objective, free.objective, rtol=1e-7, atol=1e-8)

    solved(returns, lambda limit: fw.Portfolio([0.1, 0.2], 0.15, upper=[limit, limit]))
    solved(
        demand,
        lambda limit: fw.QuadraticNewsvendor(
            full, [0, 0], [1, 1], [3, 3], [1, 1], [1, 1], price=[1.0, 1.0], budget=limit
        ),
    )


def test_a_far_bound_that_is_reached_is_a_bound():
    """min -x with x ≤ 1e12 beside y ≥ 1, and one context where x costs."""
    program = fw.ScenarioProgram(
        weights=torch.ones(2, 1).double(),
        q=torch.tensor([[-1.0, 1.0], [1.0, 1.0]]).double(),
        G=torch.tensor([[[1.0, 0.0], [-1.0, 0.0], [0.0, -1.0]]]).double(),
        h=torch.tensor([[1e12, 0.0, -1.0]]).double(),
    )
    solution = fw.solve_program(program, on_failure="return")
    assert solution.status[1] is fw.Status.OPTIMAL
    torch.testing.assert_close(solution.decision[1], torch.tensor([0.0, 1.0]).double())
    assert float(solution.objective[0]) == pytest.approx(1 - 1e12)


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda solver: type(solver).__name__)
@pytest.mark.parametrize("exponent", [0, 4, 8, 10, 12, 16])
def test_a_negative_budget_is_infeasible_to_every_solver(exponent, solver):
    problem = fw.QuadraticNewsvendor(
        [1.0], [0.0], [1.0], [3.0], [1.0], [1.0], price=[4.0], budget=-1.0
    )
    demand = np.random.default_rng(0).uniform(1, 9, (3, 8, 1)) * 10.0**exponent
    solution = fw.solve(problem, fw.Scenarios(demand), solver, on_failure="return")
    assert set(solution.status) == {fw.Status.INFEASIBLE}
    for proof in solution.certificates.values():
        for name in ("inequality", "scenario_inequality"):
            of_all, of_one = (getattr(part, name) for part in (solution.duals, proof.multipliers))
            assert of_one.shape == (1, *of_all.shape[1:])


def corner() -> tuple[fw.ScenarioProgram, dict[str, torch.Tensor]]:
    """min −x − y over x + y ≤ 2, x ≤ 1, y ≤ 1, x, y ≥ 0: three rows meet in (1, 1)."""
    G = torch.tensor([[[1.0, 1.0], [1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]]]).double()
    blocks = {
        "q": torch.tensor([[-1.0, -1.0]]).double(),
        "h": torch.tensor([[2.0, 1.0, 1.0, 0.0, 0.0]]).double(),
    }
    blocks = {name: block.requires_grad_() for name, block in blocks.items()}
    return fw.ScenarioProgram(torch.ones(1, 1).double(), G=G, **blocks), blocks


def test_the_value_s_gradient_lies_between_the_one_sided_slopes():
    program, blocks = corner()
    solution = fw.solve_program(program, fw.InteriorPointSolver())
    solution.objective.sum().backward()
    torch.testing.assert_close(blocks["h"].grad, -solution.duals.inequality.detach())
    # Each of the three rows costs 1 if it is tightened, and gains nothing if it is loosened.
    assert (blocks["h"].grad[0, :3] >= -1 - 1e-9).all()
    assert (blocks["h"].grad[0, :3] <= 1e-9).all()
    torch.testing.assert_close(blocks["q"].grad, torch.ones(1, 2).double())


def test_the_value_s_gradient_is_exact_in_costs_and_weights():
    """A newsvendor as a linear program: only its decisions' gradients are smoothed."""
    demand = torch.tensor([[[2.0], [5.0], [9.0]]]).double()
    weights = torch.tensor([[0.3, 0.3, 0.4]]).double().requires_grad_()
    d = torch.tensor([[[3.0, 1.0]]]).double().requires_grad_()
    program = fw.ScenarioProgram(
        weights,
        torch.zeros(1, 1).double(),
        d=d,
        T=torch.tensor([[[[-1.0], [1.0], [0.0], [0.0]]]]).double(),
        W=torch.tensor([[[[-1.0, 0.0], [0.0, -1.0], [-1.0, 0.0], [0.0, -1.0]]]]).double(),
        r=torch.cat([-demand, demand, torch.zeros(1, 3, 2).double()], -1),
    )
    solution = fw.solve_program(program, fw.InteriorPointSolver())
    solution.objective.sum().backward()
    order = 9.0  # the three-quarters quantile
    short = (demand[..., 0] - order).clamp_min(0)
    over = (order - demand[..., 0]).clamp_min(0)
    torch.testing.assert_close(weights.grad, 3 * short + over)
    expected = torch.stack([(weights * short).sum(), (weights * over).sum()])
    torch.testing.assert_close(d.grad[0, 0], expected.detach())


def test_weights_whose_sum_no_float_holds_are_weights():
    values = np.arange(1.0, 5.0).reshape(1, 4, 1)
    problem = fw.Newsvendor(3.0, 1.0)
    equal = fw.solve(problem, fw.Scenarios(values, [[1e308] * 4]))
    torch.testing.assert_close(equal.objective, fw.solve(problem, fw.Scenarios(values)).objective)


def test_an_infinite_objective_is_not_optimal():
    huge = fw.Scenarios([[[1e308], [2e307], [3.0], [-1e308]]])
    solution = fw.solve(fw.Newsvendor(3.0, 1.0), huge, on_failure="return")
    assert solution.status[0] is fw.Status.INACCURATE


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda solver: type(solver).__name__)
@pytest.mark.parametrize("exponent", [8, 9, 10, 11, 12, 14, 16, 18, 30, 200])
def test_a_budget_is_used_up_beside_demand_of_any_size(exponent, solver):
    demand = np.random.default_rng(0).uniform(5, 9, (4, 6, 1)) * 10.0**exponent
    problem = fw.QuadraticNewsvendor([1], [0], [1], [3], [1], [1], price=[4.0], budget=20.0)
    solution = fw.solve(problem, fw.Scenarios(demand), solver, on_failure="return")
    for status, decision in zip(solution.status, solution.decision, strict=True):
        assert status is fw.Status.INACCURATE or float(decision) == pytest.approx(5.0)
    solved_up_to = {fw.AutoSolver: 100, fw.InteriorPointSolver: 11}.get(type(solver), 8)
    assert exponent > solved_up_to or solution.optimal.all()


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda solver: type(solver).__name__)
@pytest.mark.parametrize("exponent", [0, 2, 4, 6, 8, 10, 12, 14, 16])
def test_decisions_beside_huge_recourse_keep_their_own_constraints(exponent, solver):
    """All of the budget goes to the item with the largest shortage for its price."""
    demand = (8 + 0.5 * np.arange(12.0).reshape(1, 4, 3)) * 10.0**exponent
    full = [[2.0, 0.5, 0.1], [0.5, 2.0, 0.3], [0.1, 0.3, 1.0]]
    problem = fw.QuadraticNewsvendor(
        full, [0] * 3, [1] * 3, [3] * 3, [1] * 3, [1] * 3, price=[4.0, 3.0, 2.0], budget=20.0
    )
    solution = fw.solve(problem, fw.Scenarios(demand), solver, on_failure="return")
    if solution.optimal.all():
        assert float(problem.violation(solution.decision)) <= 1e-8
        if exponent >= 2:
            expected = torch.tensor([[0.0, 0.0, 10.0]]).double()
            torch.testing.assert_close(solution.decision, expected, rtol=0, atol=1e-6)
    assert exponent > 6 or solution.optimal.all()
