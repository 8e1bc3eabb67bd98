"""Electricity demand: 48 values on every day, what wrong files say, and the real figures."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest

from forewise.datasets import (
    CorruptDataError,
    Victoria,
    locate,
    victoria,
    victoria_contexts,
)
from forewise.datasets.electricity import HALF_HOURS
from forewise.exceptions import MissingDataError
from forewise.testing import check_no_future

ZONE = "Australia/Melbourne"


def raw_file(first="2012-03-25", last="2012-10-14"):
    """A table of the form of the file, over both changes of the clocks; demand is the row."""
    time = pd.date_range(first, pd.Timestamp(last) + pd.Timedelta(days=1), freq="30min", tz=ZONE)
    time = time[:-1]
    return pd.DataFrame(
        {
            "Time": time.tz_convert("UTC").strftime("%Y-%m-%dT%H:%M:%SZ"),
            "Demand": 1.0 + np.arange(len(time)),
            "Temperature": 15 + 5 * np.sin(np.arange(len(time)) / 7.6),
            "Date": time.strftime("%Y-%m-%d"),
            "Holiday": time.strftime("%m-%d") == "04-25",
        }
    )


def written(folder, table):
    (folder / "vic_electricity").mkdir(exist_ok=True)
    table.to_csv(folder / "vic_electricity" / "vic_electricity.csv", index=False)
    return folder


@pytest.fixture
def made_up(tmp_path):
    return victoria(written(tmp_path, raw_file()), verify=False)


@pytest.fixture(scope="module")
def real():
    try:
        return victoria(locate("vic_electricity").parent)
    except MissingDataError as error:
        pytest.skip(f"the real data are not here: {error}")


def test_every_day_has_48_values(made_up):
    n_days = 7 + 30 + 31 + 30 + 31 + 31 + 30 + 14
    assert made_up.demand.shape == made_up.temperature.shape == (n_days, 48)
    assert tuple(made_up.demand.columns) == HALF_HOURS
    assert HALF_HOURS[:3] == ("00:00", "00:30", "01:00")
    assert not made_up.demand.isna().any(axis=None)
    odd = made_up.days["measured"][made_up.days["measured"] != 48]
    assert {f"{day:%m-%d}": count for day, count in odd.items()} == {"04-01": 50, "10-07": 46}
    assert len(made_up.half_hours) == len(raw_file())


def test_plain_days_are_as_measured(made_up):
    plain = made_up.half_hours[made_up.half_hours["date"] == "2012-05-05"]
    assert made_up.demand.loc["2012-05-05"].tolist() == plain["demand"].tolist()
    assert plain["half_hour"].tolist() == list(range(48))
    assert made_up.days.loc["2012-05-05", "weekday"] == 5
    assert made_up.days.index[made_up.days["holiday"]].strftime("%m-%d").tolist() == ["04-25"]


def test_a_repeated_hour_is_averaged(made_up):
    """Demand rises by one from half hour to half hour, so the mean lies in between."""
    day = made_up.demand.loc["2012-04-01"] - made_up.demand.loc["2012-04-01", "00:00"]
    assert day.tolist()[:8] == [0, 1, 2, 3, (4 + 6) / 2, (5 + 7) / 2, 8, 9]


def test_a_skipped_hour_is_interpolated(made_up):
    day = made_up.demand.loc["2012-10-07"] - made_up.demand.loc["2012-10-07", "00:00"]
    assert day.tolist()[:8] == pytest.approx([0, 1, 2, 3, 3 + 1 / 3, 3 + 2 / 3, 4, 5])


def test_another_version_is_refused_unless_asked_for(tmp_path):
    with pytest.raises(CorruptDataError, match=r"vic_electricity.csv must have the SHA-256"):
        victoria(written(tmp_path, raw_file()))


def test_missing_files_say_where_to_get_them(tmp_path):
    with pytest.raises(MissingDataError, match=r"the data set vic_electricity .* get vic_elec"):
        victoria(tmp_path)


def with_cell(column, value, row=100):
    def change(table):
        table[column] = table[column].astype(object)
        table.loc[row, column] = value
        return table

    return change


@pytest.mark.parametrize(
    ("change", "reported"),
    [
        (lambda t: t.drop(columns=["Holiday"]), "must have the columns Holiday, but has not"),
        (lambda t: t.drop(index=77), "column Time of .* half an hour .* but does not in row 78"),
        (lambda t: pd.concat([t, t[-1:]]), "column Time of .* must go on by half an hour"),
        (lambda t: t[3:], "must begin and end at midnight in Melbourne"),
        (lambda t: t[:-1], "must begin and end at midnight in Melbourne"),
        (with_cell("Time", "noon"), "column Time of .* must be instants like 2011"),
        (with_cell("Demand", 0.0), "column Demand of .* must be positive everywhere"),
        (with_cell("Demand", np.nan), "column Demand of .* in every row, but 1 are missing"),
        (with_cell("Temperature", "hot"), "column Temperature of .* must be finite numbers"),
        (with_cell("Holiday", "maybe"), "column Holiday of .* must be 0 or 1"),
        (with_cell("Date", "2012-01-01"), "column Date of .* must be the day in Melbourne"),
        (with_cell("Date", "someday"), "column Date of .* must be days like 2012-01-01"),
    ],
)
def test_a_wrong_file_is_named(tmp_path, change, reported):
    with pytest.raises(CorruptDataError, match=reported):
        victoria(written(tmp_path, change(raw_file())), verify=False)


def contexts_of(flat, data):
    """Contexts from a table that has all values of a day in its row."""
    tables = {
        name: flat.filter(regex=f"^{name} ").set_axis(pd.Index(HALF_HOURS), axis=1)
        for name in ("demand", "temperature")
    }
    changed = {name: table.set_index(data.days.index) for name, table in tables.items()}
    return victoria_contexts(dataclasses.replace(data, **changed)).set_axis(flat.index)


def flattened(data):
    flat = pd.concat(
        [data.demand.add_prefix("demand "), data.temperature.add_prefix("temperature ")], axis=1
    )
    return flat.rename_axis("date").reset_index()


def test_contexts_see_no_future(made_up):
    random = np.random.default_rng(0)
    noisy = made_up.demand + random.normal(0, 50, made_up.demand.shape)
    data = dataclasses.replace(made_up, demand=noisy)
    check_no_future(lambda flat: contexts_of(flat, data), flattened(data))


def test_contexts_are_of_the_day_before(made_up):
    contexts = victoria_contexts(made_up, temperature_noise=0.0)
    assert contexts.shape == (len(made_up.demand), 117)
    assert contexts.isna().any(axis=1).tolist() == [True] * 7 + [False] * (len(contexts) - 7)
    day, before, week = (f"2012-06-{d:02d}" for d in (20, 19, 13))
    assert contexts.loc[day, "demand_17:30_lag_1"] == made_up.demand.loc[before, "17:30"]
    assert contexts.loc[day, "demand_17:30_lag_7"] == made_up.demand.loc[week, "17:30"]
    assert contexts.loc[day, "temperature_09:00_forecast"] == pytest.approx(
        made_up.temperature.loc[before, "09:00"]
    )
    assert contexts.loc[day, "weekday_2"] == 1


def test_real_tables(real):
    assert isinstance(real, Victoria)
    assert real.demand.shape == real.temperature.shape == (1096, 48)
    assert not real.demand.isna().any(axis=None)
    assert real.days["measured"].value_counts().to_dict() == {48: 1090, 50: 3, 46: 3}
    assert real.days["holiday"].sum() == 31
    assert real.half_hours["demand"].max() == pytest.approx(9345.004346)


def test_real_days_follow_the_clocks(real):
    """When the clocks change, mornings stay where they are on the clock, within half an hour."""
    workdays = real.demand[real.days["weekday"] < 5]
    for change in real.days.index[real.days["measured"] != 48]:
        around = [
            workdays[
                (workdays.index >= change - pd.Timedelta(days=14)) & (workdays.index < change)
            ],
            workdays[
                (workdays.index > change) & (workdays.index <= change + pd.Timedelta(days=14))
            ],
        ]
        before, after = (np.diff(part.mean().to_numpy()) for part in around)
        alike = [
            np.corrcoef(before[8:23], after[8 + shift : 23 + shift])[0, 1] for shift in (-2, 0, 2)
        ]
        assert np.argmax(alike) == 1
