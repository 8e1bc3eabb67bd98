"""Table 1 and Table 2 as data: our means beside the paper's. `rendering` writes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from forewise.exceptions import InvalidInputError
from forewise_lab.experiments import Settings
from forewise_lab.report import paper
from forewise_lab.report.results import At, Results, gather
from forewise_lab.report.statistics import Comparison, PaperValue, Summary, compare, summarise

#: Metrics of a table, and those that it can show: of these, less is better.
METRICS = ("R", "FR", "FR32")
KNOWN_METRICS = ("R", "FR", "EFR", "FR32", "cost", "CRPS")
# The true distribution does not compete.
_NOT_BEST = frozenset({"oracle"})


@dataclass(frozen=True)
class Cell:
    """One value of a table, and what is known about it.

    `ours` is None if no seed has it, `comparison` if there is nothing to test. `missing` are
    planned seeds without a value, `planned` says whether the settings plan it. `best` marks the least mean
    of its kind, or one that looks the same in print; `note` other sizes than the column's.
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
        """The note, and how many seeds are missing, in few words."""
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
        """The line's label in some columns, and whether it has the asides of the cells.

        It has them where they are the same for all cells.
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
    """Mark the least mean among the cells that have the most seeds."""
    rivals = _rivals(cells, methods)
    if len(rivals) < 2:
        return cells
    least = min(_mean(cells[place]) for place in rivals)
    return [
        replace(cell, best=place in rivals and _mean(cell) == least)
        for place, cell in enumerate(cells)
    ]


def with_ties(cells: list[Cell], decimals: Sequence[int], methods: Sequence[str]) -> list[Cell]:
    """Mark those, too, whose mean looks the same as the best one's, with the fewer decimals."""
    best = next((place for place, cell in enumerate(cells) if cell.best), None)
    if best is None:
        return cells
    rivals = _rivals(cells, methods)

    def ties(place: int) -> bool:
        fewer = min(decimals[place], decimals[best])
        return f"{_mean(cells[place]):.{fewer}f}" == f"{_mean(cells[best]):.{fewer}f}"

    return [replace(cell, best=place in rivals and ties(place)) for place, cell in enumerate(cells)]


def _rivals(cells: Sequence[Cell], methods: Sequence[str]) -> list[int]:
    """Places of the cells with the most seeds."""
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
    """Decimals of a column, by its best mean: the oracle's own regret is about 0."""
    found = [cell for cell in cells if cell.ours is not None and cell.ours.mean]
    rivals = [cell for cell in found if cell.best] or found
    least = min((abs(_mean(cell)) for cell in rivals), default=100.0)
    return 0 if least >= 100 else 1 if least >= 1 else 3


def table1(
    rows: pd.DataFrame | Results,
    settings: Settings | None = None,
    *,
    experiments: Iterable[str] | None = None,
    metrics: Iterable[str] | None = None,
) -> Table:
    """The paper's Table 1 and ours: methods × (experiment, metric).

    `rows` come from `read_rows`; `settings` are the shipped ones, `experiments` the paper's and
    `metrics` R, FR and FR32 by default. Raises an `InvalidInputError` if there is nothing to show,
    or a metric is not known.
    """
    results = gather(rows, settings)
    asked = tuple(paper.TABLE1 if experiments is None else experiments)
    chosen = _require_metrics(metrics)
    present = [name for name in asked if name in results.experiments]
    keys = [
        (name, metric)
        for name in present
        for metric in chosen
        if any(results.places(name, method, metric) for method in results.methods(name))
    ]
    if not keys:
        raise InvalidInputError(
            f"there is no row with {' or '.join(chosen)} for {', '.join(asked)}; the rows are of "
            f"{', '.join(results.experiments)}"
        )
    methods = _lines(results, list(dict.fromkeys(name for name, _ in keys)))
    grid = [with_best([headline_cell(results, *key, m) for m in methods], methods) for key in keys]
    columns = [
        Column(_group(results, name), metric, decimals_of(cells))
        for (name, metric), cells in zip(keys, grid, strict=True)
    ]
    grid = [
        with_ties(cells, [column.decimals] * len(methods), methods)
        for column, cells in zip(columns, grid, strict=True)
    ]
    notes = [
        *results.warnings,
        paper.COMPARING,
        *(paper.CAVEATS[key] for key in keys if key in paper.CAVEATS),
    ]
    absent = [results.experiment_title(name) for name in asked if name not in dict(keys)]
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


