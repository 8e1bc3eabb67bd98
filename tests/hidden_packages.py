"""Runs a script as if some packages were not installed: `hidden_packages.py SCRIPT NAME...`.

They are not found, rather than fail when they are imported: code that asks whether a package is
there sees the same as in an environment without it.
"""

from __future__ import annotations

import runpy
import sys
from importlib.machinery import ModuleSpec
from typing import Any


class Hiding:
    """A finder of modules that does not find some packages."""

    def __init__(self, finder: Any, hidden: frozenset[str]) -> None:
        self.finder = finder
        self.hidden = hidden

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name.partition(".")[0] in self.hidden:
            return None
        return self.finder.find_spec(name, path, target)

    def __getattr__(self, name: str) -> Any:  # metadata and caches, as the finder has them
        return getattr(self.finder, name)


def main(script: str, *names: str) -> None:
    hidden = frozenset(names)
    for name in [name for name in sys.modules if name.partition(".")[0] in hidden]:
        del sys.modules[name]  # what the interpreter's start has imported
    sys.meta_path[:] = [Hiding(finder, hidden) for finder in sys.meta_path]
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main(*sys.argv[1:])
