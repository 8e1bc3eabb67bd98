"""One page of the suite's rows: costs relative to others, calibration, seconds, and a picture.

A ratio compares the splits that both methods have: of each table the mean cost of one over that
of the other, then the geometric mean over tables, with a 95 % t-interval of its logarithm.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from forewise.exceptions import InvalidInputError, StorageError
from forewise.plots import STYLE
from forewise_lab.experiments import load_settings, read_rows
from forewise_lab.experiments.rows import ERROR
from forewise_lab.machine import write_whole
from forewise_lab.report.rendering import markdown_table
from forewise_lab.report.statistics import summarise
from forewise_lab.suite.grid import INNER, config_hash
from forewise_lab.suite.methods import AUTO, METHODS
from forewise_lab.suite.tables import PAPER

_HEAD = """# Decisions on tables

`forewise-lab suite report` wrote this page from `rows.jsonl` beside it.{rows}
Cost is a newsvendor's at five service levels; "budget" is that of three products that share one
(`lab/forewise_lab/suite/tables.py`). Ratios are geometric means over tables, on the splits that
both methods have; brackets are 95 % intervals over tables. Seconds are of a fit, one thread.
"""
_STEEP = 1.05  # more than that beside a default is a cliff


def write_suite_page(
    folder: str | os.PathLike[str],
    page: str | os.PathLike[str],
    against: Sequence[str],
    *,
    inner: bool = False,
) -> Path:
    """Write the page, a Markdown file, and its picture beside it.

    `against` are the methods that all others are compared with, the first one also table by
    table; those without rows are left out.
    """
    place, rows = Path(page), read_rows(folder)
    is_inner = rows["experiment"].str.endswith(INNER)
    rows = rows[is_inner if inner else ~is_inner]
    rows = rows.assign(experiment=rows["experiment"].str.removesuffix(INNER))
    # A row of newer code comes later and replaces that of older code.
    rows = rows.drop_duplicates(["experiment", "method", "seed", "metric"], keep="last")
    references = [name for name in against if name in set(rows["method"])]
    if not references:
        raise InvalidInputError(
            f"against must name a method with rows in {folder}: {sorted(set(rows['method']))}"
        )
    real = rows[~rows["experiment"].isin(PAPER)]
    plain = real[~real["method"].str.contains(":")]
    ratios = table_ratios(plain, "cost", references[0])
    judged = " Decisions are for inner folds of training rows." if inner else ""
    parts = [_HEAD.format(rows=judged), _summary(plain, ratios, references)]
    picture = place.with_suffix(".png")
    parts.append(f"![Cost of each table and method]({picture.name})\n")
    parts.append(f"## Cost / {references[0]}, table by table\n")
    parts.append(_by_table(ratios, least_is_best=True))
    coverage = _pivot(plain, "coverage90").groupby("experiment").mean()
    parts.append("\n## Share of outcomes in 90 % intervals\n")
    known = [method for method in _order(ratios) if method in coverage]
    parts.append(_by_table(coverage[known].reindex(ratios.index), least_is_best=False))
    left_out = sorted({*plain["method"]} - {*ratios})
    alone = f"- Without a split that {references[0]} has: {', '.join(left_out)}."
    parts += [*_paper_section(rows), *_cliff_section(real), *_remarks(rows, left_out and [alone])]
    try:
        _plot(ratios, references[0], picture)
        write_whole(place, "\n".join(parts) + "\n")
    except OSError as error:
        raise StorageError(f"cannot write {str(place)!r}: {error.strerror}") from error
    return place


def table_ratios(rows: pd.DataFrame, metric: str, reference: str) -> pd.DataFrame:
    """Mean over splits of a metric / that of the reference, (n_tables, n_methods).

    Methods that share no split with the reference are left out.
    """
    values = _pivot(rows, metric)
    found = {}
    for method in values.columns:
        both = values[[method, reference]].to_numpy()
        shared = pd.DataFrame(both, values.index, ["own", "other"]).dropna()
        if len(shared):
            means = shared.groupby("experiment").mean()
            found[method] = means["own"] / means["other"]
    return pd.DataFrame(found)


def _pivot(rows: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Values of a metric, (table and split, method)."""
    some = rows[rows["metric"] == metric]
    return some.pivot(index=["experiment", "seed"], columns="method", values="value")


