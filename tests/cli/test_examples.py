"""Every command's example runs as `--help` prints it, one after the other, in one folder."""

from __future__ import annotations

import re
import shlex

import pytest
from typer.testing import CliRunner

from forewise import cli
from tests.cli.conftest import run


def example(command: str) -> list[str]:
    """The words of a command's example, without the program's name."""
    shown = CliRunner().invoke(cli.app, [command, "--help"]).output
    text = " ".join(re.search(r"Example: (.*)", shown, re.DOTALL)[1].split())
    words = shlex.split(text)
    assert words.pop(0) == "forewise"
    return words


def test_explain_and_report_of_the_fixture(shops):
    why = run(*example("explain"))
    assert "decision" in why.lower()
    assert max(map(len, why.splitlines())) <= 80
    options = ["--window", "30", "--time-limit", "1"]
    shown = run("report", "policy", "sales.csv", "--future", "tomorrow.csv", *options)
    assert "report.html" in shown
    page = (shops / "report.html").read_text()
    assert "<script" not in page
    assert "http" not in page.replace("http://www.w3.org", "")
    kept = (shops / "policy" / "evaluation.json").read_bytes()
    run("report", "policy", "sales.csv", *options, "-o", "again.html")
    assert (shops / "policy" / "evaluation.json").read_bytes() == kept


@pytest.mark.slow
def test_the_examples_run_one_after_the_other(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("forewise.cli.tour._DAYS", 70)
    run(*example("demo"))
    for command in ("init", "fit", "decide", "evaluate", "explain", "report"):
        run(*example(command))
    assert {path.name for path in tmp_path.iterdir()} == {
        "sales.csv", "tomorrow.csv", "plan.toml", "policy", "orders.csv", "report.html"
    }  # fmt: skip
