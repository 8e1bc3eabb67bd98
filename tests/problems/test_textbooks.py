"""Two-stage programs retyped from the literature, against the optima printed there."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

import forewise as fw


def test_electricity_investment():
    """Louveaux and Smeers (1988), known as LandS: four plants, three modes of demand; 381.853."""
    capacity = cp.Variable(4, nonneg=True, name="capacity")
    supply = cp.Variable((4, 3), nonneg=True)
    demand = cp.Parameter(name="demand")
    investment = np.array([10.0, 7.0, 16.0, 6.0])
    operation = np.outer([40.0, 45.0, 32.0, 55.0], [1.0, 0.6, 0.1])
    rows = [
        cp.sum(capacity) >= 12,
        investment @ capacity <= 120,
        cp.sum(supply, axis=1) <= capacity,
        cp.sum(supply[:, 0]) >= demand,
        cp.sum(supply[:, 1]) >= 3,
        cp.sum(supply[:, 2]) >= 2,
    ]
    cost = investment @ capacity + cp.sum(cp.multiply(operation, supply))
    problem = fw.CvxpyProblem(cp.Minimize(cost), rows, decision=capacity, outcome=demand)
    scenarios = fw.Scenarios([[[3.0], [5.0], [7.0]]], weights=[[0.3, 0.4, 0.3]])
    solution = fw.solve(problem, scenarios)
    assert solution.objective.item() == pytest.approx(381.85333, rel=1e-7)
    reference = fw.solve(problem, scenarios, fw.ReferenceSolver())
    assert solution.objective.item() == pytest.approx(reference.objective.item(), rel=1e-8)


def test_furniture_maker():
    """Higle (2005), Dakota: resources are bought before demand is seen; profit 1,730, not 4,165."""
    bought = cp.Variable(3, nonneg=True, name="bought")  # lumber, finishing, carpentry
    made = cp.Variable(3, nonneg=True)  # desks, tables, chairs
    demand = cp.Parameter(3, name="demand")
    needs = np.array([[8.0, 6.0, 1.0], [4.0, 2.0, 1.5], [2.0, 1.5, 0.5]])
    cost = np.array([2.0, 4.0, 5.2]) @ bought - np.array([60.0, 40.0, 10.0]) @ made
    problem = fw.CvxpyProblem(
        cp.Minimize(cost), [needs @ made <= bought, made <= demand], decision=bought, outcome=demand
    )
    demands = np.array([[50.0, 20.0, 200.0], [150.0, 110.0, 225.0], [250.0, 250.0, 500.0]])
    weights = np.array([0.3, 0.4, 0.3])
    solution = fw.solve(problem, fw.Scenarios(demands[None], weights[None]))
    assert solution.objective.item() == pytest.approx(-1730, rel=1e-7)
    at_the_mean = fw.solve(problem, fw.Scenarios((weights @ demands)[None, None]))
    assert at_the_mean.objective.item() == pytest.approx(-4165, rel=1e-7)
