"""`forewise decide` for many files of a planner, and `forewise tune`."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import forewise as fw
from forewise import cli, tables
from tests.cli.conftest import run


def test_files_of_days_are_decided_by_the_past(shops):
    tomorrow = tables.read("tomorrow.csv")
    (shops / "days").mkdir()
    for number, (_, rows) in enumerate(tomorrow.groupby("store")):
        tables.write(rows, shops / f"days/{number}.csv")
    call = ["decide", "policy", "sales.csv", "--future", "days/*.csv", "-o", "out", "--json"]
    said = json.loads(run(*call))
    parts = tomorrow["store"].nunique()
    assert (said["done"], said["rows"], said["errors"]) == (parts, len(tomorrow), {})
    assert json.loads(run(*call))["skipped"] == parts
    policy = fw.load_policy("policy")
    wanted = policy.decide(tables.read("sales.csv"), future=tomorrow)
    found = pd.concat([pq.read_table(f).to_pandas() for f in sorted((shops / "out").glob("*.pa*"))])
    keys = ["store", "product"]
    found, wanted = (f.sort_values(keys, ignore_index=True) for f in (found, wanted))
    np.testing.assert_array_equal(found["decision"], wanted["decision"])
    assert list(found.columns) == list(wanted.columns)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (["policy", "sales.csv", "--engine", "local"], "name their folder, -o out"),
        (["policy", "*.csv", "-o", "out"], "the past of the days to decide must be there"),
        (["policy", "--engine", "local", "-o", "out"], "name the files to decide"),
    ],
)
def test_what_is_missing_is_told(shops, call, message):
    ended = CliRunner().invoke(cli.app, ["decide", *call])
    assert ended.exit_code != 0
    assert message in str(ended.exception)


def test_tune_keeps_the_best_settings(shops):
    pytest.importorskip("optuna")
    options = ["--trials", "4", "--predictor", "neighbours", "-o", "tuned", "--json"]
    call = ["tune", "sales.csv", *options, "--storage", "s.journal", "--picture", "tuning.svg"]
    said = json.loads(run(*call))
    assert len(said["trials"]) == 4
    assert "4 trials" in said["verdict"]
    assert "<svg" in (shops / "tuning.svg").read_text()
    decided = json.loads(run("decide", "tuned", "sales.csv", "--future", "tomorrow.csv", "--json"))
    assert len(decided) == len(tables.read("tomorrow.csv"))
