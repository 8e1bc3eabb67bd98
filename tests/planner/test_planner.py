"""From a table to decisions: what a planner promises, through its public names."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import forewise as fw
from tests.planner.tables import days_after, sales_table

PROBLEM = fw.Newsvendor(shortage=3, excess=1)
ROLES = {
    "outcome": "sales",
    "date": "date",
    "series": "store",
    "known": "promotion",
    "closed": "closed",
}


def quick(problem=PROBLEM, **more):
    return fw.Planner(problem, **(ROLES | {"learner": fw.NeighborPredictor(20)} | more))


@pytest.fixture(scope="module")
def table():
    return sales_table()


@pytest.fixture(scope="module")
def planner(table):
    return quick().fit(table)


def test_a_frame_of_decisions_with_certificates(planner, table):
    future = days_after(table)
    orders = planner.decide(table, future)
    assert list(orders.columns) == [
        "date", "store", "decision", "expected_cost", "cost_lower", "cost_upper",
        "perfect_information", "mean_based", "monte_carlo_error", "note",
    ]  # fmt: skip
    assert orders.index.equals(future.index)
    assert (orders["cost_lower"] <= orders["cost_upper"]).all()
    assert (orders["mean_based"] >= orders["expected_cost"] - 1e-9).all()
    # A newsvendor who knows the demand pays nothing.
    np.testing.assert_allclose(orders["perfect_information"], orders["expected_cost"])
    large, small = orders["decision"]
    assert 40 < large < 130
    assert 3 < small < 20


def test_rows_and_columns_may_come_in_any_order(planner, table):
    future = days_after(table)
    shuffled = table.sample(frac=1, random_state=1)[table.columns[::-1]]
    pd.testing.assert_frame_equal(planner.decide(shuffled, future), planner.decide(table, future))
    again = quick().fit(shuffled)
    pd.testing.assert_frame_equal(again.decide(table, future), planner.decide(table, future))


def test_a_stored_policy_decides_alike(planner, table, tmp_path):
    planner.save(tmp_path / "policy")
    stored = fw.load_policy(tmp_path / "policy")
    assert isinstance(stored, fw.PlannerPolicy)
    future = days_after(table)
    pd.testing.assert_frame_equal(stored.decide(table, future), planner.decide(table, future))
    assert stored.card.notes == planner.notes_


def test_days_without_an_outcome_behind_the_last_are_decided(planner, table):
    future = days_after(table)
    whole = pd.concat([table, future], ignore_index=True)
    orders = planner.decide(whole)
    np.testing.assert_array_equal(orders["decision"], planner.decide(table, future)["decision"])


def test_features_use_nothing_later_than_the_horizon(table):
    for horizon in (1, 3, 8):
        recipe = quick(horizon=horizon).fit(table).policy_.recipe
        known = ["store", "promotion", "closed"]
        fw.testing.check_no_future(recipe.build, table, known=known)
        # Values of the last days before the horizon count no more than those of the day itself.
        late = table["date"] > table["date"].max() - pd.Timedelta(days=horizon)
        changed = table.assign(sales=table["sales"].where(~late, 999.0))
        last = (table["date"] == table["date"].max()).to_numpy()
        pd.testing.assert_frame_equal(
            recipe.build(changed)[last], recipe.build(table)[last], check_exact=True
        )
