"""CvxpyProblem with cones: against CVXPY's own extensive forms, and finite differences."""

from __future__ import annotations

import copy
import pickle

import cvxpy as cp
import numpy as np
import pytest
import torch

import forewise as fw
from forewise.solvers import ClarabelEngine, MoreauEngine
from tests.problems.conic_cases import CASES, Case, N, draw_case

B, M = 2, 4
SLOW = [pytest.param(seed, marks=pytest.mark.slow) for seed in range(12, 100)]
ENGINES = [ClarabelEngine(), pytest.param(MoreauEngine(), marks=pytest.mark.skipif(
    not MoreauEngine.installed(), reason="Moreau is not installed"))]  # fmt: skip


def drawn(case: Case, seed: int = 0):
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.2, 1, (B, M))
    return case.outcomes(rng, B, M), weights / weights.sum(1, keepdims=True)


def check_against_cvxpy(case: Case, seed: int, engine):
    problem, (values, weights) = case.problem(), drawn(case, seed)
    assert problem.program_type is fw.problems.ConicProgram
    solution = fw.solve(
        problem, fw.Scenarios(values, weights), fw.solvers.ConicSolver(engine=engine)
    )
    for i in range(B):
        best = case.best(values[i], weights[i])
        assert solution.objective[i].item() == pytest.approx(best, rel=1e-6, abs=1e-6)
    decision = solution.decision
    cost = problem.cost(decision, values[:, 0])
    for i in range(B):
        best = case.best(values[i, :1], np.ones(1), decision[i].numpy())
        assert cost[i].item() == pytest.approx(best, rel=1e-5, abs=1e-5)


def check_slopes(function, inputs, rel=1e-2, step=1e-3):
    """Gradients of a function of tensors against central differences along random directions.

    The step is large because a cone program's decision is far less exact than its value.
    """
    rng = np.random.default_rng(3)
    gradients = torch.autograd.grad(function(*inputs), inputs)
    for i, gradient in enumerate(gradients):
        direction = torch.from_numpy(rng.normal(size=tuple(gradient.shape)))
        if i == 1 and len(inputs) > 1:  # weights keep their sum
            direction = direction - direction.mean(-1, keepdim=True)
        ends = []
        for sign in (step, -step):
            moved = [x.detach() + (sign * direction if j == i else 0) for j, x in enumerate(inputs)]
            ends.append(function(*moved).item())
        slope = (ends[0] - ends[1]) / (2 * step)
        scale = (gradient * direction).abs().sum().item()
        assert (gradient * direction).sum().item() == pytest.approx(slope, abs=rel * scale + 1e-3)


