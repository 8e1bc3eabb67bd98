"""The planner in a case: its rows, its costs, and the page that compares them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from forewise.predictors import RelativePredictor, ResidualPredictor
from forewise_lab.experiments import planning, rolling
from forewise_lab.experiments.configuration import load_settings
from forewise_lab.experiments.planning import PlannerFit, shared_fits
from forewise_lab.experiments.rolling import read_costs
from forewise_lab.experiments.rows import read_rows
from forewise_lab.experiments.runner import run, run_works
from forewise_lab.report.planned import write_planner_page
from tests.lab.experiments.made_up_data import TEXT, case_of, shops
from tests.lab.experiments.tiny import write


def rows_of_shops(source, data_dir, sized_before):
    rows = shops()
    return replace(rows, series_names=tuple(f"{k}/1" for k in range(3)))


def table_of_shops(data_dir, stores) -> pd.DataFrame:
    rows = shops()
    table = pd.DataFrame({"date": rows.days.astype("datetime64[s]"), "store": rows.series})
    table = table.assign(product=1, closed=False, demand=rows.y[:, 0])
    flags = ["holiday", "holiday_in_2_days", "school_holiday", "promotion", "promotion_last_week"]
    weather = {"temperature_forecast": rows.y[:, 0] % 7, "rain_forecast": rows.y[:, 0] % 3}
    return table.assign(**dict.fromkeys(flags, False), **weather)


@pytest.fixture
def settings(tmp_path, monkeypatch):
    for module in (rolling, planning):
        monkeypatch.setattr(module, "load_case", rows_of_shops)
    monkeypatch.setattr(planning, "planner_table", table_of_shops)
    return load_settings(write(tmp_path, TEXT))


def test_the_planner_decides_the_rows_of_the_case(settings, tmp_path):
    folder, case = tmp_path / "results", case_of(settings)
    fits = [PlannerFit("shops", level, case, time_limit=0.5) for level in (0.25, 0.9)]
    assert run_works(fits, folder, None, progress=False).failed == {}
    run("shops", ["saa"], settings=settings, output=folder, progress=False)
    rows = read_rows(folder)
    own = rows[rows["method"] == "planner 0.9"].set_index("metric")
    costs = read_costs(folder / own["costs_file"].iloc[0])
    days = pd.DatetimeIndex(costs["date"])
    assert (days.min(), days.max()) == (pd.Timestamp("2020-08-01"), pd.Timestamp("2020-09-15"))
    assert costs.groupby("date")["series"].apply(list).map(lambda s: s == [0, 1, 2]).all()
    assert own["value"]["cost"] == pytest.approx(costs["cost"].mean(), rel=1e-3)
    inside = costs["cost"].between(costs["lower"], costs["upper"])
    assert own["value"]["covered"] == pytest.approx(inside.mean(), abs=0.02)
    assert run_works(fits, folder, None, progress=False).found == 2
    page = write_planner_page(folder, tmp_path / "planner.md", "shops", settings).read_text()
    assert f"| 0.9 | {own['value']['cost']:.2f} |" in page
    assert "| mean |" in page


def test_levels_share_equal_fits_and_nothing_else():
    random = np.random.default_rng(0)
    X = np.column_stack([random.normal(size=80), np.zeros(80)])
    y = random.gamma(4.0, size=(80, 1))
    made = RelativePredictor(ResidualPredictor(shuffle=False, random_state=0), [1])
    alone = made.fit(X, y).sample(X[:3], 8, random_state=0).values
    with shared_fits():
        for outcome in (y, 2 * y, y):
            other = RelativePredictor(ResidualPredictor(shuffle=False, random_state=0), [1])
            drawn = other.fit(X, outcome).sample(X[:3], 8, random_state=0).values
            assert bool((drawn == alone).all()) == (outcome is y)
