"""Tables for Markdown: one per group of columns.

May import: its siblings `cells`, `formats`.
"""

from __future__ import annotations

from forewise_lab.report.cells import Table
from forewise_lab.report.formats import Words, words_of


def as_markdown(table: Table) -> str:
    """The table in GitHub's Markdown."""
    parts = [f"## {escape(table.title)}"]
    for group, places in table.groups.items():
        heads = [escape(table.corner)]
        for place in places:
            heads += [escape(table.columns[place].label), "95 % interval", "paper", ""]
        lines = [heads, [":--", *["--:"] * (len(heads) - 1)]]
        for line in table.lines_of(places):
            label, words = words_of(table, line, places)
            cells = (part for cell in words for part in _parts_of(cell))
            lines.append([escape(label), *cells])
        rows = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        parts += [f"### {escape(group)}", rows]
    parts += ["\n".join(f"- {escape(note)}" for note in table.notes)]
    return "\n\n".join(parts) + "\n"


def escape(text: str) -> str:
    """Text that Markdown takes literally, on one line."""
    for character in "\\`*_{}[]<>|#~$":
        text = text.replace(character, f"\\{character}")
    return " ".join(text.split())


def _parts_of(cell: Words) -> list[str]:
    return [f"**{cell.ours}**" if cell.best else cell.ours, cell.interval, cell.paper, cell.sign]
