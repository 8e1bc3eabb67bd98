"""One small table of sales, written in the ways that people and programs write tables."""

from __future__ import annotations

from pathlib import Path

HEADER = ["date", "store", "price", "promotion", "sales"]
ROWS = [
    ["2024-01-01", "Café Süd", "1.5", "yes", "12"],
    ["2024-01-02", "Café Süd", "", "no", "9.5"],
    ["2024-01-03", "North", "2.25", "no", "1200"],
]


def written(
    path: Path,
    *,
    separator: str = ",",
    decimal: str = ".",
    encoding: str = "utf-8",
    quoted: bool = False,
    line_end: str = "\n",
    header: list[str] | None = None,
    rows: list[list[str]] | None = None,
    before: str = "",
    after: str = "",
) -> Path:
    """The path, after writing a table there."""
    quote = '"{}"'.format if quoted else str
    records = [header or HEADER, *(ROWS if rows is None else rows)]
    lines = [
        separator.join(quote(cell.replace(".", decimal) if place in (2, 4) else cell)
                       for place, cell in enumerate(record))
        for record in records
    ]  # fmt: skip
    text = before + "".join(line + line_end for line in lines) + after
    path.write_bytes(text.encode(encoding))
    return path
