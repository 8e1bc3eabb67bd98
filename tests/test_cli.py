"""The command line, as a person would call it."""

from __future__ import annotations

import subprocess
import sys

import pytest
from rich.console import Console
from typer.testing import CliRunner

import forewise
from forewise import cli, demo
from forewise.exceptions import InvalidInputError


def test_help_lists_the_commands():
    shown = CliRunner().invoke(cli.app, ["--help"]).output
    assert "demo" in shown


def test_the_demo_shows_three_optimal_problems():
    console = Console(record=True, width=160)
    demo.run_solving_demo(console)
    shown = console.export_text()
    assert shown.count("128 optimal") == 3
    for solver in ("WeightedQuantileSolver", "DualSearchSolver", "InteriorPointSolver"):
        assert solver in shown


def test_foreseen_errors_are_one_line(monkeypatch, capsys):
    def fail() -> None:
        raise InvalidInputError("budget must be one number")

    monkeypatch.setattr(cli, "app", fail)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 1
    assert capsys.readouterr().err == "error: budget must be one number\n"


@pytest.mark.parametrize("arguments", [["--version"], ["-m", "forewise", "--version"]])
def test_the_version(arguments):
    if arguments[0] == "-m":
        told = subprocess.run(
            [sys.executable, *arguments], capture_output=True, text=True, check=True
        ).stdout
    else:
        told = CliRunner().invoke(cli.app, arguments).output
    assert told.split() == ["forewise", forewise.__version__]


def test_brackets_of_a_message_are_kept(monkeypatch, capsys):
    """And a long message is one line, whatever the terminal's width."""
    message = "Ray is not installed: pip install 'forewise[ray]' " + "and so on " * 30

    def fail() -> None:
        raise InvalidInputError(message)

    monkeypatch.setattr(cli, "app", fail)
    with pytest.raises(SystemExit):
        cli.main()
    assert capsys.readouterr().err == f"error: {message}\n"


def test_wrong_arguments_are_told_and_nothing_is_made(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["forewise", "demo", "--picture", "nowhere/picture.png"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 1
    told = capsys.readouterr().err
    assert told.startswith("error: ")
    assert told.count("\n") == 1
    assert not list(tmp_path.iterdir())
