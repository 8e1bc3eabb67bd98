"""Features against brute force, on tables with gaps, late starts and rows in any order."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import forewise as fw
from forewise import features
from forewise.features import (
    calendar,
    days_since,
    fill_missing,
    known_ahead,
    lag,
    one_hot,
    relative_to,
    rolling,
    same_weekday,
    weather_forecast,
)
from forewise.testing import check_no_future


def gappy(n_days=60, seed=0):
    """Three series with missing days and values, one of which starts late, shuffled."""
    random = np.random.default_rng(seed)
    days = pd.date_range("2024-01-01", periods=n_days)
    rows = pd.MultiIndex.from_product([["a", "b", "c"], days], names=["shop", "date"])
    table = rows.to_frame(index=False)
    table["sold"] = random.poisson(30, len(table)).astype(float)
    table["plan"] = random.random(len(table)) < 0.3
    table["warm"] = np.tile(random.normal(15, 5, n_days), 3)
    table.loc[random.random(len(table)) < 0.15, "sold"] = np.nan
    kept = (random.random(len(table)) < 0.8) & ((table["shop"] != "c") | (table["date"] > days[40]))
    return table[kept].sample(frac=1, random_state=seed)


def past_of(table, row, column="sold"):
    """Known values of the same series before the row's day, by day."""
    mine = table[(table["shop"] == row["shop"]) & (table["date"] < row["date"])]
    return mine.set_index("date")[column].dropna().sort_index()


def agree(found, expected):
    assert (np.isnan(found) and np.isnan(expected)) or found == pytest.approx(expected)


def test_lags_go_by_date():
    table = gappy()
    found = lag(table, "sold", [1, 7], "shop")
    assert list(found.columns) == ["sold_lag_1", "sold_lag_7"]
    assert found.index.equals(table.index)
    for index, row in table.iterrows():
        past = past_of(table, row)
        for days in (1, 7):
            day = row["date"] - pd.Timedelta(days=days)
            agree(found.loc[index, f"sold_lag_{days}"], past.get(day, np.nan))


def test_rolling_statistics_are_of_the_days_before():
    table = gappy()
    found = rolling(table, "sold", [7, 28], ["mean", "std", 0.9], ["shop"], min_values=3)
    assert list(found.columns)[:3] == ["sold_mean_7", "sold_std_7", "sold_q90_7"]
    for index, row in table.iterrows():
        for window in (7, 28):
            past = past_of(table, row)
            past = past[past.index >= row["date"] - pd.Timedelta(days=window)]
            enough = len(past) >= 3
            for name, value in (
                ("mean", past.mean()), ("std", past.std()), ("q90", past.quantile(0.9))
            ):  # fmt: skip
                agree(found.loc[index, f"sold_{name}_{window}"], value if enough else np.nan)


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("horizon", [1, 8])
def test_statistics_are_those_of_pandas(scale, horizon):
    for seed, n_days in enumerate((42, 45, 130)):
        table = gappy(n_days, seed).assign(sold=lambda t: scale * (t["sold"] + 1e3))
        if seed % 2:
            table["sold"] = np.where(table["shop"] == "a", scale, table["sold"])  # constant
        args = ("sold", [1, 7, 28], ["mean", "std", 0.1, 0.9], "shop")
        found = rolling(table, *args, min_values=2, horizon=horizon)
        for _, mine in table.groupby("shop"):
            days = pd.date_range(table["date"].min(), table["date"].max())
            daily = mine.set_index("date")["sold"].reindex(days).shift(horizon)
            for window in (1, 7, 28):
                past = daily.rolling(window, min_periods=min(2, window))
                expected = pd.DataFrame(
                    {
                        "mean": past.mean(), "std": past.std(),
                        "q10": past.quantile(0.1), "q90": past.quantile(0.9),
                    }
                ).loc[mine["date"]]  # fmt: skip
                names = [f"sold_{name}_{window}" for name in expected]
                np.testing.assert_allclose(
                    found.loc[mine.index, names], expected, rtol=1e-9, atol=1e-9 * scale
                )


