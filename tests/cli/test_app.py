"""The command line as a whole: help, version, errors, exit codes."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import forewise
from forewise import cli
from forewise.exceptions import InvalidInputError

COMMANDS = ["init", "fit", "decide", "evaluate", "explain", "report", "serve", "demo"]


def test_help_is_a_map_of_the_commands():
    shown = CliRunner().invoke(cli.app, ["--help"]).output
    for command in COMMANDS:
        assert f" {command} " in shown
    assert "forewise init sales.csv" in shown


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_an_example(command):
    shown = CliRunner().invoke(cli.app, [command, "--help"]).output
    assert re.search(rf"Example: forewise {command} ", shown)


@pytest.mark.parametrize("arguments", [["--version"], ["-m", "forewise", "--version"]])
def test_the_version(arguments):
    if arguments[0] == "-m":
        shown = subprocess.run(
            [sys.executable, *arguments], capture_output=True, text=True, check=True
        ).stdout
    else:
        shown = CliRunner().invoke(cli.app, arguments).output
    assert shown.split() == ["forewise", forewise.__version__]


def failing(error):
    def fail() -> None:
        raise error

    return fail


@pytest.mark.parametrize(
    "message", ["budget must be one number", "pip install 'forewise[ray]' " + "and so on " * 30]
)
def test_expected_errors_are_one_line(monkeypatch, capsys, message):
    """Whatever the terminal's width, and with the brackets that it has."""
    monkeypatch.setattr(cli, "app", failing(InvalidInputError(message)))
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 1
    assert capsys.readouterr().err == f"error: {message}\n"


def test_who_stops_it_gets_130(monkeypatch):
    monkeypatch.setattr(cli, "app", failing(KeyboardInterrupt()))
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 130


@pytest.mark.parametrize("arguments", [["fit"], ["fit", "a.csv", "--nope"], ["nope"]])
def test_a_wrong_call_is_2(arguments):
    assert CliRunner().invoke(cli.app, arguments).exit_code == 2
