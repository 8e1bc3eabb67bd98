"""Demand of bakeries: how the table is cleaned, what wrong files say, and the real figures."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import forewise as fw
from forewise.datasets import (
    CorruptDataError,
    bakery,
    bakery_contexts,
    locate,
)
from forewise.datasets.bakeries import PRODUCTS, STORES
from forewise.exceptions import MissingDataError
from forewise.testing import check_no_future
from forewise_lab.datasets.real import bakery_store_days

KNOWN = [
    *("store", "product", "weekday", "holiday", "holiday_in_2_days", "school_holiday"),
    *("promotion", "promotion_last_week"),
]


def raw_files(n_days=120, stores=(2, 3)):
    """Tables of the form of the files; stores are closed on Sundays, labels a day behind."""
    random = np.random.default_rng(0)
    days = pd.date_range("2016-01-02", periods=n_days)
    rows = pd.MultiIndex.from_product([stores, PRODUCTS, days], names=["store", "product", "date"])
    data = rows.to_frame(index=False)
    label = (data["date"] - pd.Timedelta(days=1)).dt.day_name().str[:3].str.upper()
    demand = random.poisson(20, len(data)).astype(float)
    demand[(data["date"].dt.day_of_week == 6) & (data["store"] == stores[0])] = 0.0
    holiday = data["date"].isin(pd.to_datetime(["2016-01-06", "2016-03-25"]))
    data = pd.DataFrame(
        {
            "date": data["date"].dt.strftime("%Y-%m-%d"), "weekday": label, "month": "JAN",
            "year": 2016, "is_schoolholiday": 0, "is_holiday": holiday.astype(int),
            "is_holiday_next2days": 0, "store": data["store"], "product": data["product"],
            "rain": data["store"] + data["date"].dt.day_of_year % 7 / 10,
            "temperature": data["store"] + data["date"].dt.day_of_year % 11,
            "promotion_currentweek": (data["product"] == 101) & (data["date"].dt.day < 8),
            "promotion_lastweek": 0,
        }
    )  # fmt: skip
    data["promotion_currentweek"] = data["promotion_currentweek"].astype(int)
    return data, pd.DataFrame({"demand": demand})


def written(folder, data, target):
    (folder / "bakery").mkdir(exist_ok=True)
    data.to_csv(folder / "bakery" / "bakery_data.csv", index=False)
    target.to_csv(folder / "bakery" / "bakery_target.csv", index=False)
    return folder


@pytest.fixture
def table(tmp_path):
    return bakery(written(tmp_path, *raw_files()), verify=False)


@pytest.fixture(scope="module")
def real():
    try:
        return bakery(locate("bakery").parent)
    except MissingDataError as error:
        pytest.skip(f"the real data are not here: {error}")


def test_weekdays_are_those_of_the_dates(table):
    assert (table["weekday"] == table["date"].dt.day_of_week).all()
    assert table["weekday"].iloc[0] == 5, "the second of January 2016 was a Saturday"


def test_rows_are_sorted_whatever_the_file(tmp_path, table):
    data, target = raw_files()
    order = np.random.default_rng(1).permutation(len(data))
    shuffled = bakery(written(tmp_path, data.iloc[order], target.iloc[order]), verify=False)
    pd.testing.assert_frame_equal(shuffled, table)


def test_closed_is_a_day_without_any_demand(tmp_path):
    data, target = raw_files()
    zero = (data["store"] == 3) & (data["date"] == "2016-01-12") & (data["product"] != 110)
    target.loc[zero, "demand"] = 0.0
    table = bakery(written(tmp_path, data, target), verify=False)
    assert (table["closed"] == ((table["weekday"] == 6) & (table["store"] == 2))).all()
    quiet = table[(table["store"] == 3) & (table["date"] == "2016-01-12")]
    assert quiet["demand"].tolist()[:2] == [0, 0], "nobody came for two products: a demand of 0"
    assert not quiet["closed"].any()


def test_another_version_is_refused_unless_asked_for(tmp_path):
    folder = written(tmp_path, *raw_files())
    with pytest.raises(CorruptDataError, match=r"bakery_data.csv must have the SHA-256 .* verify="):
        bakery(folder)
    assert len(bakery(folder, verify=False)) == 2 * 3 * 120


def with_column(name, value):
    def change(data, target):
        frame = target if name == "demand" else data
        frame[name] = frame[name].astype(object)
        frame.loc[5, name] = value
        return data, target

    return change


@pytest.mark.parametrize(
    ("change", "reported"),
    [
        (lambda d, t: (d.drop(columns="rain"), t), "bakery_data.csv must have the columns rain"),
        (lambda d, t: (d, t.rename(columns={"demand": "y"})), "target.csv .* the columns demand"),
        (lambda d, t: (d, t[:-2]), "bakery_target.csv must have the 720 rows .* but has 718"),
        (lambda d, t: (pd.concat([d, d[:1]]), pd.concat([t, t[:1]])), "repeats store 2, product"),
        (with_column("demand", -1.0), "column demand of .* must be at least 0"),
        (with_column("demand", np.nan), "column demand of .* a number in every row, but 1 are"),
        (with_column("demand", "much"), "column demand of .* must be finite numbers"),
        (with_column("rain", np.inf), "column rain of .* must be finite numbers"),
        (with_column("is_holiday", 2), "column is_holiday of .* must be 0 or 1"),
        (with_column("date", "yesterday"), "column date of .* must be days like 2016-01-02"),
    ],
)
def test_a_wrong_file_is_named(tmp_path, change, reported):
    folder = written(tmp_path, *change(*raw_files()))
    with pytest.raises(CorruptDataError, match=reported):
        bakery(folder, verify=False)


def test_missing_files_say_where_to_get_them(tmp_path):
    with pytest.raises(MissingDataError, match=r"the data set bakery .* get bakery_data.csv"):
        bakery(tmp_path)


def test_contexts_are_numbers_of_the_past(table):
    contexts = bakery_contexts(table)
    assert contexts.shape == (len(table), 73)
    assert contexts.index.equals(table.index)
    assert np.isfinite(contexts.to_numpy()).all()
    check_no_future(bakery_contexts, table, known=KNOWN)


def test_closed_days_tell_nothing_of_demand(table):
    """The store's Sundays are zeros in the table; no lag, mean or quantile may take them in."""
    contexts = bakery_contexts(table)
    mine = (table["store"] == 2) & (table["date"] > "2016-03-01")
    assert contexts.loc[mine, "demand_q10_56"].min() > 5
    monday = mine & (table["weekday"] == 0)
    assert (contexts.loc[monday, "demand_days_since"] == 2).all()
    # What stands in for yesterday is the mean of four weeks, not the zero of a closed day.
    assert (contexts.loc[monday, "demand_lag_1"] == contexts.loc[monday, "demand_mean_28"]).all()
    open_days = bakery_contexts(table.assign(demand=table["demand"] + 100.0 * table["closed"]))
    assert open_days.equals(contexts), "whatever stands on closed days is not looked at"


