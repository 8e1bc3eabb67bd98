"""The built site loads nothing from elsewhere, and every link within it leads somewhere.

`check_site.py SITE`. Zensical has checked the links of the pages; this reads the HTML, with the
reference's links in it.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Attributes through which a page loads something by itself; a link is followed by a person.
LOADS = {("script", "src"), ("link", "href"), ("img", "src"), ("iframe", "src"), ("source", "src")}


class Page(HTMLParser):
    """What a page loads, what it links to, and its anchors."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.linked: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text())

    def has(self, anchor: str) -> bool:
        """Whether a link may end there; those of the theme's own controls begin with "__"."""
        return not anchor or anchor.startswith("__") or anchor in self.anchors

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.anchors.add(value)
            elif value and (tag, name) in LOADS:
                if ("rel", "canonical") not in attrs:
                    self.loaded.append(value)
            elif value and (tag, name) == ("a", "href"):
                self.linked.append(value)


def mistakes(site: Path) -> list[str]:
    pages = {path.resolve(): Page(path) for path in sorted(site.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        name = path.relative_to(site.resolve())
        if name.name == "404.html":  # its links are those of wherever it is shown
            continue
        for address in [*page.loaded, *page.linked]:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                if address in page.loaded:
                    found.append(f"{name} loads {address}")
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            if not target.exists():
                found.append(f"{name}: {address} does not exist")
            elif target in pages and not pages[target].has(unquote(parts.fragment)):
                found.append(f"{name}: {address} has no such place")
    if not pages:
        found.append(f"{site} has no pages")
    return found


if __name__ == "__main__":
    wrong = mistakes(Path(sys.argv[1]))
    print(*wrong, sep="\n", file=sys.stderr)
    sys.exit(bool(wrong))
