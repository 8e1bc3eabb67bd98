"""A folder with two months of made-up shops, and the policy that was fitted to them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

import forewise as fw
from forewise import cli, tables

DAYS = 60


def run(*arguments: object) -> str:
    """What a command says on standard output; it has to end well."""
    ended = CliRunner().invoke(cli.app, [str(part) for part in arguments], catch_exceptions=False)
    assert ended.exit_code == 0, ended.output
    return ended.stdout


@pytest.fixture(scope="session")
def fitted(tmp_path_factory) -> Path:
    """sales.csv, tomorrow.csv, plan.toml and policy/; not to be changed."""
    folder = tmp_path_factory.mktemp("shops")
    table = fw.datasets.shop_demand(DAYS + 1, sold_out=0.0)
    last = table["date"] == table["date"].max()
    tables.write(table[~last], folder / "sales.csv")
    tables.write(table[last].drop(columns=["sales", "sold_out"]), folder / "tomorrow.csv")
    run("init", folder / "sales.csv", "--yes", "-o", folder / "plan.toml")
    plan = ["--plan", folder / "plan.toml", "-o", folder / "policy", "--time-limit", "1.5"]
    run("fit", folder / "sales.csv", *plan)
    return folder


@pytest.fixture
def shops(fitted, tmp_path, monkeypatch) -> Path:
    """A copy of these files, in the current folder."""
    shutil.copytree(fitted, tmp_path / "shops")
    monkeypatch.chdir(tmp_path / "shops")
    monkeypatch.setitem(os.environ, "COLUMNS", "80")
    return tmp_path / "shops"
