"""init, fit, decide, evaluate, explain and report on files, as a person would call them."""

from __future__ import annotations

import json
import sys

import numpy as np
import pandas as pd
import pytest

import forewise as fw
from forewise import cli, tables
from tests.cli.conftest import run


def refused(monkeypatch, capsys, *arguments):
    """The one line that a command ends with, and nothing else."""
    monkeypatch.setattr(sys, "argv", ["forewise", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    reported = capsys.readouterr().err
    assert ended.value.code == 1, reported
    assert "Traceback" not in reported
    lines = [line for line in reported.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1
    return lines[0]


def files(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_a_plan_of_questions(shops, monkeypatch):
    """What is typed is what the plan says; Enter takes the proposal."""
    monkeypatch.setattr("forewise.cli.start._watched", lambda: True)
    from typer.testing import CliRunner

    answers = "\nno such column\nstore, product\nprice\n5\n0,5\n0.5\n7\n"
    ended = CliRunner().invoke(
        cli.app, ["init", "sales.csv", "-o", "asked.toml"], input=answers, catch_exceptions=False
    )
    assert ended.exit_code == 0, ended.output
    assert "there is no column 'no such column'" in ended.output
    from forewise.cli.plan import read_plan

    plan = read_plan("asked.toml")
    assert plan.columns["outcome"] == "sales"
    assert plan.columns["known"] == ["price"]
    assert plan.problem == {"template": "newsvendor", "shortage": 5.0, "excess": 0.5}
    assert plan.planning["horizon"] == 7


def test_init_does_not_write_over_a_plan(shops, monkeypatch, capsys):
    before = (shops / "plan.toml").read_text()
    assert "--force" in refused(monkeypatch, capsys, "init", "sales.csv", "--yes")
    assert (shops / "plan.toml").read_text() == before
    run("init", "sales.csv", "--yes", "--force")


def test_a_policy_says_what_it_was_made_of(shops):
    shown = run("fit", "sales.csv", "--time-limit", "1", "--json", "-o", "again")
    reported = json.loads(shown)
    assert reported["rows"] == 360
    assert {row["column"] for row in reported["columns"]} >= {"sales", "date", "store", "price"}
    assert reported["leaderboard"][0]["cost"] > 0
    assert reported["verdict"]
    assert (shops / "again" / "plan.toml").read_text() == (shops / "plan.toml").read_text()


def test_decisions_of_the_files_are_those_of_the_library(shops):
    shown = run("decide", "policy", "sales.csv", "--future", "tomorrow.csv", "-o", "orders.csv")
    assert "6 rows are in orders.csv" in shown
    orders = pd.read_csv("orders.csv", keep_default_na=False)
    own = fw.datasets.shop_demand(61, sold_out=0.0)
    past, future = own[own["date"] < own["date"].max()], own[own["date"] == own["date"].max()]
    future = future.drop(columns=["sales", "sold_out"])
    expected = fw.load_policy("policy").decide(past, future=future)
    np.testing.assert_allclose(orders["decision"], expected["decision"], rtol=1e-6)
    np.testing.assert_allclose(orders["cost_upper"], expected["cost_upper"], rtol=1e-6)
    assert orders["store"].tolist() == future["store"].tolist()
    rows = json.loads(run("decide", "policy", "sales.csv", "--future", "tomorrow.csv", "--json"))
    assert [row["decision"] for row in rows] == pytest.approx(expected["decision"].tolist())


def test_open_rows_of_the_table_are_decided_without_a_future(shops):
    whole = pd.concat([tables.read("sales.csv"), tables.read("tomorrow.csv")])
    tables.write(whole, "whole.parquet")
    first = run("decide", "policy", "whole.parquet", "--json")
    second = run("decide", "policy", "sales.csv", "--future", "tomorrow.csv", "--json")
    keys = ("store", "product", "decision")
    assert [[row[k] for k in keys] for row in json.loads(first)] == [
        [row[k] for k in keys] for row in json.loads(second)
    ]


def test_evaluate_answers_first(shops):
    shown = run("evaluate", "policy", "sales.csv", "--time-limit", "1", "--window", "15")
    assert "SAA" in shown
    assert "decisions the planner costs" in shown
    assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        (["fit", "none.csv"], "none.csv must be a file"),
        (["fit", "sales.csv", "--plan", "none.toml"], "forewise init"),
        (["fit", "sales.csv", "--problem", "nothing"], "package.module:name"),
        (["decide", "none", "sales.csv", "--future", "tomorrow.csv"], "none"),
        (["decide", "policy", "sales.csv", "--future", "none.csv"], "none.csv must be a file"),
        (["decide", "policy", "--future", "tomorrow.csv"], "name the file of the table"),
        (["decide", "policy", "sales.csv"], "sales.csv: there is nothing to decide"),
        (["decide", "policy", "tomorrow.csv", "--future", "sales.csv"], "tomorrow.csv: table must"),
        (["decide", "policy", "sales.csv", "--future", "tomorrow.csv", "-o", "o.doc"], "end in"),
        (["init", "sales.csv", "--template", "newsboy"], "--template must be newsvendor"),
        (["evaluate", "policy", "none.csv"], "none.csv must be a file"),
        (["explain", "policy", "sales.csv", "--future", "tomorrow.csv", "--row", "9"], "--row"),
    ],
)
def test_what_cannot_be_is_one_line_and_nothing_is_made(
    shops, monkeypatch, capsys, arguments, reported
):
    before = files(shops)
    assert reported in refused(monkeypatch, capsys, *arguments)
    assert files(shops) == before


def test_a_policy_of_contexts_is_no_planner(shops, monkeypatch, capsys):
    data = fw.datasets.nv1(60)
    learner = fw.DecoupledLearner(fw.datasets.nv_problem(), fw.EmpiricalPredictor())
    learner.fit(data.X, data.y).policy_.save("contexts")
    reported = refused(monkeypatch, capsys, "decide", "contexts", "sales.csv")
    assert "must hold a policy of `forewise fit`" in reported
