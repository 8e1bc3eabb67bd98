"""The public names of forewise, once each, with their docstrings."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import forewise as fw

NAMESPACES = [name for name in fw.__all__ if isinstance(getattr(fw, name), ModuleType)]


def names_of(module: ModuleType) -> list[str]:
    """What a namespace exports; without `__all__`, the public classes that it defines."""
    own = [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == module.__name__
    ]
    return list(getattr(module, "__all__", own))


def all_names() -> Iterator[tuple[str, Any]]:
    """Every public name and what it is: `fw.solve` and `fw.solvers.solve` are two."""
    for name in fw.__all__:
        if name not in NAMESPACES:
            yield f"fw.{name}", getattr(fw, name)
    for namespace in NAMESPACES:
        module = getattr(fw, namespace)
        yield from ((f"fw.{namespace}.{name}", getattr(module, name)) for name in names_of(module))


def different_names() -> dict[str, Any]:
    """Public names without the second ones of the same thing; the shortest is kept."""
    shortest: dict[int, tuple[str, Any]] = {}
    for name, value in all_names():
        known = shortest.get(id(value))
        if known is None or name.count(".") < known[0].count("."):
            shortest[id(value)] = (name, value)
    return dict(shortest.values())


def docstring_of(name: str, value: Any) -> str:
    """The docstring; of a constant, the string that stands below it in its module."""
    if inspect.isclass(value) or callable(value):
        return inspect.getdoc(value) or ""
    last = name.rpartition(".")[2]
    for path in Path(fw.__file__).parent.rglob("*.py"):
        body = ast.parse(path.read_text()).body if f"\n{last}" in path.read_text() else []
        for before, after in pairwise(body):
            targets = before.targets if isinstance(before, ast.Assign) else []
            targets = [before.target] if isinstance(before, ast.AnnAssign) else targets
            if last not in [getattr(target, "id", None) for target in targets]:
                continue
            if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
                return inspect.cleandoc(str(after.value.value))
    return ""
