"""AutoSolver: which solver it picks, who refuses what, and what is solved a second time."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
import torch

import forewise as fw
from tests.problems.conic_cases import CASES, N
from tests.solvers.programs import Shape, planted_program

SEPARABLE = fw.QuadraticNewsvendor(1.0, [0.0, 0.0, 0.0], 1.0, 3.0, 1.0, 1.0)
CUT_SHORT = Shape(B=8, M=5, n=4, k=3, g=4, e=0, t=3, r=4, s=0)


def integer_problem() -> fw.CvxpyProblem:
    z, y = cp.Variable(N, integer=True, name="z"), cp.Parameter(N, name="y")
    return fw.CvxpyProblem(cp.Minimize(cp.sum(cp.pos(y - z))), [z >= 0], decision=z, outcome=y)


@pytest.mark.parametrize(
    ("problem", "solver"),
    [
        (fw.Newsvendor(1.0, 2.0), fw.solvers.WeightedQuantileSolver),
        (SEPARABLE, fw.solvers.DualSearchSolver),
        (fw.Portfolio([0.1, 0.2], 0.1), fw.InteriorPointSolver),
        (fw.Portfolio([0.1, 0.2], 0.1).with_risk(fw.CVaR(0.9)), fw.solvers.RiskSolver),
        (CASES["norm"].problem(), fw.solvers.ConicSolver),
        (integer_problem(), fw.solvers.IntegerSolver),
    ],
)
def test_the_automatic_choice(problem, solver):
    assert type(fw.AutoSolver().choice(problem)) is solver


@pytest.mark.parametrize(
    ("problem", "solver", "reason"),
    [
        (CASES["norm"].problem(), fw.InteriorPointSolver(), r"a conic program.*use AutoSolver\(\)"),
        (CASES["norm"].problem(), fw.solvers.RidgeSolver(1.0, fw.AutoSolver()), "a conic program"),
        (CASES["norm"].problem(), fw.solvers.IntegerSolver(), "a conic program.*takes an integer"),
        (fw.Newsvendor(1.0, 2.0), fw.solvers.ConicSolver(), "quadratic program.*takes a conic"),
        (integer_problem(), fw.solvers.ConicSolver(), "an integer program.*takes a conic"),
        (fw.Newsvendor(1.0, 2.0), fw.solvers.RiskSolver(), "has no risk"),
    ],
)
def test_refusals(problem, solver, reason):
    with pytest.raises(fw.exceptions.UnsupportedProblemError, match=reason):
        fw.solve(problem, fw.Scenarios(np.ones((1, 2, N))), solver)


def test_what_the_interior_point_leaves_inaccurate_is_solved_by_the_reference():
    """Five iterations are too few for one of eight contexts; all have their planted optimum."""
    planted = planted_program(np.random.default_rng(6), CUT_SHORT)
    few = fw.InteriorPointSolver(max_iterations=5)
    first = fw.solve_program(planted.program, few, on_failure="return")
    again = ~first.optimal
    assert int(again.sum()) == 1
    q = planted.program.q.clone().requires_grad_()
    program = planted.program.map(lambda name, block: q if name == "q" else block)
    found = fw.solve_program(program, fw.AutoSolver(few))
    torch.testing.assert_close(found.objective.detach(), planted.objective, rtol=1e-7, atol=1e-7)
    torch.testing.assert_close(found.decision.detach(), planted.z, rtol=0, atol=1e-5)
    assert torch.equal(found.decision[~again], first.decision[~again])
    found.decision.sum().backward()
    assert q.grad[~again].any(1).all()
    assert not q.grad[again].any()  # the reference's decisions carry no gradients


def test_the_second_solver_is_asked_in_every_way_to_solve():
    """By problem, by program, and inside of a risk."""
    returns = torch.randn(4, 20, 3, generator=torch.Generator().manual_seed(0)).double() + 0.3
    problem, scenarios = fw.Portfolio([1.0, 1.0, 1.0], 1.0), fw.Scenarios(returns)
    one = fw.InteriorPointSolver(max_iterations=1)
    for asked in (problem, problem.with_risk(fw.CVaR(0.8))):
        trusted = fw.solve(asked, scenarios).objective
        found = fw.solve(asked, scenarios, fw.AutoSolver(one)).objective
        torch.testing.assert_close(found, trusted, rtol=1e-7, atol=1e-7)
    alone = fw.solve(problem, scenarios, one, on_failure="return")
    assert set(alone.status) == {fw.Status.INACCURATE}


def test_infeasible_contexts_are_proved_not_solved_again():
    problem = fw.Portfolio(expected_return=torch.ones(2), minimum_return=3.0, upper=torch.ones(2))
    values = torch.ones(2, 3, 2, dtype=torch.float64)
    found = fw.solve(problem, fw.Scenarios(values), on_failure="return")
    assert set(found.status) == {fw.Status.INFEASIBLE}
    assert set(found.certificates) == {0, 1}
