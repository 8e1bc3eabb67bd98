"""One page of the suite's rows: costs relative to others, calibration, seconds, and a picture.

A ratio compares the splits that both methods have: of each table the mean cost of one over that
of the other, then the geometric mean over tables, with a 95 % t-interval of its logarithm.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

import forewise as fw
from forewise_lab.experiments.configuration import load_settings
from forewise_lab.experiments.rows import ERROR, read_rows, storage_errors
from forewise_lab.machine import write_whole
from forewise_lab.report.rendering import markdown_table
from forewise_lab.report.statistics import summarise
from forewise_lab.suite.fits import INNER, PAPER
from forewise_lab.suite.methods import AUTO, METHODS, config_hash

_HEAD = """# Decisions on tables

`forewise-lab suite report` wrote this page from `rows.jsonl` beside it.{rows}
Cost is a newsvendor's at five service levels; "budget" is that of three products that share one
(`lab/forewise_lab/suite/fits.py`). Ratios are geometric means over tables, on the splits that
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
    rows = rows[rows["experiment"].str.endswith(INNER) == inner]
    rows = rows.assign(experiment=rows["experiment"].str.removesuffix(INNER))
    # A row of newer code comes later and replaces that of older code.
    rows = rows.drop_duplicates(["experiment", "method", "seed", "metric"], keep="last")
    real = rows[~rows["experiment"].isin(PAPER)]
    plain = real[~real["method"].str.contains(":")]
    costs = _pivot(plain, "cost")
    references = [name for name in against if name in costs]
    if not references:
        raise fw.InvalidInputError(f"against must name one of {', '.join(costs)}, but is {against}")
    ratios = table_ratios(costs, references[0])
    coverage = _pivot(plain, "coverage90").groupby("experiment").mean()
    coverage = coverage.reindex(ratios.index, columns=[c for c in ratios if c in coverage])
    missing = ", ".join(costs.columns.difference(ratios.columns))
    evaluated = " Decisions are for rows held out of the training part." if inner else ""
    picture = place.with_suffix(".png")
    parts = [
        _HEAD.format(rows=evaluated),
        _summary(plain, ratios, coverage, references),
        f"\n![Cost of each table and method]({picture.name})\n",
        f"## Cost / {references[0]}, table by table\n",
        _by_table(ratios, best=True),
        "\n## Share of outcomes in 90 % intervals\n",
        _by_table(coverage, best=False),
        *_paper_section(rows[rows["metric"] == "FR"]),
        *_cliff_section(_pivot(real, "cost")),
        "\n## Remarks\n",
        *([f"- Without a split that {references[0]} has: {missing}."] if missing else []),
        *_remarks(rows),
    ]
    with storage_errors("write to", place.parent):
        _plot(ratios, references[0], picture)
        write_whole(place, "\n".join(parts) + "\n")
    return place


