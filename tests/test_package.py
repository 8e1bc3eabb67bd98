"""What `import forewise` gives to a program, a type checker and a reader of its metadata."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from importlib.resources import files
from pathlib import Path

import pytest

import forewise as fw

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_it_is_typed_as_its_metadata_say():
    assert "Typing :: Typed" in PROJECT["classifiers"]
    assert (files("forewise") / "py.typed").is_file()


def test_there_is_one_version():
    assert fw.__version__ == PROJECT["version"]
    assert "__version__" in dir(fw)
    cited = (ROOT / "CITATION.cff").read_text()
    assert f"\nversion: {PROJECT['version']}\n" in cited
    lab = tomllib.loads((ROOT / "lab" / "pyproject.toml").read_text())
    assert "version" not in lab["project"]
    pattern = lab["tool"]["hatch"]["version"]["pattern"]
    found = re.search(pattern, (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert found
    assert found["version"] == PROJECT["version"]
    sources = [path for path in (ROOT / "src").rglob("*.py") if "__version__ =" in path.read_text()]
    assert not sources


HEAVY = [
    "matplotlib",
    "narwhals",
    "pandas",
    "typer",
    "rich",
    "numba",
    "cvxpy",
    "scipy.stats",
    "torch",
]


EXTRAS = ["cvxpy", "matplotlib", "numba", "rich", "typer"]


def test_importing_forewise_imports_nothing_heavy():
    script = f"""
import sys
import forewise as fw
imported = [name for name in {HEAVY} if name in sys.modules]
assert not imported, imported
assert {{"metrics", "features", "datasets", "testing", "plots"}} <= set(dir(fw))
fw.AutoLearner, fw.BayesianPredictor, fw.solve  # scikit-learn itself imports pandas
imported = [name for name in {EXTRAS} if name in sys.modules]
assert not imported, imported
fw.metrics.regret, fw.testing.check_problem, fw.plots.decision_panels
"""
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr


LIGHT = [
    *("evaluation/*.py", "datasets/__init__.py", "datasets/base.py", "datasets/files.py"),
    *("datasets/synthetic.py", "testing.py"),
]


@pytest.mark.parametrize("pattern", LIGHT)
def test_modules_without_tables_import_no_pandas(pattern):
    """Nor anything else that only some functions need, unless one of these is called."""
    paths = list(Path(fw.__file__).parent.glob(pattern))
    assert paths
    for path in paths:
        nodes = ast.parse(path.read_text()).body
        imported = {
            alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names
        }
        imported |= {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
        assert not imported & {"matplotlib", "pandas", "rich", "scipy.stats", "cvxpy"}, path.name


def test_names_that_do_not_exist_are_reported():
    for owner in (fw, fw.datasets):
        with pytest.raises(AttributeError, match="nothing"):
            owner.nothing  # noqa: B018


def test_all_that_is_exported_exists():
    assert not [name for name in fw.__all__ if not hasattr(fw, name)]
