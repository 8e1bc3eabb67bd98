"""The measured problems as one writes them in CVXPY: once for forewise, lifted for cvxpylayers."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch

import forewise as fw
from forewise.problems.cvxpy.expressions import import_cvxpy


def newsvendor(problem: fw.Newsvendor, n_items: int) -> fw.CvxpyProblem:
    """The newsvendor of so many items."""
    cp = import_cvxpy()
    z, y = cp.Variable(n_items, nonneg=True, name="order"), cp.Parameter(n_items, name="demand")
    shortage, excess = (np.broadcast_to(p, n_items) for p in (problem.shortage, problem.excess))
    cost = shortage @ cp.pos(y - z) + excess @ cp.pos(z - y)
    return fw.CvxpyProblem(cp.Minimize(cost), [], decision=z, outcome=y)


def quadratic_newsvendor(problem: fw.QuadraticNewsvendor) -> fw.CvxpyProblem:
    """The quadratic newsvendor."""
    cp = import_cvxpy()
    n = problem.n_items
    z, y = cp.Variable(n, nonneg=True, name="order"), cp.Parameter(n, name="demand")
    cost = _ordering(problem, z) + _recourse(problem, cp.pos(y - z), cp.pos(z - y))
    return fw.CvxpyProblem(cp.Minimize(cost), _budget(problem, z), decision=z, outcome=y)


def portfolio(problem: fw.Portfolio) -> fw.CvxpyProblem:
    """The portfolio without short sales, budget and upper bounds: it returns what is asked for."""
    cp = import_cvxpy()
    n = problem.n_outcomes
    z, y = cp.Variable(n, nonneg=True, name="holding"), cp.Parameter(n, name="return")
    rows = [problem.expected_return.numpy() @ z == float(problem.minimum_return)]
    return fw.CvxpyProblem(cp.Minimize(cp.pos(-y @ z)), rows, decision=z, outcome=y)


def transport(n_plants: int, n_towns: int = 10) -> fw.CvxpyProblem:
    """Build plants, then see the towns' demands, ship, and pay for what is missing."""
    cp = import_cvxpy()
    price = np.random.default_rng(0).uniform(1.0, 3.0, size=(n_plants, n_towns))
    capacity = cp.Variable(n_plants, nonneg=True, name="capacity")
    demand = cp.Parameter(n_towns, name="demand")
    shipped = cp.Variable((n_plants, n_towns), nonneg=True)
    lost = cp.Variable(n_towns, nonneg=True)
    cost = cp.sum(capacity) + cp.sum(cp.multiply(price, shipped)) + 20 * cp.sum(lost)
    rows = [cp.sum(shipped, axis=1) <= capacity, cp.sum(shipped, axis=0) + lost == demand]
    return fw.CvxpyProblem(cp.Minimize(cost), rows, decision=capacity, outcome=demand)


class Lifted(NamedTuple):
    """A CVXPY problem with all scenarios in it, for a layer."""

    problem: Any
    parameters: list[Any]
    decision: Any

    def values(self, scenarios: torch.Tensor) -> list[torch.Tensor]:
        """The parameters' values from scenarios ``(n_contexts, n_scenarios, n_outcomes)``."""
        return [scenarios] if len(self.parameters) == 1 else list(scenarios.unbind(1))


def lifted_in_a_loop(problem: fw.QuadraticNewsvendor, n_scenarios: int) -> Lifted:
    """A parameter for each scenario, and the sum of the scenarios' costs: as one would write it."""
    cp = import_cvxpy()
    z = cp.Variable(problem.n_items, nonneg=True)
    demands = [cp.Parameter(problem.n_items) for _ in range(n_scenarios)]
    each = [_recourse(problem, cp.pos(y - z), cp.pos(z - y)) for y in demands]
    cost = _ordering(problem, z) + sum(each) / n_scenarios
    return Lifted(cp.Problem(cp.Minimize(cost), _budget(problem, z)), demands, z)


def lifted_at_once(problem: fw.QuadraticNewsvendor, n_scenarios: int) -> Lifted:
    """One parameter with all scenarios and no loop: as one writes it when the loop is too slow.

    The quadratic terms must be diagonals.
    """
    cp = import_cvxpy()
    n = problem.n_items
    z, demand = cp.Variable(n, nonneg=True), cp.Parameter((n_scenarios, n))
    orders = np.ones((n_scenarios, 1)) @ cp.reshape(z, (1, n), order="C")
    cost = _ordering(problem, z)
    for amount, part in ((demand - orders, "shortage"), (orders - demand, "excess")):
        quadratic = getattr(problem, f"{part}_quadratic").numpy()
        linear = np.tile(getattr(problem, part).numpy(), (n_scenarios, 1))
        size = cp.pos(amount)
        scaled = cp.multiply(np.tile(np.sqrt(quadratic), (n_scenarios, 1)), size)
        cost += (cp.sum_squares(scaled) + cp.sum(cp.multiply(linear, size))) / n_scenarios
    return Lifted(cp.Problem(cp.Minimize(cost), _budget(problem, z)), [demand], z)


def _ordering(problem: fw.QuadraticNewsvendor, z: Any) -> Any:
    cp = import_cvxpy()
    return cp.quad_form(z, _matrix(problem.quadratic)) + problem.linear.numpy() @ z


def _recourse(problem: fw.QuadraticNewsvendor, short: Any, over: Any) -> Any:
    cp = import_cvxpy()
    shortage = cp.quad_form(short, _matrix(problem.shortage_quadratic))
    excess = cp.quad_form(over, _matrix(problem.excess_quadratic))
    return shortage + problem.shortage.numpy() @ short + excess + problem.excess.numpy() @ over


def _matrix(term: torch.Tensor) -> np.ndarray:
    return np.diag(term.numpy()) if term.ndim == 1 else term.numpy()


def _budget(problem: fw.QuadraticNewsvendor, z: Any) -> list[Any]:
    if problem.price is None or problem.budget is None:
        return []
    return [problem.price.numpy() @ z <= float(problem.budget)]
