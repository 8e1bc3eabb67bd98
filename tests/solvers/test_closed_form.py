"""The exact solutions against the interior point, the reference, and textbook formulas."""

from __future__ import annotations

import pytest
import torch

import forewise as fw
from forewise.solvers import orders
from tests.solvers.programs import residuals


def draw(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def quadratic(budget=None, n=4):
    return fw.QuadraticNewsvendor(
        quadratic=1 + draw(1, n).abs(), linear=draw(2, n), shortage_quadratic=draw(3, n).abs(),
        shortage=10 + 5 * draw(4, n).abs(), excess_quadratic=draw(5, n).abs(),
        excess=draw(6, n).abs(), price=None if budget is None else 1 + draw(7, n).abs(),
        budget=budget,
    )  # fmt: skip


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("budget", [None, 1e6, 20.0, 3.0, 0.0])
def test_dual_search_solves_the_program(budget, weighted):
    """From no budget over a slack and a tight one to nothing left to spend."""
    problem = quadratic(budget)
    weights = draw(9, 8, 15).abs() if weighted else None
    scenarios = fw.Scenarios(5 + 3 * draw(8, 8, 15, 4), weights)
    exact = fw.solve(problem, scenarios, fw.solvers.DualSearchSolver())
    found = residuals(problem.program(scenarios), exact)
    assert float(found.worst.max()) <= 1e-12
    reference = fw.solve(problem, scenarios, fw.ReferenceSolver())
    assert torch.allclose(exact.objective, reference.objective, rtol=1e-8)
    assert torch.allclose(exact.decision, reference.decision, atol=1e-4)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("level", [0.0, 0.1, 0.5, 0.77, 1.0])
def test_quantile_solves_the_program(level, weighted):
    problem = fw.Newsvendor(shortage=10 * level, excess=10 * (1 - level))
    weights = draw(3, 6, 11).abs() if weighted else None
    scenarios = fw.Scenarios(1 + 2 * draw(4, 6, 11, 2), weights)
    exact = fw.solve(problem, scenarios)
    found = residuals(problem.program(scenarios), exact)
    assert float(found.worst.max()) <= 1e-12
    reference = fw.solve(problem, scenarios, fw.ReferenceSolver())
    assert torch.allclose(exact.objective, reference.objective, atol=1e-8)


def test_gaussian_demand_has_its_textbook_order():
    """With many draws of N(100, 15²) the order nears mean + 15 Φ⁻¹(level)."""
    normal = torch.distributions.Normal(100.0, 15.0)
    problem = fw.Newsvendor(shortage=3.0, excess=1.0)
    demand = 100 + 15 * draw(5, 1, 200_000, 1)
    order = float(fw.solve(problem, fw.Scenarios(demand)).decision)
    assert order == pytest.approx(float(normal.icdf(torch.tensor(0.75))), abs=0.2)


def test_one_item_without_uncertainty_has_a_formula():
    """min q z² + c z + excess… at demand y is the projection of a parabola's vertex."""
    problem = fw.QuadraticNewsvendor(
        quadratic=1.0, linear=0.0, shortage_quadratic=0.0, shortage=8.0, excess_quadratic=0.0,
        excess=1.0,
    )  # fmt: skip
    demand = torch.tensor([[[3.0]], [[4.0]], [[6.0]]], dtype=torch.float64)
    decision = fw.solve(problem, fw.Scenarios(demand)).decision.flatten()
    # Ordering is worth it while its marginal cost 2z is below the shortage's 8.
    assert torch.allclose(decision, torch.tensor([3.0, 4.0, 4.0], dtype=torch.float64))


@pytest.mark.parametrize(
    ("solver", "problem", "reason"),
    [
        (
            fw.solvers.WeightedQuantileSolver(),
            quadratic(),
            "Newsvendor only, not QuadraticNewsvendor",
        ),
        (
            fw.solvers.DualSearchSolver(),
            fw.Newsvendor(1.0, 1.0),
            "QuadraticNewsvendor only, not Newsvendor",
        ),
        (
            fw.solvers.DualSearchSolver(),
            fw.QuadraticNewsvendor([[2.0, 1.0], [1.0, 2.0]], 0.0, 1.0, 1.0, 1.0, 1.0),
            "off its diagonal",
        ),
        (
            fw.solvers.DualSearchSolver(),
            fw.QuadraticNewsvendor([0.0, 1.0], 0.0, 0.0, 1.0, 1.0, 1.0),
            "no quadratic cost",
        ),
        (
            fw.solvers.DualSearchSolver(),
            fw.QuadraticNewsvendor([1.0, 1.0], 0.0, 0.0, 1.0, 1.0, 1.0, [-1.0, 1.0], 4.0),
            "a price is negative",
        ),
    ],
)
def test_refusals_name_the_reason(solver, problem, reason):
    with pytest.raises(fw.exceptions.UnsupportedProblemError, match=reason):
        fw.solve(problem, fw.Scenarios(torch.ones(1, 1, 2)), solver)


@pytest.mark.parametrize("problem", [fw.Newsvendor(1.0, 3.0), quadratic(20.0)])
def test_a_context_with_nan_does_not_touch_the_others(problem):
    values = 5 + draw(2, 4, 6, 4)
    bad = values.clone()
    bad[1, 2, 0] = torch.nan
    bad.requires_grad_()
    solution = fw.solve(problem, fw.Scenarios(bad), on_failure="return")
    assert [str(s) for s in solution.status] == ["optimal", "invalid", "optimal", "optimal"]
    assert solution.decision[1].isnan().all()
    others = [0, 2, 3]
    solution.decision[others].sum().backward()
    clean = values[others].clone().requires_grad_()
    alone = fw.solve(problem, fw.Scenarios(clean))
    alone.decision.sum().backward()
    assert torch.equal(solution.decision[others], alone.decision)
    assert torch.equal(bad.grad[others], clean.grad)
    assert not bad.grad[1].any()


@pytest.mark.parametrize(
    ("problem", "solver"),
    [
        (fw.Newsvendor(1.0, 3.0), fw.solvers.WeightedQuantileSolver()),
        (quadratic(20.0), fw.solvers.DualSearchSolver()),
    ],
)
def test_what_is_not_accurate_is_nan_without_a_gradient(problem, solver, monkeypatch):
    """Never seen in earnest: here nothing counts as accurate."""
    monkeypatch.setattr(orders, "ACCEPTED", -1.0)
    values = (5 + draw(2, 4, 6, 4)).requires_grad_()
    solution = fw.solve(problem, fw.Scenarios(values), solver, on_failure="return")
    assert set(solution.status) == {fw.Status.INACCURATE}
    for found in (solution.decision, solution.recourse, solution.objective):
        assert found.isnan().all()
    assert solution.duals.scenario_inequality.isnan().all()
    assert (solution.gap < 1e-8).all()
    solution.decision.nansum().backward()
    assert not values.grad.any()
    again = fw.solve(problem, fw.Scenarios(values))  # by the general solver, with its gradients
    assert again.optimal.all()
    again.decision.sum().backward()
    assert values.grad.any()
