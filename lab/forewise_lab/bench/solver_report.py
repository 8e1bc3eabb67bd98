"""What the solver bench found: bars, tables, the plot of time against scenarios, the files."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.console import Console

from forewise_lab.bench.accuracy import WANTED
from forewise_lab.bench.peers import ClarabelLoop, ForewisePeer, HighsLoop, MoreauBatch, QpthDense
from forewise_lab.bench.results import (
    ABSENT,
    LEGENDS,
    Bar,
    Measurement,
    Measurements,
    Quantity,
    TextTable,
    at_least,
    at_most,
    bars_table,
    between,
    fitted_exponent,
    seconds,
)
from forewise_lab.machine import whole_file, write_whole

FOREWISE = ForewisePeer.name
GROWTH_SIZES = (256, 1024, 4096)
LARGEST_EXPONENT = 1.05
LARGEST_PEAK_MIB = 2000.0 / 1.024**2  # 2 GB
LEGEND = LEGENDS["solver"]
# Family, M, peer and its quantity; forewise's forward and backward pass is so many times faster.
RATIOS = (
    ("nvqp", 64, ClarabelLoop.name, Quantity.FORWARD, 20),
    ("nvqp", 64, MoreauBatch.name, Quantity.BOTH, 20),
    ("nvqp", 32, QpthDense.name, Quantity.BOTH, 1000),
    ("pop", 64, HighsLoop.name, Quantity.FORWARD, 5),
    ("pop", 64, ClarabelLoop.name, Quantity.FORWARD, 5),
    ("pop", 64, MoreauBatch.name, Quantity.BOTH, 5),
    ("recourse", 128, ClarabelLoop.name, Quantity.FORWARD, 3),
    ("recourse", 128, MoreauBatch.name, Quantity.BOTH, 5),
)
# Okabe and Ito's colours, which colour-blind readers can tell apart; black is forewise's.
_COLOURS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_STYLE = {"font.size": 9, "svg.hashsalt": "forewise", "svg.fonttype": "none"}
# Labels of lines that end side by side are kept apart by this factor in time.
_LABEL_FACTOR = 1.5


@dataclass(frozen=True)
class SolverReport:
    """What is reported of a run, complete or not.

    `growth` are the (family, n_scenarios) whose memory is measured.
    """

    results: Measurements
    growth: Sequence[tuple[str, int]]
    titles: dict[str, str]
    missing: Sequence[str]
    machine: str

    def tables(self) -> list[TextTable]:
        """The bars last, because that is where a terminal's reader looks first."""
        cases = self.results.cases()
        return [
            *(case_table(self.results, case, self.titles[case[0]]) for case in cases),
            growth_table(self.results, self.growth),
            bars_table(bars_of(self.results), "The bars for forewise's forward + backward"),
        ]

    def print(self, console: Console) -> None:
        for table in self.tables():
            console.print(table.as_rich(), "")
        console.print(LEGEND, style="dim")

    def write(self, folder: Path) -> None:
        write_whole(folder / "solver.csv", self.results.as_csv())
        write_whole(folder / "solver.md", self._markdown())
        save_figure(time_against_scenarios(self.results), folder / "solver")

    def _markdown(self) -> str:
        *others, bars = (table.as_markdown() for table in self.tables())
        parts = ["# forewise against its peers", LEGEND, bars, *others]
        if self.missing:
            parts += ["### Not measured", "\n".join(f"- {line}" for line in self.missing)]
        return "\n\n".join([*parts, "### Machine", f"```\n{self.machine}```"]) + "\n"


