"""The report's figures: from rows to matplotlib charts as inline SVG, each with its numbers.

Series differ by colour, marker and dash, never by colour alone. Colours are replaced by variables
of the page's style sheet, so that light, dark and print each have their own.
"""

from __future__ import annotations

import io
import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import matplotlib as mpl
import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

import forewise as fw
from forewise_lab.datasets.paper import paper_split
from forewise_lab.report import paper
from forewise_lab.report.rendering import interval, mean_std, number, seconds
from forewise_lab.report.results import Results
from forewise_lab.report.statistics import Summary, summarise

_WIDE, _NARROW, _HALF = 600, 356, 400  # pixels
_PIXELS = 72  # of an inch in matplotlib's SVG
_COVERAGE, _LEVEL = "coverage90", 0.9
_INK, _SOFT, _FAINT, _CARD = "#1d2126", "#565d66", "#efede7", "#fefefe"
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#6b7077", "#2f8fc4", "#b87a00", "#b0588a", "#4d4d4d")
_MARKERS = ("o", "s", "^", "D")
_VARIABLES = {_INK: "ink", _SOFT: "soft", _FAINT: "faint", _CARD: "card"}
_VARIABLES |= {colour: f"c{place}" for place, colour in enumerate(_COLOURS)}
_STYLES = {"c-bnn": 0, "d-bnn": 1, "d-gp": 2, "oracle": 3, "c-ann": 4, "d-ann": 5}
_OTHER_STYLES = (6, 7)
_CHART_STYLE = fw.plots.STYLE | {
    **dict.fromkeys(("axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), _SOFT),
    **{"font.size": 11, "text.color": _INK, "grid.color": _FAINT, "axes.axisbelow": True},
    **{"legend.frameon": False, "savefig.transparent": True},
}
#: The optimal order of NV1 is this quantile: shortage 100, excess 900.
LEVEL = 0.1
_PANEL_SEED = 0
# What fair regret is drawn against: the size, its name, the caption.
_SIZES = {
    paper.OVER_SCENARIOS: (
        *("m", "scenarios at test, M"),
        "Fair regret against the number of scenarios on POP, M_train = 32.",
    ),
    paper.OVER_ROWS: (
        *("n_train", "training rows"),
        "Fair regret against the number of training rows on POP with 10 assets, M_train = M = 32.",
    ),
}


@dataclass(frozen=True)
class Picture:
    """A chart, drawn once for each kind of screen, and its numbers as text."""

    title: str
    charts: tuple[Markup, ...]
    caption: str
    heads: tuple[str, ...]
    lines: Sequence[tuple[str, ...]]


@dataclass(frozen=True)
class Series:
    """Summaries by x; `style` is a place in the list of colours, and decides the marker, too."""

    name: str
    points: Mapping[float, Summary]
    style: int
    dashed: bool = False


def coverages(results: Results) -> list[Picture]:
    """One chart per experiment: how often the outcome lay in the central 90 % interval."""
    return [
        _coverage(results, experiment)
        for experiment in paper.TABLE1
        if experiment in results.experiments
        and any(results.places(experiment, m, _COVERAGE) for m in results.methods(experiment))
    ]


def times(results: Results) -> list[Picture]:
    """One chart per experiment: seconds to fit and to decide at the headline."""
    return [
        _times(results, experiment)
        for experiment in paper.TABLE1
        if experiment in results.experiments and results.rows["seconds"].notna().any()
    ]


def kept_panels(results: str | os.PathLike[str]) -> Path | None:
    """The folder of policies of `nv1_panels` in a results folder; None if there is none."""
    place = Path(results) / f"policies/nv1-panels/seed{_PANEL_SEED}"
    return place if place.is_dir() else None


def nv1_panels(folder: str | os.PathLike[str]) -> Markup:
    """The paper's last figure from saved policies: decisions on NV1 over the context.

    The subfolders of `folder` are policies for NV1, their names the titles.
    """
    place = Path(folder)
    inner = sorted(path for path in place.iterdir() if path.is_dir()) if place.is_dir() else []
    if not inner:
        raise fw.InvalidInputError(
            f"policies must be a folder with one subfolder per saved policy, but {str(place)!r} "
            "has none"
        )
    policies: dict[str, fw.Policy] = {path.name: fw.load_policy(path) for path in inner}
    figure = fw.plots.decision_panels(paper_split("nv1", _PANEL_SEED).test, policies, LEVEL)
    label = f"Decisions on NV1 over the context: {', '.join(policies)}"
    return _as_svg(figure, label, "Data, predictions, decisions and the true quantile.", {}, "")


def over(results: Results, experiment: str) -> Picture | None:
    """Fair regret against scenarios or training rows; None without rows."""
    size, label, caption = _SIZES[experiment]
    other, series = count(), []
    for method in results.methods(experiment):
        values: dict[float, Summary] = {
            getattr(at, size): summarise(
                list(results.values(experiment, method, "FR", at).values())
            )
            for at in results.places(experiment, method, "FR")
        }
        base = method.removesuffix("-tuned")
        if values:
            style = _STYLES.get(base)
            style = _OTHER_STYLES[next(other) % len(_OTHER_STYLES)] if style is None else style
            series.append(Series(results.method_title(method), values, style, method != base))
    if not series:
        return None
    sizes = sorted({x for one in series for x in one.points})
    title = results.settings.experiments[experiment].title
    description = f"{caption} " + "; ".join(f"{one.name}: {_range(one.points)}" for one in series)
    lines = tuple((one.name, *(mean_std(one.points.get(x), 1) for x in sizes)) for one in series)
    return Picture(
        title,
        tuple(_line_chart(series, label, "FR", title, description, w) for w in (_WIDE, _NARROW)),
        f"{caption} Bars are 95 % intervals over seeds.",
        ("Method", *(f"{x:,}" for x in sizes)),
        lines,
    )


def _coverage(results: Results, experiment: str) -> Picture:
    found = {}
    for method in results.methods(experiment):
        at = results.headline(experiment, method, _COVERAGE)
        if at is not None:
            values = results.values(experiment, method, _COVERAGE, at)
            found[results.method_title(method)] = summarise(list(values.values()))
    lines = tuple((name, mean_std(own, 3), interval(own, 3)) for name, own in found.items())
    title, share = results.settings.experiments[experiment].title, f"central {_LEVEL:.0%} interval"

    def dress(axes: Axes) -> None:
        ticks = (0.0, 0.25, 0.5, 0.75, 1.0)
        axes.set_xlim(-0.02, 1.02)
        axes.set_xticks(ticks, [f"{tick:.0%}" for tick in ticks])
        axes.axvline(_LEVEL, color=_INK, ls=(0, (4, 3)), lw=1)
        axes.set_xlabel(f"share of outcomes in the {share}")

    series = [Series(_COVERAGE, dict(enumerate(found.values())), 0)]
    description = "; ".join(" ".join(line[:2]) for line in lines)
    chart = _dot_chart(list(found), series, dress, f"{title}: coverage of the {share}", description)
    return Picture(title, (chart,), "", ("Method", "mean ± std", "95 %"), lines)


def _times(results: Results, experiment: str) -> Picture:
    rows = results.rows[results.rows["experiment"] == experiment]
    names: list[str] = []
    found: tuple[dict[float, Summary], dict[float, Summary]] = ({}, {})
    lines = []
    for method in results.methods(experiment):
        at = results.headline(experiment, method, "R") or results.headline(experiment, method, "FR")
        if at is None:
            continue
        here = (rows["method"] == method) & (rows["n_train"] == at.n_train)
        here &= (rows["m_train"] == at.m_train) & (rows["m"] == at.m)
        medians = rows.loc[here, ["seconds", "decide_seconds", "peak_memory_mib"]].median()
        *both, memory = (float(value) for value in medians)
        for points, value in zip(found, both, strict=True):
            if value > 0:
                points[len(names)] = summarise([value])
        names.append(results.method_title(method))
        cells = ("–" if math.isnan(value) else seconds(value) for value in both)
        lines.append((names[-1], *cells, "–" if math.isnan(memory) else f"{memory:,.0f} MiB"))
    title = results.settings.experiments[experiment].title

    def dress(axes: Axes) -> None:
        largest = max((own.mean for points in found for own in points.values()), default=1.0)
        ticks = [10.0**k for k in range(-3, max(1, math.ceil(math.log10(largest))) + 1)]
        axes.set_xscale("log")
        axes.set_xlim(ticks[0] / 1.3, ticks[-1] * 1.3)
        shown = ticks if len(ticks) < 8 else ticks[::2]
        axes.set_xticks(shown, [f"{tick:g}" for tick in shown])
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xlabel("seconds of one core")

    series = [Series("fit", found[0], 0), Series("decide for the test rows", found[1], 1)]
    description = "; ".join(f"{line[0]}: fit {line[1]}, decide {line[2]}" for line in lines)
    chart = _dot_chart(names, series, dress, f"{title}: time per method", description)
    return Picture(title, (chart,), "", ("Method", "fit", "decide", "peak memory"), lines)


def _line_chart(
    series: Sequence[Series],
    x_label: str,
    y_label: str,
    title: str,
    description: str,
    width: int,
) -> Markup:
    """Lines with intervals; y starts at zero if it can."""
    with mpl.rc_context(_CHART_STYLE):
        figure, axes = _subplots(width, 0.36 * width + 150 + 8 * len(series))
        axes.set_xscale("log")
        for place, one in enumerate(series):
            # Side by side, so that intervals at the same place do not hide each other.
            shift = place - (len(series) - 1) / 2
            _draw(axes, one, "y", shift=1 + 0.012 * shift)
        places = sorted({x for one in series for x in one.points})
        axes.set_xticks(_apart(places, width), minor=False)
        axes.set_xticklabels([f"{x:,g}" for x in axes.get_xticks()])
        axes.xaxis.set_minor_locator(NullLocator())
        points = [point for one in series for point in one.points.values()]
        largest = max(point.mean for point in points)
        highest = max(_ends(point)[1] for point in points)
        # An interval much larger than the means is cut.
        top = 1.05 * (min(highest, 1.6 * largest) if largest > 0 else highest)
        low = min(0.0, *(max(_ends(p)[0], p.mean - abs(largest)) for p in points))
        axes.set_ylim(low, top if top > low else low + 1)
        axes.grid(axis="y")
        axes.set_xlabel(x_label)
        axes.set_ylabel(y_label)
        figure.legend(loc="outside upper left", ncols=max(1, width // 140))
        return _as_svg(figure, title, description, _VARIABLES, f"chart w{width}")


def _dot_chart(
    names: Sequence[str],
    series: Sequence[Series],
    dress: Callable[[Axes], None],
    title: str,
    description: str,
) -> Markup:
    """One line per name, with a dot for each series; a point's key is the place of its name."""
    with mpl.rc_context(_CHART_STYLE):
        figure, axes = _subplots(_HALF, 21 * len(names) + (76 if len(series) > 1 else 52))
        for one in series:
            _draw(axes, one, "x")
        axes.set_yticks(
            range(len(names)),
            [name if len(name) < 25 else name[:23] + "…" for name in names],
            color=_INK,
        )
        axes.set_ylim(len(names) - 0.4, -0.6)
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        axes.grid(axis="x")
        dress(axes)
        if len(series) > 1:
            figure.legend(loc="outside upper left", ncols=2)
        return _as_svg(figure, title, description, _VARIABLES, "chart")


def _subplots(width: float, height: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(width / _PIXELS, height / _PIXELS), layout="constrained")
    return figure, figure.subplots()


def _draw(axes: Axes, one: Series, along: str, shift: float = 1.0) -> None:
    """A series with its intervals, along y (over the keys) or along x (beside them)."""
    keys = np.array(sorted(one.points)) * shift
    points = [one.points[key] for key in sorted(one.points)]
    means = np.array([point.mean for point in points])
    ends = np.array([_ends(point) for point in points]).reshape(len(points), 2).T
    colour, bars = _COLOURS[one.style], np.abs(ends - means)
    line = {"y": "--" if one.dashed else "-", "x": "none"}[along]
    axes.errorbar(
        *((keys, means) if along == "y" else (means, keys)), **{f"{along}err": bars},
        label=one.name, color=colour, ls=line, lw=1.8, marker=_MARKERS[one.style % 4], ms=6,
        elinewidth=1.4,
        mfc=_CARD if one.dashed else colour,
    )  # fmt: skip


def _ends(point: Summary) -> tuple[float, float]:
    return (point.lower, point.upper) if point.has_interval else (point.mean, point.mean)


def _apart(places: Sequence[float], width: int) -> list[float]:
    at = np.log(places)
    least = (at[-1] - at[0]) * 44 / width
    kept = [0]
    for place in range(1, len(places)):
        if at[place] - at[kept[-1]] >= least:
            kept.append(place)
    return [places[place] for place in kept]


def _range(found: Mapping[float, Summary]) -> str:
    ends = [f"{number(found[x].mean, 1)} at {x}" for x in (min(found), max(found))]
    return " to ".join(ends)


def _as_svg(
    figure: Figure, label: str, description: str, variables: Mapping[str, str], kind: str
) -> Markup:
    """A figure as inline SVG that loads nothing; the same figure gives the same text."""
    file = io.StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    # Identifiers are made from a salt: no two pictures of a page may share them.
    with mpl.rc_context({"svg.hashsalt": f"{label} {kind}"}):
        figure.savefig(file, format="svg", metadata=nothing)
    svg = file.getvalue()
    body = svg[svg.index(">", svg.index("<svg")) + 1 :]
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    referenced = set(re.findall(r"#([\w-]+)", body))
    body = re.sub(r' id="([^"]*)"', lambda m: m[0] if m[1] in referenced else "", body)
    body = re.sub(r"font: ([^;\"]*?px) [^;\"]*", r"font: \1 var(--sans)", body)
    for colour, variable in variables.items():
        body = body.replace(colour, f"var(--{variable})")
    width, height = figure.get_size_inches() * _PIXELS
    head = Markup(
        '<svg class="{}" viewBox="0 0 {:.0f} {:.0f}" role="img" aria-label="{}"><desc>{}</desc>'
    ).format(kind, width, height, label, description)
    return head + Markup(body)
