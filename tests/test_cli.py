"""The command line, as a person would call it."""

from __future__ import annotations

import pytest
from rich.console import Console
from typer.testing import CliRunner

from forewise import cli, demo
from forewise.cli import experiments
from forewise.exceptions import InvalidInputError


def test_help_lists_the_commands():
    shown = CliRunner().invoke(cli.app, ["--help"]).output
    assert "demo" in shown
    for command in ("bench", "run", "table", "report", "data"):
        assert command in shown


def test_the_demo_shows_three_optimal_problems():
    console = Console(record=True, width=160)
    demo.run_solving_demo(console)
    shown = console.export_text()
    assert shown.count("128 optimal") == 3
    for solver in ("WeightedQuantile", "DualSearch", "InteriorPoint"):
        assert solver in shown


def test_a_wrong_option_is_named():
    result = CliRunner().invoke(cli.app, ["bench", "solver", "--repeats", "0"])
    assert result.exit_code == 2
    assert "--repeats" in result.output


def test_foreseen_errors_are_one_line(monkeypatch, capsys):
    def fail() -> None:
        raise InvalidInputError("budget must be one number")

    monkeypatch.setattr(cli, "app", fail)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 1
    assert capsys.readouterr().err == "error: budget must be one number\n"


def test_run_table_and_report_go_together(tmp_path):
    """A tiny grid from the command line to the page, as a newcomer would type it."""
    runner = CliRunner()
    folder = str(tmp_path / "rows")
    arguments = ["run", "nv1", "--methods", "saa,knn-saa", "--seeds", "2", "--quick"]
    assert runner.invoke(cli.app, [*arguments, "--output", folder]).exit_code == 0
    shown = runner.invoke(cli.app, ["table", "--output", folder]).output
    assert "kNN-SAA" in shown
    latex = runner.invoke(cli.app, ["table", "1", "--form", "latex", "--output", folder]).output
    assert "\\toprule" in latex
    assert runner.invoke(cli.app, ["report", "--output", folder]).exit_code == 0
    page = (tmp_path / "rows" / "report.html").read_text()
    assert "kNN-SAA" in page
    assert "<script" not in page


def test_unknown_names_are_told(tmp_path):
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
    assert "forewise data fetch cnnpred" in shown


def test_one_seed_by_its_number():
    assert experiments._seeds("3,") == [3]
    assert experiments._seeds("0,2") == [0, 2]
    assert experiments._seeds("2") == 2
