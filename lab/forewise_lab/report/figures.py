"""The report's figures: from rows to charts, each with its numbers beside it.

May import: its siblings `charts`, `formats`, `paper`, `results`, `statistics`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

from markupsafe import Markup

from forewise_lab.report import paper
from forewise_lab.report.charts import Axis, Point, Series, dot_chart, line_chart
from forewise_lab.report.formats import interval, mean_std, number, seconds
from forewise_lab.report.results import At, Results
from forewise_lab.report.statistics import Summary, summarise

_WIDE, _NARROW = 600, 356
_COVERAGE = re.compile(r"coverage(\d{1,2})$")
_STYLES = {"c-bnn": 0, "d-bnn": 1, "d-gp": 2, "oracle": 3, "c-ann": 4, "d-ann": 5}
_OTHER_STYLES = (6, 7)


@dataclass(frozen=True)
class Numbers:
    """The numbers behind a figure, for those who want or need them as text."""

    heads: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Picture:
    """A chart, drawn once for each kind of screen, and its numbers."""

    title: str
    charts: tuple[Markup, ...]
    caption: str
    numbers: Numbers


def over_scenarios(results: Results) -> Picture | None:
    """Fair regret against M; None without rows."""
    return _over(
        results,
        paper.OVER_SCENARIOS,
        lambda at: at.m,
        "scenarios at test, M",
        "Fair regret against the number of scenarios on POP, M_train = 32.",
    )


def over_rows(results: Results) -> Picture | None:
    """Fair regret against training rows; None without rows."""
    return _over(
        results,
        paper.OVER_ROWS,
        lambda at: at.n_train,
        "training rows",
        "Fair regret against the number of training rows on POP with 10 assets, M_train = M = 32.",
    )


def coverages(results: Results) -> list[Picture]:
    """One chart per experiment: how often the outcome lay in the central interval.

    Where rows have three or more levels (metrics ``coverage50``, ``coverage80`` ...), a curve.
    """
    pictures = []
    for experiment in paper.TABLE1:
        found = {
            metric: int(match[1]) / 100
            for metric in dict.fromkeys(results.rows["metric"])
            if (match := _COVERAGE.match(metric))
            and any(results.places(experiment, m, metric) for m in results.methods(experiment))
        }
        for metric, level in found.items():
            pictures.append(_coverage(results, experiment, metric, level))
        if len(found) >= 3:
            pictures.append(_coverage_curve(results, experiment, found))
    return pictures


def times(results: Results) -> list[Picture]:
    """One chart per experiment: seconds to fit and to decide at the headline."""
    return [
        _times(results, experiment)
        for experiment in paper.TABLE1
        if experiment in results.experiments and results.rows["seconds"].notna().any()
    ]


def _over(
    results: Results, experiment: str, size: Callable[[At], int], label: str, caption: str
) -> Picture | None:
    series, lines = [], []
    other = iter(_OTHER_STYLES * len(results.methods(experiment)))
    sizes: dict[int, None] = {}
    by_method: dict[str, dict[int, Summary]] = {}
    for method in results.methods(experiment):
        values = {
            size(at): summarise(list(results.values(experiment, method, "FR", at).values()))
            for at in results.places(experiment, method, "FR")
        }
        if values:
            by_method[results.method_title(method)] = values
            sizes |= dict.fromkeys(values)
            base = method.removesuffix("-tuned")
            style = _STYLES[base] if base in _STYLES else next(other)
            points = tuple(_point(x, values[x]) for x in sorted(values))
            name = results.method_title(method)
            series.append(Series(name, points, style, dashed=method != base))
    if not series:
        return None
    for name, found in by_method.items():
        cells = (_in_words(found.get(x)) for x in sorted(sizes))
        lines.append((name, *cells))
    title = results.experiment_title(experiment)
    description = "; ".join(f"{name}: {_range(found)}" for name, found in by_method.items())
    charts = tuple(
        line_chart(
            series, Axis(label, logarithmic=True), Axis("FR"), title, f"{caption} {description}", w
        )
        for w in (_WIDE, _NARROW)
    )
    heads = ("Method", *(f"{x:,}" for x in sorted(sizes)))
    return Picture(
        title,
        charts,
        f"{caption} Bars are 95 % intervals over seeds.",
        Numbers(heads, tuple(lines)),
    )


def _coverage(results: Results, experiment: str, metric: str, level: float) -> Picture:
    names: list[str] = []
    points, lines = [], []
    for method in results.methods(experiment):
        at = results.headline(experiment, method, metric)
        if at is None:
            continue
        found = summarise(list(results.values(experiment, method, metric, at).values()))
        points.append(_point(len(names), found))
        names.append(results.method_title(method))
        lines.append((names[-1], mean_std(found, 3), interval(found, 3)))
    title = results.experiment_title(experiment)
    chart = dot_chart(
        names,
        [Series(metric, tuple(points), 0)],
        Axis(f"share of outcomes in the central {level:.0%} interval"),
        f"{title}: coverage of the central {level:.0%} interval",
        "; ".join(" ".join(line[:2]) for line in lines),
        bounds=(0.0, 1.0),
        ticks=(0.0, 0.25, 0.5, 0.75, 1.0),
        tick_text=lambda tick: f"{tick:.0%}",
        reference=level,
    )
    heads = ("Method", "mean ± std", "95 %")
    return Picture(title, (chart,), "", Numbers(heads, tuple(lines)))


def _coverage_curve(results: Results, experiment: str, levels: dict[str, float]) -> Picture:
    series, lines = [], []
    for place, method in enumerate(results.methods(experiment)):
        found = {}
        for metric, level in sorted(levels.items(), key=lambda item: item[1]):
            at = results.headline(experiment, method, metric)
            if at is not None:
                values = results.values(experiment, method, metric, at)
                found[level] = summarise(list(values.values()))
        if found:
            name = results.method_title(method)
            points = tuple(_point(level, summary) for level, summary in found.items())
            series.append(Series(name, points, place % 8))
            lines.append((name, *(_in_words(found.get(v), 3) for v in sorted(levels.values()))))
    title = f"{results.experiment_title(experiment)}: calibration"
    # What a calibrated forecast would have.
    truth = tuple(Point(level, level, level, level) for level in sorted(levels.values()))
    series.append(Series("calibrated", truth, 3, dashed=True))
    chart = line_chart(
        series, Axis("nominal"), Axis("observed share"), title, "Observed against nominal.", 400
    )
    heads = ("Method", *(f"{level:.0%}" for level in sorted(levels.values())))
    return Picture(title, (chart,), "", Numbers(heads, tuple(lines)))


def _times(results: Results, experiment: str) -> Picture:
    names: list[str] = []
    fitting: list[Point] = []
    deciding: list[Point] = []
    lines = []
    rows = results.rows[results.rows["experiment"] == experiment]
    for method in results.methods(experiment):
        at = results.headline(experiment, method, "R") or results.headline(experiment, method, "FR")
        if at is None:
            continue
        here = (rows["method"] == method) & (rows["n_train"] == at.n_train)
        here &= (rows["m_train"] == at.m_train) & (rows["m"] == at.m)
        medians = rows.loc[here, ["seconds", "decide_seconds", "peak_memory_mib"]].median()
        fit, decide, memory = (float(value) for value in medians)
        for points, value in ((fitting, fit), (deciding, decide)):
            if value > 0:
                points.append(Point(len(names), value, value, value))
        names.append(results.method_title(method))
        told = ("–" if math.isnan(v) else seconds(v) for v in (fit, decide))
        lines.append((names[-1], *told, "–" if math.isnan(memory) else f"{memory:,.0f} MiB"))
    title = results.experiment_title(experiment)
    largest = max((point.mean for point in [*fitting, *deciding]), default=1.0)
    ticks = [10.0**k for k in range(-3, max(1, math.ceil(math.log10(largest))) + 1)]
    series = [
        Series("fit", tuple(fitting), 0),
        Series("decide for the test rows", tuple(deciding), 1),
    ]
    chart = dot_chart(
        names,
        series,
        Axis("seconds of one core", logarithmic=True),
        f"{title}: time per method",
        "; ".join(f"{line[0]}: fit {line[1]}, decide {line[2]}" for line in lines),
        bounds=(ticks[0], ticks[-1]),
        ticks=ticks if len(ticks) < 8 else ticks[::2],
        tick_text=lambda tick: f"{tick:g}",
    )
    heads = ("Method", "fit", "decide", "peak memory")
    return Picture(title, (chart,), "", Numbers(heads, tuple(lines)))


def _point(x: float, found: Summary) -> Point:
    if not found.has_interval:
        return Point(x, found.mean, found.mean, found.mean)
    return Point(x, found.mean, found.lower, found.upper)


def _in_words(found: Summary | None, decimals: int = 1) -> str:
    return mean_std(found, decimals)


def _range(found: dict[int, Summary]) -> str:
    first, last = min(found), max(found)
    ends = [f"{number(found[x].mean, 1)} at {x}" for x in (first, last)]
    return " to ".join(ends)
