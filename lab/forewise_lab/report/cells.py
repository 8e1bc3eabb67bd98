"""The parts of a table: cells with a figure and all that is said about it, columns, the table.

May import: its siblings `paper`, `results`, `statistics`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from forewise_lab.report import paper
from forewise_lab.report.results import At, Results
from forewise_lab.report.statistics import Comparison, PaperValue, Summary, compare, summarise

_NOT_BEST = frozenset({"oracle"})


@dataclass(frozen=True)
class Cell:
    """One figure, and all that is said about it.

    Attributes
    ----------
    ours : Summary or None
        None if no seed has it.
    paper : PaperValue or None
    comparison : Comparison or None
        None if there is nothing to test.
    missing : tuple of int
        Seeds that should be there and are not.
    planned : bool
        Whether anybody expects this figure.
    best : bool
        Whether its mean is the least of its kind, or the same as that in print.
    note : str
        Where it departs from the column: other numbers of scenarios or rows.
    """

    ours: Summary | None
    paper: PaperValue | None = None
    comparison: Comparison | None = None
    missing: tuple[int, ...] = ()
    planned: bool = True
    best: bool = False
    note: str = ""

    @property
    def aside(self) -> str:
        """What is special to it, in few words: where it departs, how many seeds it has not."""
        missing = f"{len(self.missing)} missing" if self.missing else ""
        few = "" if self.ours is None else self.ours.excuse
        return ", ".join(text for text in (self.note, few, missing) if text)


@dataclass(frozen=True)
class Column:
    """What a column shows; columns of one `group` stand together."""

    group: str
    label: str
    decimals: int = 0


@dataclass(frozen=True)
class Table:
    """A table of cells, ``cells[line][column]``.

    Attributes
    ----------
    title : str
    corner : str
        What the line labels are.
    lines : tuple of str
    columns : tuple of Column
    cells : tuple of tuple of Cell
    notes : tuple of str
        What to know before reading it.
    """

    title: str
    corner: str
    lines: tuple[str, ...]
    columns: tuple[Column, ...]
    cells: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...]

    @property
    def groups(self) -> dict[str, list[int]]:
        """From group to the places of its columns."""
        found: dict[str, list[int]] = {}
        for place, column in enumerate(self.columns):
            found.setdefault(column.group, []).append(place)
        return found

    def parts(self, widest: int) -> list[dict[str, list[int]]]:
        """The groups in parts of at most `widest` columns; those of a part have the same lines."""
        found: list[dict[str, list[int]]] = []
        for group, places in self.groups.items():
            part = found[-1] if found else {}
            before = [place for inner in part.values() for place in inner]
            fits = len(before) + len(places) <= widest
            if part and fits and self.lines_of(before) == self.lines_of(places):
                part[group] = places
            else:
                found.append({group: places})
        return found

    def label(self, line: int, places: Sequence[int]) -> tuple[str, bool]:
        """The line's label in some columns, and whether it says what is special to the cells.

        It does where that is the same for all of them: it takes less room there.
        """
        cells = [self.cells[line][p] for p in places]
        asides = {cell.aside for cell in cells if cell.planned or cell.ours}
        if len(asides) != 1:
            return self.lines[line], False
        aside = asides.pop()
        return (f"{self.lines[line]} · {aside}" if aside else self.lines[line]), True

    def lines_of(self, places: Sequence[int]) -> list[int]:
        """Lines that have something to show in some columns."""
        return [
            line
            for line, cells in enumerate(self.cells)
            if any(cells[p].planned or cells[p].ours for p in places)
        ]


def headline_cell(results: Results, experiment: str, metric: str, method: str) -> Cell:
    """The figure at the experiment's headline."""
    at = results.headline(experiment, method, metric)
    wanted = results.wanted_place(experiment, method)
    if at is None:
        at = wanted or At(0, 0, 0)
    return cell_at(results, experiment, metric, method, at, departs=wanted not in (None, at))


def cell_at(
    results: Results, experiment: str, metric: str, method: str, at: At, departs: bool = False
) -> Cell:
    values = results.values(experiment, method, metric, at)
    planned = results.is_planned(experiment, method)
    expected = results.planned_seeds(experiment) if planned or values else ()
    missing = tuple(seed for seed in expected if seed not in values)
    pair = (at.m_train, at.m)
    figure = paper.paper_value(results.settings, experiment, method, metric, pair)
    ours = summarise(list(values.values())) if values else None
    return Cell(
        ours=ours,
        paper=figure,
        # With other numbers of scenarios or rows it is not the paper's experiment.
        comparison=None if departs or ours is None or figure is None else compare(ours, figure),
        missing=missing,
        planned=planned,
        note=_note(results, experiment, at, departs) if values else "",
    )


def _note(results: Results, experiment: str, at: At, departs: bool) -> str:
    table = results.settings.experiments.get(experiment)
    if departs:
        return f"{at.n_train} rows, M_train {at.m_train}, M {at.m}"
    if table is not None and len(table.paper) and all(f.m for f in table.paper):
        return ""  # a table over (M_train, M) says so in its lines
    if table is not None and at.m != table.headline[1]:
        return f"M {at.m}"
    return ""


def with_best(cells: list[Cell], methods: Sequence[str]) -> list[Cell]:
    """Mark the least mean among the cells that have the most seeds; the truth does not compete."""
    rivals = _rivals(cells, methods)
    if len(rivals) < 2:
        return cells
    least = min(_mean(cells[place]) for place in rivals)
    return [
        replace(cell, best=place in rivals and _mean(cell) == least)
        for place, cell in enumerate(cells)
    ]


def with_ties(cells: list[Cell], decimals: Sequence[int], methods: Sequence[str]) -> list[Cell]:
    """Mark those, too, whose mean looks the same as the best one's with the decimals it has.

    Where the two have different numbers of decimals, the fewer count.
    """
    best = next((place for place, cell in enumerate(cells) if cell.best), None)
    if best is None:
        return cells
    rivals = _rivals(cells, methods)

    def ties(place: int) -> bool:
        fewer = min(decimals[place], decimals[best])
        return f"{_mean(cells[place]):.{fewer}f}" == f"{_mean(cells[best]):.{fewer}f}"

    return [replace(cell, best=place in rivals and ties(place)) for place, cell in enumerate(cells)]


def _rivals(cells: Sequence[Cell], methods: Sequence[str]) -> list[int]:
    """Places of those with the most seeds; the truth does not compete."""
    found = [
        place
        for place, (cell, method) in enumerate(zip(cells, methods, strict=True))
        if cell.ours is not None and method not in _NOT_BEST
    ]
    most = max((_n(cells[place]) for place in found), default=0)
    return [place for place in found if _n(cells[place]) == most]


def _n(cell: Cell) -> int:
    return 0 if cell.ours is None else cell.ours.n


def _mean(cell: Cell) -> float:
    return float("inf") if cell.ours is None else cell.ours.mean


def decimals_of(cells: Iterable[Cell]) -> int:
    """One number for a whole column, to align it: the best figure decides.

    The oracle's own regret is about 0 and must not give everybody else three decimals.
    """
    found = [cell for cell in cells if cell.ours is not None and cell.ours.mean]
    rivals = [cell for cell in found if cell.best] or found
    least = min((abs(_mean(cell)) for cell in rivals), default=100.0)
    return 0 if least >= 100 else 1 if least >= 1 else 3
