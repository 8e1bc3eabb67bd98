"""Metrics refuse decisions that break constraints, and take what users have."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
import torch

import forewise as fw

PROBLEM = fw.QuadraticNewsvendor(
    [1.0], 0.0, [3.0], 2.0, [1.0], 1.0, price=[4.0], budget=20.0
)  # at most 5
OUTCOME = np.array([[9.0], [2.0], [9.0]])
TOO_MUCH = np.array([[5.0], [2.0], [9.0]])
SCENARIOS = fw.Scenarios(np.stack([OUTCOME, OUTCOME + 1, OUTCOME * 0.5], axis=1))

MEASURES = {
    "regrets": lambda z, **o: fw.metrics.regrets(PROBLEM, z, OUTCOME, **o),
    "regret": lambda z, **o: fw.regret(PROBLEM, z, OUTCOME, **o),
    "relative_regret": lambda z, **o: fw.metrics.relative_regret(PROBLEM, z, OUTCOME, **o),
    "fair_regrets": lambda z, **o: fw.metrics.fair_regrets(PROBLEM, z, OUTCOME, SCENARIOS, **o),
    "fair_regret": lambda z, **o: fw.fair_regret(PROBLEM, z, OUTCOME, SCENARIOS, **o),
    "expected_regrets": lambda z, **o: fw.metrics.expected_regrets(PROBLEM, z, SCENARIOS, **o),
    "expected_regret": lambda z, **o: fw.metrics.expected_regret(PROBLEM, z, SCENARIOS, **o),
    "optimality_gap": lambda z, **o: (
        fw.metrics.optimality_gap(PROBLEM, z, [SCENARIOS, SCENARIOS], **o).upper
    ),
}
every_measure = pytest.mark.parametrize("measure", MEASURES.values(), ids=MEASURES)


def numbers(value):
    return np.atleast_1d(np.asarray(value, dtype=float))


def test_what_breaks_the_budget_does_not_beat_the_optimum():
    """The issue's example had a regret of −144."""
    problem = fw.QuadraticNewsvendor(1.0, 0.0, 9.0, 0.0, 1.0, 1.0, price=[4.0], budget=20.0)
    with pytest.raises(fw.exceptions.InfeasibleDecisionError, match=r"4 of 4 .*budget"):
        fw.regret(problem, np.full((4, 1), 9.0), np.full((4, 1), 9.0))


@every_measure
def test_decisions_that_break_constraints_are_refused_by_name_and_row(measure):
    with pytest.raises(
        fw.exceptions.InfeasibleDecisionError, match=r"1 of 3 .*row 2 breaks budget.*tolerance"
    ):
        measure(TOO_MUCH)
    named = pd.DataFrame(TOO_MUCH, index=pd.date_range("2026-01-01", periods=3))
    with pytest.raises(fw.exceptions.InfeasibleDecisionError, match=r"row 2026-01-03"):
        measure(named)


@every_measure
def test_or_counted_as_infinite(measure):
    measured = numbers(measure(TOO_MUCH, on_infeasible="infinite"))
    allowed = numbers(measure(np.minimum(TOO_MUCH, 5.0)))
    assert np.isfinite(allowed).all()
    assert measured[-1] == np.inf
    if len(measured) == 3:
        np.testing.assert_array_equal(measured[:2], allowed[:2])


@every_measure
def test_or_allowed_by_a_tolerance(measure):
    rounded = np.array([[5.1], [2.0], [5.0]])
    with pytest.raises(fw.exceptions.InfeasibleDecisionError, match="1 of 3"):
        measure(rounded)
    assert np.isfinite(numbers(measure(rounded, tolerance=0.05))).all()


@pytest.mark.parametrize("name", [name for name in MEASURES if "fair" not in name])
def test_a_better_decision_is_never_found(name):
    measure = MEASURES[name]
    for z in np.linspace(0, 5, 7):
        chosen = np.minimum(np.full((3, 1), z), 5.0)
        assert numbers(measure(chosen)).min() >= -1e-7


def test_an_oracle_that_breaks_constraints_is_no_oracle():
    for call in (
        lambda: fw.fair_regret(PROBLEM, OUTCOME * 0, OUTCOME, oracle=OUTCOME),
        lambda: fw.metrics.expected_regret(
            PROBLEM, OUTCOME * 0, SCENARIOS, oracle=OUTCOME, on_infeasible="infinite"
        ),
    ):
        with pytest.raises(fw.exceptions.InfeasibleDecisionError, match="oracle"):
            call()


FORMS = {
    "frame": lambda a: pd.DataFrame(a, columns=["order"], index=[*"abc"]),
    "series": lambda a: pd.Series(a[:, 0], index=[*"abc"]),
    "nullable": lambda a: pd.Series(a[:, 0], index=[*"abc"], dtype="Float64"),
    "vector": lambda a: a[:, 0],
    "list": lambda a: a[:, 0].tolist(),
    "tensor": lambda a: torch.tensor(a[:, 0], dtype=torch.float32, requires_grad=True),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@every_measure
def test_metrics_take_tables_and_vectors(measure, form):
    decision = np.array([[1.5], [2.0], [4.0]])
    np.testing.assert_allclose(numbers(measure(form(decision))), numbers(measure(decision)))


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_outcomes_come_as_tables_and_vectors(form):
    decision, seen = np.array([[1.5], [2.0], [4.0]]), form(OUTCOME)
    assert fw.regret(PROBLEM, decision, seen) == fw.regret(PROBLEM, decision, OUTCOME)
    assert PROBLEM.cost(decision, seen).tolist() == PROBLEM.cost(decision, OUTCOME).tolist()
    assert fw.metrics.crps(SCENARIOS, seen).tolist() == fw.metrics.crps(SCENARIOS, OUTCOME).tolist()


def test_metrics_take_what_decide_returns():
    random = np.random.default_rng(0)
    X = pd.DataFrame({"a": random.normal(size=40)}, index=[f"day {i}" for i in range(40)])
    y = (5 + X["a"] + random.normal(size=40)).rename("demand")
    learner = fw.DecoupledLearner(fw.Newsvendor(3.0, 1.0), fw.EmpiricalPredictor()).fit(X, y)
    decided = learner.decide(X)
    assert isinstance(decided, pd.DataFrame)
    found = fw.regret(learner.problem, decided, y)
    assert found == fw.regret(learner.problem, decided.to_numpy(), y.to_numpy()[:, None])
    assert found == pytest.approx(-learner.score(X, y))


def test_named_decisions_in_another_order_are_refused():
    z, y = cp.Variable(2, nonneg=True, name="order"), cp.Parameter(2, name="demand")
    problem = fw.CvxpyProblem(cp.Minimize(cp.sum(cp.abs(z - y))), decision=z, outcome=y)
    decided = pd.DataFrame([[1.0, 2.0]], columns=["order[0]", "order[1]"])
    assert fw.regret(problem, decided, [[1.0, 2.0]]) == pytest.approx(0, abs=1e-8)
    with pytest.raises(fw.InvalidInputError, match="order"):
        fw.regret(problem, decided.iloc[:, ::-1], [[1.0, 2.0]])