def _pivot(rows: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Values of a metric, (table and split, method)."""
    some = rows[rows["metric"] == metric]
    return some.pivot(index=["experiment", "seed"], columns="method", values="value")


def table_ratios(values: pd.DataFrame, reference: str) -> pd.DataFrame:
    """Mean over splits / that of the reference, (n_tables, n_methods), the best method first.

    Methods that share no split with the reference are left out.
    """
    other = values[reference]
    means = values.where(other.notna(), axis=0).groupby("experiment").mean()
    others = values.notna().mul(other, axis=0).where(values.notna()).groupby("experiment").mean()
    ratios = (means / others).dropna(axis=1, how="all")
    return ratios[np.log(ratios).mean().sort_values().index]


def _mean_ratio(ratios: pd.Series) -> tuple[float, float, float]:
    """Geometric mean with its interval, NaN where there are too few tables."""
    found = summarise(list(np.log(ratios.dropna())))
    return math.exp(found.mean), math.exp(found.lower), math.exp(found.upper)


def _summary(
    rows: pd.DataFrame, ratios: pd.DataFrame, coverage: pd.DataFrame, references: Sequence[str]
) -> str:
    compared = {f"cost / {name}": table_ratios(_pivot(rows, "cost"), name) for name in references}
    for metric in ("budget", "CRPS"):
        values = _pivot(rows, metric)
        if references[0] in values:
            compared[f"{metric} / {references[0]}"] = table_ratios(values, references[0])
    best, seconds = ratios.min(axis=1), rows.groupby("method")["seconds"].mean()
    lines = []
    for method in ratios:
        own = ratios[method].dropna()
        cells = [str(len(own)), f"{_mean_ratio(own / best)[0]:.3f}"]
        for found in compared.values():
            mean, lower, upper = _mean_ratio(found[method]) if method in found else (math.nan,) * 3
            ends = "" if math.isnan(lower) else f" [{lower:.2f}, {upper:.2f}]"
            cells.append("" if math.isnan(mean) else f"{mean:.3f}{ends}")
        cells.append(f"{own.max():.2f} {own.idxmax()}")
        shares = coverage[method] if method in coverage else pd.Series(dtype=float)
        text = f"{shares.mean():.3f} ({shares.min():.2f}–{shares.max():.2f})"
        lines.append([str(method), *cells, text if len(shares) else "", f"{seconds[method]:.3g}"])
    last = ("worst table", "90 % intervals cover", "seconds")
    return markdown_table(["method", "tables", "/ best", *compared, *last], lines)


def _by_table(values: pd.DataFrame, *, best: bool) -> str:
    """A line per method; bold is the lowest of a table where that is the best."""
    text = values.map(lambda value: "" if math.isnan(value) else f"{value:.2f}")
    if best:
        text = text.where(values.ne(values.min(axis=1), axis=0), "**" + text + "**")
    lines = [[str(method), *text[method]] for method in text]
    return markdown_table(["method", *map(str, values.index)], lines)


def _paper_section(rows: pd.DataFrame) -> list[str]:
    """Fair regret on the paper's problems, in the units of its tables."""
    settings, lines = load_settings(), []
    for (method, name), own in rows.groupby(["method", "experiment"]):
        found = summarise(list(own["value"] * settings.experiments[name].scale))
        ends = f"{found.lower:.3g} to {found.upper:.3g}" if found.has_interval else ""
        lines.append([str(method), str(name).upper(), f"{found.mean:.3g}", ends, str(found.n)])
    table = markdown_table(["method", "problem", "FR", "95 % interval", "seeds"], lines)
    return ["\n## Fair regret on the paper's problems\n", table] if lines else []


def _cliff_section(costs: pd.DataFrame) -> list[str]:
    """Methods with changed settings against the same with their defaults, the worst first."""
    found = []
    for method in costs:
        base, _, setting = str(method).partition(":")
        if setting and base in costs:
            ratios = table_ratios(costs[[base, method]], base)
            if method in ratios:
                own = ratios[method].dropna()
                found.append((_mean_ratio(own)[0], base, setting, own))
    lines = []
    for mean, base, setting, own in sorted(found, key=lambda line: -line[0]):
        text = f"**{mean:.3f}**" if mean > _STEEP else f"{mean:.3f}"
        worst = f"{own.max():.2f} {own.idxmax()}"
        lines.append([base, f"`{setting}`", text, worst, str(len(own))])
    heads = ["method", "setting", "cost / default", "worst table", "tables"]
    head = f"\n## Beside the defaults\n\nBold: more than {_STEEP} times the default's cost.\n"
    return [head, markdown_table(heads, lines)] if lines else []


def _remarks(rows: pd.DataFrame) -> list[str]:
    """What failed, what other code computed, and where rows came from."""
    failed = rows[rows["metric"] == ERROR].groupby(["method", "note"]).size()
    found = [f"- Failed: {method}, {n} fits: {note}" for (method, note), n in failed.items()]
    is_own = rows["method"].str.partition(":")[0].isin([*METHODS, AUTO])
    own = rows[is_own]
    older = own[own["config_hash"] != own["method"].map(config_hash)]
    for method, some in older.groupby("method"):
        n_fits = len(some[["experiment", "seed"]].drop_duplicates())
        found.append(f"- Computed by other code than the present: {method}, {n_fits} fits.")
    for note, some in rows[~is_own].groupby("note"):
        found.append(f"- {', '.join(sorted(set(some['method'])))}: {note}.")
    return found


def _plot(ratios: pd.DataFrame, reference: str, path: Path) -> None:
    """A dot per table, a diamond with its interval for the geometric mean."""
    with mpl.rc_context(fw.plots.STYLE):
        figure = Figure(figsize=(8, 1.2 + 0.3 * ratios.shape[1]), layout="constrained")
        axes = figure.subplots()
        for place, method in enumerate(ratios):
            mean, lower, upper = _mean_ratio(ratios[method])
            axes.scatter(ratios[method], [place] * len(ratios), s=14, color="0.4", lw=0, zorder=3)
            axes.plot([lower, upper], [place, place], color="#0072B2", lw=3, alpha=0.4)
            axes.scatter([mean], [place], marker="D", s=28, color="#0072B2", zorder=4)
            at = (1.01, place)
            axes.annotate(f"{mean:.2f}", at, xycoords=("axes fraction", "data"), va="center")
        axes.axvline(1.0, color="0.3", lw=0.8, zorder=0)
        axes.set_xscale("log")
        low, high = ratios.min(axis=None), ratios.max(axis=None)
        axes.set_xlim(low / 1.1, high * 1.1)
        ticks = (0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 10, 20)
        axes.xaxis.set_major_locator(FixedLocator([t for t in ticks if low / 1.1 < t < high * 1.1]))
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_yticks(range(ratios.shape[1]), list(ratios))
        axes.invert_yaxis()
        axes.set_xlabel(f"cost / {reference}: tables (dots), geometric mean and 95 % interval")
        figure.savefig(path, dpi=120)
