"""The documentation's pages and their blocks of code."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))
#: Stands above a block that only runs elsewhere, with the reason.
ELSEWHERE = re.compile(r"<!-- not run: (.+?) -->\n$")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """One block of code."""

    page: str
    line: int
    language: str
    source: str
    elsewhere: str | None


def blocks(page: str) -> list[Block]:
    """The blocks of a page, in order."""
    text = (DOCS / page).read_text()
    found = []
    for match in FENCE.finditer(text):
        reason = ELSEWHERE.search(text[: match.start()])
        line = text.count("\n", 0, match.start()) + 2
        found.append(Block(page, line, match[1], match[2], reason and reason[1]))
    return found


def in_navigation(entry: Any) -> Iterator[str]:
    """The pages of zensical.toml's navigation."""
    if isinstance(entry, str):
        yield entry
    for inner in entry.values() if isinstance(entry, dict) else entry:
        if inner is not entry and not isinstance(entry, str):
            yield from in_navigation(inner)


NAVIGATION = list(
    in_navigation(tomllib.loads((ROOT / "zensical.toml").read_text())["project"]["nav"])
)
