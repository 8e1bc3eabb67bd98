"""Table 1 and Table 2, cell by cell: our means beside the paper's. `rendering` writes them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import pandas as pd

import forewise as fw
from forewise_lab.experiments.configuration import Settings
from forewise_lab.report import paper
from forewise_lab.report.results import SCALED, At, Results, gather
from forewise_lab.report.statistics import Comparison, PaperValue, Summary, compare, summarise

#: Metrics of Table 1, where they are computed.
METRICS = ("R", "FR", "FR32")
_AGAINST = {"FR": "FR", "FR32": "FR32 (oracle of 32 draws, as the paper's)"}
# The true distribution does not compete.
_NOT_BEST = frozenset({"oracle"})


@dataclass(frozen=True)
class Cell:
    """One value of a table, where it stands, and what is known about it.

    Columns have a label; those of one group stand together. `ours` is None if no seed has it,
    `comparison` if there is nothing to test. `missing` are planned seeds without a value, `planned`
    says whether the settings plan it, `note` where sizes differ. `best` marks the least mean of its
    kind, or one that looks the same in print.
    """

    line: str
    group: str
    label: str
    ours: Summary | None
    paper: PaperValue | None = None
    comparison: Comparison | None = None
    missing: tuple[int, ...] = ()
    planned: bool = True
    note: str = ""
    competes: bool = True
    decimals: int = 0
    best: bool = False

    @property
    def is_shown(self) -> bool:
        return self.planned or self.ours is not None

    @property
    def column(self) -> tuple[str, str]:
        return self.group, self.label

    @property
    def aside(self) -> str:
        missing = f"{len(self.missing)} missing" if self.missing else ""
        few = "" if self.ours is None else self.ours.excuse
        return ", ".join(text for text in (self.note, few, missing) if text)


#: Cells of some columns by the label of their line.
Lines = dict[str, list[Cell]]


class Part(NamedTuple):
    """Groups of columns that have the same lines."""

    groups: dict[str, Lines]
    lines: list[str]
    width: int


@dataclass(frozen=True)
class Table:
    """A table of cells, column by column; `corner` says what the labels of lines are."""

    title: str
    corner: str
    cells: tuple[Cell, ...]
    notes: tuple[str, ...]

    @property
    def lines(self) -> list[str]:
        return list(dict.fromkeys(cell.line for cell in self.cells))

    @property
    def groups(self) -> dict[str, Lines]:
        """By group, the lines that have something to show in it."""
        return {
            str(group): with_something(grouped(cells, lambda cell: cell.line))
            for group, cells in grouped(self.cells, lambda cell: cell.group).items()
        }

    def parts(self, widest: int) -> list[Part]:
        """The groups in parts of at most `widest` columns."""
        found: list[Part] = []
        for group, lines in self.groups.items():
            width = len(next(iter(lines.values())))
            last = found[-1] if found else Part({}, [], widest)
            if last.width + width <= widest and last.lines == list(lines):
                found[-1] = Part(last.groups | {group: lines}, last.lines, last.width + width)
            else:
                found.append(Part({group: lines}, list(lines), width))
        return found


def grouped(cells: Iterable[Cell], key: Callable[[Cell], Hashable]) -> dict[Hashable, list[Cell]]:
    """Cells by a key, in their order."""
    found: dict[Hashable, list[Cell]] = {}
    for cell in cells:
        found.setdefault(key(cell), []).append(cell)
    return found


def with_something(lines: Mapping[Any, list[Cell]]) -> Lines:
    """Lines of which a cell has something to show."""
    return {str(line): own for line, own in lines.items() if any(cell.is_shown for cell in own)}


def table1(rows: pd.DataFrame | Results, settings: Settings | None = None) -> Table:
    """The paper's Table 1 and ours: methods × (experiment, metric).

    `rows` come from `read_rows`; `settings` are the shipped ones by default. Raises an
    `InvalidInputError` if there is nothing to show.
    """
    results = gather(rows, settings)
    keys = [
        (name, metric)
        for name in paper.TABLE1
        if name in results.experiments
        for metric in METRICS
        if any(results.places(name, method, metric) for method in results.methods(name))
    ]
    if not keys:
        raise fw.InvalidInputError(
            f"rows must be of {', '.join(paper.TABLE1)} for Table 1, but are of "
            f"{', '.join(results.experiments)}"
        )
    methods = _methods(results, list(dict(keys)))
    cells = [
        _headline_cell(results, name, metric, method) for name, metric in keys for method in methods
    ]
    notes = [*results.warnings, paper.COMPARING]
    notes += [paper.CAVEATS[key] for key in keys if key in paper.CAVEATS]
    known = results.settings.experiments
    absent = [known[name].title for name in paper.TABLE1 if name in known.keys() - dict(keys)]
    if absent:
        notes.append(f"No rows yet: {'; '.join(absent)}.")
    title = _title(results, "Table 1: regret R and fair regret FR, ours and the paper's")
    return Table(title, "Method", _marked(cells, lambda cell: cell.column), tuple(notes))


def table2(rows: pd.DataFrame | Results, settings: Settings | None = None) -> Table:
    """The paper's Table 2 and ours: fair regret by (M_train, M) × methods."""
    results, name = gather(rows, settings), paper.TABLE2
    methods = results.methods(name) if name in results.experiments else []
    chosen = [m for m in _AGAINST if any(results.places(name, x, m) for x in methods)]
    if not chosen:
        raise fw.InvalidInputError(
            f"rows must be of experiment {name} for Table 2, but are of "
            f"{', '.join(results.experiments)}"
        )
    places = {at for x in methods for m in chosen for at in results.places(name, x, m)}
    n_train = max(at.n_train for at in places)
    seen = {(at.m_train, at.m) for at in places}
    planned = results.settings.experiments[name].scenarios
    pairs = planned if seen & set(planned) else sorted(seen)
    cells = [
        replace(
            _cell(results, name, metric, method, At(n_train, *pair)),
            line=f"({pair[0]}, {pair[1]})",
            group=_with_scale(results, _AGAINST[metric], name, metric),
            label=results.method_title(method),
        )
        for metric in chosen
        for method in methods
        for pair in pairs
    ]
    title = "Table 2: fair regret on NVQP over scenarios in training and at test"
    notes = (paper.COMPARING, *(paper.CAVEATS[key, "FR"] for key in (name, "nvqp")))
    marked = _marked(cells, lambda cell: (cell.group, cell.line))
    return Table(_title(results, title), "(M_train, M)", marked, (*results.warnings, *notes))