def _order(ratios: pd.DataFrame) -> list[str]:
    return sorted(ratios, key=lambda method: float(np.log(ratios[method]).mean()))


def _mean_ratio(ratios: Iterable[float]) -> tuple[float, float, float]:
    """Geometric mean with its interval, NaN where there are too few tables."""
    found = summarise([math.log(ratio) for ratio in ratios if not math.isnan(ratio)])
    return math.exp(found.mean), math.exp(found.lower), math.exp(found.upper)


def _summary(rows: pd.DataFrame, ratios: pd.DataFrame, references: Sequence[str]) -> str:
    best = ratios.min(axis=1)
    others = [table_ratios(rows, "cost", reference) for reference in references]
    further = [table_ratios(rows, metric, references[0]) for metric in ("budget", "CRPS")
               if references[0] in _pivot(rows, metric)]  # fmt: skip
    coverage = _pivot(rows, "coverage90").groupby("experiment").mean()
    seconds = rows.groupby("method")["seconds"].mean()
    heads = [
        "method",
        "tables",
        "/ best",
        *(f"cost / {name}" for name in references),
        "worst table",
    ]
    heads += [f"{name} / {references[0]}" for name in ("budget", "CRPS")[: len(further)]]
    lines = []
    for method in _order(ratios):
        own = ratios[method].dropna()
        cells = [method, str(len(own)), f"{_mean_ratio(own / best[own.index])[0]:.3f}"]
        cells += [_interval(other.get(method)) for other in others]
        cells.append(f"{own.max():.2f} {own.idxmax()}")
        cells += [_interval(other.get(method)) for other in further]
        shares = coverage.get(method, pd.Series(dtype=float)).dropna()
        cells.append(f"{shares.mean():.3f} ({shares.min():.2f}–{shares.max():.2f})"
                     if len(shares) else "")  # fmt: skip
        lines.append([*cells, f"{seconds[method]:.3g}"])
    return markdown_table([*heads, "90 % intervals cover", "seconds"], lines) + "\n"


def _interval(ratios: pd.Series | None) -> str:
    """Geometric mean with its interval; nothing where there is nothing to compare."""
    if ratios is None:
        return ""
    mean, lower, upper = _mean_ratio(ratios)
    return f"{mean:.3f}" + ("" if math.isnan(lower) else f" [{lower:.2f}, {upper:.2f}]")


def _by_table(values: pd.DataFrame, *, least_is_best: bool) -> str:
    lines = []
    for method in _order(values) if least_is_best else values:
        cells = []
        for table, value in values[method].items():
            text = "" if math.isnan(value) else f"{value:.2f}"
            is_best = least_is_best and value == values.loc[table].min()
            cells.append(f"**{text}**" if is_best else text)
        lines.append([str(method), *cells])
    return markdown_table(["method", *map(str, values.index)], lines)


def _paper_section(rows: pd.DataFrame) -> list[str]:
    """Fair regret on the paper's problems, in the units of its tables."""
    settings, some = load_settings(), rows[rows["metric"] == "FR"]
    if some.empty:
        return []
    names = [name for name in PAPER if name in set(some["experiment"])]
    lines = []
    for method, own in some.groupby("method"):
        cells = []
        for name in names:
            values = own.loc[own["experiment"] == name, "value"] * settings.experiments[name].scale
            found = summarise(list(values)) if len(values) else None
            ends = (
                f" [{found.lower:.3g}, {found.upper:.3g}]" if found and found.has_interval else ""
            )
            cells.append("" if found is None else f"{found.mean:.3g}{ends} ({found.n})")
        lines.append([str(method), *cells])
    head = "\n## Fair regret on the paper's problems\n\nMean, 95 % interval, and number of seeds.\n"
    return [head, markdown_table(["method", *(name.upper() for name in names)], lines)]