def test_same_weekdays_pass_over_missing_ones():
    table = gappy()
    found = same_weekday(table, "sold", [2, 4], "shop")
    for index, row in table.iterrows():
        past = past_of(table, row)
        past = past[past.index.day_of_week == row["date"].day_of_week]
        agree(found.loc[index, "sold_weekday_last"], past.iloc[-1] if len(past) else np.nan)
        for weeks in (2, 4):
            recent = past[past.index >= row["date"] - pd.Timedelta(weeks=weeks)]
            agree(found.loc[index, f"sold_weekday_mean_{weeks}"], recent.mean())


def test_days_since_the_last_known_value():
    table = gappy()
    found = days_since(table, "sold", "shop")["sold_days_since"]
    for index, row in table.iterrows():
        past = past_of(table, row)
        agree(found[index], (row["date"] - past.index[-1]).days if len(past) else np.nan)


def test_plans_of_days_to_come():
    table = gappy()
    found = known_ahead(table, "plan", [0, 2], "shop")
    assert found["plan_in_0"].equals(table["plan"].astype(float).rename("plan_in_0"))
    plans = table.set_index(["shop", "date"])["plan"]
    for index, row in table.iterrows():
        day = (row["shop"], row["date"] + pd.Timedelta(days=2))
        agree(found.loc[index, "plan_in_2"], float(plans[day]) if day in plans else np.nan)


def test_calendar():
    days = pd.Series(pd.to_datetime(["2024-01-01", "2024-12-23", "2024-12-25", "2023-12-28"]))
    days.index = [9, 8, 7, 6]
    found = calendar(days, ["2024-12-25", "2024-12-26", "2023-12-26"], horizon=7)
    assert list(found.index) == [9, 8, 7, 6]
    assert found["weekday"].tolist() == [0, 0, 2, 3]
    assert found["month"].tolist() == [1, 12, 12, 12]
    assert found["holiday"].tolist() == [0, 0, 1, 0]
    assert found["days_to_holiday"].tolist() == [7, 2, 0, 7]
    assert found["days_since_holiday"].tolist() == [6, 7, 0, 2]
    assert found.loc[9, ["year_sin", "year_cos"]].tolist() == [0, 1]
    assert np.allclose(found["year_sin"] ** 2 + found["year_cos"] ** 2, 1)
    assert list(calendar(pd.DatetimeIndex(days)).columns) == list(found.columns[:4])
    none = calendar(days, [])
    assert (none["days_to_holiday"] == 7).all()
    assert (none["holiday"] == 0).all()


def test_last_day_of_the_year_is_next_to_the_first():
    for year in (2023, 2024):
        ends = calendar(pd.DatetimeIndex([f"{year}-12-31", f"{year + 1}-01-01"]))
        assert np.abs(np.diff(ends[["year_sin", "year_cos"]], axis=0)).max() < 0.02


def test_forecast_is_the_day_before_plus_the_stated_noise():
    days = pd.date_range("2000-01-01", periods=8000)
    table = pd.DataFrame({"date": days, "warm": np.arange(8000.0), "rain": 1.0})
    found = weather_forecast(table, ["warm", "rain"], {"warm": 3.0, "rain": 0.5})
    assert found.iloc[0].isna().all()
    errors = found.iloc[1:].to_numpy() - np.column_stack([np.arange(7999.0), np.ones(7999)])
    assert np.allclose(errors.mean(0), 0, atol=0.12)
    assert np.allclose(errors.std(0), [3, 0.5], rtol=0.03)
    # Independent of each other, and from day to day.
    assert abs(np.corrcoef(errors.T)[0, 1]) < 0.05
    assert abs(np.corrcoef(errors[1:, 0], errors[:-1, 0])[0, 1]) < 0.05
    exact = weather_forecast(table, "warm", 0.0)["warm_forecast"]
    assert exact.iloc[1:].tolist() == table["warm"].iloc[:-1].tolist()


