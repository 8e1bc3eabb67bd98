"""Bounds are bounds: where problems have them, with multipliers and gradients of their own."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
import torch

import forewise as fw
from forewise.problems.bounds import BoundRows, with_bounds_as_rows
from forewise.solvers.bounds import joined_duals, split_duals
from tests.solvers.test_sparse import random_program

INTERIOR = fw.InteriorPointSolver()


def outcomes(n: int, mean: float = 2.0, B: int = 3) -> torch.Tensor:
    return torch.from_numpy(mean + np.random.default_rng(0).normal(size=(B, 12, n)))


def slope(program: fw.ScenarioProgram, solution: fw.Solution) -> torch.Tensor:
    """Largest violation of stationarity in z and in u, with the multipliers by their names."""
    duals, weights = solution.duals, program.weights[..., None]
    z, u = solution.decision, solution.recourse
    of_z = program.q + (program.P @ z[..., None])[..., 0]
    of_z = of_z + (program.G.mT @ duals.inequality[..., None])[..., 0]
    of_z = of_z + (program.E.mT @ duals.equality[..., None])[..., 0]
    coupled = duals.scenario_inequality[..., : program.T.shape[-2]]
    of_z = of_z + (program.T.mT @ coupled[..., None])[..., 0].sum(1)
    of_u = weights * (program.d + (program.D @ u[..., None])[..., 0])
    of_u = of_u + (program.W.mT @ duals.scenario_inequality[..., None])[..., 0]
    for name, sign in (("lower", -1.0), ("upper", 1.0)):
        if getattr(duals, name) is not None:
            of_z = of_z + sign * getattr(duals, name)
        if getattr(duals, f"recourse_{name}") is not None:
            of_u = of_u + sign * getattr(duals, f"recourse_{name}")
    return torch.maximum(of_z.abs().max(), of_u.abs().max())


BUILT_IN = {
    "newsvendor": fw.Newsvendor([3.0, 2.0], [1.0, 4.0]),
    "quadratic": fw.QuadraticNewsvendor(
        [1.0, 2.0], 0.0, 1.0, [9.0, 5.0], 1.0, 1.0, price=[1.0, 2.0], budget=3.0
    ),
    "portfolio": fw.Portfolio([0.3, 0.6], 0.4, budget=1.0, upper=[0.9, 0.6], lower=-0.1),
}  # fmt: skip


@pytest.mark.parametrize("solver", [None, INTERIOR, fw.ReferenceSolver()], ids=str)
@pytest.mark.parametrize("name", BUILT_IN)
def test_built_in_problems_have_bounds_with_multipliers(name, solver):
    problem = BUILT_IN[name]
    scenarios = fw.Scenarios(outcomes(2))
    program = problem.program(scenarios)
    assert {"lower", "recourse_lower"} <= set(program.bounds)
    assert program.G.shape[1] == {"newsvendor": 0, "quadratic": 1, "portfolio": 1}[name]
    solution = fw.solve(problem, scenarios, solver)
    assert float(slope(program, solution)) <= 1e-7
    for bound in program.bounds:
        found = getattr(solution.duals, bound)
        assert float(found.min()) >= 0
        x = solution.recourse if "recourse" in bound else solution.decision
        room = (x - getattr(program, bound)).abs()
        assert float((found * room).abs().max()) <= 1e-6


def model(capacity: float | None = None) -> fw.CvxpyProblem:
    """Bounds of all kinds: of variables, as constraints, uncertain and given."""
    z = cp.Variable(3, name="z", bounds=[-1.0, 4.0])
    u = cp.Variable(2, name="u", nonneg=True)
    y, cap = cp.Parameter(2, name="y"), cp.Parameter(name="cap", nonneg=True)
    rows = [
        u >= y - z[:2],
        u[1] <= 2 * cp.pos(0) + 9,
        z[2] <= 0.5 * cap,
        2 * z[0] >= 0.5,
        u[0] >= 0.1 * y[0],
    ]
    cost = cp.sum_squares(z - 2) + 3 * cp.sum(u) + 0.5 * z[2]
    return fw.CvxpyProblem(cp.Minimize(cost), rows, decision=z, outcome=y, given=[cap])


def test_a_users_bounds_are_bounds():
    problem = model().bound({"cap": [3.0, 1.0, 2.0]})
    program = problem.program(fw.Scenarios(outcomes(2)))
    # Of two bounds on one side of a variable the second is a row: of z[0], z[2] and u[0].
    assert program.G.shape[1] == 2
    assert program.W.shape[2] == program.T.shape[2] + 1
    assert program.lower.shape == (1, 3)
    np.testing.assert_allclose(program.upper[:, :2].expand(3, -1), 4.0)
    assert program.recourse_lower.shape[-1] == program.n_recourse
    solution = fw.solve(problem, fw.Scenarios(outcomes(2)), INTERIOR)
    reference = fw.solve(problem, fw.Scenarios(outcomes(2)), fw.ReferenceSolver())
    torch.testing.assert_close(solution.decision, reference.decision, rtol=0, atol=1e-5)
    assert float(slope(program, solution)) <= 1e-6


def test_gradients_reach_bounds_that_are_given_or_uncertain():
    values, given = outcomes(2), torch.tensor([3.0, 1.0, 2.0]).double()
    directions = [
        torch.from_numpy(np.random.default_rng(1).normal(size=part.shape))
        for part in (values, given)
    ]

    def value(step: float, *leaves: torch.Tensor) -> torch.Tensor:
        y, cap = (part + step * way for part, way in zip(leaves, directions, strict=True))
        solution = fw.solve(model().bound({"cap": cap}), fw.Scenarios(y), INTERIOR)
        weights = torch.arange(9.0).double().reshape(3, 3)
        return (solution.decision * weights).sum() + solution.objective.sum()

    leaves = [part.clone().requires_grad_() for part in (values, given)]
    value(0.0, *leaves).backward()
    found = sum((leaf.grad * way).sum() for leaf, way in zip(leaves, directions, strict=True))
    with torch.no_grad():
        expected = (value(1e-6, values, given) - value(-1e-6, values, given)) / 2e-6
    assert float(found) == pytest.approx(float(expected), rel=1e-5)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_bounds_of_bad_data_are_invalid_where_they_are(wrong):
    """An infinite outcome is no missing bound; the other contexts are what they were."""
    values = outcomes(2)
    good = fw.solve(model().bound({"cap": [2.0]}), fw.Scenarios(values), INTERIOR)
    values[1, 3, 0] = wrong
    scenarios = fw.Scenarios(values)
    solution = fw.solve(model().bound({"cap": [2.0]}), scenarios, INTERIOR, on_failure="return")
    assert solution.status[1] is fw.Status.INVALID
    assert torch.equal(solution.decision[[0, 2]], good.decision[[0, 2]])


def test_cones_integers_and_risks_keep_bounds():
    z, y = cp.Variable(2, name="z", bounds=[0.5, 1.5]), cp.Parameter(2, name="y")
    cost = cp.sum(cp.abs(z - y))
    whole = cp.Variable(2, name="z", integer=True, bounds=[1, 2])
    scenarios = fw.Scenarios(torch.full((1, 4, 2), 5.0).double())
    cases = {
        "cone": (
            fw.CvxpyProblem(cp.Minimize(cost + cp.norm(z - y)), [], decision=z, outcome=y),
            1.5,
        ),
        "integer": (
            fw.CvxpyProblem(cp.Minimize(cp.sum(cp.abs(whole - y))), [], decision=whole, outcome=y),
            2.0,
        ),
        "risk": (
            fw.CvxpyProblem(cp.Minimize(cost), [], decision=z, outcome=y).with_risk(fw.CVaR(0.5)),
            1.5,
        ),
        "quadratic risk": (
            fw.CvxpyProblem(
                cp.Minimize(cp.sum_squares(z - y)), [], decision=z, outcome=y
            ).with_risk(fw.CVaR(0.5)),
            1.5,
        ),
    }  # fmt: skip
    for name, (problem, expected) in cases.items():
        solution = fw.solve(problem, scenarios)
        np.testing.assert_allclose(solution.decision, expected, atol=1e-5, err_msg=name)
        assert float(solution.duals.upper.nan_to_num(1.0).min()) >= 0, name


@pytest.mark.parametrize("seed", range(6))
def test_multipliers_of_rows_and_of_bounds_are_the_same_numbers(seed):
    program = random_program(seed, B=2)
    solution = fw.solve_program(program, INTERIOR)
    bounds = BoundRows.of(program)
    again = split_duals(bounds, joined_duals(bounds, solution.duals))
    rows = fw.solve_program(with_bounds_as_rows(program), INTERIOR)
    assert torch.equal(rows.decision, solution.decision)
    for name, part in vars(solution.duals).items():
        assert torch.equal(getattr(again, name), part), name


def test_a_holding_between_equal_bounds_is_that_holding():
    problem = fw.Portfolio(
        [0.3, 0.6, 0.5], 0.4, budget=1.0, upper=[0.2, 1.0, 1.0], lower=[0.2, 0.0, 0.0]
    )
    solution = fw.solve(problem, fw.Scenarios(outcomes(3, 0.0)), INTERIOR)
    np.testing.assert_allclose(solution.decision[:, 0], 0.2, atol=1e-9)
    assert float(slope(problem.program(fw.Scenarios(outcomes(3, 0.0))), solution)) <= 1e-7
