"""Tables that do not fit their roles: every message says the row, the column, and what to do."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import forewise as fw
from tests.planner.tables import days_after, sales_table
from tests.planner.test_planner import quick

TABLE = sales_table(40)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (TABLE.iloc[:0], "table must have rows"),
        (pd.concat([TABLE, TABLE.iloc[3:5]]), "row 3 repeats 2023-01-05 of store 0, which row 3"),
        (pd.concat([TABLE, TABLE[["sales"]]], axis=1), "several called 'sales'"),
        (TABLE.drop(columns="promotion"), "must have the columns 'promotion'"),
        (TABLE.assign(closed=True), "must have rows with an outcome"),
        (TABLE.assign(sales=TABLE["sales"].astype(str).where(TABLE.index != 7, "abc")), "row 7"),
        (TABLE.assign(date=TABLE["date"].where(TABLE.index != 5)), "the first is row 5"),
        (TABLE.assign(date=TABLE["date"] + pd.Timedelta("3h")), "has the time 2023-01-02T03"),
        (TABLE.assign(store=TABLE["store"].where(TABLE.index != 2)), "'store' of table must name"),
        (TABLE.assign(sales=TABLE["sales"].where(TABLE.index != 2, np.inf)), "infinity"),
    ],
)
def test_tables_that_cannot_be_read(table, message):
    with pytest.raises(fw.InvalidInputError, match=message):
        quick().fit(table)


@pytest.mark.parametrize(
    ("roles", "message"),
    [
        ({"outcome": []}, "outcome must name"),
        ({"known": "sales"}, "named in outcome and known"),
        ({"known": ["promotion", "promotion"]}, "each column once"),
        ({"date": None, "horizon": 2}, "name the column of days"),
        ({"horizon": 0}, "horizon"),
        ({"date": ["date"]}, "date must be the name"),
        ({"sold_out": ["a", "b"]}, "sold_out must name one column"),
        ({"kinds": {"colour": "number"}}, "kinds must name columns"),
        ({"learner": fw.DirectLearner(fw.Newsvendor(3, 1))}, "must draw scenarios"),
        ({"learner": "forest"}, "learner must be"),
    ],
)
def test_roles_that_cannot_be(roles, message):
    with pytest.raises(fw.InvalidInputError, match=message):
        quick(**roles).fit(TABLE)


def test_a_table_may_be_spelled_otherwise():
    spelled = TABLE.assign(
        date=TABLE["date"].dt.strftime("%d.%m.%Y"),
        closed=np.where(TABLE["closed"], "ja", "nein"),
        promotion=np.where(TABLE["promotion"], "x", ""),
        sales=TABLE["sales"].map(lambda v: f"{v:.1f}".replace(".", ",")),
    )
    future = days_after(TABLE)
    found = quick().fit(spelled).decide(spelled, future)
    pd.testing.assert_frame_equal(found, quick().fit(TABLE).decide(TABLE, future))


def test_frames_of_other_libraries():
    polars = pytest.importorskip("polars")
    future = days_after(TABLE)
    planner = quick().fit(polars.from_pandas(TABLE))
    found = planner.decide(polars.from_pandas(TABLE), polars.from_pandas(future))
    pd.testing.assert_frame_equal(found, planner.decide(TABLE, future))


class TestLeaks:
    def test_a_known_column_that_is_the_outcome(self):
        table = TABLE.assign(revenue=2.5 * TABLE["sales"] + 1)
        with pytest.raises(fw.InvalidInputError, match="'revenue' knows 'sales' of the same row"):
            quick(known=["promotion", "revenue"]).fit(table)

    def test_a_column_of_tomorrow(self):
        tomorrow = TABLE.groupby("store")["sales"].shift(-1)
        with pytest.warns(
            fw.exceptions.ColumnWarning, match=r"'ahead' knows 'sales' of 1 day\(s\)"
        ):
            planner = quick().fit(TABLE.assign(ahead=tomorrow))
        assert not [f for f in planner.policy_.recipe.features if f.startswith("ahead")]
        with pytest.raises(fw.InvalidInputError, match="'ahead' knows"):
            quick(known="ahead").fit(TABLE.assign(ahead=tomorrow))

    def test_yesterday_is_not_known_a_week_ahead(self):
        yesterday = TABLE.groupby("store")["sales"].shift(1)
        table = TABLE.assign(before=yesterday)
        quick(known="before").fit(table)
        with pytest.raises(fw.InvalidInputError, match=r"1 day\(s\) before"):
            quick(known="before", horizon=7).fit(table)

    def test_shuffled_days(self):
        random = np.random.default_rng(0)
        days = random.permutation(pd.date_range("2023-01-01", periods=150))
        walk = 100 + np.cumsum(random.normal(size=150))
        table = pd.DataFrame({"date": days, "sales": walk})
        with pytest.warns(fw.exceptions.ColumnWarning, match="look whether each row has its own"):
            fw.Planner(
                fw.Newsvendor(3, 1), outcome="sales", date="date", learner=fw.EmpiricalPredictor()
            ).fit(table)
