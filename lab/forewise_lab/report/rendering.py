"""Tables as text, Markdown and LaTeX, and how numbers are written everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table as RichTable
from rich.text import Text

from forewise_lab.report.statistics import BETTER, SAME, WORSE, PaperValue, Summary
from forewise_lab.report.tables import Cell, Table

ABSENT = "–"
#: Not by colour alone: the sign says which way.
SIGNS = {BETTER: "▼", WORSE: "▲", SAME: "≈"}
_COLOURS = {BETTER: "green", WORSE: "red"}
_LONGEST_LABEL = 20
_UNBOUNDED = 10_000
_SIDE_BY_SIDE = 2  # columns of a LaTeX table
_LATEX = {
    "\\": r"\textbackslash{}",
    **{character: rf"\{character}" for character in "{}$&#_%"},
    **{"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "|": r"\textbar{}"},
    **{"<": r"\textless{}", ">": r"\textgreater{}", '"': r"\textquotedbl{}"},
    **{"−": "$-$", "±": r"$\pm$", "×": r"$\times$", "÷": r"$\div$", "≈": r"$\approx$"},
    **{"≤": r"$\leq$", "·": r"$\cdot$", "▼": r"$\blacktriangledown$", "▲": r"$\blacktriangle$"},
    **{"–": "--", "“": "``", "”": "''"},
}


@dataclass(frozen=True)
class Words:
    """A cell as text; empty where no value is planned."""

    ours: str = ""
    interval: str = ""
    paper: str = ""
    sign: str = ""
    verdict: str = ""
    best: bool = False

    def parts(self, bold: str) -> list[str]:
        """The four texts; the best is put into the format `bold`."""
        ours = bold.format(self.ours) if self.best else self.ours
        return [ours, self.interval, self.paper, self.sign]


def number(value: float, decimals: int) -> str:
    """With a true minus sign, and no minus before zero."""
    text = f"{value:.{decimals}f}"
    if float(text) == 0:
        text = text.removeprefix("-")
    return text.replace("-", "−")


def mean_std(ours: Summary | None, decimals: int) -> str:
    """Mean ± standard deviation; a mean alone of one seed."""
    if ours is None:
        return ABSENT
    mean = number(ours.mean, decimals)
    return f"{mean} ± {number(ours.std, decimals)}" if ours.has_std else mean


def interval(ours: Summary | None, decimals: int) -> str:
    """Of the mean; empty where there is none."""
    if ours is None or not ours.has_interval:
        return ""
    return f"[{number(ours.lower, decimals)}, {number(ours.upper, decimals)}]"


def paper_text(value: PaperValue | None) -> str:
    """As in the paper: mean, and standard deviation in brackets where it is given."""
    if value is None:
        return ""
    return f"{value.mean:g}" if value.std is None else f"{value.mean:g} ({value.std:g})"


def sign(cell: Cell) -> str:
    """How we compare with the paper; empty where it was not tested."""
    return "" if cell.comparison is None else SIGNS[cell.comparison.verdict]


def seconds(value: float) -> str:
    """A time in the unit that suits it."""
    if value < 1:
        return f"{value * 1000:.0f} ms" if value >= 0.001 else "< 1 ms"
    if value < 120:
        return f"{value:.3g} s"
    return f"{value / 60:.3g} min" if value < 7200 else f"{value / 3600:.3g} h"


def words_of(table: Table, line: int, places: Sequence[int]) -> tuple[str, list[Words]]:
    """A line as text: its label, and its cells in some columns."""
    label, has_asides = table.label(line, places)
    words = []
    for place in places:
        cell, decimals = table.cells[line][place], table.columns[place].decimals
        if cell.ours is None and not cell.planned:
            words.append(Words())
            continue
        aside = f"({cell.aside})" if cell.aside and not has_asides else ""
        words.append(
            Words(
                ours=mean_std(cell.ours, decimals),
                interval=f"{interval(cell.ours, decimals)} {aside}".strip(),
                paper=paper_text(cell.paper),
                sign=sign(cell),
                verdict="" if cell.comparison is None else cell.comparison.verdict,
                best=cell.best,
            )
        )
    return label, words


def markdown_table(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A table in GitHub's Markdown; the first column to the left, the others to the right."""
    rows = [heads, [":--", *["--:"] * (len(heads) - 1)], *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def as_markdown(table: Table) -> str:
    """The table in GitHub's Markdown: one per group of columns."""
    parts = [f"## {_markdown(table.title)}"]
    for group, places in table.groups.items():
        heads = [_markdown(table.corner)]
        for place in places:
            heads += [_markdown(table.columns[place].label), "95 % interval", "paper", ""]
        lines = []
        for line in table.lines_of(places):
            label, words = words_of(table, line, places)
            cells = (part for cell in words for part in cell.parts("**{}**"))
            lines.append([_markdown(label), *cells])
        parts += [f"### {_markdown(group)}", markdown_table(heads, lines)]
    parts += ["\n".join(f"- {_markdown(note)}" for note in table.notes)]
    return "\n\n".join(parts) + "\n"


def as_latex(table: Table) -> str:
    """The table for a document that loads amssymb, booktabs, graphicx and the T1 encoding."""
    parts = [r"% needs \usepackage[T1]{fontenc} and \usepackage{amssymb,booktabs,graphicx}"]
    for group, places in table.groups.items():
        starts = range(0, len(places), _SIDE_BY_SIDE)
        parts += [_latex_table(table, group, places[i : i + _SIDE_BY_SIDE]) for i in starts]
    # A paragraph of notes rather than a caption on every table.
    notes = "\n\n".join(_latex(note) for note in table.notes)
    return "\n\n".join([*parts, f"\\begin{{small}}\n{notes}\n\\end{{small}}"]) + "\n"


def print_table(table: Table, console: Console) -> None:
    """Print a table, as many columns side by side as the terminal is wide."""
    console.print(Text(table.title, style="bold"), "")
    for group, places in table.groups.items():
        parts: list[list[int]] = [[]]
        for place in places:
            wider = [*parts[-1], place]
            if parts[-1] and _width(_rich(table, group, wider), console) > console.width:
                parts.append([place])
            else:
                parts[-1] = wider
        for part in parts:
            console.print(_rich(table, group, part))
    for note in table.notes:
        console.print(Text(note, style="dim"), "")


def _markdown(text: str) -> str:
    """Text that Markdown takes literally, on one line."""
    for character in "\\`*_{}[]<>|#~$":
        text = text.replace(character, f"\\{character}")
    return " ".join(text.split())


def _latex(text: str) -> str:
    """Text that LaTeX takes literally, on one line; letters of all alphabets are left alone."""
    plain = " ".join(text.split())
    return "".join(_LATEX.get(letter, letter) for letter in plain if letter.isprintable())


def _latex_table(table: Table, group: str, places: Sequence[int]) -> str:
    heads = [("", _latex(table.corner))]
    for place in places:
        label = _latex(table.columns[place].label)
        heads += [(label, r"mean $\pm$ std"), (label, r"95\,\% interval"), (label, "paper")]
        heads += [(label, "")]
    lines = []
    for line in table.lines_of(places):
        label, words = words_of(table, line, places)
        cells = [_latex(label)]
        for cell in words:
            ours, between, theirs, mark = (_latex(part) for part in cell.parts("{}"))
            # Braces keep a bracket at the start of a cell from being read as an option.
            cells += [rf"\textbf{{{ours}}}" if cell.best else ours, f"{{{between}}}", theirs, mark]
        lines.append(cells)
    body = pd.DataFrame(lines, columns=pd.MultiIndex.from_tuples(heads)).to_latex(
        index=False, column_format=f"@{{}}l{'rrr@{ }l' * len(places)}@{{}}", multicolumn_format="c"
    )
    # Shrunk to the line where it is wider, and left alone where it is not.
    return rf"""\begin{{table}}[htbp]
\centering\footnotesize\setlength{{\tabcolsep}}{{3pt}}
\caption{{{_latex(table.title)}: {_latex(group)}.}}
\resizebox{{\ifdim\width>\linewidth\linewidth\else\width\fi}}{{!}}{{%
{body.strip()}}}
\end{{table}}"""


def _width(table: RichTable, console: Console) -> int:
    """How wide it would be; rich itself answers with at most the terminal's width."""
    return Measurement.get(console, console.options.update(max_width=_UNBOUNDED), table).maximum


def _rich(table: Table, group: str, places: Sequence[int]) -> RichTable:
    look = {"title_justify": "left", "title_style": "bold", "padding": 0, "pad_edge": False}
    result = RichTable(title=escape(group), box=box.SIMPLE_HEAD, **look)  # type: ignore[arg-type]
    result.add_column(escape(table.corner), overflow="fold", max_width=_LONGEST_LABEL)
    for place in places:
        for label in (escape(table.columns[place].label), "95 %", "paper"):
            result.add_column(label, justify="right", no_wrap=True)
        result.add_column("", width=1, no_wrap=True)
    for line in table.lines_of(places):
        name, cells = words_of(table, line, places)
        texts: list[Text] = [Text(name)]
        for cell in cells:
            # A pipe or a file has no bold: the star is for them.
            ours, *others, mark = (Text(part) for part in cell.parts("*{}"))
            ours.stylize("bold" if cell.best else "")
            mark.stylize(_COLOURS.get(cell.verdict, ""))
            texts += [ours, *others, mark]
        result.add_row(*texts)
    return result
