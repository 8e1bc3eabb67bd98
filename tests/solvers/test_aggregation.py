"""Merged scenarios: the same value as the whole program, and bounds that hold."""

from __future__ import annotations

import resource

import numpy as np
import pytest
import torch

import forewise as fw
from forewise.exceptions import UnsupportedProblemError
from forewise.solvers import AggregatedSolver, InteriorPointSolver, sampled_bounds
from forewise.testing import check_solver
from tests.solvers.programs import residuals


def capacity_program(n_values: int, top: float = 3.96) -> fw.ScenarioProgram:
    """Four plants, three kinds of independent demand: n_values³ scenarios, 4 + 12 variables."""
    values = np.linspace(0.0, top, n_values)
    demand = np.stack(np.meshgrid(values, values, 0.9 * values, indexing="ij"), -1).reshape(-1, 3)
    M, cost = len(demand), np.array([10.0, 7, 16, 6])
    running = np.array([[40, 24, 4], [45, 27, 4.5], [32, 19.2, 3.2], [55, 33, 5.5]])
    T, W, r = np.zeros((7, 4)), np.zeros((7, 12)), np.zeros((1, M, 7))
    T[range(4), range(4)] = -1.0
    for plant in range(4):
        W[plant, 3 * plant : 3 * plant + 3] = 1.0
    for kind in range(3):
        W[4 + kind, kind::3] = -1.0
    r[0, :, 4:] = -demand
    return fw.ScenarioProgram(
        np.full((1, M), 1 / M),
        cost[None],
        G=np.array([[-np.ones(4), cost]]),
        h=np.array([[-12.0, 120.0]]),
        T=T[None, None],
        W=W[None, None],
        r=r,
        d=running.reshape(1, 1, 12),
        lower=np.zeros((1, 4)),
        recourse_lower=np.zeros((1, 1, 12)),
    )


def random_program(seed: int) -> fw.ScenarioProgram:
    """Some rows random, perhaps a technology row too; not every decision has recourse."""
    rng = np.random.default_rng(seed)
    n, k = rng.integers(1, 5), rng.integers(1, 5)
    m, s, M = rng.integers(k, k + 6), rng.integers(0, k), int(rng.integers(70, 200))
    length, price = (10.0 ** rng.integers(-8, 9) if rng.random() < 0.5 else 1.0 for _ in "lp")
    T, W = rng.normal(size=(1, 1, m, n)), rng.normal(size=(1, 1, m, k))
    r, moving = np.repeat(rng.normal(size=(1, 1, m)) + 2, M, 1), rng.random(m) < 0.6
    r[:, :, moving] += rng.normal(size=(1, M, moving.sum()))
    if rng.random() < 0.3:
        T = np.repeat(T, M, 1)
        T[:, :, 0] += 0.2 * rng.normal(size=(1, M, n))
    equal = {}
    if s:
        equal = {"F": rng.normal(size=(1, 1, s, n)), "V": rng.normal(size=(1, 1, s, k))}
        equal["s"] = rng.normal(size=(1, M, s)) * 0.3 * length
    weights = rng.random((1, M)) * (rng.random((1, M)) > 0.2)
    return fw.ScenarioProgram(
        weights / weights.sum(),
        rng.normal(size=(1, n)) * price,
        T=T,
        W=W,
        r=r * length,
        d=(rng.random((1, 1, k)) + 0.2) * price,
        lower=np.full((1, n), -2.0 * length),
        upper=np.full((1, n), 2.0 * length),
        recourse_lower=np.zeros((1, 1, k)),
        **equal,
    )


def test_same_value_and_residuals_as_the_whole_program():
    program, bounds = capacity_program(8), []
    merged = fw.solve_program(program, AggregatedSolver(log=bounds.append))
    whole = fw.solve_program(program)
    torch.testing.assert_close(merged.objective, whole.objective, rtol=1e-8, atol=0)
    assert bounds[-1].groups < program.n_scenarios
    value = float(whole.objective)
    for known in bounds:
        assert known.lower <= value * (1 + 1e-8)
        assert known.upper >= value * (1 - 1e-8)
    # The multipliers are those of the whole program: they prove the value.
    without = merged.duals
    assert without.recourse_lower is not None
    cost = program.objective(merged.decision, merged.recourse)
    torch.testing.assert_close(cost, merged.objective, rtol=1e-9, atol=0)
    stationary = (
        program.weights[..., None] * program.d
        + without.scenario_inequality @ program.W[0, 0]
        - without.recourse_lower
    )
    assert float(stationary.abs().max()) <= 1e-8 * 55 / program.n_scenarios


