"""README's snippets run in an environment that has what README's install line brings, no more.

That environment is imitated: pyproject and the metadata of what is installed say which packages
the line brings, and all others are hidden from the process that runs a snippet.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
SNIPPETS = re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
OURS = "forewise"


def extras_of_the_install_line() -> set[str]:
    lines = re.findall(r'pip install [^`\n]*-e "?\.(?:\[([\w,]*)\])?', README)
    assert len(lines) == 1, "README must give one line that installs the library"
    return set(filter(None, lines[0].split(",")))


def declared(name: str, extra: str) -> Iterable[Requirement]:
    """Direct requirements of a distribution, with one of its extras or with none ("")."""
    if name == OURS:  # as pyproject has it now, which may be newer than what was installed
        lists = {"": PROJECT["dependencies"], **PROJECT["optional-dependencies"]}
        return map(Requirement, lists[extra])
    try:
        parsed = map(Requirement, requires(name) or [])
    except PackageNotFoundError:  # wanted on another build or platform
        return []
    return [r for r in parsed if r.marker is None or r.marker.evaluate({"extra": extra})]


def distributions_brought_by(extras: Iterable[str]) -> set[str]:
    """Names of all distributions that an install of forewise with some extras brings."""
    waiting = [(OURS, extra) for extra in ("", *extras)]
    seen = set(waiting)
    while waiting:
        for requirement in declared(*waiting.pop()):
            for extra in ("", *requirement.extras):
                wanted = (canonicalize_name(requirement.name), extra)
                if wanted not in seen:
                    seen.add(wanted)
                    waiting.append(wanted)
    return {name for name, _ in seen}


def packages_without(distributions: set[str]) -> list[str]:
    """Importable packages that are installed, but by none of these distributions."""
    owners = packages_distributions().items()
    return sorted(
        package
        for package, names in owners
        if not any(canonicalize_name(name) in distributions for name in names)
    )


def run_with(extras: Iterable[str], snippet: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a snippet in its own process, which finds only what an install brings."""
    script = folder / "snippet.py"
    script.write_text(snippet)
    hidden = packages_without(distributions_brought_by(extras))
    command = [sys.executable, str(ROOT / "tests" / "hidden_packages.py"), str(script), *hidden]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def imported_by(source: str) -> set[str]:
    """Top-level packages that a source imports."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return {name.partition(".")[0] for name in names}


@pytest.mark.parametrize("number", [0, *range(2, len(SNIPPETS))])  # the second one below
def test_a_snippet_runs_with_the_install_line(number, tmp_path):
    """And without the extras, unless it imports what they bring."""
    extras = extras_of_the_install_line()
    needs_cvxpy = "cvxpy" in imported_by(SNIPPETS[number])
    ended = run_with(extras if needs_cvxpy else [], SNIPPETS[number], tmp_path)
    assert ended.returncode == 0, ended.stderr


def test_the_snippet_of_contexts_judges_on_new_rows_and_beats_its_baseline(tmp_path):
    # Nothing is decided, or scored, with what was learned from.
    calls = re.findall(r"\.(?:decide|score|cost)\(([^\n]*)", SNIPPETS[1])
    assert calls
    assert all("_new" in call for call in calls)
    ended = run_with([], SNIPPETS[1], tmp_path)
    assert ended.returncode == 0, ended.stderr
    costs = {
        name: float(cost) for name, cost in re.findall(r"(\w+): mean cost (\d+)", ended.stdout)
    }
    baseline = costs.pop("EmpiricalPredictor")
    assert costs
    assert max(costs.values()) < 0.6 * baseline  # "about half", says README


def test_what_the_install_line_does_not_bring_is_hidden(tmp_path):
    """The environment of these tests has more than the line brings, and the snippets not."""
    for name in ("cvxpy", "pytest"):
        ended = run_with([], f"import {name}", tmp_path)
        assert f"No module named '{name}'" in ended.stderr
    assert run_with(["cvxpy"], "import cvxpy", tmp_path).returncode == 0
    script = "import forewise as fw\nfw.CvxpyProblem(None, [], decision=None, outcome=None)"
    assert "forewise[cvxpy]" in run_with([], script, tmp_path).stderr


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.stem)
def test_an_example_imports_what_the_install_line_brings(path):
    brought = distributions_brought_by(extras_of_the_install_line())
    assert not imported_by(path.read_text()) & set(packages_without(brought))
