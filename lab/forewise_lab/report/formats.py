"""How numbers are written: one way for the terminal, Markdown and HTML.

May import: its siblings `cells`, `statistics`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from forewise_lab.report.cells import Cell, Table
from forewise_lab.report.statistics import BETTER, SAME, WORSE, PaperValue, Summary

ABSENT = "–"
#: Not by colour alone: the sign says which way.
SIGNS = {BETTER: "▼", WORSE: "▲", SAME: "≈"}


@dataclass(frozen=True)
class Words:
    """A cell in words; all of them empty where nobody expects a figure."""

    ours: str = ""
    interval: str = ""
    paper: str = ""
    sign: str = ""
    verdict: str = ""
    best: bool = False


def words_of(table: Table, line: int, places: Sequence[int]) -> tuple[str, list[Words]]:
    """A line in words: its label, and its cells in some columns."""
    label, says_it_all = table.label(line, places)
    words = []
    for place in places:
        cell, decimals = table.cells[line][place], table.columns[place].decimals
        if cell.ours is None and not cell.planned:
            words.append(Words())
            continue
        special = f"({cell.aside})" if cell.aside and not says_it_all else ""
        words.append(
            Words(
                ours=mean_std(cell.ours, decimals),
                interval=f"{interval(cell.ours, decimals)} {special}".strip(),
                paper=paper_text(cell.paper),
                sign=sign(cell),
                verdict="" if cell.comparison is None else cell.comparison.verdict,
                best=cell.best,
            )
        )
    return label, words


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
    """Of the mean; nothing where there is none."""
    if ours is None or not ours.has_interval:
        return ""
    return f"[{number(ours.lower, decimals)}, {number(ours.upper, decimals)}]"


def paper_text(figure: PaperValue | None) -> str:
    """As in the paper: mean, and standard deviation in brackets where it is given."""
    if figure is None:
        return ""
    return f"{figure.mean:g}" if figure.std is None else f"{figure.mean:g} ({figure.std:g})"


def sign(cell: Cell) -> str:
    """How we compare with the paper; nothing where it was not tested."""
    return "" if cell.comparison is None else SIGNS[cell.comparison.verdict]


def seconds(value: float) -> str:
    """A time in the unit that suits it."""
    if value < 1:
        return f"{value * 1000:.0f} ms" if value >= 0.001 else "< 1 ms"
    if value < 120:
        return f"{value:.3g} s"
    if value < 7200:
        return f"{value / 60:.3g} min"
    return f"{value / 3600:.3g} h"
