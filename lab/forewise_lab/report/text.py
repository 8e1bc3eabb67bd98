"""Tables for the terminal.

May import: its siblings `cells`, `formats`.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table as RichTable
from rich.text import Text

from forewise_lab.report.cells import Table
from forewise_lab.report.formats import Words, words_of
from forewise_lab.report.statistics import BETTER, WORSE

_STYLES = {BETTER: "green", WORSE: "red"}
_LONGEST_LABEL = 20
_UNBOUNDED = 10_000


def print_table(table: Table, console: Console) -> None:
    """Print a table, as many columns side by side as the terminal is wide.

    Parameters
    ----------
    table : Table
    console : rich.console.Console
    """
    console.print(Text(table.title, style="bold"), "")
    for group, places in table.groups.items():
        for part in _parts(table, group, places, console):
            console.print(_rich(table, group, part))
    for note in table.notes:
        console.print(Text(note, style="dim"), "")


def as_text(table: Table, width: int = 100) -> str:
    """The table as plain text of at most `width` characters a line."""
    console = Console(width=width, color_system=None, force_terminal=False, highlight=False)
    with console.capture() as capture:
        print_table(table, console)
    return "\n".join(line.rstrip() for line in capture.get().splitlines()) + "\n"


def _parts(table: Table, group: str, places: list[int], console: Console) -> list[list[int]]:
    """Places of columns that fit side by side; a column too wide by itself is folded by rich."""
    parts: list[list[int]] = [[]]
    for place in places:
        wider = [*parts[-1], place]
        if parts[-1] and _width(_rich(table, group, wider), console) > console.width:
            parts.append([place])
        else:
            parts[-1] = wider
    return parts


def _width(table: RichTable, console: Console) -> int:
    """How wide it would like to be; rich itself answers with at most the terminal's width."""
    return Measurement.get(console, console.options.update(max_width=_UNBOUNDED), table).maximum


def _rich(table: Table, group: str, places: Sequence[int]) -> RichTable:
    result = RichTable(
        title=escape(group),
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        padding=0,
        pad_edge=False,
    )
    result.add_column(escape(table.corner), overflow="fold", max_width=_LONGEST_LABEL)
    for place in places:
        label = escape(table.columns[place].label)
        result.add_column(label, justify="right", no_wrap=True)
        result.add_column("95 %", justify="right", no_wrap=True)
        result.add_column("paper", justify="right", no_wrap=True)
        result.add_column("", width=1, no_wrap=True)
    for line in table.lines_of(places):
        name, cells = words_of(table, line, places)
        result.add_row(Text(name), *(part for cell in cells for part in _parts_of(cell)))
    return result


def _parts_of(cell: Words) -> list[Text]:
    # A pipe or a file has no bold: the star is for them.
    ours = Text(f"*{cell.ours}", style="bold") if cell.best else Text(cell.ours)
    mark = Text(cell.sign, style=_STYLES.get(cell.verdict, ""))
    return [ours, Text(cell.interval), Text(cell.paper), mark]