@pytest.mark.parametrize("engine", ENGINES, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("name", CASES)
def test_programs_agree_with_cvxpy(name, engine):
    check_against_cvxpy(CASES[name], 0, engine)


@pytest.mark.parametrize("seed", [*range(12), *SLOW])
def test_random_programs_agree_with_cvxpy(seed):
    check_against_cvxpy(draw_case(np.random.default_rng(seed)), seed, None)


@pytest.mark.parametrize("engine", ENGINES, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("name", [n for n in CASES if n not in ("norm of recourse",)])
def test_decisions_are_differentiable(name, engine):
    """In outcomes and weights. Where recourse stands at a kink there is no slope to compare."""
    case = CASES[name]
    problem, (values, weights) = case.problem(), drawn(case, 1)
    solver = fw.solvers.ConicSolver(tolerance=1e-12, engine=engine)
    direction = torch.arange(1.0, N + 1, dtype=torch.float64)

    def decided(y, w):
        return (fw.solve(problem, fw.Scenarios(y, w), solver).decision @ direction).sum()

    def value(y, w):
        return fw.solve(problem, fw.Scenarios(y, w), solver).objective.sum()

    inputs = [torch.tensor(part, requires_grad=True) for part in (values, weights)]
    check_slopes(decided, inputs)
    check_slopes(value, inputs, rel=1e-3)


@pytest.mark.parametrize("name", ["norm", "exponential cost", "recourse in a ball", "power"])
def test_costs_are_differentiable(name):
    case = CASES[name]
    problem, (values, _) = case.problem(), drawn(case, 2)
    decision = torch.tensor(np.random.default_rng(2).uniform(0.1, 0.6, (B, N)), requires_grad=True)
    outcome = torch.tensor(values[:, 0], requires_grad=True)
    check_slopes(lambda z: problem.cost(z, outcome.detach()).sum(), [decision], rel=1e-3)
    check_slopes(lambda y: problem.cost(decision.detach(), y).sum(), [outcome], rel=1e-3)


def portfolio():
    """Log utility with a turnover norm, a given budget of risk and what is held."""
    z, y = cp.Variable(N, nonneg=True, name="z"), cp.Parameter(N, name="y")
    held, risk = cp.Parameter(N, name="held"), cp.Parameter(name="risk", nonneg=True)
    cost = -cp.log(y @ z) + 0.2 * cp.norm(z - held)
    rows = [cp.sum(z) == 1, cp.norm(np.diag([1.0, 2.0, 3.0]) @ z) <= risk]
    return fw.CvxpyProblem(cp.Minimize(cost), rows, decision=z, outcome=y, given=[held, risk])


def test_given_is_differentiable_and_equals_a_loop():
    problem, rng = portfolio(), np.random.default_rng(0)
    values = rng.uniform(0.5, 2, (B, M, N))
    given = np.concatenate([rng.uniform(0, 0.3, (B, N)), rng.uniform(1.4, 1.5, (B, 1))], 1)
    together = fw.solve(problem.bound(given), fw.Scenarios(values))
    for i in range(B):
        alone = fw.solve(problem.bound(given[i : i + 1]), fw.Scenarios(values[i : i + 1]))
        assert alone.objective[0].item() == pytest.approx(together.objective[i].item(), abs=1e-8)
    solver = fw.solvers.ConicSolver(tolerance=1e-12)
    direction = torch.arange(1.0, N + 1, dtype=torch.float64)

    def decided(g):
        solution = fw.solve(problem.bound(g), fw.Scenarios(values), solver)
        return (solution.decision @ direction).sum()

    check_slopes(decided, [torch.tensor(given, requires_grad=True)])
    decision = torch.tensor([[0.5, 0.4, 0.1], [0.6, 0.3, 0.1]], dtype=torch.float64)
    cost = problem.bound(given).cost(decision, values[:, 0])
    expected = -np.log((values[:, 0] * decision.numpy()).sum(1))
    expected += 0.2 * np.linalg.norm(decision.numpy() - given[:, :N], axis=1)
    assert np.allclose(cost, expected, atol=1e-6)


def test_copies_and_states_keep_the_cones():
    problem = portfolio()
    scenarios = fw.Scenarios(np.random.default_rng(1).uniform(0.5, 2, (B, M, N)))
    given = np.array([[0.5, 0.3, 0.2, 1.2]])
    expected = fw.solve(problem.bound(given), scenarios).decision
    for again in (
        pickle.loads(pickle.dumps(problem)), copy.deepcopy(problem),
        fw.CvxpyProblem.from_state(problem.state()),
    ):  # fmt: skip
        assert torch.equal(fw.solve(again.bound(given), scenarios).decision, expected)


def test_a_scenario_of_weight_zero_is_not_there():
    problem = CASES["recourse in a ball"].problem()
    values = np.random.default_rng(0).uniform(0.3, 2, (3, M, N))
    weights = np.array([[0.5, 0.5, 0, 0], [0.25] * 4, [0.5, 0.5, 0, 0]])
    values[0, 2:] = 50.0  # would change everything
    solution = fw.solve(problem, fw.Scenarios(values, weights))
    alone = fw.solve(problem, fw.Scenarios(values[:1, :2]))
    assert solution.objective[0].item() == pytest.approx(alone.objective.item(), abs=1e-8)
    assert not solution.recourse[0, 2:].any()
    full = fw.solve(problem, fw.Scenarios(values[1:2]))
    assert solution.objective[1].item() == pytest.approx(full.objective.item(), abs=1e-8)


def test_costs_of_decisions_that_recourse_cannot_save():
    """norm(z − y) ≤ 1 has no recourse to speak of: a decision far away costs infinity."""
    z, y = cp.Variable(N, name="z"), cp.Parameter(N, name="y")
    problem = fw.CvxpyProblem(cp.Minimize(cp.sum(z)), [cp.norm(z - y) <= 1], decision=z, outcome=y)
    outcome = np.zeros((3, N))
    decision = np.array([[0.5, 0, 0], [2.0, 0, 0], [1.0, 0, 0]])
    assert problem.cost(decision, outcome).tolist() == pytest.approx([0.5, np.inf, 1.0])


def test_risk_is_refused_with_what_to_write():
    with pytest.raises(
        fw.exceptions.UnsupportedProblemError, match=r"a conic program: .*cp\.pos\(cost - t\)"
    ):
        CASES["norm"].problem().with_risk(fw.CVaR(0.9))
