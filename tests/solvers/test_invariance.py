"""Metamorphic relations, precision and devices: what must not change a decision."""

from __future__ import annotations

import pytest
import torch

import forewise as fw


def draw(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


CASES = {
    "newsvendor": (fw.Newsvendor([1.0, 2.1, 3.0], [3.1, 1.0, 2.5]), 10 + 3 * draw(1, 5, 21, 3)),
    "tight budget": (
        fw.QuadraticNewsvendor(2.0, 1.0, 3.0, 30.0, 1.0, 4.0, [1.0, 2.0, 1.5], 25.0),
        10 + 3 * draw(2, 5, 21, 3),
    ),
    "full matrices": (
        fw.QuadraticNewsvendor(
            [[2.0, 0.5, 0.0], [0.5, 2.0, 0.3], [0.0, 0.3, 1.0]], 1.0,
            [[1.0, 0.2, 0.0], [0.2, 1.0, 0.1], [0.0, 0.1, 1.0]], 30.0, 1.0, 4.0, 1.0, 20.0,
        ),
        10 + 3 * draw(3, 5, 21, 3),
    ),
    "portfolio": (fw.Portfolio([0.3, 0.2, 0.25], 1.0), 0.05 + draw(4, 5, 21, 3)),
    "riskless portfolio": (fw.Portfolio([0.3, 0.2, 0.25], 1.0), 2.0 + 0.1 * draw(5, 5, 21, 3)),
    "bounded portfolio": (
        fw.Portfolio([0.3, 0.2, 0.25], 0.22, budget=1.0, upper=0.6),
        0.05 + draw(6, 5, 21, 3),
    ),
}  # fmt: skip
# No holding of it can lose: its optima are not one point, and not even bounded.
RISKLESS = CASES["riskless portfolio"][0]
each_case = pytest.mark.parametrize(("problem", "values"), CASES.values(), ids=CASES.keys())


def close(a: torch.Tensor, b: torch.Tensor, atol: float = 1e-7) -> bool:
    return torch.allclose(a, b, rtol=1e-7, atol=atol)


@each_case
def test_permuting_scenarios(problem, values):
    weights = draw(7, 5, 21).abs()
    order = torch.randperm(21, generator=torch.Generator().manual_seed(0))
    before = fw.solve(problem, fw.Scenarios(values, weights)).decision
    after = fw.solve(problem, fw.Scenarios(values[:, order], weights[:, order])).decision
    assert close(before, after)


@each_case
def test_splitting_a_scenario_into_two_of_half_weight(problem, values):
    weights = 0.5 + draw(8, 5, 21).abs()
    halves = torch.cat([weights, weights[:, 3:4] / 2], dim=1)
    halves[:, 3] /= 2
    longer = torch.cat([values, values[:, 3:4]], dim=1)
    before = fw.solve(problem, fw.Scenarios(values, weights)).decision
    assert close(before, fw.solve(problem, fw.Scenarios(longer, halves)).decision)


@each_case
def test_scaling_the_cost(problem, values):
    program = problem.program(fw.Scenarios(values))
    solution = fw.solve_program(program)
    before, objective = solution.decision, solution.objective
    for factor in (1e-6, 37.0, 1e6):
        scaled = program.map(lambda n, b, f=factor: b * f if n in ("P", "q", "D", "d") else b)
        if problem is not RISKLESS:
            assert close(before, fw.solve_program(scaled).decision)
        assert close(factor * objective, fw.solve_program(scaled).objective, atol=1e-7 * factor)


@each_case
def test_adding_a_redundant_row(problem, values):
    program = problem.program(fw.Scenarios(values))
    solution = fw.solve_program(program)
    n = program.n_decisions
    blocks = program.blocks()
    row = torch.ones(1, 1, n, dtype=torch.float64)
    bound = solution.decision.sum(-1).max().expand(1, 1) + 1e4
    blocks["G"], blocks["h"] = torch.cat([program.G, row], 1), torch.cat([program.h, bound], 1)
    after = fw.solve_program(fw.ScenarioProgram(**blocks))
    assert close(solution.objective, after.objective)
    if problem is not RISKLESS:
        assert close(solution.decision, after.decision)


@each_case
def test_single_precision_is_solved_in_double_and_returned_as_it_came(problem, values):
    single = values.to(torch.float32).requires_grad_()
    solution = fw.solve(problem, fw.Scenarios(single))
    assert solution.decision.dtype == torch.float32
    double = fw.solve(problem, fw.Scenarios(single.detach().to(torch.float64)))
    assert torch.equal(solution.decision, double.decision.to(torch.float32))
    solution.decision.sum().backward()
    assert single.grad.dtype == torch.float32
    assert single.grad.isfinite().all()


@each_case
def test_numpy_in(problem, values):
    from_numpy = fw.solve(problem, fw.Scenarios(values.numpy()))
    assert torch.equal(from_numpy.decision, fw.solve(problem, fw.Scenarios(values)).decision)


@each_case
def test_the_objective_is_the_mean_cost_of_the_decision(problem, values):
    weights = draw(9, 5, 21).abs()
    scenarios = fw.Scenarios(values, weights)
    solution = fw.solve(problem, scenarios)
    costs = torch.stack(
        [problem.cost(solution.decision, values[:, j]) for j in range(values.shape[1])], dim=1
    )
    mean = (scenarios.weights * costs).sum(1)
    assert torch.allclose(solution.objective, mean, rtol=1e-7, atol=1e-8)
