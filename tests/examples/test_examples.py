"""Every example runs, says something true, and draws its picture."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import matplotlib as mpl
import pytest

import forewise as fw

mpl.use("agg")
FOLDER = Path(__file__).parents[2] / "examples"


def loaded(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_truck(tmp_path):
    costs = loaded("01_newsvendor_with_a_truck").main(tmp_path, epochs=8)
    assert max(costs.values()) < 200
    assert (tmp_path / "01_newsvendor_with_a_truck.png").stat().st_size > 10_000


def test_the_farmer(tmp_path):
    figures = loaded("02_farmer_with_recourse").main(tmp_path)
    assert list(figures.values()) == pytest.approx([108_390, 1_150, 7_015.56], abs=0.5)
    assert (tmp_path / "02_farmer_with_recourse.png").stat().st_size > 10_000


def test_the_portfolio(tmp_path):
    losses = loaded("04_portfolio_with_turnover").main(tmp_path, n_weeks=15)
    assert losses["tail"] < losses["mean and tail"] < losses["mean"]
    assert (tmp_path / "04_portfolio_with_turnover.png").stat().st_size > 10_000


def test_the_day_ahead_schedule(tmp_path):
    example = loaded("03_day_ahead_schedule")
    costs = example.main(tmp_path, example.made_up_loads(440, seed=0), n_days=3, n_scenarios=6)
    assert all(0 < cost < 20 for cost in costs.values())
    assert (tmp_path / "03_day_ahead_schedule.png").stat().st_size > 10_000


def test_the_staff(tmp_path):
    costs = loaded("05_staffing_with_integers").main(tmp_path, n_days=10)
    assert all(500 < cost < 3000 for cost in costs.values())
    assert (tmp_path / "05_staffing_with_integers.png").stat().st_size > 10_000


@pytest.mark.slow
def test_combined_learning_wins_with_few_scenarios(tmp_path):
    """A C-BNN on a CvxpyProblem with recourse and given, against its decoupled twin."""
    found = loaded("06_combined_with_few_scenarios").main(tmp_path, counts=(4,), n_seeds=5)
    gain = fw.bootstrap_difference(found[4][:, 1], found[4][:, 0])
    assert gain.upper < 0
    assert (tmp_path / "06_combined_with_few_scenarios.png").stat().st_size > 10_000


def test_the_bakery(tmp_path):
    example = loaded("07_bakery")
    table = example.made_up_table(n_days=220, seed=0)
    costs = example.main(tmp_path, table, epochs=3, n_months=2)
    assert all(10 < cost < 500 for cost in costs.values())
    assert (tmp_path / "07_bakery.png").stat().st_size > 10_000


def test_electricity(tmp_path):
    example = loaded("08_electricity")
    training = fw.Training(epochs=3, batch_size=32)
    data = example.made_up_days(160, seed=0)
    costs = example.main(tmp_path, data, n_days=9, training=training, n_scenarios=2)
    assert all(0 < cost < 100 for cost in costs.values())
    assert (tmp_path / "08_electricity.png").stat().st_size > 10_000
