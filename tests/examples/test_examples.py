"""Every example runs, says something true, and draws its picture: with the real data and without.

An example must beat its own baseline in the same run (sample averages, which know no context, or a
forecast of the mean), or reach a known optimum.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import matplotlib as mpl
import pytest

import forewise as fw

mpl.use("agg")
BRIEF = fw.Training(epochs=20)
FOLDER = Path(__file__).parents[2] / "examples"


def loaded(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(params=["data hidden", "data here"])
def run_with_data(request, monkeypatch, tmp_path, capsys) -> Callable[..., dict[str, float]]:
    """Runs an example with all data hidden, or with those that are here; it must say which."""
    hidden = request.param == "data hidden"
    if hidden:
        monkeypatch.setenv("FOREWISE_DATA", str(tmp_path / "no data"))

    def run(example: ModuleType, data: str, **sizes) -> dict[str, float]:
        if not hidden:
            real_data_or_skip(data)
        costs = example.main(tmp_path, **sizes)
        shown = capsys.readouterr().out
        assert ("made-up" in shown) is hidden
        assert ("To get it, get" in shown) is hidden
        return costs

    return run


def real_data_or_skip(*names: str) -> None:
    for name in names:
        try:
            fw.datasets.locate(name)
        except fw.MissingDataError as error:
            pytest.skip(f"{name} is not here: {error}")


def test_every_example_is_tested():
    tested = Path(__file__).read_text()
    for path in FOLDER.glob("*.py"):
        assert f'loaded("{path.stem}")' in tested


def test_the_truck(tmp_path):
    costs = loaded("01_newsvendor_with_a_truck").main(tmp_path, BRIEF)
    assert max(costs["forest"], costs["Bayesian network"]) < costs["sample average"]
    assert (tmp_path / "01_newsvendor_with_a_truck.png").stat().st_size > 10_000


def test_the_farmer(tmp_path):
    figures = loaded("02_farmer_with_recourse").main(tmp_path)
    assert list(figures.values()) == pytest.approx([108_390, 1_150, 7_015.56], abs=0.5)
    assert (tmp_path / "02_farmer_with_recourse.png").stat().st_size > 10_000


def test_the_day_ahead_schedule(tmp_path, run_with_data):
    example = loaded("03_day_ahead_schedule")
    costs = run_with_data(example, "vic_electricity", n_scenarios=16, training=BRIEF)
    assert costs["from 16 scenarios"] < costs["from the mean"]
    assert (tmp_path / "03_day_ahead_schedule.png").stat().st_size > 10_000


def test_the_portfolio(tmp_path):
    losses = loaded("04_portfolio_with_turnover").main(tmp_path, n_weeks=15)
    assert losses["tail"] < losses["mean and tail"] < losses["mean"]
    assert (tmp_path / "04_portfolio_with_turnover.png").stat().st_size > 10_000


def test_the_staff(tmp_path):
    costs = loaded("05_staffing_with_integers").main(tmp_path, n_days=30)
    assert costs["for 40 scenarios"] < costs["sample average"]
    assert (tmp_path / "05_staffing_with_integers.png").stat().st_size > 10_000


@pytest.mark.slow
def test_combined_learning_wins_with_few_scenarios(tmp_path):
    """A C-BNN on a CvxpyProblem with recourse and given, against its decoupled twin."""
    found = loaded("06_combined_with_few_scenarios").main(tmp_path, counts=(4,), n_seeds=5)
    gain = fw.metrics.bootstrap_difference(found[4][:, 1], found[4][:, 0])
    assert gain.upper < 0
    assert (tmp_path / "06_combined_with_few_scenarios.png").stat().st_size > 10_000


def test_the_bakery(tmp_path, run_with_data):
    costs = run_with_data(loaded("07_bakery"), "bakery", training=BRIEF, n_months=1)
    assert costs["D-BNN, all series"] < costs["SAA of the series"]
    assert (tmp_path / "07_bakery.png").stat().st_size > 10_000


def test_electricity(tmp_path, run_with_data):
    sizes = {"n_days": 14, "training": fw.Training(epochs=60), "n_scenarios": 4}
    costs = run_with_data(loaded("08_electricity"), "vic_electricity", **sizes)
    assert max(costs["kNN-SAA"], costs["D-BNN"]) < costs["SAA"]
    assert (tmp_path / "08_electricity.png").stat().st_size > 10_000


def test_made_up_demand_has_the_form_of_the_real_one():
    """Whatever is done with the one can be done with the other."""
    real_data_or_skip("vic_electricity", "bakery")
    made_up, real = loaded("08_electricity").made_up_demand(60, seed=0), fw.datasets.victoria()
    for name in ("half_hours", "demand", "temperature", "days"):
        assert list(getattr(made_up, name).columns) == list(getattr(real, name).columns)
    table = loaded("07_bakery").made_up_table(n_days=40, seed=0)
    assert set(table.columns) == set(fw.datasets.bakery().columns)
