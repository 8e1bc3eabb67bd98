"""CvxpyProblem with integers: against CVXPY's own extensive forms solved by HiGHS."""

from __future__ import annotations

import pickle

import cvxpy as cp
import numpy as np
import pytest
import torch

import forewise as fw

B, M = 2, 5


def facilities(opened, sent, demand):
    """Sites are opened now; customers are served from open ones when demand is seen."""
    cost = np.array([6.0, 5.0, 7.0]) @ opened
    distance = np.array([[1.0, 2.0, 4.0, 3.0], [3.0, 1.0, 1.0, 2.0], [2.0, 3.0, 1.0, 1.0]])
    missing = cp.pos(demand - cp.sum(sent, axis=0))
    cost = cost + cp.sum(cp.multiply(distance, sent)) + 9 * cp.sum(missing)
    return cost, [sent >= 0, cp.sum(sent, axis=1) <= 6 * opened]


def staffing(staff, extra, demand):
    """People are hired now, in integers, and temporary ones when the work is seen."""
    cost = np.array([2.0, 3.0, 2.5, 2.2]) @ staff + 4.5 * cp.sum(extra)
    return cost, [1.7 * staff + extra >= demand, staff >= 0, extra >= 0, cp.sum(staff) <= 9]


CASES = {
    "facilities": (facilities, (3, "boolean"), ((3, 4), None)),
    "staffing": (staffing, (4, "integer"), (4, "integer")),
    "boolean recourse": (
        lambda z, u, y: (z @ np.ones(4) + 5 * cp.sum(u), [z + 3 * u >= y, z >= 0]),
        (4, None), (4, "boolean"),
    ),
}  # fmt: skip


def variable(size, kind, name):
    return cp.Variable(size, name=name, **({kind: True} if kind else {}))


def made(name):
    build, first, second = CASES[name]
    z, u = variable(*first, "z"), variable(*second, "u")
    y = cp.Parameter(4, name="y")
    cost, rows = build(z, u, y)
    return fw.CvxpyProblem(cp.Minimize(cost), rows, decision=z, outcome=y)


def best(name, values, weights, decision=None):
    build, first, second = CASES[name]
    z = variable(*first, "z") if decision is None else cp.Constant(decision)
    total, rows = 0, []
    for value, weight in zip(values, weights, strict=True):
        cost, more = build(z, variable(*second, "u"), value)
        total, rows = total + weight * cost, rows + more
    return float(cp.Problem(cp.Minimize(total), rows).solve(solver=cp.HIGHS))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", CASES)
def test_programs_agree_with_cvxpy(name, seed):
    rng = np.random.default_rng(seed)
    values = rng.uniform(0, 3, (B, M, 4))
    weights = rng.dirichlet(np.ones(M), B)
    problem = made(name)
    assert problem.program_type is fw.problems.IntegerProgram
    solution = fw.solve(problem, fw.Scenarios(values, weights))
    cost = problem.cost(solution.decision, values[:, 0])
    assert not cost.requires_grad
    for i in range(B):
        expected = best(name, values[i], weights[i])
        assert solution.objective[i].item() == pytest.approx(expected, rel=1e-5, abs=1e-6)
        fixed = best(name, values[i, :1], np.ones(1), solution.decision[i].numpy())
        assert cost[i].item() == pytest.approx(fixed, rel=1e-5, abs=1e-6)
    if CASES[name][1][1]:
        assert torch.equal(solution.decision, solution.decision.round())
    assert float(solution.primal_residual.max()) <= 1e-6
    assert float(solution.gap.max()) <= 1e-5


def test_scenarios_of_weight_zero_are_not_there():
    values = np.random.default_rng(0).uniform(0, 3, (1, 3, 4))
    values[0, 2] = 1e6
    solution = fw.solve(made("staffing"), fw.Scenarios(values, [0.5, 0.5, 0.0]))
    alone = fw.solve(made("staffing"), fw.Scenarios(values[:, :2]))
    assert solution.objective.item() == pytest.approx(alone.objective.item())


def test_statuses():
    z, y = cp.Variable(2, integer=True, name="z"), cp.Parameter(2, name="y")
    problem = fw.CvxpyProblem(cp.Minimize(cp.sum(z)), [z >= y, z <= 3], decision=z, outcome=y)
    values = np.array([[[0.4, 2.5]], [[4.0, 1.0]], [[np.nan, 1.0]]])
    solution = fw.solve(problem, fw.Scenarios(values), on_failure="return")
    assert [str(status) for status in solution.status] == ["optimal", "infeasible", "invalid"]
    assert solution.decision[0].tolist() == [1, 3]
    assert solution.decision[1:].isnan().all()
    free = fw.CvxpyProblem(cp.Minimize(cp.sum(z)), [z <= y], decision=z, outcome=y)
    unbounded = fw.solve(free, fw.Scenarios(values[:1]), on_failure="return")
    assert unbounded.status == (fw.Status.UNBOUNDED,)


def test_copies_and_states_keep_integers():
    problem = made("staffing")
    scenarios = fw.Scenarios(np.random.default_rng(1).uniform(0, 3, (B, M, 4)))
    expected = fw.solve(problem, scenarios)
    stored = fw.CvxpyProblem.from_state(problem.state())
    for again in (pickle.loads(pickle.dumps(problem)), stored):
        assert torch.equal(fw.solve(again, scenarios).decision, expected.decision)
    trusted = fw.solve(problem, scenarios, fw.ReferenceSolver())
    assert torch.allclose(trusted.objective, expected.objective, rtol=1e-5)


@pytest.mark.parametrize(
    ("solver", "message"),
    [
        (
            fw.InteriorPointSolver(),
            r"becomes an integer program.*use AutoSolver",
        ),
        (fw.solvers.ConicSolver(), "becomes an integer program"),
    ],
)
def test_other_solvers_refuse(solver, message):
    with pytest.raises(fw.exceptions.UnsupportedProblemError, match=message):
        fw.solve(made("staffing"), fw.Scenarios(np.ones((1, 1, 4))), solver)


def test_refusals_and_settings():
    scenarios = fw.Scenarios(np.ones((1, 1, 4)))
    with pytest.raises(fw.exceptions.UnsupportedProblemError, match=r"linear or quadratic"):
        fw.solve(fw.Newsvendor(1.0, 2.0), scenarios, fw.solvers.IntegerSolver())
    with pytest.raises(
        fw.exceptions.UnsupportedProblemError, match=r"with_risk takes .* an integer program"
    ):
        made("staffing").with_risk(fw.WorstCase())
    with pytest.raises(fw.InvalidInputError, match="gap must be at least 0"):
        fw.solvers.IntegerSolver(gap=2.0)
    with pytest.raises(fw.InvalidInputError, match="time_limit must be positive"):
        fw.solvers.IntegerSolver(time_limit=0.0)
