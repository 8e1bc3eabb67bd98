"""Displays draw the numbers that they hold, and these are the library's own."""

from __future__ import annotations

import io

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import torch
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

import forewise as fw
from forewise.exceptions import InvalidInputError
from forewise.plots import (
    CalibrationDisplay,
    CostCurveDisplay,
    CostServiceDisplay,
    DecisionDisplay,
    LeaderboardDisplay,
    looks,
)

METHODS = ["empirical", "linear residuals", "neighbours", "forest", "boosted quantiles",
           "boosted residuals", "Gaussian process", "Bayesian network", "union"]  # fmt: skip


@pytest.fixture(scope="module")
def past():
    random = np.random.default_rng(0)
    X = random.normal(size=(80, 1))
    y = 20 + 3 * X + random.normal(size=(80, 1))
    days = pd.date_range("2026-01-01", periods=80)
    learner = fw.DecoupledLearner(fw.Newsvendor(3, 1), fw.NeighborPredictor()).fit(X, y)
    return learner.policy_, X, y, days


def test_decisions_over_time_in_the_order_of_days(past):
    policy, X, y, days = past
    order = np.random.default_rng(1).permutation(80)
    display = DecisionDisplay.from_policy(policy, X[order], y[order], days[order], level=0.8).plot()
    steps, points = display.ax_.lines
    assert np.array_equal(steps.get_ydata(), policy.decide(X)[:, 0])
    assert np.array_equal(points.get_ydata(), y[:, 0])
    scenarios = policy.predictor.sample(X, 256, random_state=0)
    covered = ((display.lower <= y[:, 0]) & (y[:, 0] <= display.upper)).mean()
    assert covered == pytest.approx(float(fw.metrics.interval_coverage(scenarios, y, 0.8)))


def test_sold_out_days_are_drawn_as_bounds(past):
    policy, X, y, days = past
    display = DecisionDisplay.from_policy(policy, X, y, days)
    display.at_least = y[:, 0] > 22
    display.plot()
    seen, bounds = display.ax_.lines[1:]
    assert len(seen.get_ydata()) + len(bounds.get_ydata()) == 80
    assert min(bounds.get_ydata()) > 22 >= max(seen.get_ydata())


def test_calibration_is_the_curve_of_the_metrics(past):
    policy, X, y, _ = past
    scenarios = policy.predictor.sample(X, 64, random_state=0)
    display = CalibrationDisplay.from_scenarios(scenarios, y, name="neighbours").plot()
    curve = fw.metrics.calibration_curve(scenarios, y)
    line = display.ax_.lines[-1]
    assert np.array_equal(line.get_xdata(), curve.levels.numpy())
    assert np.array_equal(line.get_ydata(), curve.observed[:, 0].numpy())
    assert to_rgb(line.get_color()) == to_rgb(looks(["neighbours"])["neighbours"][0])


def test_cost_against_service(past):
    policy, X, y, _ = past
    scenarios = policy.predictor.sample(X, 256, random_state=0)
    orders = {"policy": policy.decide(X), "everything": np.full((80, 1), 1e3)}
    display = CostServiceDisplay.from_decisions(policy.problem, scenarios, y, orders).plot()
    assert (np.diff(display.service) >= 0).all()
    # Least at the level of the newsvendor, up to noise.
    assert display.level[display.cost.argmin()] == pytest.approx(0.75, abs=0.15)
    service, cost = display.points["everything"]
    assert service == 1
    assert cost == pytest.approx(float((1e3 - y).mean()))
    drawn = {line.get_label(): line.get_ydata()[0] for line in display.ax_.lines[1:]}
    assert drawn == {name: point[1] for name, point in display.points.items()}


def test_cost_against_service_is_for_one_product():
    with pytest.raises(InvalidInputError, match="one product at a time"):
        CostServiceDisplay.from_decisions(
            fw.Newsvendor(3, 1), fw.Scenarios(torch.ones(2, 3, 2)), np.ones((2, 2))
        )


def test_what_is_not_allowed_is_shaded_and_not_drawn():
    value = np.linspace(0, 10, 11)
    cost = np.where(value > 7, np.inf, (value - 5) ** 2)
    ax = CostCurveDisplay(value, cost, 5.0, "order").plot().ax_
    assert np.isfinite(ax.lines[0].get_ydata()).all()
    assert len(ax.lines[0].get_ydata()) == 8
    assert "not allowed" in [text.get_text() for text in ax.texts]


def test_a_leaderboard_is_sorted_and_leaves_failures_out():
    table = pd.DataFrame({
        "method": ["forest", "empirical", "broken"], "cost": [3.0, 2.0, np.nan],
        "lower": [2.5, 1.5, np.nan], "upper": [3.5, 2.5, np.nan], "weight": [1.0, 0.0, 0.0],
    })  # fmt: skip
    display = LeaderboardDisplay.from_leaderboard(table).plot()
    assert display.methods == ["empirical", "forest"]
    assert display.chosen == "forest"
    bars = [line for line in display.ax_.lines if len(line.get_xdata()) == 2]
    assert [list(bar.get_xdata()) for bar in bars] == [[1.5, 2.5], [2.5, 3.5]]
    with pytest.raises(InvalidInputError, match="lower and upper"):
        LeaderboardDisplay.from_leaderboard(table[["cost"]])


def test_rolling_comparisons_are_leaderboards():
    days = pd.date_range("2026-01-01", periods=60)
    costs = {"today": np.arange(60.0), "policy": np.arange(60.0) / 2}
    tables = {name: pd.DataFrame({"date": days, "cost": cost}) for name, cost in costs.items()}
    compared = fw.metrics.compare_rolling(tables, "today")
    display = LeaderboardDisplay.from_leaderboard(compared, chosen="policy")
    assert display.methods == ["policy", "today"]
    assert display.lower.tolist() == compared["cost_lower"].tolist()


def test_a_method_has_one_look_whatever_is_beside_it():
    together = looks(METHODS)
    assert all(looks([name])[name] == together[name] for name in METHODS)
    assert len(set(together.values())) == len(METHODS)
    others = [f"method {i}" for i in range(20)]
    assert len(set(looks(others).values())) == 20
    assert looks(others) == looks(others[::-1])


def test_colours_differ_for_readers_who_see_no_red():
    """Luminance or blue-yellow tells the colours of common methods apart (protanopia)."""
    colours = {look[0] for look in looks([*METHODS, "today"]).values()}
    seen = []
    for colour in colours:
        r, g, b = (c**2.2 for c in to_rgb(colour))
        seen.append((0.11 * r + 0.89 * g, b))
    seen = np.array(seen)
    gaps = np.abs(seen[:, None] - seen[None]).max(-1) + np.eye(len(seen))
    assert gaps.min() > 0.02


@pytest.mark.parametrize("name", ["$x_2$", "a $ b", "<b>&", "\\frac"])
def test_any_name_can_be_drawn(name):
    display = CostCurveDisplay(np.linspace(0, 1, 5), np.arange(5.0), 0.0, name).plot()
    file = io.BytesIO()
    with mpl.rc_context({"svg.fonttype": "none"}):
        display.figure_.savefig(file, format="svg")
    assert "<b>&" not in file.getvalue().decode()


def test_a_display_draws_into_axes_of_others():
    figure = Figure()
    ax = figure.subplots()
    display = CostCurveDisplay(np.linspace(0, 1, 5), np.arange(5.0), 0.0).plot(ax)
    assert display.ax_ is ax
    assert display.figure_ is figure