def _headline_cell(results: Results, experiment: str, metric: str, method: str) -> Cell:
    at = results.headline(experiment, method, metric)
    wanted = results.wanted_place(experiment, method)
    at = at or wanted or At(0, 0, 0)
    return _cell(results, experiment, metric, method, at, departs=wanted not in (None, at))


def _cell(
    results: Results, experiment: str, metric: str, method: str, at: At, departs: bool = False
) -> Cell:
    """The value at some sizes, which may depart from the column's."""
    table = results.settings.experiments[experiment]
    values = results.values(experiment, method, metric, at)
    ours = summarise(list(values.values())) if values else None
    planned = method in table.methods
    theirs = paper.paper_value(results.settings, experiment, method, metric, (at.m_train, at.m))
    # With other numbers of scenarios or rows it is not the paper's experiment.
    compared = None if departs or ours is None or theirs is None else compare(ours, theirs)
    note = ""
    if departs:
        note = f"{at.n_train} rows, M_train {at.m_train}, M {at.m}"
    elif not (table.paper and all(value.m for value in table.paper)):  # else the lines have M
        note = f"M {at.m}" if at.m != table.headline[1] else ""
    return Cell(
        line=results.method_title(method),
        group=_with_scale(results, table.title, experiment, metric),
        label=metric,
        ours=ours,
        paper=theirs,
        comparison=compared,
        missing=tuple(s for s in range(table.n_seeds) if s not in values and (planned or values)),
        planned=planned,
        note=note if values else "",
        competes=method not in _NOT_BEST,
    )


def _marked(cells: Sequence[Cell], contest: Callable[[Cell], Hashable]) -> tuple[Cell, ...]:
    """Cells with their column's decimals, and the best of each contest.

    Best is the least mean among those with the most seeds, and what looks the same in print, with
    the fewer decimals of the two.
    """
    rivals: dict[Cell, tuple[Cell, float]] = {}  # of those that compete, the best, and its mean
    for own in grouped(cells, contest).values():
        there = [(cell, cell.ours) for cell in own if cell.competes and cell.ours is not None]
        most = max((ours.n for _, ours in there), default=0)
        means = {cell: ours.mean for cell, ours in there if ours.n == most}
        if len(means) > 1:
            best = min(means, key=means.__getitem__)
            rivals |= dict.fromkeys(means, (best, means[best]))
    decimals = {
        column: _decimals(own, rivals)
        for column, own in grouped(cells, lambda cell: cell.column).items()
    }

    def finished(cell: Cell) -> Cell:
        own = decimals[cell.column]
        if cell.ours is None or cell not in rivals:
            return replace(cell, decimals=own)
        best, least = rivals[cell]
        fewer = min(own, decimals[best.column])
        same = f"{cell.ours.mean:.{fewer}f}" == f"{least:.{fewer}f}"
        return replace(cell, decimals=own, best=same)

    return tuple(map(finished, cells))


def _decimals(cells: Sequence[Cell], rivals: dict[Cell, tuple[Cell, float]]) -> int:
    """Decimals of a column, by its best mean: the oracle's own regret is about 0."""
    means = [(cell, cell.ours.mean) for cell in cells if cell.ours and cell.ours.mean]
    best = [abs(mean) for cell, mean in means if cell in rivals and rivals[cell][1] == mean]
    least = min(best or [abs(mean) for _, mean in means] or [100.0])
    return 0 if least >= 100 else 1 if least >= 1 else 3


def _title(results: Results, title: str) -> str:
    return f"{title} (quick run: the numbers mean nothing)" if results.quick else title


def _with_scale(results: Results, text: str, experiment: str, metric: str) -> str:
    """A group's name, and how its units come from raw values where they are not the same."""
    scale = results.settings.experiments[experiment].scale if metric in SCALED else 1.0
    if scale == 1:
        return text
    return f"{text} · raw × {scale:,.0f}" if scale > 1 else f"{text} · raw ÷ {1 / scale:,.0f}"


def _methods(results: Results, experiments: Sequence[str]) -> list[str]:
    """The paper's methods, then others with rows: in the settings' order, then the rows'."""
    found = dict.fromkeys(m for name in experiments for m in results.methods(name))
    planned = {m for name in experiments for m in results.settings.experiments[name].methods}
    ours = [method for method in paper.METHODS if method in planned or method in found]
    known = [method for method in results.settings.methods if method in found]
    return list(dict.fromkeys([*ours, *known, *found]))
