"""Tables as text, Markdown and LaTeX, and how numbers are written everywhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pandas as pd
from rich.console import Console
from rich.text import Text

from forewise_lab.report.statistics import BETTER, SAME, WORSE, PaperValue, Summary
from forewise_lab.report.tables import Cell, Lines, Table, with_something

ABSENT = "–"
#: Not by colour alone: the sign says which way.
SIGNS = {BETTER: "▼", WORSE: "▲", SAME: "≈"}
_SIDE_BY_SIDE = 2  # columns of a LaTeX table
_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        **{character: rf"\{character}" for character in "{}$&#_%"},
        **{"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "|": r"\textbar{}"},
        **{"<": r"\textless{}", ">": r"\textgreater{}", '"': r"\textquotedbl{}"},
        **{"−": "$-$", "±": r"$\pm$", "×": r"$\times$", "÷": r"$\div$", "≈": r"$\approx$"},
        **{"≤": r"$\leq$", "·": r"$\cdot$", "▼": r"$\blacktriangledown$"},
        **{"▲": r"$\blacktriangle$", "–": "--", "“": "``", "”": "''"},
    }
)
_MARKDOWN = str.maketrans({character: f"\\{character}" for character in "\\`*_{}[]<>|#~$"})


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


def frame(lines: Lines, bold: str, escape: Callable[[str], str] = str) -> pd.DataFrame:
    """Lines as text: four columns for each of theirs; `bold` is the format of the best.

    What is remarked of all cells of a line stands in its label.
    """
    rows = {}
    for line, cells in lines.items():
        asides = {cell.aside for cell in cells if cell.is_shown}
        same = len(asides) == 1
        label = f"{line} · {asides.pop()}" if same and any(asides) else line
        texts: list[str] = []
        for cell in cells:
            if not cell.is_shown:
                texts += [""] * 4
                continue
            ours = escape(mean_std(cell.ours, cell.decimals))
            aside = f"({cell.aside})" if cell.aside and not same else ""
            between = f"{interval(cell.ours, cell.decimals)} {aside}".strip()
            others = (escape(part) for part in (between, paper_text(cell.paper), sign(cell)))
            texts += [bold.format(ours) if cell.best else ours, *others]
        rows[escape(label)] = texts
    labels = [escape(cell.label) for cell in next(iter(lines.values()))]
    parts = [escape(part) for part in ("mean ± std", "95 % interval", "paper", "")]
    columns = pd.MultiIndex.from_product([labels, parts])
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns)


def markdown_table(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A table in GitHub's Markdown; the first column to the left, the others to the right."""
    rows = [heads, [":--", *["--:"] * (len(heads) - 1)], *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def as_markdown(table: Table) -> str:
    """The table in GitHub's Markdown: one per group of columns."""
    parts = [f"## {_markdown(table.title)}"]
    for group, lines in table.groups.items():
        shown = frame(lines, "**{}**")
        heads = [label if part.startswith("mean") else part for label, part in shown.columns]
        rows = [[_markdown(str(line)), *texts] for line, *texts in shown.itertuples(name=None)]
        heads = [_markdown(table.corner), *map(_markdown, heads)]
        parts += [f"### {_markdown(group)}", markdown_table(heads, rows)]
    parts += ["\n".join(f"- {_markdown(note)}" for note in table.notes)]
    return "\n\n".join(parts) + "\n"


def as_latex(table: Table) -> str:
    """The table for a document that loads amssymb, booktabs, graphicx and the T1 encoding."""
    parts = [r"% needs \usepackage[T1]{fontenc} and \usepackage{amssymb,booktabs,graphicx}"]
    for group, lines in table.groups.items():
        for start in range(0, len(next(iter(lines.values()))), _SIDE_BY_SIDE):
            some = {line: own[start : start + _SIDE_BY_SIDE] for line, own in lines.items()}
            parts.append(_latex_table(table, group, with_something(some)))
    # A paragraph of notes rather than a caption on every table.
    notes = "\n\n".join(_latex(note) for note in table.notes)
    return "\n\n".join([*parts, f"\\begin{{small}}\n{notes}\n\\end{{small}}"]) + "\n"


def print_table(table: Table, console: Console) -> None:
    """Print a table, as many columns side by side as the terminal is wide."""
    console.print(Text(table.title, style="bold"), "")
    for group, lines in table.groups.items():
        # A pipe or a file has no bold: the best have a star.
        shown = frame(lines, "*{}").rename_axis(table.corner)
        parts = [shown[[label]] for label in shown.columns.unique(level=0)]
        whole = shown.to_string()
        is_narrow = len(whole.partition("\n")[0]) < console.width
        console.print(Text(group, style="bold"))
        for text in [whole] if is_narrow else [part.to_string() for part in parts]:
            console.print(Text(text), "", soft_wrap=True)
    for note in table.notes:
        console.print(Text(note, style="dim"), "")


def _markdown(text: str) -> str:
    """Text that Markdown takes literally, on one line."""
    return " ".join(text.translate(_MARKDOWN).split())


def _latex(text: str) -> str:
    """Text that LaTeX takes literally, on one line; letters of all alphabets are left alone."""
    return "".join(filter(str.isprintable, " ".join(text.split()))).translate(_LATEX)


def _latex_table(table: Table, group: str, lines: Lines) -> str:
    shown = frame(lines, r"\textbf{{{}}}", _latex)
    between = shown.columns.get_level_values(1).str.startswith("95")
    # Braces keep a bracket at the start of a cell from being read as an option.
    shown.loc[:, between] = "{" + shown.loc[:, between] + "}"
    shown.insert(0, ("", _latex(table.corner)), shown.index)
    form = f"@{{}}l{'rrr@{ }l' * (len(shown.columns) // 4)}@{{}}"
    body = shown.to_latex(index=False, column_format=form, multicolumn_format="c")
    # Shrunk to the line where it is wider, and left alone where it is not.
    return rf"""\begin{{table}}[htbp]
\centering\footnotesize\setlength{{\tabcolsep}}{{3pt}}
\caption{{{_latex(table.title)}: {_latex(group)}.}}
\resizebox{{\ifdim\width>\linewidth\linewidth\else\width\fi}}{{!}}{{%
{body.strip()}}}
\end{{table}}"""