@pytest.mark.parametrize("seed", range(40))
def test_random_programs_end_as_the_interior_point_says(seed):
    program = random_program(seed)
    merged = AggregatedSolver().solve_program(program)
    whole = fw.solve_program(program, on_failure="return")
    assert merged.status == whole.status
    torch.testing.assert_close(merged.objective, whole.objective, rtol=1e-6, atol=0, equal_nan=True)


def test_residuals_hold_on_the_raw_data():
    program = capacity_program(6).with_blocks(recourse_lower=None, lower=None)
    bounded = program.with_blocks(
        W=torch.cat([program.W, -torch.eye(12).double()[None, None]], 2),
        r=torch.cat([program.r, torch.zeros(1, program.n_scenarios, 12).double()], 2),
        G=torch.cat([program.G, -torch.eye(4).double()[None]], 1),
        h=torch.cat([program.h, torch.zeros(1, 4).double()], 1),
    )
    solution = fw.solve_program(bounded, AggregatedSolver())
    assert float(residuals(bounded, solution).worst) <= 1e-8


def test_order_and_copies_of_scenarios_change_nothing():
    program = capacity_program(5)
    order = torch.randperm(program.n_scenarios, generator=torch.Generator().manual_seed(0))
    shuffled = program.with_blocks(
        r=program.r[:, order].repeat(1, 2, 1), weights=program.weights.repeat(1, 2) / 2
    )
    first, second = (fw.solve_program(p, AggregatedSolver()) for p in (program, shuffled))
    torch.testing.assert_close(first.objective, second.objective, rtol=1e-9, atol=0)


def test_conformance_on_a_problem_of_several_contexts():
    draws = torch.rand(3, 100, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    check_solver(
        AggregatedSolver(), fw.Newsvendor(shortage=[3.0, 1.0], excess=1.0), fw.Scenarios(draws)
    )


def test_a_program_without_recourse_in_every_scenario_is_infeasible():
    solution = AggregatedSolver().solve_program(capacity_program(6, top=9.0))
    assert solution.status == (fw.Status.INFEASIBLE,)


@pytest.mark.parametrize("name", ["d", "W", "D"])
def test_random_costs_and_matrices_are_refused(name):
    program = capacity_program(5)
    if name == "D":
        block = torch.eye(12).double()[None, None]
    else:
        block = getattr(program, name).repeat(1, program.n_scenarios, *(1,) * (2 - (name == "d")))
        block[0, 3] *= 1.1
    with pytest.raises(UnsupportedProblemError, match=f"{name}.*InteriorPointSolver"):
        AggregatedSolver().solve_program(program.with_blocks(**{name: block}))


def test_arguments_are_checked():
    with pytest.raises(fw.InvalidInputError, match="tolerance"):
        AggregatedSolver(tolerance=1e-3)
    with pytest.raises(fw.InvalidInputError, match="max_groups"):
        AggregatedSolver(max_groups=0)


def test_a_time_limit_ends_the_search():
    solution = AggregatedSolver(time_limit=1e-9).solve_program(capacity_program(8))
    assert solution.status == (fw.Status.STOPPED,)


class Drawn:
    """Three demands, drawn from the values of `capacity_program`."""

    def sample(self, n_scenarios, random_state=0):
        draws = np.random.default_rng(random_state).integers(8, size=(1, n_scenarios, 3))
        return fw.Scenarios(draws / 7 * 3.96 * [1, 1, 0.9])

    def program(self, scenarios):
        whole = capacity_program(2)
        sides = torch.zeros(1, scenarios.n_scenarios, 7, dtype=torch.float64)
        sides[..., 4:] = -scenarios.values
        return whole.with_blocks(weights=scenarios.weights, r=sides)


@pytest.mark.parametrize("solver", [AggregatedSolver(), InteriorPointSolver()])
def test_sampled_bounds_hold_the_true_value(solver):
    true = float(fw.solve_program(capacity_program(8)).objective)
    found = sampled_bounds(Drawn(), 100, 5, n_evaluation=2000, solver=solver, random_state=3)
    assert found.optimal.lower <= true <= found.cost.upper
    assert true <= found.cost.mean + 2 * (found.cost.upper - found.cost.mean)
    whole = capacity_program(8)
    fixed = whole.with_blocks(lower=found.decision[None], upper=found.decision[None])
    assert float(fw.solve_program(fixed).objective) - true <= found.gap
    with pytest.raises(fw.InvalidInputError, match="decision must have shape"):
        sampled_bounds(Drawn(), 100, 2, n_evaluation=100, decision=[1.0])


@pytest.mark.slow
def test_a_million_scenarios():
    """In at most 2 GB; `docs/scale.md` has the seconds."""
    solution = fw.solve_program(capacity_program(100), AggregatedSolver())
    assert float(solution.gap) <= 1e-6
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss <= 2e6