def bars_of(results: Measurements) -> list[Bar]:
    """Every bar with what was measured."""
    bars = []
    for family, size, peer, quantity, times in RATIOS:
        passes = "forward" if quantity == Quantity.FORWARD else "forward + backward"
        what = f"{family}, M = {size}: faster than {peer}, {passes}"
        ours = results.median(family, size, FOREWISE, Quantity.BOTH)
        bars.append(at_least(what, times, ours, results.median(family, size, peer, quantity)))
    for family in ("nvqp", "pop"):
        span = f"{family}, M = {GROWTH_SIZES[0]} to {GROWTH_SIZES[-1]}"
        for quantity, name in ((Quantity.BOTH, "time"), (Quantity.ABOVE_BASELINE, "peak memory")):
            values = between(results.series(family, FOREWISE, quantity), GROWTH_SIZES)
            what, exponent = f"{span}: exponent of {name}", fitted_exponent(values)
            bound = LARGEST_EXPONENT
            bars.append(at_most(what, f"{bound:g}", bound, exponent, "{:.3f}"))
    what = f"nvqp, M = {GROWTH_SIZES[-1]}: peak memory of the process"
    peak = results.median("nvqp", GROWTH_SIZES[-1], FOREWISE, Quantity.PEAK)
    bars.append(at_most(what, "2 GB", LARGEST_PEAK_MIB, peak, "{:.0f} MiB"))
    errors = [row.relative_error for row in results.rows if row.peer == FOREWISE]
    compared = [error for error in errors if error is not None and not math.isnan(error)]
    largest = max(compared, default=None)
    what = "forewise's largest relative error"
    return [*bars, at_most(what, f"{WANTED:g}", WANTED, largest, "{:.1e}")]


def case_table(results: Measurements, case: tuple[str, int, int], title: str) -> TextTable:
    """All peers on one instance: times, accuracy, and how much longer than forewise."""
    family, _, n_scenarios = case
    columns = ("peer", "build", "forward", "forward + backward", "error", "ratio", "note")
    ours = results.median(family, n_scenarios, FOREWISE, Quantity.BOTH)
    here = [row for row in results.rows if (row.instance, row.n_contexts, row.n_scenarios) == case]
    rows = []
    for peer in dict.fromkeys(row.peer for row in here):
        found = {row.quantity: row for row in here if row.peer == peer}
        if Quantity.FORWARD in found:
            rows.append(_case_row(peer, found, ours))
        elif Quantity.SKIPPED in found:
            rows.append((peer, *[ABSENT] * 5, found[Quantity.SKIPPED].note))
    return TextTable(f"{title}, M = {n_scenarios}", columns, rows, FOREWISE)


def growth_table(results: Measurements, growth: Sequence[tuple[str, int]]) -> TextTable:
    """forewise's time and memory by number of scenarios, with fitted exponents."""
    columns = ("instance", "M", "forward + backward", "peak memory", "above the baseline")
    rows = []
    for family in dict.fromkeys(name for name, _ in growth):
        sizes = [size for name, size in growth if name == family]
        series = [
            between(results.series(family, FOREWISE, quantity), sizes)
            for quantity in (Quantity.BOTH, Quantity.PEAK, Quantity.ABOVE_BASELINE)
        ]
        for size in sizes:
            memory = (f"{s[size]:.0f} MiB" if size in s else ABSENT for s in series[1:])
            rows.append((family, str(size), seconds(series[0].get(size)), *memory))
        time, _, above = (fitted_exponent(values) for values in series)
        rows.append((family, "exponent", _exponent(time), ABSENT, _exponent(above)))
    return TextTable("forewise's growth with M", columns, rows)


def _exponent(value: float) -> str:
    return ABSENT if math.isnan(value) else f"{value:.2f}"


def _case_row(peer: str, found: dict[str, Measurement], ours: float | None) -> tuple[str, ...]:
    build, forward, both = (
        row.median if (row := found.get(quantity)) is not None else None
        for quantity in (Quantity.BUILD, Quantity.FORWARD, Quantity.BOTH)
    )
    # A peer without a backward pass is compared by what it can do.
    longest = forward if both is None else both
    ratio = ABSENT if ours is None or longest is None else f"{longest / ours:.1f}×"
    error = found[Quantity.FORWARD].relative_error
    accuracy = ABSENT
    if error is not None and not math.isnan(error):
        accuracy = (f"{error:.0e}" if error else "0") + (" ✗" if error > WANTED else "")
    notes = dict.fromkeys(row.note for row in found.values() if row.unit == "s" and row.note)
    times = (seconds(value) for value in (build, forward, both))
    return (peer, *times, accuracy, ratio, "; ".join(notes))