def table2(
    rows: pd.DataFrame | Results,
    settings: Settings | None = None,
    *,
    experiment: str = paper.TABLE2,
    metrics: Iterable[str] | None = None,
) -> Table:
    """The paper's Table 2 and ours: fair regret by (M_train, M) × methods."""
    results = gather(rows, settings)
    chosen = _require_metrics(metrics or ("FR", "FR32"))
    methods = results.methods(experiment)
    chosen = tuple(m for m in chosen if any(results.places(experiment, x, m) for x in methods))
    if not chosen:
        raise InvalidInputError(
            f"there is no row of experiment {experiment} for Table 2; the rows are of "
            f"{', '.join(results.experiments)}"
        )
    table = results.settings.experiments.get(experiment)
    n_train = int(results.rows.loc[results.rows["experiment"] == experiment, "n_train"].max())
    seen = (at for x in methods for m in chosen for at in results.places(experiment, x, m))
    pairs = [] if table is None else list(table.scenarios)
    pairs = pairs if any((at.m_train, at.m) in pairs for at in seen) else []
    pairs = pairs or _pairs(results, experiment, methods, chosen)
    by_line = []
    for pair in pairs:
        line: list[Cell] = []
        for metric in chosen:
            cells = [
                cell_at(results, experiment, metric, method, At(n_train, *pair))
                for method in methods
            ]
            line.extend(with_best(cells, methods))
        by_line.append(tuple(line))
    keys = [(metric, method) for metric in chosen for method in methods]
    scale = paper.scale_note(results.scale(experiment, "FR"))
    against = {"FR": "FR", "FR32": "FR32 (oracle of 32 draws, as the paper's)"}
    columns = tuple(
        Column(
            against.get(metric, metric) + (f" · {scale}" if scale else ""),
            results.method_title(method),
            decimals_of([line[place] for line in by_line]),
        )
        for place, (metric, method) in enumerate(keys)
    )
    caveats = [paper.CAVEATS[key] for key in ((experiment, "FR"), ("nvqp", "FR"))
               if key in paper.CAVEATS and experiment == paper.TABLE2]  # fmt: skip
    return Table(
        title=_title(
            results, "Table 2: fair regret on NVQP over scenarios in training and at test"
        ),
        corner="(M_train, M)",
        lines=tuple(f"({a}, {b})" for a, b in pairs),
        columns=columns,
        cells=tuple(_with_ties_in_line(line, columns, methods) for line in by_line),
        notes=(*results.warnings, paper.COMPARING, *caveats),
    )


def _title(results: Results, title: str) -> str:
    return f"{title} (quick run: the numbers mean nothing)" if results.quick else title


def _with_ties_in_line(
    line: Sequence[Cell], columns: Sequence[Column], methods: Sequence[str]
) -> tuple[Cell, ...]:
    """A line of Table 2, in which the methods of each metric stand together."""
    done: list[Cell] = []
    for start in range(0, len(line), len(methods)):
        places = range(start, start + len(methods))
        decimals = [columns[place].decimals for place in places]
        done += with_ties([line[place] for place in places], decimals, methods)
    return tuple(done)


def _require_metrics(metrics: Iterable[str] | None) -> tuple[str, ...]:
    chosen = METRICS if metrics is None else tuple(metrics)
    for metric in chosen:
        if metric not in KNOWN_METRICS:
            raise InvalidInputError(
                f"metrics must be of {', '.join(KNOWN_METRICS)}, but there is {metric!r}"
            )
    if not chosen:
        raise InvalidInputError("metrics must name at least one metric, but is empty")
    return chosen


def _lines(results: Results, experiments: Sequence[str]) -> list[str]:
    """The paper's methods, whether there or not, then all others that have rows.

    Others stand in the order of the settings, and after these in that of the rows.
    """
    planned = {m for name in experiments for m in results.planned_methods(name)}
    found = dict.fromkeys(m for name in experiments for m in results.methods(name))
    ours = [method for method in paper.METHODS if method in planned or method in found]
    order = list(results.settings.methods)
    places = {method: order.index(method) if method in order else len(order) for method in found}
    return [*ours, *sorted((m for m in found if m not in ours), key=places.__getitem__)]


def _group(results: Results, experiment: str) -> str:
    scale = paper.scale_note(results.scale(experiment, "R"))
    title = results.experiment_title(experiment)
    return f"{title} · {scale}" if scale else title


def _pairs(
    results: Results, experiment: str, methods: Sequence[str], metrics: Sequence[str]
) -> list[tuple[int, int]]:
    """The pairs that the rows have, where no settings say which there should be."""
    places = (at for x in methods for m in metrics for at in results.places(experiment, x, m))
    return sorted({(at.m_train, at.m) for at in places})