def test_forecast_of_a_row_does_not_depend_on_other_rows():
    table = gappy()
    whole = weather_forecast(table, "warm", 2.0, "shop", random_state=4)
    for shop in "ab":
        mine = table[table["shop"] == shop].sort_values("date")
        part = weather_forecast(mine, "warm", 2.0, "shop", random_state=4)
        assert part.equals(whole.loc[part.index])
    assert not whole.equals(weather_forecast(table, "warm", 2.0, "shop", random_state=5))
    # Two products of a place and day have one weather, and one forecast.
    two = pd.concat([table.assign(item=1), table.assign(item=2)], ignore_index=True)
    both = weather_forecast(two, "warm", 2.0, "shop", random_state=4)["warm_forecast"].to_numpy()
    assert np.array_equal(both[: len(table)], both[len(table) :], equal_nan=True)


def test_one_hot_has_the_columns_of_its_categories():
    values = pd.Series([3, 1, 3], index=[5, 6, 7], name="shop")
    found = one_hot(values, [1, 2, 3])
    assert found.to_numpy().tolist() == [[0, 0, 1], [1, 0, 0], [0, 0, 1]]
    assert list(found.columns) == ["shop_1", "shop_2", "shop_3"]
    assert one_hot(values, [1, 2], unseen="zeros").to_numpy().tolist() == [[0, 0], [1, 0], [0, 0]]


def test_missing_values_have_a_stand_in_and_a_flag():
    frame = pd.DataFrame({"a": [1.0, np.nan, np.nan], "m": [5.0, 6.0, np.nan]}, index=[3, 4, 5])
    found = fill_missing(frame, fallback="m", value=-1.0, flags=["a"])
    assert found["a"].tolist() == [1, 6, -1]
    assert found["m"].tolist() == [5, 6, -1]
    assert found["a_missing"].tolist() == [0, 1, 1]
    assert list(found.columns) == ["a", "m", "a_missing"]
    assert fill_missing(frame)["a"].tolist() == [1, 0, 0]


def test_multiples_make_shops_of_all_sizes_alike():
    small = gappy().assign(sold=lambda t: 3 + t["sold"])
    large = small.assign(sold=1000 * small["sold"])

    def features_of(table):
        past = [lag(table, "sold", 1, "shop"), rolling(table, "sold", 28, by="shop")]
        return pd.concat([*past, table["warm"]], axis=1)

    found, other = (
        relative_to(features_of(table), "sold_mean_28", ["sold_lag_1"], least=1e-3)
        for table in (small, large)
    )
    pd.testing.assert_series_equal(found["sold_lag_1"], other["sold_lag_1"])
    size = other["sold_mean_28"] - found["sold_mean_28"]
    np.testing.assert_allclose(size.dropna(), np.log(1000))
    pd.testing.assert_series_equal(found["warm"], small["warm"])
    assert list(found.columns) == list(features_of(small).columns)


def test_nothing_is_divided_by_less_than_the_least_unit():
    frame = pd.DataFrame({"mean": [0.0, 4.0, np.nan], "lag": [3.0, 2.0, 1.0]})
    found = relative_to(frame, "mean", ["lag"], least=2.0)
    np.testing.assert_allclose(found["lag"], [1.5, 0.5, np.nan])
    np.testing.assert_allclose(found["mean"], np.log([2.0, 4.0, np.nan]))


BUILDERS = {
    "calendar": lambda t: calendar(t["date"], ["2024-02-01"]),
    "days_since": lambda t: days_since(t, "sold", "shop"),
    "fill_missing": lambda t: fill_missing(
        pd.concat([lag(t, "sold", 7, "shop"), rolling(t, "sold", 7, by="shop")], axis=1),
        "sold_mean_7",
        flags=["sold_lag_7"],
    ),
    "known_ahead": lambda t: known_ahead(t, "plan", [0, 1, 7], "shop"),
    "lag": lambda t: lag(t, "sold", [1, 7], "shop"),
    "one_hot": lambda t: one_hot(t["shop"], "abc"),
    "relative_to": lambda t: relative_to(
        pd.concat([lag(t, "sold", 1, "shop"), rolling(t, "sold", 28, by="shop")], axis=1),
        "sold_mean_28",
        ["sold_lag_1"],
    ),
    "rolling": lambda t: rolling(t, "sold", [7, 28], ["mean", "std", 0.1], "shop"),
    "same_weekday": lambda t: same_weekday(t, "sold", [1, 4], "shop"),
    "weather_forecast": lambda t: weather_forecast(t, "warm", 2.0, "shop"),
}


