"""Made-up demand of three shops."""

from __future__ import annotations

import pandas as pd
import pytest

import forewise as fw


@pytest.mark.parametrize("share", [0.0, 0.2, 0.4])
def test_sold_out_days_hide_demand_and_nothing_else(share):
    table = fw.datasets.shop_demand(400, share, random_state=1, true_demand=True)
    opened = table[~table["closed"]]
    assert opened["sold_out"].mean() == pytest.approx(share, abs=1e-3)
    assert (opened["sales"] <= opened["demand"]).all()
    whole = opened[~opened["sold_out"]]
    assert (whole["sales"] == whole["demand"]).all()
    assert (table.loc[table["closed"], ["sales", "demand", "sold_out"]] == 0).all(axis=None)
    # The day's demand does not depend on the shelf.
    full = fw.datasets.shop_demand(400, 0.0, random_state=1)
    assert (full["sales"] == table["demand"]).all()


def test_it_has_the_patterns_that_a_planner_knows():
    table = fw.datasets.shop_demand(730, 0.0)
    assert len(table) == 730 * 6
    assert table.groupby(["date", "store", "product"]).size().eq(1).all()
    opened = table[~table["closed"]].assign(day=table["date"].dt.day_of_week)
    by_day = opened[opened["store"] == "Harbour"].groupby("day")["sales"].mean()
    assert by_day[5] > 1.3 * by_day[0]
    promoted = opened.groupby(["store", "product", "promotion"])["sales"].mean().unstack()
    assert (promoted[True] > promoted[False]).all()
    sundays = table[(table["store"] == "Market") & (table["date"].dt.day_of_week == 6)]
    assert sundays["closed"].all()
    assert table.loc[table["date"] == "2023-12-25", "closed"].all()
    assert (opened["sales"] > 0).mean() > 0.99


def test_the_seed_makes_it():
    first, second = (fw.datasets.shop_demand(30, random_state=3) for _ in range(2))
    pd.testing.assert_frame_equal(first, second)
    other = fw.datasets.shop_demand(30, random_state=4)
    assert not (first["sales"] == other["sales"]).all()
    with pytest.raises(fw.InvalidInputError, match="sold_out"):
        fw.datasets.shop_demand(30, sold_out=1.0)
    with pytest.raises(fw.InvalidInputError, match="n_days"):
        fw.datasets.shop_demand(0)
