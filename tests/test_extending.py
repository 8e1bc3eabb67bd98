"""A problem, a solver, a predictor and a learner from outside the package, as in CONTRIBUTING.md.

Each is written with public names, passes its conformance check, and is saved and loaded.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.base import clone

import forewise as fw
from forewise.validation.tables import check_training_data

# A problem


@fw.policy.register
@dataclass(frozen=True, eq=False, repr=False)
class Reserve(fw.Problem):
    """Buy reserves now; pay for the squared shortage when demand is seen.

    cost(z, y) = Σ_i price z_i + penalty (y_i − z_i)₊²,    0 ≤ z ≤ capacity
    """

    price: float
    penalty: float
    capacity: float

    def __post_init__(self):
        if not (self.price > 0 and self.penalty > 0 and self.capacity > 0):
            raise fw.InvalidInputError("price, penalty and capacity must be above 0")

    @property
    def n_outcomes(self):
        return None  # any number

    def n_decisions(self, n_outcomes):
        return n_outcomes

    def _cost(self, decision, outcome):
        shortage = (outcome - decision).clamp_min(0)
        return (self.price * decision + self.penalty * shortage.square()).sum(-1)

    def _program(self, scenarios):
        """Recourse u is the shortage: −z − u ≤ −y and −u ≤ 0, at a cost of penalty u²."""
        y, n = scenarios.values.double(), scenarios.n_outcomes
        eye, zero = torch.eye(n, dtype=torch.float64), torch.zeros_like(y)
        return fw.ScenarioProgram(
            weights=scenarios.weights,
            q=torch.full((1, n), self.price, dtype=torch.float64),
            G=torch.cat([-eye, eye])[None],
            h=torch.cat([torch.zeros(n), torch.full((n,), self.capacity)])[None].double(),
            D=2 * self.penalty * eye[None, None],
            d=torch.zeros(1, 1, n, dtype=torch.float64),
            T=torch.cat([-eye, 0 * eye])[None, None],
            W=torch.cat([-eye, -eye])[None, None],
            r=torch.cat([-y, zero], dim=-1),
        )


# A solver


@fw.policy.register
@dataclass(frozen=True, repr=False)
class BisectionSolver(fw.Solver):
    """Solves a `Reserve` by bisection for price = 2 penalty E[(y − z)₊], item by item."""

    steps: int = 80

    def unsupported_reason(self, problem):
        return None if isinstance(problem, Reserve) else "it solves Reserve problems only"

    def solve(self, problem, scenarios):
        y, w = scenarios.values.detach().double(), scenarios.weights.detach()[..., None]
        valid = y.isfinite().all(-1).all(-1)
        y = torch.where(valid[:, None, None], y, 0.0)

        def slope(z):
            return problem.price - 2 * problem.penalty * (w * (y - z[:, None]).clamp_min(0)).sum(1)

        low = torch.zeros_like(y[:, 0])
        high = torch.full_like(low, problem.capacity)
        for _ in range(self.steps):
            middle = (low + high) / 2
            rising = slope(middle) > 0
            low, high = torch.where(rising, low, middle), torch.where(rising, middle, high)
        z = (low + high) / 2
        at_zero, at_capacity = slope(torch.zeros_like(z)) >= 0, slope(0 * z + problem.capacity) <= 0
        z = torch.where(at_zero, 0.0, torch.where(at_capacity, problem.capacity, z))
        shortage = (y - z[:, None]).clamp_min(0)
        multipliers = torch.cat([slope(z).clamp_min(0), (-slope(z)).clamp_min(0)], dim=-1)
        # Stationarity where no bound is active.
        residual = torch.where(at_zero | at_capacity, 0.0, slope(z)).abs().amax(-1) / problem.price
        status = [
            fw.Status.INVALID if not known else
            fw.Status.OPTIMAL if error <= 1e-8 else fw.Status.INACCURATE
            for known, error in zip(valid, residual, strict=True)
        ]  # fmt: skip
        costs = problem.price * z.sum(-1) + problem.penalty * (w * shortage.square()).sum((1, 2))
        failed = torch.tensor([s is not fw.Status.OPTIMAL for s in status])

        def solved(value):
            return torch.where(failed.reshape(-1, *[1] * (value.ndim - 1)), torch.nan, value)

        return fw.Solution(
            decision=solved(z),
            recourse=solved(shortage),
            objective=solved(costs),
            duals=fw.solvers.Duals(
                inequality=solved(multipliers),
                equality=z.new_zeros(len(z), 0),
                scenario_inequality=solved(
                    torch.cat([2 * problem.penalty * w * shortage, 0 * shortage], dim=-1)
                ),
                scenario_equality=z.new_zeros(*y.shape[:2], 0),
            ),
            status=tuple(status),
            primal_residual=solved(torch.zeros_like(costs)),
            dual_residual=solved(residual),
            gap=solved(torch.zeros_like(costs)),
            iterations=torch.full((len(z),), self.steps),
        )


# A predictor


@fw.policy.register
class LinearPredictor(fw.Predictor):
    """Ridge regression plus the residuals of training rows."""

    def __init__(self, ridge=1e-3):
        self.ridge = ridge

    def fit(self, X, y):
        X, y = check_training_data(self, X, y)
        design = np.column_stack([np.ones(len(X)), X])
        gram = design.T @ design + self.ridge * np.eye(design.shape[1])
        self.coefficients_ = np.linalg.solve(gram, design.T @ y)
        self.residuals_ = y - design @ self.coefficients_
        return self

    def _scenarios(self, X, n_scenarios, random):
        mean = self.coefficients_[0] + X @ self.coefficients_[1:]
        drawn = self.residuals_[random.permutation(len(self.residuals_))[:n_scenarios]]
        return fw.Scenarios(mean[:, None] + drawn)


# A learner


class BestOfLearner(fw.Learner):
    """Takes the predictor whose decisions cost least on the last quarter of the rows."""

    def __init__(self, problem, predictors, solver=None):
        self.problem = problem
        self.predictors = predictors
        self.solver = solver

    def _fit(self, X, y, X_val, y_val, problems):
        X, y = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
        cut = 3 * len(X) // 4
        costs = []
        for predictor in self.predictors:
            decided = self._policy(predictor, X[:cut], y[:cut]).decide(X[cut:])
            costs.append(self.problem.cost(decided, y[cut:]).mean().item())
        self.best_ = int(np.argmin(costs))
        return self._policy(self.predictors[self.best_], X, y)

    def _policy(self, predictor, X, y):
        solver = self.solver or fw.AutoSolver()
        return fw.policy.ScenarioPolicy(self.problem, clone(predictor).fit(X, y), solver)


# They conform, and are saved and loaded

PROBLEM = Reserve(price=1.0, penalty=0.5, capacity=25.0)


def history(n=60, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 2))
    return X, 8 + X @ [[2.0, 1.0], [0.0, 3.0]] + random.gamma(2.0, 1.0, size=(n, 2))


def test_the_problem_conforms():
    fw.testing.check_problem(PROBLEM, history()[1])
    with pytest.raises(fw.InvalidInputError, match="price"):
        Reserve(0.0, 1.0, 1.0)


def test_the_solver_conforms():
    scenarios = fw.Scenarios(history()[1].reshape(5, 12, 2))
    fw.testing.check_solver(BisectionSolver(), PROBLEM, scenarios)
    fw.testing.check_solver(fw.AutoSolver(), PROBLEM, scenarios)
    with pytest.raises(fw.ForewiseError, match="Reserve problems only"):
        fw.solve(fw.Newsvendor(1.0, 2.0), scenarios, BisectionSolver())


def test_its_solutions_are_those_of_the_general_solver():
    scenarios = fw.Scenarios(history()[1].reshape(5, 12, 2))
    mine, general = fw.solve(PROBLEM, scenarios, BisectionSolver()), fw.solve(PROBLEM, scenarios)
    assert torch.allclose(mine.decision, general.decision, atol=1e-5)
    assert torch.allclose(
        mine.duals.scenario_inequality, general.duals.scenario_inequality, atol=1e-5
    )


def test_the_predictor_conforms():
    fw.testing.check_predictor(LinearPredictor(), *history())


@pytest.mark.parametrize(
    "solver", [BisectionSolver(), fw.AutoSolver()], ids=lambda s: type(s).__name__
)
def test_the_learner_conforms(solver):
    predictors = [fw.EmpiricalPredictor(), LinearPredictor()]
    fw.testing.check_learner(BestOfLearner(PROBLEM, predictors, solver), *history())


def test_a_policy_of_all_of_them_is_saved_and_loaded(tmp_path):
    X, y = history()
    learner = BestOfLearner(
        PROBLEM, [fw.EmpiricalPredictor(), LinearPredictor()], BisectionSolver(60)
    )
    learner.fit(X, y)
    assert learner.best_ == 1, "demand is linear in the context"
    learner.policy_.save(tmp_path / "policy")
    loaded = fw.load_policy(tmp_path / "policy")
    kinds = [type(part) for part in (loaded.problem, loaded.predictor, loaded.solver)]
    assert kinds == [Reserve, LinearPredictor, BisectionSolver]
    assert (loaded.problem.capacity, loaded.solver.steps) == (25.0, 60)
    X_new = history(20, seed=1)[0]
    np.testing.assert_array_equal(loaded.decide(X_new), learner.decide(X_new))


def test_every_guide_has_at_most_five_steps():
    text = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text()
    guides = re.findall(r"### To add a (\w+)\n(.*?)(?=\n#)", text, re.DOTALL)
    assert [kind for kind, _ in guides] == ["problem", "solver", "predictor", "learner"]
    for kind, guide in guides:
        assert 1 <= len(re.findall(r"^\d\. ", guide, re.MULTILINE)) <= 5
        assert f"fw.testing.check_{kind}(" in guide
