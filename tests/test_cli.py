"""The command line, as a person would call it."""

from __future__ import annotations

import pytest
from rich.console import Console
from typer.testing import CliRunner

from forewise import cli, demo
from forewise.exceptions import InvalidInputError


def test_help_lists_the_commands():
    shown = CliRunner().invoke(cli.app, ["--help"]).output
    assert "demo" in shown
    assert "bench" in shown


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
