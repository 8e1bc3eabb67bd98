"""The command line, as a person would call it."""

from __future__ import annotations

import json
import sys

import pytest
from rich.console import Console
from typer.testing import CliRunner

from forewise.exceptions import InvalidInputError, StorageError
from forewise_lab import cli, demo
from forewise_lab.experiments.runner import RunSummary


def test_help_lists_the_commands():
    shown = CliRunner().invoke(cli.app, ["--help"]).output
    for command in ("bench", "run", "table", "report", "data"):
        assert command in shown


def test_the_demo_shows_three_optimal_problems():
    console = Console(record=True, width=160)
    demo.run_solving_demo(console)
    shown = console.export_text()
    assert shown.count("128 optimal") == 3
    for solver in ("WeightedQuantileSolver", "DualSearchSolver", "InteriorPointSolver"):
        assert solver in shown


def test_a_wrong_option_is_named():
    result = CliRunner().invoke(cli.app, ["bench", "solver", "--repeats", "0"])
    assert result.exit_code == 2
    assert "--repeats" in result.output


def test_run_table_and_report_go_together(tmp_path, monkeypatch):
    """A tiny grid from the command line to the page, as a newcomer would type it."""
    monkeypatch.chdir(tmp_path)
    runner = CliRunner()
    arguments = ["run", "nv1", "--methods", "saa,knn-saa", "--seeds", "2", "--quick"]
    assert runner.invoke(cli.app, arguments).exit_code == 0
    shown = runner.invoke(cli.app, ["table", "--quick"]).output
    assert "kNN-SAA" in shown
    assert "mean nothing" in shown
    latex = runner.invoke(cli.app, ["table", "1", "--form", "latex", "--quick"]).output
    assert "\\toprule" in latex
    assert runner.invoke(cli.app, ["report", "--quick"]).exit_code == 0
    page = (tmp_path / "quick" / "paper" / "report.html").read_text()
    assert "kNN-SAA" in page
    assert "<script" not in page
    assert [path.name for path in tmp_path.iterdir()] == ["quick"]
    # Without --quick nothing of it is shown.
    result = runner.invoke(cli.app, ["table", "--output", "quick/paper"])
    assert isinstance(result.exception, InvalidInputError)


def test_a_quick_run_leaves_published_results_alone(tmp_path):
    """Not even where it is asked to write among them."""
    published = tmp_path / "rows.jsonl"
    row = {"experiment": "nv1", "method": "d-ann", "seed": 0, "n_train": 1800, "m_train": 16}
    row |= {"m": 4096, "metric": "R", "value": 944.0, "config_hash": "whole"}
    published.write_text(json.dumps(row) + "\n")
    before = published.read_bytes()
    arguments = ["run", "nv1", "--methods", "saa", "--seeds", "1", "--quick"]
    result = CliRunner().invoke(cli.app, [*arguments, "--output", str(tmp_path)])
    assert isinstance(result.exception, StorageError)
    assert published.read_bytes() == before


def test_unknown_names_are_reported(tmp_path):
    result = CliRunner().invoke(cli.app, ["run", "nvqq", "--output", str(tmp_path)])
    assert isinstance(result.exception, InvalidInputError)
    assert "did you mean nvqp" in str(result.exception)
    result = CliRunner().invoke(cli.app, ["run", "nv1", "--seeds", "few"])
    assert "seeds must be a number" in str(result.exception)
    result = CliRunner().invoke(cli.app, ["run", "nv1", "--seeds", "0"])
    assert "for seed 0 alone write 0," in str(result.exception)


def test_data_are_listed(tmp_path):
    shown = CliRunner().invoke(cli.app, ["data", "list", "--data-dir", str(tmp_path)]).output
    assert "cnnpred" in shown
    assert "data fetch cnnpred" in shown


def test_one_seed_by_its_number():
    assert cli._seeds("3,") == [3]
    assert cli._seeds("0,2") == [0, 2]
    assert cli._seeds("2") == 2


def test_a_file_of_methods_is_no_experiment(tmp_path):
    result = CliRunner().invoke(cli.app, ["run", "methods", "--output", str(tmp_path / "new")])
    assert isinstance(result.exception, InvalidInputError)
    assert "nv1" in str(result.exception)
    assert "bakery-a" in str(result.exception)
    assert not (tmp_path / "new").exists()


def test_failed_fits_are_no_success(monkeypatch, tmp_path):
    failed = RunSummary(computed=1, failed={"nv1 saa, seed 0": "no luck"})
    monkeypatch.setattr(cli, "run_experiments", lambda *_, **__: failed)
    assert CliRunner().invoke(cli.app, ["run", "nv1"]).exit_code == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "nope"],
        ["run", "nv1", "--methods", "nope", "--output", "new"],
        ["run", "nv1", "--seeds", "few", "--output", "new"],
        ["table", "--output", "nowhere"],
        ["report", "--output", "nowhere"],
        ["report-real", "--output", "nowhere"],
        ["data", "fetch", "nope"],
        ["demo", "--picture", "nowhere/picture.png"],
        ["demo", "--picture", "picture.doc"],
    ],
)
def test_wrong_arguments_are_reported_and_nothing_is_made(arguments, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["forewise-lab", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 1
    reported = capsys.readouterr().err
    assert reported.startswith("error: ")
    assert reported.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("which", ["solver", "cvxpy", "smps"])
def test_a_quick_bench_leaves_published_figures_alone(which, monkeypatch):
    reported = []
    module = {"solver": cli.solver_bench, "smps": cli.smps_bench, "cvxpy": cli.cvxpy_bench}[which]
    monkeypatch.setattr(module, f"run_{which}_bench", lambda *a, **_: reported.append(a[0]))
    for options in ([], ["--quick"], ["--quick", "--output", "mine"]):
        assert CliRunner().invoke(cli.app, ["bench", which, *options]).exit_code == 0
    assert [str(folder) for folder in reported] == ["lab/results/bench", "quick/bench", "mine"]
