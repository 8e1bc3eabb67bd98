r"""Tables for LaTeX, with booktabs: one `table` environment per group of columns.

May import: its siblings `cells`, `formats`.
"""

from __future__ import annotations

from collections.abc import Iterator

from forewise_lab.report.cells import Table
from forewise_lab.report.formats import Words, words_of

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "_": r"\_",
    "%": r"\%",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "−": "$-$",
    "±": r"$\pm$",
    "×": r"$\times$",
    "÷": r"$\div$",
    "≈": r"$\approx$",
    "≤": r"$\leq$",
    "·": r"$\cdot$",
    "▼": r"$\blacktriangledown$",
    "▲": r"$\blacktriangle$",
    "–": "--",
    "“": "``",
    "”": "''",
}

_SIDE_BY_SIDE = 2


def as_latex(table: Table) -> str:
    r"""The table for a document that loads amssymb, booktabs, graphicx and the T1 font encoding."""
    parts = [
        r"% needs \usepackage[T1]{fontenc} and \usepackage{amssymb,booktabs,graphicx}",
        *(
            _environment(table, group, part)
            for group, places in table.groups.items()
            for part in _parts(places)
        ),
        # A paragraph of notes rather than a caption on every table.
        "\\begin{small}\n" + "\n\n".join(escape(note) for note in table.notes) + "\n\\end{small}",
    ]
    return "\n\n".join(parts) + "\n"


def escape(text: str) -> str:
    """Text that LaTeX takes literally, on one line; letters of all alphabets are left alone."""
    plain = " ".join(text.split())
    return "".join(
        _SPECIAL.get(character, character) for character in plain if character.isprintable()
    )


def _parts(places: list[int]) -> Iterator[list[int]]:
    """Columns that fit on a page side by side."""
    for start in range(0, len(places), _SIDE_BY_SIDE):
        yield places[start : start + _SIDE_BY_SIDE]


def _environment(table: Table, group: str, places: list[int]) -> str:
    lines = [
        r"\begin{table}[htbp]",
        r"  \centering\footnotesize\setlength{\tabcolsep}{3pt}",
        rf"  \caption{{{escape(table.title)}: {escape(group)}.}}",
        # Shrunk to the line where it is wider, and left alone where it is not.
        r"  \resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
        rf"  \begin{{tabular}}{{@{{}}l{'rrr@{ }l' * len(places)}@{{}}}}",
        r"    \toprule",
        "    " + " & ".join(["", *(_over_four(table.columns[p].label) for p in places)]) + r" \\",
        "    " + " ".join(rf"\cmidrule(l){{{4 * i + 2}-{4 * i + 5}}}" for i in range(len(places))),
        "    " + " & ".join([escape(table.corner), *[_HEADS] * len(places)]) + r" \\",
        r"    \midrule",
    ]
    for line in table.lines_of(places):
        label, words = words_of(table, line, places)
        cells = [escape(label), *(_parts_of(cell) for cell in words)]
        lines.append("    " + " & ".join(cells) + r" \\")
    return "\n".join([*lines, r"    \bottomrule", r"  \end{tabular}}", r"\end{table}"])


_HEADS = r"mean $\pm$ std & 95\,\% interval & paper &"


def _over_four(label: str) -> str:
    return rf"\multicolumn{{4}}{{c}}{{{escape(label)}}}"


def _parts_of(cell: Words) -> str:
    ours = escape(cell.ours)
    parts = [
        rf"\textbf{{{ours}}}" if cell.best else ours,
        # Braces keep a bracket at the start of a cell from being read as an option.
        f"{{{escape(cell.interval)}}}",
        escape(cell.paper),
        escape(cell.sign),
    ]
    return " & ".join(parts)