def _cliff_section(rows: pd.DataFrame) -> list[str]:
    """Methods with changed settings against the same with their defaults, the worst first."""
    found = []
    for method in sorted(name for name in set(rows["method"]) if ":" in name):
        base, _, setting = method.partition(":")
        if base in set(rows["method"]):
            pair = rows[rows["method"].isin([base, method])]
            ratios = table_ratios(pair, "cost", base).get(method)
            if ratios is not None:
                found.append((_mean_ratio(ratios)[0], base, setting, ratios.dropna()))
    lines = [
        [base, f"`{setting}`", f"**{mean:.3f}**" if mean > _STEEP else f"{mean:.3f}",
         f"{ratios.max():.2f} {ratios.idxmax()}", str(len(ratios))]
        for mean, base, setting, ratios in sorted(found, key=lambda line: -line[0])
    ]  # fmt: skip
    heads = ["method", "setting", "cost / default", "worst table", "tables"]
    head = f"\n## Beside the defaults\n\nBold: more than {_STEEP} times the default's cost.\n"
    return [head, markdown_table(heads, lines)] if lines else []


def _remarks(rows: pd.DataFrame, known: Sequence[str]) -> list[str]:
    """What failed, what other code computed, and where rows came from."""
    found = list(known)
    failed = rows[rows["metric"] == ERROR]
    for _, row in failed.iterrows():
        place = f"{row['method']} on {row['experiment']}, split {row['seed']}"
        found.append(f"- Failed: {place}: {row['note']}")
    own = rows[rows["method"].str.partition(":")[0].isin([*METHODS, AUTO])]
    present = {method: config_hash(method) for method in own["method"].unique()}
    older = own[own["config_hash"] != own["method"].map(present)]
    for method, some in older.groupby("method"):
        n_fits = len(some[["experiment", "seed"]].drop_duplicates())
        found.append(f"- Computed by other code than the present: {method}, {n_fits} fits.")
    others = rows[~rows["method"].isin(own["method"])]
    for note, some in others.groupby("note"):
        found.append(f"- {', '.join(sorted(set(some['method'])))}: {note}.")
    return ["\n## Remarks\n", *found] if found else []


def _plot(ratios: pd.DataFrame, reference: str, path: Path) -> None:
    """A dot per table, a diamond with its interval for the geometric mean."""
    order = _order(ratios)[::-1]
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(8, 1.2 + 0.3 * len(order)), layout="constrained")
        axes = figure.subplots()
        for place, method in enumerate(order):
            own = ratios[method].dropna()
            mean, lower, upper = _mean_ratio(own)
            axes.scatter(own, np.full(len(own), place), s=14, color="0.65", lw=0, zorder=2)
            axes.plot([lower, upper], [place, place], color="#0072B2", lw=2, zorder=3)
            axes.scatter([mean], [place], marker="D", s=28, color="#0072B2", zorder=4)
            axes.annotate(f"{mean:.2f}", (1.01, place), xycoords=("axes fraction", "data"),
                          va="center", fontsize=8)  # fmt: skip
        axes.axvline(1.0, color="0.3", lw=0.8, zorder=1)
        axes.set_xscale("log")
        low, high = float(ratios.min(axis=None)), float(ratios.max(axis=None))
        ticks = [
            t
            for t in (0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 10, 20)
            if low / 1.2 < t < high * 1.2
        ]
        axes.xaxis.set_major_locator(FixedLocator(ticks))
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_yticks(range(len(order)), order)
        axes.set_xlabel(f"cost / {reference}: tables (dots), geometric mean and 95 % interval")
        figure.savefig(path, dpi=120)
