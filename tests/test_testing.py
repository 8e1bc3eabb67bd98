"""The public conformance checks: every class passes them, and broken ones do not."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest
import torch

import forewise as fw
from forewise.testing import (
    check_learner,
    check_no_future,
    check_predictor,
    check_problem,
    check_solver,
)

DEMAND = np.random.default_rng(0).gamma(4.0, 2.0, size=(40, 2))
RETURNS = np.random.default_rng(1).normal(0.1, 1.0, size=(40, 2))
PROBLEMS = [
    (fw.Newsvendor(1.0, 9.0), DEMAND),
    (fw.Newsvendor([1.0, 4.0], [2.0, 3.0]), DEMAND),
    (fw.QuadraticNewsvendor(1.0, [0.5, 1.0], 2.0, [3.0, 4.0], 1.0, 2.0, [1.0, 2.0], 12.0), DEMAND),
    (fw.QuadraticNewsvendor(np.eye(2) + 0.3, 0.0, np.eye(2), 5.0, np.eye(2), 1.0), DEMAND),
    (fw.Portfolio([0.3, 0.2], 1.0), RETURNS),
    (fw.Portfolio([0.3, 0.2], 0.2, budget=1.0, upper=0.8), RETURNS),
]
SOLVERS = [fw.AutoSolver(), fw.InteriorPointSolver(), fw.ReferenceSolver()]


def name(value):
    return type(value).__name__


@pytest.mark.parametrize(("problem", "outcome"), PROBLEMS, ids=name)
def test_every_problem_conforms(problem, outcome):
    check_problem(problem, outcome)


@pytest.mark.parametrize(("problem", "outcome"), PROBLEMS, ids=name)
@pytest.mark.parametrize("solver", SOLVERS, ids=name)
def test_every_solver_conforms(solver, problem, outcome):
    check_solver(solver, problem, fw.Scenarios(outcome.reshape(4, 10, 2)))


@pytest.mark.parametrize(
    ("solver", "problem"),
    [
        (fw.solvers.WeightedQuantileSolver(), PROBLEMS[0][0]),
        (fw.solvers.DualSearchSolver(), PROBLEMS[2][0]),
    ],
    ids=name,
)
def test_closed_forms_conform(solver, problem):
    check_solver(solver, problem, fw.Scenarios(DEMAND.reshape(4, 10, 2)))


@pytest.mark.parametrize("risk", [fw.CVaR(0.8), fw.MeanCVaR(0.5, 0.8), fw.WorstCase()], ids=name)
@pytest.mark.parametrize(("problem", "outcome"), [PROBLEMS[0], PROBLEMS[4]], ids=name)
def test_risks_conform(problem, outcome, risk):
    scenarios = fw.Scenarios(outcome.reshape(4, 10, 2))
    check_solver(fw.AutoSolver(), problem.with_risk(risk), scenarios)


class Doubled(fw.Newsvendor):
    """A problem whose cost is not what its program says."""

    def _cost(self, decision, outcome):
        return 2 * super()._cost(decision, outcome)


class Detached(fw.Newsvendor):
    """A problem whose cost has the wrong gradient."""

    def _cost(self, decision, outcome):
        true = super()._cost(decision, outcome)
        return true.detach() + 0.5 * (true - true.detach())


class Careless(fw.EmpiricalPredictor):
    """A predictor whose scenarios depend on the neighbours' rows."""

    def _scenarios(self, X, n_scenarios, random):
        values = super()._scenarios(X, n_scenarios, random).values
        return fw.Scenarios(values + len(X))


class Forgetful(fw.EmpiricalPredictor):
    """A predictor that is stored with other outcomes than it was fitted to."""

    def state(self):
        return super().state() | {"outcomes_": self.outcomes_ + 1}


fw.policy.register(Forgetful)


class Unregistered(fw.EmpiricalPredictor):
    """A predictor that cannot be stored."""


class Sloppy(fw.ReferenceSolver):
    """A solver that is off by a little."""

    def solve(self, problem, scenarios):
        found = super().solve(problem, scenarios)
        return dataclasses.replace(found, objective=found.objective * 1.001)


class Elsewhere(fw.ReferenceSolver):
    """A solver that finds the optimal value and returns another decision."""

    def solve(self, problem, scenarios):
        found = super().solve(problem, scenarios)
        return dataclasses.replace(found, decision=found.decision + 0.5)


