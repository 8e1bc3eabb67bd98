"""Table 1 and Table 2 as data: our means beside the paper's. `rendering` writes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import pandas as pd

from forewise.exceptions import InvalidInputError
from forewise_lab.experiments import Settings
from forewise_lab.report import paper
from forewise_lab.report.results import At, Results, gather
from forewise_lab.report.statistics import Comparison, PaperValue, Summary, compare, summarise

#: Metrics of Table 1, where they are computed.
METRICS = ("R", "FR", "FR32")
# The true distribution does not compete.
_NOT_BEST = frozenset({"oracle"})


@dataclass(frozen=True)
class Cell:
    """One value of a table, and what is known about it.

    `ours` is None if no seed has it, `comparison` if there is nothing to test. `missing` are
    planned seeds without a value, `planned` says whether the settings plan it. `best` marks the
    least mean of its kind, or one that looks the same in print; `note` says where sizes differ.
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
    """A table of cells, ``cells[line][column]``; `corner` says what the line labels are."""

    title: str
    corner: str
    lines: tuple[str, ...]
    columns: tuple[Column, ...]
    cells: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...]

    @property
    def groups(self) -> dict[str, list[int]]:
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
        """The line's label in some columns, with the asides of its cells if all are the same;
        and whether it has them.
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
    """The value at the experiment's headline."""
    at = results.headline(experiment, method, metric)
    wanted = results.wanted_place(experiment, method)
    at = at or wanted or At(0, 0, 0)
    return cell_at(results, experiment, metric, method, at, departs=wanted not in (None, at))


def cell_at(
    results: Results, experiment: str, metric: str, method: str, at: At, departs: bool = False
) -> Cell:
    """The value at some sizes, which may depart from the column's."""
    values = results.values(experiment, method, metric, at)
    planned = results.is_planned(experiment, method)
    expected = results.planned_seeds(experiment) if planned or values else ()
    pair = (at.m_train, at.m)
    theirs = paper.paper_value(results.settings, experiment, method, metric, pair)
    ours = summarise(list(values.values())) if values else None
    # With other numbers of scenarios or rows it is not the paper's experiment.
    compared = None if departs or ours is None or theirs is None else compare(ours, theirs)
    table, note = results.settings.experiments[experiment], ""
    if departs:
        note = f"{at.n_train} rows, M_train {at.m_train}, M {at.m}"
    elif not (table.paper and all(value.m for value in table.paper)):  # else the lines have M
        note = f"M {at.m}" if at.m != table.headline[1] else ""
    return Cell(
        ours=ours,
        paper=theirs,
        comparison=compared,
        missing=tuple(seed for seed in expected if seed not in values),
        planned=planned,
        note=note if values else "",
    )


def with_best(
    cells: Sequence[Cell], methods: Sequence[str], decimals: Sequence[int] | None = None
) -> list[Cell]:
    """Mark the least mean among the cells that have the most seeds.

    With `decimals`, mark those, too, whose mean looks the same in print, with the fewer decimals.
    """
    ours = [None if method in _NOT_BEST else cell.ours
            for cell, method in zip(cells, methods, strict=True)]  # fmt: skip
    most = max((own.n for own in ours if own is not None), default=0)
    means = {p: own.mean for p, own in enumerate(ours) if own is not None and own.n == most}
    if len(means) < 2:
        return list(cells)
    best = min(means, key=means.__getitem__)

    def ties(place: int) -> bool:
        if decimals is None:
            return means[place] == means[best]
        fewer = min(decimals[place], decimals[best])
        return f"{means[place]:.{fewer}f}" == f"{means[best]:.{fewer}f}"

    return [replace(cell, best=p in means and ties(p)) for p, cell in enumerate(cells)]