def test_a_store_with_20_rows_has_contexts(tmp_path):
    table = bakery(written(tmp_path, *raw_files(n_days=20, stores=(71,))), verify=False)
    contexts = bakery_contexts(table)
    assert np.isfinite(contexts.to_numpy()).all()
    first = contexts.groupby(table["product"]).head(2)
    assert (first["demand_mean_28_missing"] == 1).all()
    assert contexts["demand_mean_28_missing"].sum() < len(table) / 2


def test_an_unseen_product_is_an_error_or_zeros(table):
    strange = table.assign(product=table["product"].replace(110, 999))
    with pytest.raises(fw.InvalidInputError, match=r"product has values .* no categories: 999"):
        bakery_contexts(strange)
    contexts = bakery_contexts(strange, unseen="zeros")
    products = contexts.filter(regex="^product_")
    assert (products[strange["product"] == 999] == 0).all(axis=None)
    assert contexts.columns.equals(bakery_contexts(table).columns)


def test_a_bakery_ten_times_as_large_has_the_same_days_in_percent_of_its_oven(table):
    small = bakery_store_days(table, "2016-04-01", share=1.2)
    large = bakery_store_days(table.assign(demand=10 * table["demand"]), "2016-04-01", share=1.2)
    pd.testing.assert_frame_equal(small.contexts, large.contexts)
    pd.testing.assert_frame_equal(small.demand, large.demand)
    np.testing.assert_allclose(large.oven, 10 * small.oven)


def test_past_and_present_demand_of_a_store_have_the_same_unit(table):
    days = bakery_store_days(table, "2016-04-01")
    mine = days.store == 3  # open every day
    for product in PRODUCTS:
        yesterday = days.contexts.loc[mine, f"demand_lag_1_{product}"].to_numpy()[1:]
        np.testing.assert_allclose(yesterday, days.demand.loc[mine, f"demand_{product}"][:-1])
    total = days.demand[mine & (days.date < "2016-04-01")].sum(axis=1)
    assert total.mean() == pytest.approx(100)


def test_real_table(real):
    assert real.shape == (127575, 13)
    assert tuple(real["store"].unique()) == STORES
    assert tuple(real["product"].unique()) == PRODUCTS
    assert not real.isna().any(axis=None)
    per_series = real.groupby(["store", "product"])["date"]
    assert (per_series.max() - per_series.min()).dt.days.unique().tolist() == [1214]
    assert (per_series.size() == 1215).all()
    days = real.drop_duplicates(["store", "date"])
    assert days["closed"].sum() == 4897
    assert (real.loc[~real["closed"], "demand"] == 0).sum() == 708
    assert days.loc[days["closed"], "weekday"].mode().item() == 6
    christmas = days[days["date"].dt.strftime("%m-%d") == "12-25"]
    assert christmas["closed"].all()
    assert christmas["holiday"].all()


def test_real_contexts_see_no_future(real):
    some = real[real["store"].isin([2, 5, 47])].reset_index(drop=True)
    check_no_future(bakery_contexts, some, known=KNOWN, n_days=3)