# `Columns` takes each row by itself.
@pytest.mark.parametrize("name", sorted({*features.__all__} - {"Columns"}))
def test_no_feature_sees_the_future(name):
    check_no_future(BUILDERS[name], gappy(), known=["shop", "plan"], n_days=12)


def empty_table():
    return gappy().iloc[:0]


@pytest.mark.parametrize(
    ("make", "reported"),
    [
        (lambda t: lag(t, "sold", 0, "shop"), "days must be .* but is 0"),
        (lambda t: lag(t, "sold", -1, "shop"), "days must be .*, but is -1"),
        (lambda t: lag(t, "sold", [], "shop"), "days must have .* but is empty"),
        (lambda t: lag(t, "sold", 1.5, "shop"), "days must be"),
        (
            lambda t: lag(t, "sold"),
            r"one row per series and day, but repeats 2024-.* of the",
        ),
        (lambda t: lag(t, "bought", 1, "shop"), "table must have the columns 'bought'"),
        (lambda t: lag(t, "sold", 1, "store"), "table must have the columns 'store'"),
        (lambda t: lag(t, "shop", 1, "shop"), "column 'shop' must be numbers"),
        (lambda t: lag(t.to_numpy(), "sold"), "table must be a pandas.DataFrame"),
        (lambda t: lag(empty_table(), "sold", 1, "shop"), "at least one row, but is empty"),
        (
            lambda t: lag(t.assign(date=t["date"].astype(str)), "sold", 1, "shop"),
            "date must be days without a time zone, but is of type",
        ),
        (
            lambda t: lag(t.assign(date=t["date"].dt.tz_localize("UTC")), "sold", 1, "shop"),
            "date must be days without a time zone",
        ),
        (
            lambda t: lag(t.assign(date=t["date"] + pd.Timedelta(hours=1)), "sold", 1, "shop"),
            "date must be days, but has times",
        ),
        (
            lambda t: lag(t.assign(date=t["date"].where(t["shop"] == "a")), "sold", 1, "shop"),
            "date must have a day in every row",
        ),
        (
            lambda t: lag(t.assign(shop=t["shop"].where(t["shop"] != "a")), "sold", 1, "shop"),
            "column 'shop' must name the series of every row",
        ),
        (lambda t: rolling(t, "sold", 7, ["max"], "shop"), "statistics must be .* but has 'max'"),
        (lambda t: rolling(t, "sold", 7, [90], "shop"), "quantile levels between 0 and 1"),
        (lambda t: calendar(["2024-01-01"]), "dates must be a pandas Series or DatetimeIndex"),
        (lambda t: calendar(t["date"], horizon=0, holidays=[]), "horizon must be"),
        (lambda t: known_ahead(t, "plan", -1, "shop"), "days must be .* at least 0"),
        (
            lambda t: weather_forecast(t, "warm", {"rain": 1.0}, "shop"),
            "noise of 'warm' must be a finite standard deviation of at least 0, but is None",
        ),
        (lambda t: weather_forecast(t, "warm", -1.0, "shop"), "noise of 'warm' must be"),
        (lambda t: weather_forecast(t, "sold", 1.0), "'sold' must be the same in all rows"),
        (
            lambda t: weather_forecast(t, "warm", 1.0, "shop", random_state=None),
            "random_state must be",
        ),
        (lambda t: one_hot(t["shop"], ["a", "b"]), "shop has values that are no categories: 'c'"),
        (lambda t: one_hot(t["shop"], "abc", unseen="drop"), 'unseen must be "raise" or "zeros"'),
        (lambda t: one_hot(t["shop"], []), "categories must be different values"),
        (lambda t: fill_missing(t[["sold"]], fallback="mean"), "must have the columns 'mean'"),
        (lambda t: relative_to(t, "mean", ["sold"]), "must have the columns 'mean'"),
        (lambda t: relative_to(t, "sold", ["sold"]), "'sold' is among the columns"),
        (lambda t: relative_to(t, "sold", ["warm"], least=0.0), "least must be positive"),
    ],
)
def test_bad_input_is_named(make, reported):
    with pytest.raises(fw.InvalidInputError, match=reported):
        make(gappy())
