"""Learners on sold-out days: the orders of true demand, fair judgement, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import forewise as fw
from forewise.exceptions import InvalidInputError
from forewise.predictors import (
    EmpiricalPredictor,
    ForestPredictor,
    GaussianPredictor,
    NeighborPredictor,
    Training,
)
from tests.learners.sold_out import METHODS, PROBLEM, compared, shop

FAST = {"neighbours": NeighborPredictor(), "forest": ForestPredictor(n_trees=20, n_jobs=1)}


@pytest.mark.parametrize("share", [0.2, 0.4])
@pytest.mark.parametrize("method", ["NeighborPredictor", "ResidualPredictor", "EmpiricalPredictor"])
def test_orders_are_those_of_true_demand(method: str, share: float) -> None:
    found = compared(METHODS[method], share)
    order, cost = found["censored"]
    assert abs(order) < 0.03
    assert cost < 0.03
    assert found["taken as demand"][0] < -0.05
    assert found["dropped"][0] < -0.09


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["gamma", "negative binomial"])
@pytest.mark.parametrize("share", [0.2, 0.4])
@pytest.mark.parametrize(
    "method",
    [
        "BayesianPredictor",
        "ForestPredictor",
        "QuantileBoostingPredictor",
        "NeighborPredictor",
        "AutoLearner of fast candidates",
    ],
)
def test_orders_and_costs_are_those_of_true_demand(method: str, share: float, noise: str) -> None:
    if (method, share, noise) == ("QuantileBoostingPredictor", 0.4, "gamma"):
        pytest.xfail("costs 3.3 % more than with true demand")
    order, cost = compared(METHODS[method], share, noise)["censored"]
    assert abs(order) < 0.03
    assert cost < 0.03


def test_the_race_counts_rows_that_were_judged_by_a_draw() -> None:
    past = shop(300, 0.4)
    learner = fw.AutoLearner(PROBLEM, FAST, n_folds=2, random_state=0)
    learner.fit(past.X, past.sales, censored=past.sold_out)
    said = f"{past.sold_out.sum()} of 300 judged rows are censored"
    assert said in learner.verdict_
    assert said in learner.leaderboard_.attrs["censored"]
    plain = learner.fit(past.X, past.sales, censored=np.zeros(300, dtype=bool))
    assert "censored" not in plain.verdict_


def test_the_race_judges_near_the_cost_on_true_demand() -> None:
    """The cost of the best candidate: as if demand were known, not as if sales were demand."""
    past = shop(600, 0.4)
    costs = {}
    for name, y, flags in (
        ("true", past.demand, None),
        ("censored", past.sales, past.sold_out),
        ("taken as demand", past.sales, None),
    ):
        learner = fw.AutoLearner(PROBLEM, FAST, n_folds=2, random_state=0)
        costs[name] = learner.fit(past.X, y, censored=flags).leaderboard_["cost"].min()
    assert costs["censored"] == pytest.approx(costs["true"], rel=0.1)
    assert costs["taken as demand"] < 0.85 * costs["true"]


def test_the_race_with_validation_rows() -> None:
    whole = shop(400, 0.3)
    past, held = whole[:300], whole[300:]
    learner = fw.AutoLearner(PROBLEM, FAST, random_state=0)
    flags: dict[str, Any] = {"censored": past.sold_out, "censored_val": held.sold_out}
    learner.fit(past.X, past.sales, held.X, held.sales, **flags)
    assert f"{held.sold_out.sum()} of 100 judged rows" in learner.verdict_
    with pytest.raises(InvalidInputError, match="censored must be given with censored_val"):
        learner.fit(past.X, past.sales, held.X, held.sales, censored_val=held.sold_out)
    with pytest.raises(InvalidInputError, match="censored_val belongs to X_val"):
        learner.fit(past.X, past.sales, **flags)


def test_networks_validate_on_completed_outcomes() -> None:
    whole = shop(300, 0.3)
    past, held = whole[:200], whole[200:]
    network = GaussianPredictor(hidden_sizes=(16,), training=Training(epochs=30), random_state=0)
    learner = fw.DecoupledLearner(PROBLEM, network)
    learner.fit(
        past.X, past.sales, held.X, held.sales,
        censored=past.sold_out, censored_val=held.sold_out,
    )  # fmt: skip
    assert np.isfinite(learner.history_[-1]["validation"])


def test_labels_are_those_of_y() -> None:
    past = shop(60, 0.3)
    days = pd.date_range("2025-01-01", periods=60)
    sales = pd.Series(past.sales, days, name="demand")
    flags = pd.Series(past.sold_out, days)
    learner = fw.DecoupledLearner(PROBLEM, EmpiricalPredictor())
    plain = learner.fit(past.X, past.sales, censored=past.sold_out).decide(past.X)
    assert np.array_equal(learner.fit(past.X, sales, censored=flags).decide(past.X), plain)
    with pytest.raises(InvalidInputError, match="same order"):
        learner.fit(past.X, sales, censored=flags[::-1])


def test_rolling_evaluation_marks_bounds() -> None:
    past = shop(120, 0.3)
    days = pd.date_range("2025-01-01", periods=120)
    learner = fw.DecoupledLearner(PROBLEM, EmpiricalPredictor())
    table = fw.metrics.evaluate_rolling(
        learner, past.X, past.sales, days, min_train_days=60, censored=past.sold_out
    )
    rows = days.get_indexer(table["date"])
    assert np.array_equal(table["censored"], past.sold_out[rows])
    order = table["decision_0"].to_numpy()
    true = 3 * np.maximum(past.demand[rows] - order, 0) + np.maximum(order - past.demand[rows], 0)
    known = ~table["censored"].to_numpy()
    assert np.allclose(table["cost"][known], true[known])
    assert (table["cost"] <= true + 1e-9).all()
    assert (table["cost"][~known] < true[~known] - 1e-9).any()
    plain = fw.metrics.evaluate_rolling(learner, past.X, past.sales, days, min_train_days=60)
    assert "censored" not in plain


def test_crps_of_a_bound_is_the_least_it_can_be() -> None:
    values = np.random.default_rng(0).normal(size=(50, 20, 1))
    scenarios, bound = fw.Scenarios(values), np.random.default_rng(1).normal(size=50)
    least = fw.metrics.crps(scenarios, bound, censored=np.ones(50, dtype=bool))
    for more in (0.0, 0.3, 2.0):
        assert (least <= fw.metrics.crps(scenarios, bound + more) + 1e-12).all()
    none = np.zeros(50, dtype=bool)
    assert (fw.metrics.crps(scenarios, bound, none) == fw.metrics.crps(scenarios, bound)).all()
