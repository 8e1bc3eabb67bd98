"""What is said of decisions, against independent figures."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import forewise as fw
from forewise.planner.certificate import Calibration, Certificate, ScenarioCosts


def certificate(problem, values, calibration=None, weights=None):
    scenarios = fw.Scenarios(values, weights)
    solver = fw.AutoSolver()
    solution = fw.solve(problem, scenarios, solver)
    calibration = calibration or Calibration(0.0, 100, True)
    return solution, Certificate.make(problem, solution, scenarios, solver, calibration)


@pytest.mark.parametrize("weighted", [False, True])
def test_values_of_information_are_those_of_the_metrics(weighted):
    random = np.random.default_rng(0)
    values = random.gamma(3, 10, (4, 12, 2))
    weights = random.uniform(0.5, 2, (4, 12)) if weighted else None
    problem = fw.QuadraticNewsvendor(
        quadratic=[0.1, 0.1], linear=[0.0, 0.0], shortage_quadratic=[0.2, 0.2],
        shortage=[3.0, 2.0], excess_quadratic=[0.1, 0.1], excess=[1.0, 1.0],
        price=[1.0, 1.0], budget=50.0,
    )  # fmt: skip
    scenarios = fw.Scenarios(values, weights)
    solution, made = certificate(problem, values, weights=weights)
    evpi = fw.metrics.expected_value_of_perfect_information(problem, scenarios)
    np.testing.assert_allclose(made.perfect_information, evpi, atol=1e-6)
    vss = fw.metrics.value_of_stochastic_solution(problem, scenarios)
    np.testing.assert_allclose(made.mean_based - made.expected_cost, vss, atol=1e-6)
    np.testing.assert_allclose(made.expected_cost, solution.objective, atol=1e-6)


def test_of_many_scenarios_some_tell_what_knowing_saves():
    values = np.random.default_rng(1).gamma(3, 10, (5, 400, 1))
    problem = fw.QuadraticNewsvendor(
        quadratic=[0.1], linear=[0.0], shortage_quadratic=[0.2], shortage=[3.0],
        excess_quadratic=[0.1], excess=[1.0],
    )  # fmt: skip
    _, made = certificate(problem, values)
    evpi = fw.metrics.expected_value_of_perfect_information(problem, fw.Scenarios(values))
    np.testing.assert_allclose(made.perfect_information, evpi, rtol=0.35)


def test_the_monte_carlo_error_is_that_of_other_draws():
    problem = fw.Newsvendor(shortage=1, excess=1.5)
    random = np.random.default_rng(2)
    draws = random.normal(100, 10, (300, 64, 1))
    solution, made = certificate(problem, draws)
    assert np.median(made.monte_carlo_error) == pytest.approx(
        float(solution.decision.std()), rel=0.3
    )


def test_intervals_cover_what_they_were_calibrated_to():
    random = np.random.default_rng(3)
    # Costs under scenarios are half as spread as real ones are, and of every size.
    size = random.uniform(1, 1000, 4000)
    costs = ScenarioCosts(
        size[:, None] * random.gamma(2, 1, (4000, 64)), np.full((4000, 64), 1 / 64)
    )
    realised = size * 2 * random.gamma(2, 1, 4000)
    past = ScenarioCosts(costs.values[:2000], costs.weights[:2000])
    new = ScenarioCosts(costs.values[2000:], costs.weights[2000:])
    made = Calibration.from_scores(Calibration.scores(realised[:2000], past), True)
    lower, upper = made.interval(new)
    assert (lower <= upper).all()
    assert np.mean((lower <= realised[2000:]) & (realised[2000:] <= upper)) == pytest.approx(
        0.9, abs=0.02
    )


def test_too_few_past_decisions_give_no_interval():
    costs = ScenarioCosts(np.ones((8, 4)), np.full((8, 4), 0.25))
    few = Calibration.from_scores(Calibration.scores(np.arange(8.0), costs), True)
    assert np.isnan(few.interval(costs)[1]).all()
    enough = Calibration.from_scores(np.arange(9.0), True)
    assert enough.score == 8


def test_a_context_without_a_decision_is_empty():
    values = torch.ones(2, 8, 1)
    values[1, 0] = torch.nan
    problem, solver = fw.Newsvendor(3, 1), fw.AutoSolver()
    scenarios = fw.Scenarios(values)
    solution = fw.solve(problem, scenarios, solver, on_failure="return")
    made = Certificate.make(problem, solution, scenarios, solver, Calibration(0.0, 9, True))
    for name in ("expected_cost", "cost_lower", "perfect_information", "mean_based"):
        assert np.isnan(getattr(made, name)).tolist() == [False, True], name
