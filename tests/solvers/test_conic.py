"""ConicSolver: statuses and their proofs, engines, and what is reported when one is not there."""

from __future__ import annotations

import sys

import cvxpy as cp
import numpy as np
import pytest
import torch

import forewise as fw
from forewise.solvers import ClarabelEngine, MoreauEngine
from forewise.solvers.conic.engines import Answers
from forewise.solvers.conic.form import ConicForm
from forewise.solvers.conic.optimality import cone_distance, dual_cone_distance
from forewise.testing import check_problem, check_solver
from tests.problems.conic_cases import CASES, N

RNG = np.random.default_rng(0)
needs_moreau = pytest.mark.skipif(not MoreauEngine.installed(), reason="Moreau is not installed")


def problem_with(rows=lambda z, y: [], cost=lambda z, y: cp.norm(z - y)):
    z, y = cp.Variable(2, name="z"), cp.Parameter(2, name="y")
    return fw.CvxpyProblem(cp.Minimize(cost(z, y)), rows(z, y), decision=z, outcome=y)


def test_conformance():
    case = CASES["exponential cost"]
    check_problem(case.problem(), case.outcomes(RNG, 5))


@pytest.mark.parametrize("name", ["log utility", "recourse in a ball"])
@pytest.mark.parametrize(
    "engine", [ClarabelEngine(), pytest.param(MoreauEngine(), marks=needs_moreau)]
)
def test_solver_conformance(engine, name):
    case = CASES[name]
    scenarios = fw.Scenarios(case.outcomes(RNG, 3, 4))
    check_solver(fw.solvers.ConicSolver(engine=engine), case.problem(), scenarios)


def test_statuses_are_proven():
    problem = problem_with(lambda z, y: [cp.norm(z) <= y[0], z[1] >= 1])
    values = np.array([[[2.0, 0.0]], [[0.5, 0.0]], [[np.nan, 0.0]], [[3.0, 1.0]]])
    solution = fw.solve(problem, fw.Scenarios(values), on_failure="return")
    nothing = fw.solve(problem, fw.Scenarios(values[2:3]), on_failure="return")
    assert nothing.status == (fw.Status.INVALID,)
    found = [str(status) for status in solution.status]
    assert found == ["optimal", "infeasible", "invalid", "optimal"]
    assert solution.decision[1:3].isnan().all()
    assert solution.certificates[1].residual <= 1e-6
    assert solution.certificates[1].multipliers is not None
    with pytest.raises(fw.SolveError, match=r"context 1 is infeasible .*relax a bound"):
        fw.solve(problem, fw.Scenarios(values))
    falling = problem_with(cost=lambda z, y: cp.norm(z - y) - 2 * z[0])
    solution = fw.solve(falling, fw.Scenarios(values[[0]]), on_failure="return")
    assert solution.status == (fw.Status.UNBOUNDED,)
    assert solution.certificates[0].decision_ray is not None


def test_failed_contexts_touch_no_gradient():
    problem = problem_with(lambda z, y: [cp.norm(z) <= y[0], z[1] >= 1])
    values = torch.tensor([[[2.0, 0.5]], [[0.5, 0.0]]], dtype=torch.float64, requires_grad=True)
    solution = fw.solve(problem, fw.Scenarios(values), on_failure="return")
    solution.objective[solution.optimal].sum().backward()
    assert values.grad.isfinite().all()
    assert not values.grad[1].any()


@needs_moreau
@pytest.mark.parametrize("name", [name for name in CASES if name != "norm of recourse"])
def test_the_engines_have_the_same_derivatives(name):
    """Moreau's own, and those of the optimality conditions at Clarabel's point.

    Where recourse stands at a kink any of several derivatives will do.
    """
    case = CASES[name]
    values = case.outcomes(np.random.default_rng(4), 2, 3)
    found = []
    for engine in (MoreauEngine(), ClarabelEngine()):
        y = torch.tensor(values, requires_grad=True)
        solver = fw.solvers.ConicSolver(tolerance=1e-11, engine=engine)
        solution = fw.solve(case.problem(), fw.Scenarios(y), solver)
        loss = (solution.decision @ torch.arange(1.0, N + 1, dtype=torch.float64)).sum()
        found.append((solution.objective, *torch.autograd.grad(loss, y)))
    assert torch.allclose(found[0][0], found[1][0], rtol=1e-7, atol=1e-7)
    scale = found[1][1].abs().max().item() + 1e-3
    assert torch.allclose(found[0][1], found[1][1], rtol=1e-2, atol=1e-2 * scale)