def time_against_scenarios(results: Measurements) -> Figure:
    """One panel for each instance that was measured at several sizes."""
    families = dict.fromkeys(row.instance for row in results.rows)
    return panels(
        results,
        {
            family: f"{family}: forward + backward (dashed: forward only)"
            for family in families
            if len(_sizes(results, family)) > 1
        },
    )


def panels(results: Measurements, titles: Mapping[str, str], most: int = 4) -> Figure:
    """A panel of time against scenarios for each instance with a title, `most` in a row."""
    grown = list(titles)
    peers = dict.fromkeys(peer for family in grown for peer in results.peers(family))
    others = (peer for peer in peers if peer != FOREWISE)
    colours = {FOREWISE: "black", **dict(zip(others, cycle(_COLOURS), strict=False))}
    with mpl.rc_context(_STYLE):
        width = min(max(len(grown), 1), most)
        height = max(-(-len(grown) // width), 1)
        figure = Figure(figsize=(1 + 5.2 * width, 4.2 * height), layout="constrained")
        for i, family in enumerate(grown):
            axes = figure.add_subplot(height, width, i + 1)
            _panel(axes, results, family, colours, titles[family])
    return figure


def save_figure(figure: Figure, stem: Path) -> None:
    """Write a figure as PNG and SVG."""
    for kind in ("png", "svg"):
        with whole_file(stem.with_suffix(f".{kind}")) as temporary:
            # Without a date, the same numbers give the same file.
            metadata = {"Date": None} if kind == "svg" else None
            figure.savefig(temporary, format=kind, dpi=160, metadata=metadata)


def _sizes(results: Measurements, family: str) -> set[int]:
    return {row.n_scenarios for row in results.rows if row.instance == family and row.unit == "s"}


def _panel(
    axes: Axes, results: Measurements, family: str, colours: dict[str, str], title: str
) -> None:
    differentiated = any(row.quantity == Quantity.BOTH for row in results.rows)
    highest: dict[int, float] = {}
    ends = []
    for peer in results.peers(family):
        both = results.series(family, peer, Quantity.BOTH)
        values = both or results.series(family, peer, Quantity.FORWARD)
        width, line = (
            2.2 if peer == FOREWISE else 1.3,
            "o-" if both or not differentiated else "o--",
        )
        style = {"ms": 3.5, "lw": width, "color": colours[peer]}
        axes.loglog(list(values), list(values.values()), line, **style)
        ends.append((list(values.items())[-1], peer))
    for (size, height), peer in sorted(ends, key=lambda end: end[0][1]):
        # Labels stand at the lines' ends, moved up where two would cover each other.
        highest[size] = max(height, highest.get(size, 0.0) * _LABEL_FACTOR)
        at = (size, highest[size])
        label = axes.annotate(peer, at, xytext=(7, 0), textcoords="offset points", va="center")
        label.set(color=colours[peer], fontweight="bold" if peer == FOREWISE else "normal")
        # Other lines pass behind the label.
        label.set_bbox({"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.6})
    ticks = sorted(_sizes(results, family))
    axes.set_title(title, loc="left")
    axes.set_xlabel("scenarios M")
    axes.set_ylabel("seconds, all contexts, one core")
    axes.set_xticks(ticks, [str(size) for size in ticks])
    axes.minorticks_off()
    # Room to the right for the labels of the longest lines.
    axes.set_xlim(ticks[0] / 1.2, ticks[-1] * (ticks[-1] / ticks[0]) ** 0.25)
    axes.grid(True, color="#dddddd", lw=0.6)
    axes.spines[["top", "right"]].set_visible(False)
