"""Imports point one way: each layer may use those before it, and none behind."""

from __future__ import annotations

import ast
import re
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import forewise
import forewise_lab

ROOT = Path(forewise.__file__).parent
# Each layer may import from the layers to its left; `docs/architecture.md` has the picture.
LAYERS = [
    "_core",
    *("exceptions", "display", "storage", "validation", "tables", "parallel", "scenarios"),
    *("problems", "solvers", "cvxpy", "predictors", "policy", "learners", "tuning", "features"),
    *("datasets", "smps", "evaluation", "figures", "plots", "explanation", "planner", "bulk"),
    *("report", "serving", "mlflow"),
    *("testing", "cli"),
]
# Neighbours in that line who must not know each other.
BELOW_FEATURES = {"scenarios", "problems", "solvers", "predictors", "policy", "learners"}
STRANGERS = {
    "predictors": {"problems", "solvers"},
    "features": BELOW_FEATURES,
    "datasets": {"solvers", "predictors", "policy", "learners"},
    "smps": BELOW_FEATURES - {"scenarios", "problems"} | {"features", "datasets"},
    "evaluation": {"predictors", "features", "datasets", "smps"},
}
MODULES = sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")


def layer_of(path: Path) -> str:
    parts = path.relative_to(ROOT).parts
    return "cvxpy" if parts[:2] == ("problems", "cvxpy") else parts[0].removesuffix(".py")


def imported_layers(path: Path) -> set[str]:
    """Layers of forewise that a module imports, wherever in the file."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
            if node.module == "forewise":
                names = [f"forewise.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        inside = [n.removeprefix("forewise.") for n in names if n.startswith("forewise.")]
        found |= {"cvxpy" if n.startswith("problems.cvxpy") else n.split(".")[0] for n in inside}
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_to_the_left(path):
    layer = layer_of(path)
    assert layer in LAYERS or layer == "__main__", f"{layer} is not a layer: add it to the picture"
    allowed = set(LAYERS[: LAYERS.index(layer) + 1]) if layer in LAYERS else set(LAYERS)
    # Public names may be imported from the package itself by what stands above all of them.
    strangers = imported_layers(path) - allowed
    if layer in ("serving", "cli"):
        strangers = {name for name in strangers if name in LAYERS}
    assert not strangers, f"{path.name} in {layer} imports {sorted(strangers)}"


@pytest.mark.parametrize("layer", STRANGERS)
def test_strangers_stay_strangers(layer):
    for path in MODULES:
        if layer_of(path) == layer:
            known = imported_layers(path) & STRANGERS[layer]
            assert not known, f"{path.name} in {layer} imports {sorted(known)}"


def test_the_documented_rooms_are_these_layers():
    text = (Path(__file__).parents[1] / "docs" / "architecture.md").read_text()
    table = text[text.index("## The rooms") : text.index("`problems/cvxpy` stands above")]
    rows = [row.split("|")[1] for row in table.splitlines() if row.startswith("| `")]
    rooms = [name.split("/")[-1] for row in rows for name in re.findall(r"`([\w/]+)`", row)]
    assert rooms == LAYERS[1:]


def test_nothing_below_the_border_knows_of_learning_or_solving():
    """Problems describe; but for those in CVXPY, they may not even mention a solver."""
    for path in (ROOT / "problems").glob("*.py"):
        assert "solvers" not in imported_layers(path)


@pytest.mark.parametrize("package", [forewise, forewise_lab], ids=["library", "laboratory"])
def test_no_module_imports_itself_through_others(package):
    """Imports within functions and for type checkers count as well."""
    root = Path(package.__file__).parent
    # The package's own `__init__` only names where things are.
    paths = [path for path in root.rglob("*.py") if path != root / "__init__.py"]
    names = {".".join(path.relative_to(root.parent).with_suffix("").parts): path for path in paths}
    names = {name.removesuffix(".__init__"): path for name, path in names.items()}
    imported = {}
    for name, path in names.items():
        nodes = list(ast.walk(ast.parse(path.read_text())))
        found = {
            alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names
        }
        for node in nodes:
            if isinstance(node, ast.ImportFrom) and node.module:
                inner = {f"{node.module}.{alias.name}" for alias in node.names}
                found |= (inner & set(names)) or {node.module}
        imported[name] = found & set(names)
    TopologicalSorter(imported).prepare()  # raises where there is a cycle, and names it


def test_the_library_does_not_know_the_laboratory():
    for path in [*MODULES, ROOT / "__init__.py"]:
        for node in ast.walk(ast.parse(path.read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            assert not [name for name in names if name.split(".")[0] == "forewise_lab"], path