def decimals_of(cells: Iterable[Cell]) -> int:
    """Decimals of a column, by its best mean: the oracle's own regret is about 0."""
    means = [(cell.best, abs(cell.ours.mean)) for cell in cells if cell.ours and cell.ours.mean]
    least = min([mean for best, mean in means if best] or [mean for _, mean in means] or [100.0])
    return 0 if least >= 100 else 1 if least >= 1 else 3


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
        raise InvalidInputError(
            f"rows must be of {', '.join(paper.TABLE1)} for Table 1, but are of "
            f"{', '.join(results.experiments)}"
        )
    methods = _lines(results, list(dict.fromkeys(name for name, _ in keys)))
    grid, columns = [], []
    for name, metric in keys:
        cells = [headline_cell(results, name, metric, method) for method in methods]
        decimals = decimals_of(with_best(cells, methods))
        grid.append(with_best(cells, methods, [decimals] * len(methods)))
        columns.append(Column(_group(results, name, metric), metric, decimals))
    notes = [*results.warnings, paper.COMPARING]
    notes += [paper.CAVEATS[key] for key in keys if key in paper.CAVEATS]
    known = results.settings.experiments
    absent = [
        known[name].title for name in paper.TABLE1 if name in known and name not in dict(keys)
    ]
    if absent:
        notes.append(f"No rows yet: {'; '.join(absent)}.")
    return Table(
        title=_title(results, "Table 1: regret R and fair regret FR, ours and the paper's"),
        corner="Method",
        lines=tuple(results.method_title(method) for method in methods),
        columns=tuple(columns),
        cells=tuple(zip(*grid, strict=True)),
        notes=tuple(notes),
    )


def table2(rows: pd.DataFrame | Results, settings: Settings | None = None) -> Table:
    """The paper's Table 2 and ours: fair regret by (M_train, M) × methods."""
    results, name = gather(rows, settings), paper.TABLE2
    methods = results.methods(name) if name in results.experiments else []
    chosen = [m for m in ("FR", "FR32") if any(results.places(name, x, m) for x in methods)]
    if not chosen:
        raise InvalidInputError(
            f"rows must be of experiment {name} for Table 2, but are of "
            f"{', '.join(results.experiments)}"
        )
    places = {at for x in methods for m in chosen for at in results.places(name, x, m)}
    n_train = max(at.n_train for at in places)
    seen = {(at.m_train, at.m) for at in places}
    planned = results.settings.experiments[name].scenarios
    pairs = planned if seen & set(planned) else sorted(seen)
    against = {"FR": "FR", "FR32": "FR32 (oracle of 32 draws, as the paper's)"}
    columns: list[Column] = []
    grids = []
    for metric in chosen:
        grid = [
            [cell_at(results, name, metric, x, At(n_train, *pair)) for x in methods]
            for pair in pairs
        ]
        marked = [with_best(cells, methods) for cells in grid]
        decimals = [decimals_of(column) for column in zip(*marked, strict=True)]
        grids.append([with_best(cells, methods, decimals) for cells in grid])
        scale = paper.scale_note(results.scale(name, metric))
        group = against[metric] + (f" · {scale}" if scale else "")
        columns += [
            Column(group, results.method_title(x), d)
            for x, d in zip(methods, decimals, strict=True)
        ]
    title = "Table 2: fair regret on NVQP over scenarios in training and at test"
    caveats = [paper.CAVEATS[key, "FR"] for key in (name, "nvqp")]
    return Table(
        title=_title(results, title),
        corner="(M_train, M)",
        lines=tuple(f"({a}, {b})" for a, b in pairs),
        columns=tuple(columns),
        cells=tuple(tuple(chain(*line)) for line in zip(*grids, strict=True)),
        notes=(*results.warnings, paper.COMPARING, *caveats),
    )


def _title(results: Results, title: str) -> str:
    return f"{title} (quick run: the numbers mean nothing)" if results.quick else title


def _group(results: Results, experiment: str, metric: str) -> str:
    scale = paper.scale_note(results.scale(experiment, metric))
    title = results.experiment_title(experiment)
    return f"{title} · {scale}" if scale else title


def _lines(results: Results, experiments: Sequence[str]) -> list[str]:
    """The paper's methods, then others with rows: in the settings' order, then the rows'."""
    found = dict.fromkeys(m for name in experiments for m in results.methods(name))
    planned = {m for name in experiments for m in results.settings.experiments[name].methods}
    ours = [method for method in paper.METHODS if method in planned or method in found]
    order = list(results.settings.methods)
    places = {method: order.index(method) if method in order else len(order) for method in found}
    return [*ours, *sorted((m for m in found if m not in ours), key=places.__getitem__)]