@pytest.mark.parametrize(
    ("check", "reported"),
    [
        (lambda: check_problem(Doubled(1.0, 9.0), DEMAND), "its decision costs"),
        (lambda: check_problem(Detached(1.0, 9.0), DEMAND), "gradient in decision 0"),
        (
            lambda: check_solver(Sloppy(), PROBLEMS[0][0], fw.Scenarios(DEMAND.reshape(4, 10, 2))),
            "differ from the reference",
        ),
        (
            lambda: check_solver(
                Elsewhere(), PROBLEMS[0][0], fw.Scenarios(DEMAND.reshape(4, 10, 2))
            ),
            "not what the decision costs",
        ),
        (
            lambda: check_solver(
                fw.solvers.DualSearchSolver(),
                PROBLEMS[0][0],
                fw.Scenarios(DEMAND.reshape(4, 10, 2)),
            ),
            "refuses this problem",
        ),
        (lambda: check_predictor(Careless(), DEMAND, DEMAND), "depend on the other contexts"),
        (lambda: check_predictor(Forgetful(), DEMAND, DEMAND), "other scenarios after it was stor"),
        (
            lambda: check_learner(fw.DecoupledLearner(PROBLEMS[0][0], Forgetful()), DEMAND, DEMAND),
            "decides otherwise after it was stored",
        ),
        (lambda: check_predictor(Unregistered(), DEMAND, DEMAND), "cannot be stored.*Unregistered"),
        (
            lambda: check_learner(fw.DecoupledLearner(PROBLEMS[0][0], Careless()), DEMAND, DEMAND),
            "depends on others",
        ),
    ],
)
def test_broken_classes_are_found_out(check, reported):
    with pytest.raises(AssertionError, match=reported):
        check()


def test_gradients_in_a_problem_survive_a_solve():
    """Copies detach, problems themselves do not."""
    shortage = torch.tensor([3.0], dtype=torch.float64, requires_grad=True)
    problem = fw.QuadraticNewsvendor([1.0], 0.0, 1.0, shortage, 1.0, 1.0)
    fw.solve(problem, fw.Scenarios(DEMAND[None, :, :1])).decision.sum().backward()
    assert shortage.grad.abs() > 0


def days_table():
    """Two series of demand, with plans and a text."""
    days = pd.date_range("2024-01-01", periods=50)
    table = pd.concat([pd.DataFrame({"date": days, "shop": shop}) for shop in ("a", "b")])
    random = np.random.default_rng(3)
    table = table.assign(
        sold=random.normal(50, 9, 100), count=random.integers(0, 9, 100),
        plan=random.random(100) < 0.3, mood=random.choice(["good", "bad"], 100),
    )  # fmt: skip
    return table.reset_index(drop=True)


def of_shops(column, change):
    """A feature made by shop."""
    return lambda t: t.groupby("shop")[column].transform(change).to_frame("feature")


LEAKS = {
    "the outcome itself": lambda t: t[["sold"]],
    "an integer of the day": lambda t: t[["count"]],
    "a text of the day": lambda t: (t[["mood"]] == "good").astype(float),
    "a plan that is not known": lambda t: t[["plan"]].astype(float),
    "the day after": of_shops("sold", lambda s: s.shift(-1)),
    "a mean with today in it": of_shops("sold", lambda s: s.rolling(7).mean()),
    "a centred mean": of_shops("sold", lambda s: s.shift(1).rolling(5, center=True).mean()),
    "the mean of all days": of_shops("sold", lambda s: s.shift(1) / s.mean()),
    "holes filled from behind": of_shops("sold", lambda s: s.where(s > 45).bfill().shift(1)),
    "ranks among all days": of_shops("sold", lambda s: s.shift(1).rank()),
    "how many values there will be": of_shops("sold", lambda s: s.count()),
}


@pytest.mark.parametrize("leak", LEAKS)
def test_a_planted_leak_is_caught(leak):
    with pytest.raises(AssertionError, match="sees the future: values from 2024-0"):
        check_no_future(LEAKS[leak], days_table(), known=["shop"])


def test_what_was_known_is_no_leak():
    check_no_future(of_shops("sold", lambda s: s.shift(1)), days_table(), known=["shop"])
    check_no_future(of_shops("plan", lambda s: s.shift(-1)), days_table(), known=["shop", "plan"])


def test_other_rows_columns_or_chance_in_features_are_reported():
    with pytest.raises(AssertionError, match="other rows than the table"):
        check_no_future(lambda t: t.iloc[1:][["sold"]], days_table())
    random = np.random.default_rng(0)
    with pytest.raises(AssertionError, match="same table gives other features"):
        check_no_future(lambda t: t[["sold"]] * random.normal(), days_table())
    with pytest.raises(AssertionError, match="other features when"):
        check_no_future(
            lambda t: t[["shop"]].assign(**{f"x{int(t['sold'].sum())}": 0}), days_table()
        )
