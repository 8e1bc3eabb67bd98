"""Starts from an earlier solution: the same answers in fewer iterations, or refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

import forewise as fw
from forewise.exceptions import InvalidInputError
from tests.solvers.programs import (
    Shape,
    infeasible_program,
    planted_program,
    residuals,
    unbounded_program,
)
from tests.solvers.test_sparse import random_program

INTERIOR = fw.InteriorPointSolver()


def newsvendor() -> fw.QuadraticNewsvendor:
    return fw.QuadraticNewsvendor(
        quadratic=[6.0, 4.0], linear=[37.0, 40.0], shortage_quadratic=[24.0, 28.0],
        shortage=[1644.0, 687.0], excess_quadratic=[17.0, 13.0], excess=[172.0, 186.0],
        price=[53.0, 109.0], budget=1400.0,
    )  # fmt: skip


PROBLEMS = {
    "quadratic": (newsvendor(), 10.0),
    "portfolio": (fw.Portfolio([0.3, 0.2, 0.4], 1.0), 0.0),
    "both bounds": (fw.Portfolio([0.3, 0.2, 0.4], 0.2, budget=1.0, upper=0.6, lower=-0.1), 0.0),
}


def draws(mean: float, n: int, size: float) -> list[fw.Scenarios]:
    """Scenarios, and others that differ from them by a share."""
    rng = np.random.default_rng(3)
    values = mean + rng.normal(size=(4, 20, n))
    moved = values * (1 + size * rng.normal(size=(4, 1, n)))
    return [fw.Scenarios(values), fw.Scenarios(moved)]


@pytest.mark.parametrize("size", [0.0, 0.01, 0.1, 10.0])
@pytest.mark.parametrize("name", PROBLEMS)
def test_the_same_answer_in_no_more_iterations(name, size):
    problem, mean = PROBLEMS[name]
    before, after = draws(mean, problem.n_outcomes, size)
    start = fw.solve(problem, before, INTERIOR)
    cold = fw.solve(problem, after, INTERIOR)
    warm = fw.solve(problem, after, INTERIOR, start=start)
    torch.testing.assert_close(warm.objective, cold.objective, rtol=1e-8, atol=1e-8)
    torch.testing.assert_close(warm.decision, cold.decision, rtol=0, atol=1e-5)
    assert float(residuals(problem.program(after), warm).worst.max()) <= 1e-8
    saved = float((cold.iterations - warm.iterations).double().mean())
    assert saved >= {0.0: 5, 0.01: 2, 0.1: 1, 10.0: -3}[size]


@pytest.mark.parametrize("name", PROBLEMS)
def test_gradients_do_not_depend_on_the_start(name):
    problem, mean = PROBLEMS[name]
    before, after = draws(mean, problem.n_outcomes, 0.02)
    start = fw.solve(problem, before, INTERIOR)
    found = []
    for given in (None, start):
        values = after.values.clone().requires_grad_()
        solution = fw.solve(problem, fw.Scenarios(values), INTERIOR, start=given)
        (solution.decision.square().sum() + solution.objective.sum()).backward()
        found.append(values.grad)
    torch.testing.assert_close(*found, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("seed", range(6))
def test_sparse_programs_with_bounds(seed):
    program = random_program(seed, B=2)
    start = fw.solve_program(program, INTERIOR)
    moved = program.with_blocks(q=1.01 * program.q, r=program.r + 0.01)
    cold = fw.solve_program(moved, INTERIOR)
    warm = fw.solve_program(moved, start=start)
    torch.testing.assert_close(warm.decision, cold.decision, rtol=0, atol=1e-6)
    torch.testing.assert_close(
        warm.duals.recourse_upper, cold.duals.recourse_upper, atol=1e-6, rtol=0
    )
    assert (warm.iterations <= cold.iterations).all()


@pytest.mark.parametrize("seed", range(8))
def test_any_start_gives_the_planted_optimum(seed):
    """From points far off, infinitesimal ones and nonsense, one context after the other."""
    rng = np.random.default_rng(seed)
    shape = Shape(B=4, M=5, n=4, k=3, g=3, e=1, t=2, r=4, s=1)
    planted = planted_program(rng, shape, linear=bool(seed % 2))
    first = fw.solve_program(planted.program, INTERIOR)
    noise = torch.tensor([1e-12, 1e3, 1e12, torch.nan]).double()

    def moved(part: torch.Tensor) -> torch.Tensor:
        scale = noise.reshape(-1, *(1,) * (part.ndim - 1))
        return part + scale * torch.from_numpy(rng.normal(size=part.shape))

    duals = replace(
        first.duals,
        **{n: moved(p) for n, p in vars(first.duals).items() if p is not None},
    )
    start = replace(
        first, decision=moved(first.decision), recourse=moved(first.recourse), duals=duals
    )
    found = fw.solve_program(planted.program, INTERIOR, start=start)
    torch.testing.assert_close(found.objective, planted.objective, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("make", [infeasible_program, unbounded_program])
def test_verdicts_do_not_depend_on_the_start(make):
    for seed in range(6):
        rng = np.random.default_rng(seed)
        shape = Shape(B=2, M=3, n=4, k=3, g=2, e=1, t=2, r=4, s=1)
        program = make(rng, shape)
        cold = fw.solve_program(program, INTERIOR, on_failure="return")
        B, M = program.weights.shape
        g, e, r, s = (getattr(program, n).shape[-1] for n in "hers")
        one = torch.ones(B, 1).double()
        start = replace(
            cold,
            decision=one.expand(B, 4), recourse=torch.zeros(B, M, 3).double(),
            duals=fw.solvers.Duals(
                torch.ones(B, g).double(), torch.zeros(B, e).double(),
                torch.ones(B, M, r).double(), torch.zeros(B, M, s).double(),
            ),
        )  # fmt: skip
        warm = fw.solve_program(program, INTERIOR, on_failure="return", start=start)
        assert warm.status == cold.status


def test_programs_in_other_units():
    """Columns of very different size are solved in units of their own, and so start there."""
    program = fw.ScenarioProgram(
        torch.ones(1, 3) / 3, [[1.0, 1e6]], G=[[[-1.0, 0.0], [0.0, -1e6], [-1.0, -1e6]]],
        h=[[-0.5, -0.2, -1.0]], d=[[[5.0, 1e7]]], T=[[[[-1.0, -1e6]]]], W=[[[[-1.0, -1e7]]]],
        r=[[[-1.0], [-2.0], [-3.0]]], recourse_lower=[[[0.0, 0.0]]],
    )  # fmt: skip
    start = fw.solve_program(program, INTERIOR)
    again = fw.solve_program(program.with_blocks(r=1.01 * program.r), INTERIOR, start=start)
    cold = fw.solve_program(program.with_blocks(r=1.01 * program.r), INTERIOR)
    torch.testing.assert_close(again.objective, cold.objective, rtol=1e-8, atol=0)
    assert int(again.iterations) < int(cold.iterations)


def test_starts_that_do_not_fit():
    problem, _ = PROBLEMS["quadratic"]
    before, _ = draws(10.0, 2, 0.0)
    start = fw.solve(problem, before, INTERIOR)
    fewer = fw.Scenarios(before.values[:, :7])
    with pytest.raises(InvalidInputError, match=r"4 contexts with 7 scenarios.*one of 4 with 20"):
        fw.solve(problem, fewer, INTERIOR, start=start)
    with pytest.raises(InvalidInputError, match=r"start must be a forewise\.solvers\.Solution"):
        fw.solve(problem, before, start=start.decision)
    other = fw.Portfolio([0.3, 0.2], 1.0)
    with pytest.raises(InvalidInputError, match="start must be a solution of a program with as"):
        fw.solve(other, before, INTERIOR, start=start)


def test_solvers_without_use_for_a_start():
    """Closed forms, HiGHS and risks solve as without it."""
    problem, _ = PROBLEMS["quadratic"]
    before, after = draws(10.0, 2, 0.1)
    start = fw.solve(problem, before)
    for solver in (None, fw.ReferenceSolver()):
        found = [fw.solve(problem, after, solver, start=s).decision for s in (None, start)]
        assert torch.equal(*found)
    risky = problem.with_risk(fw.CVaR(0.8))
    found = [fw.solve(risky, after, start=s).decision for s in (None, fw.solve(risky, before))]
    assert torch.equal(*found)
