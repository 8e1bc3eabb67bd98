"""Random problems over a grammar of atoms, against CVXPY's own extensive forms."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
import torch

import forewise as fw
from tests.problems.grammar import draw_problem

N_CONTEXTS = 2
SLOW = [pytest.param(seed, marks=pytest.mark.slow) for seed in range(40, 300)]


def solved(problem: cp.Problem) -> float:
    """CVXPY's optimal value, as exactly as Clarabel gives it; it has no affine quad_form of pos."""
    tight = {"tol_gap_abs": 1e-10, "tol_gap_rel": 1e-10, "tol_feas": 1e-10}
    return float(problem.solve(solver=cp.CLARABEL, **tight))


@pytest.mark.parametrize("seed", [*range(40), *SLOW])
def test_random_problems_agree_with_cvxpy(seed):
    rng = np.random.default_rng(seed)
    written = draw_problem(rng)
    M = int(rng.integers(1, 5))
    values = rng.normal(size=(N_CONTEXTS, M, written.n_y))
    weights = rng.uniform(0.2, 1, (N_CONTEXTS, M))
    weights /= weights.sum(1, keepdims=True)
    given = rng.uniform(-1, 1, (N_CONTEXTS, 1)) if written.n_g else None
    problem = written.problem().bound(given)

    solution = fw.solve(problem, fw.Scenarios(values, weights))
    decision = rng.uniform(-0.3, 0.3, (N_CONTEXTS, written.n))
    outcome = values[:, 0]
    if given is not None:
        decision[:, 0] = given[:, 0] - 1
        decision[:, 1:] = 0
    cost = problem.cost(decision, outcome)
    for i in range(N_CONTEXTS):
        g = None if given is None else given[i]
        best = solved(explicit(written.extensive(values[i], weights[i], g)))
        assert solution.objective[i].item() == pytest.approx(best, rel=1e-6, abs=1e-6)
        fixed = explicit(written.extensive(outcome[i : i + 1], np.ones(1), g, decision[i]))
        assert cost[i].item() == pytest.approx(solved(fixed), rel=1e-6, abs=1e-6)
    check_gradient(problem, values, weights, given)
    check_cost_gradient(problem, decision, outcome)


def explicit(problem: cp.Problem) -> cp.Problem:
    """The problem with a variable inside of each quadratic form, which CVXPY itself needs."""
    rows = list(problem.constraints)

    def change(part):
        arguments = [change(argument) for argument in part.args]
        if type(part).__name__ == "QuadForm" and not part.args[0].is_affine():
            arguments[0] = cp.Variable(part.args[0].shape, nonneg=True)
            rows.append(arguments[0] >= part.args[0])
        return part.copy(arguments) if arguments else part

    return cp.Problem(cp.Minimize(change(problem.objective.args[0])), rows)


def check_gradient(problem, values, weights, given):
    """d objective: the optimal value is smooth almost everywhere."""
    rng = np.random.default_rng(0)
    y = torch.tensor(values, requires_grad=True)
    g = None if given is None else torch.tensor(given, requires_grad=True)
    inputs = [y] if g is None else [y, g]

    def value(y, g):
        # Gradients of values are exact through the exact solution only.
        solver = fw.InteriorPointSolver(smoothing=0.0)
        return fw.solve(problem.bound(g), fw.Scenarios(y, weights), solver).objective.sum()

    gradients = torch.autograd.grad(value(y, g), inputs)
    for x, gradient in zip(inputs, gradients, strict=True):
        direction = torch.from_numpy(rng.normal(size=tuple(x.shape)))
        slopes = []
        for step in (1e-5, -1e-5):
            moved = [x + step * direction if other is x else other for other in inputs]
            with torch.no_grad():
                slopes.append(value(moved[0], moved[1] if len(moved) > 1 else None).item())
        difference = (slopes[0] - slopes[1]) / 2e-5
        assert (gradient * direction).sum().item() == pytest.approx(difference, rel=1e-3, abs=1e-3)


def check_cost_gradient(problem, decision, outcome):
    rng = np.random.default_rng(1)
    inputs = [torch.tensor(part, requires_grad=True) for part in (decision, outcome)]
    shift = torch.from_numpy(rng.uniform(-0.01, 0.01, decision.shape))
    inputs[0] = (inputs[0].detach() + shift).requires_grad_()  # off the kinks
    gradients = torch.autograd.grad(problem.unchecked_cost(*inputs).sum(), inputs)
    for i, gradient in enumerate(gradients):
        direction = torch.from_numpy(rng.normal(size=tuple(gradient.shape)))
        ends = []
        for step in (1e-5, -1e-5):
            moved = [x.detach() + (step * direction if j == i else 0) for j, x in enumerate(inputs)]
            ends.append(problem.unchecked_cost(*moved).sum().item())
        difference = (ends[0] - ends[1]) / 2e-5
        assert (gradient * direction).sum().item() == pytest.approx(difference, rel=1e-3, abs=1e-3)
