"""Ours beside the paper's: Table 1 and Table 2 as data, to be rendered by the siblings.

`text`, `markdown` and `latex` render a `Table`, `page` shows it in the report. May import:
exceptions, experiments, and its siblings `cells`, `paper`, `results`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pandas as pd

from forewise.exceptions import InvalidInputError
from forewise_lab.experiments import Settings
from forewise_lab.report import paper
from forewise_lab.report.cells import (
    Cell,
    Column,
    Table,
    cell_at,
    decimals_of,
    headline_cell,
    with_best,
    with_ties,
)
from forewise_lab.report.results import At, Results, gather

METRICS = ("R", "FR", "FR32")
#: Metrics that a table can show: of these, less is better.
KNOWN_METRICS = ("R", "FR", "EFR", "FR32", "cost", "CRPS")


def table1(
    rows: pd.DataFrame | Results,
    settings: Settings | None = None,
    *,
    experiments: Iterable[str] | None = None,
    metrics: Iterable[str] | None = None,
) -> Table:
    """The paper's Table 1 and ours: methods × (experiment, metric).

    Parameters
    ----------
    rows : DataFrame
        What `forewise_lab.experiments.read_rows` returns.
    settings : Settings, optional
        Those that come with forewise by default.
    experiments : iterable of str, optional
        Columns; the paper's by default, POP2 in two protocols. Those without rows are left out,
        with a note.
    metrics : iterable of str, optional
        R, FR and, where it is computed, FR32.

    Raises
    ------
    InvalidInputError
        If there is nothing to show, or a metric is not known.
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
    """The paper's Table 2 and ours: fair regret by (M_train, M) × methods.

    Parameters
    ----------
    rows, settings
        As for `table1`.
    experiment : str
        One with several pairs of M_train and M.
    metrics : iterable of str, optional
        FR and, where it is computed, FR32.
    """
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
    return f"{title} (quick run: the figures mean nothing)" if results.quick else title


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
