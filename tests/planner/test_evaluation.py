"""What a planner would have cost: windows that know no more than they could, and sold-out days."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import forewise as fw
from tests.planner.tables import days_after, sales_table, sold_out_table
from tests.planner.test_planner import PROBLEM, quick


@pytest.fixture(scope="module")
def table():
    table = sales_table(240)
    usual = table.groupby("store")["sales"].transform("mean")
    return table.assign(ordered=1.5 * usual)


@pytest.fixture(scope="module")
def evaluation(table):
    return quick().evaluate(table, current="ordered", window="month")


def test_costs_are_those_of_the_decisions(evaluation, table):
    costs = evaluation.costs
    demand = table.loc[costs.index, "sales"].to_numpy()[:, None]
    own = PROBLEM.cost(costs[["decision"]].to_numpy(), demand).numpy()
    np.testing.assert_allclose(costs["cost_planner"], own)
    then = PROBLEM.cost(table.loc[costs.index, ["ordered"]].to_numpy(), demand).numpy()
    np.testing.assert_allclose(costs["cost_today"], then)
    assert not table.loc[costs.index, "closed"].any()


def test_the_summary_says_what_is_saved(evaluation):
    assert evaluation.baseline == "today"
    assert set(evaluation.summary.index) == {"planner", "today", "SAA"}
    saved = evaluation.saving
    difference = evaluation.costs["cost_today"] - evaluation.costs["cost_planner"]
    assert saved["estimate"] == pytest.approx(difference.mean())
    assert saved["total"] == pytest.approx(difference.sum())
    assert 0 < saved["lower"] < saved["estimate"] < saved["upper"]
    assert "it saves" in evaluation.text


def test_intervals_hold_what_they_promise(evaluation):
    covered = evaluation.coverage
    assert covered["n_rows"].sum() == len(evaluation.costs)
    share = (covered["covered"] * covered["n_rows"]).sum() / covered["n_rows"].sum()
    assert 0.84 <= share <= 0.96


def test_later_days_change_no_earlier_decision(evaluation, table):
    last = evaluation.costs["date"].max() - pd.Timedelta(days=10)
    changed = table.assign(sales=table["sales"].where(table["date"] < last, 500.0))
    again = quick().evaluate(changed, current="ordered", window="month")
    before = evaluation.costs["date"] < last
    columns = ["decision", "cost_planner", "cost_SAA", "cost_lower", "cost_upper"]
    pd.testing.assert_frame_equal(
        again.costs.loc[before, columns], evaluation.costs.loc[before, columns]
    )


def test_a_planner_that_is_evaluated_stays_as_it_is(table):
    planner = quick().fit(table)
    orders = planner.decide(table, days_after(table))
    planner.evaluate(table, window="month")
    pd.testing.assert_frame_equal(planner.decide(table, days_after(table)), orders)


def test_sold_out_days_are_lower_bounds():
    table, demand = sold_out_table(250)
    future = days_after(table, 6)
    roles = {"series": (), "learner": fw.ForestPredictor(n_trees=20, random_state=0)}
    naive = quick(**roles).fit(table.drop(columns="sold_out"))
    planner = quick(**roles, sold_out="sold_out").fit(table)
    true = quick(**roles).fit(table.drop(columns="sold_out").assign(sales=demand))
    orders = {
        name: fitted.decide(seen, future)["decision"].mean()
        for name, (fitted, seen) in {
            "naive": (naive, table),
            "planner": (planner, table),
            "true": (true, table.assign(sales=demand)),
        }.items()
    }
    assert orders["naive"] < orders["planner"]
    assert abs(orders["planner"] - orders["true"]) < abs(orders["naive"] - orders["true"])
    assert any("are sold out" in note for note in planner.notes_)
    evaluation = quick(**roles, sold_out="sold_out").evaluate(table, window="quarter")
    assert any("sold out" in note for note in evaluation.notes)
    assert evaluation.costs["sold_out"].any()


def test_what_cannot_be_evaluated(table):
    with pytest.raises(fw.InvalidInputError, match="no month begins after"):
        quick().evaluate(table, min_train_days=1000)
    with pytest.raises(fw.InvalidInputError, match="must have the columns 'past'"):
        quick().evaluate(table, current="past")
    with pytest.raises(fw.InvalidInputError, match="a column for each of the 1 decision"):
        quick().evaluate(table, current=["ordered", "sales"])


def test_the_sentence_about_intervals_says_what_was_measured(evaluation):
    known = evaluation.costs[~evaluation.costs["sold_out"]]
    inside = known["cost_planner"].between(known["cost_lower"], known["cost_upper"])
    months = inside.groupby(known["date"].dt.strftime("%Y-%m")).mean()
    said = evaluation.interval_text
    assert f"held {100 * inside.mean():.0f} % of {len(known):,} costs" in said
    assert f"{100 * months.min():.0f} % in the worst month, {months.idxmin()}" in said


def test_a_loss_is_said_to_be_one(table):
    """Decisions of the past that were perfect cannot be improved upon."""
    perfect = table.assign(ordered=table["sales"])
    found = quick().evaluate(perfect, current="ordered", window="month")
    assert found.saving["estimate"] < 0
    assert "it costs more by" in found.text
    assert "costs more by -" not in found.text
