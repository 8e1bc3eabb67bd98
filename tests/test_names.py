"""Every name of forewise that the documentation, examples and sources mention exists."""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import forewise as fw

ROOT = Path(__file__).parents[1]
TEXTS = [
    *ROOT.glob("*.md"),
    *ROOT.glob("docs/**/*.md"),
    *ROOT.glob("examples/*.py"),
    *ROOT.glob("src/forewise/**/*.py"),  # docstrings, comments and messages
]
DOTTED = r"(?:\.[A-Za-z_]\w*)+"


def found(owner: Any, name: str) -> Any:
    """What `owner.name` is; a field of a dataclass is not in its class, but exists."""
    if is_dataclass(owner) and name in {field.name for field in fields(owner)}:
        return None
    return getattr(owner, name)


def exists(dotted: str) -> bool:
    """Whether `fw.a.b` can be written after `import forewise as fw`."""
    value: Any = fw
    try:
        for name in dotted.split("."):
            value = found(value, name)
    except AttributeError:
        return False
    return True


def is_module(dotted: str) -> bool:
    """Whether `forewise.a.b` is a module, or a name in one, that can be imported."""
    module, _, name = dotted.rpartition(".")
    try:
        if find_spec(f"forewise.{dotted}") is not None:
            return True
    except ModuleNotFoundError:  # what should be a package is none
        pass
    return bool(module) and is_module(module) and hasattr(import_module(f"forewise.{module}"), name)


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_name_exists(path):
    text = path.read_text()
    mentioned = {name[1:] for name in re.findall(rf"\bfw({DOTTED})", text)}
    assert not {name for name in mentioned if not exists(name)}
    imported = {name[1:] for name in re.findall(rf"\bforewise({DOTTED})", text)}
    assert not {name for name in imported if not exists(name) and not is_module(name)}


def test_every_class_that_the_guides_name_is_public():
    """At the door, or in one of its namespaces."""
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    inside = {"architecture.md", "paper.md", "does_it_pay.md"}  # for those who know the insides
    text = "".join(page.read_text() for page in pages if page.name not in inside)
    named = set(re.findall(r"`([A-Z][a-z]\w+)", text)) - {"Dockerfile", "Retry"}
    assert len(named) > 15
    namespaces = [
        name for name in fw.__all__ if name.islower() and isinstance(getattr(fw, name), ModuleType)
    ]
    homes = ["", *(f"{name}." for name in namespaces)]
    assert not {name for name in named if not any(exists(home + name) for home in homes)}


def test_names_that_do_not_exist_are_found():
    assert exists("datasets.nv1")
    assert exists("Solution.objective")
    assert not exists("MisingDataError")
    assert not exists("datasets.nv3")
    assert is_module("evaluation.costs")
    assert is_module("solvers.auto.solve")
    assert not is_module("evaluation.nothing")
    assert not is_module("nothing.at.all")
