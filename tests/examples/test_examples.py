"""Every example runs, says something true, and draws its picture."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import matplotlib as mpl
import pytest

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