@needs_moreau
def test_what_an_engine_does_not_solve_is_solved_again(monkeypatch):
    """With a decision and its true derivative, not those of the point that was left."""
    case = CASES["log utility"]
    values = case.outcomes(np.random.default_rng(5), 3, 4)

    def decided():
        y = torch.tensor(values, requires_grad=True)
        solution = fw.solve(
            case.problem(), fw.Scenarios(y), fw.solvers.ConicSolver(engine=MoreauEngine())
        )
        return solution.decision, torch.autograd.grad(solution.decision[:, 0].sum(), y)[0]

    expected = decided()
    honest = MoreauEngine.run

    def careless(self, form, tolerance, differentiate) -> Answers:
        answers = honest(self, form, tolerance, differentiate)
        x = answers.x.clone()
        x[1] += 0.1
        return answers._replace(x=x)

    monkeypatch.setattr(MoreauEngine, "run", careless)
    for ours, theirs in zip(decided(), expected, strict=True):
        assert torch.allclose(ours, theirs, rtol=1e-3, atol=1e-4)


def test_without_moreau_clarabel_is_there(monkeypatch):
    monkeypatch.setitem(sys.modules, "moreau", None)
    case = CASES["norm"]
    scenarios = fw.Scenarios(case.outcomes(RNG, 2, 3))
    monkeypatch.setattr(MoreauEngine, "installed", staticmethod(lambda: False))
    assert fw.solve(case.problem(), scenarios).optimal.all()
    with pytest.raises(
        fw.exceptions.MissingDependencyError, match=r'pip install "forewise\[conic\]"; or use'
    ):
        fw.solve(case.problem(), scenarios, fw.solvers.ConicSolver(engine=MoreauEngine()))


def test_settings_are_checked():
    with pytest.raises(fw.InvalidInputError, match="tolerance must be positive and at most 1e-07"):
        fw.solvers.ConicSolver(tolerance=1e-3)


def test_size_does_not_matter():
    """The same problem in grams and in tons."""
    z, y = cp.Variable(2, name="z"), cp.Parameter(2, name="y")
    problem = fw.CvxpyProblem(
        cp.Minimize(cp.norm(z - y) + cp.sum(cp.pos(y - z))), [cp.norm(z) <= cp.sum(y)],
        decision=z, outcome=y,
    )  # fmt: skip
    values = RNG.uniform(0.5, 2, (2, 4, 2))
    expected = fw.solve(problem, fw.Scenarios(values)).decision
    for scale in (1e-6, 1e6):
        scaled = fw.solve(problem, fw.Scenarios(values * scale)).decision
        assert torch.allclose(scaled / scale, expected, atol=1e-4)


def test_distances_to_cones():
    case = CASES["both kinds and a known part"]
    program = case.problem().program(fw.Scenarios(np.zeros((1, 1, N))))
    form = ConicForm.from_program(program)
    start = form.n_equalities + form.n_inequalities
    sizes = [*form.second_order, *([3] * form.n_exponential)]
    assert sizes == [3, 3, 3, 3]  # |z[:2] − 1|, and three exponentials
    inside = np.array([[5.0, 3.0, 4.0, *([0.5, 1.0, np.exp(0.5)] * 3)]])
    outside = np.array([[-5.0, 3.0, 4.0, *([0.5, 1.0, np.exp(0.5) - 0.1] * 3)]])

    def rows(cones):
        return torch.from_numpy(np.concatenate([np.zeros((1, start)), cones], 1))

    assert np.allclose(cone_distance(form, rows(inside)), 0)
    found = cone_distance(form, rows(outside))[0, start:]
    assert np.allclose(found[:3], np.sqrt(50))  # the tip is nearest
    assert (found[3:] <= 0.1).all()
    assert (found[3:] > 0.05).all()
    # (u, v, w) with −u exp(v/u − 1) ≤ w are those with a u + b v + c w ≥ 0 on the whole cone.
    dual = np.array([[1.0, 0.6, 0.8, *([-1.0, 0.0, np.exp(-1.0)] * 3)]])
    assert np.allclose(dual_cone_distance(form, rows(dual)), 0)
    dual[0, 5] -= 0.01
    assert dual_cone_distance(form, rows(dual)).max() > 0.005


@pytest.mark.parametrize("exponent", [0, 4, 10, 12])
def test_decisions_beside_huge_outcomes_are_right_or_not_optimal(exponent):
    """The budget is used up wherever the outcomes are far beyond it."""
    z, outcome = cp.Variable(2, nonneg=True), cp.Parameter(2)
    constraints = [cp.sum(z) <= 5]
    problem = fw.CvxpyProblem(
        cp.Minimize(cp.norm(outcome - z)), constraints, decision=z, outcome=outcome
    )
    outcomes = np.random.default_rng(0).uniform(5, 9, (2, 8, 2)) * 10.0**exponent
    solution = fw.solve(problem, fw.Scenarios(outcomes), on_failure="return")
    spent = solution.decision[solution.optimal].sum(1)
    torch.testing.assert_close(spent, torch.full_like(spent, 5.0), rtol=1e-5, atol=0)
    assert exponent > 4 or solution.optimal.all()
