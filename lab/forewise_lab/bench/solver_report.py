"""What the solver bench found: bars, tables, the plot of time against scenarios, the files."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
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
    NOT_MEASURED,
    Bar,
    Measurement,
    Measurements,
    Quantity,
    TextTable,
    at_least,
    bars_table,
    between,
    fitted_exponent,
    seconds,
)
from forewise_lab.machine import whole_file, write_whole

FOREWISE = ForewisePeer.name
GROWTH_SIZES = (256, 1024, 4096)
LARGEST_EXPONENT = 1.05
LARGEST_PEAK_MIB = 2000.0
LEGEND = (
    "Times are medians for all contexts on one core. “error” is the worst context's relative "
    "error in cost or constraints against the best known answer, ✗ where it is over 1e-6. "
    "“ratio” is the peer's forward + backward time, or its forward time where it has no backward "
    "pass, over forewise's forward + backward time."
)
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
        tables = [
            case_table(self.results, case, self.titles[case[0]]) for case in self.results.cases()
        ]
        growth = growth_table(self.results, self.growth)
        return [
            *tables,
            growth,
            bars_table(bars_of(self.results), "The bars for forewise's forward + backward"),
        ]

    def print(self, console: Console) -> None:
        """Show the tables."""
        for table in self.tables():
            console.print(table.as_rich(), "")
        console.print(LEGEND, style="dim")

    def write(self, folder: Path) -> None:
        """Write solver.csv, solver.md, solver.png and solver.svg, each whole."""
        write_whole(folder / "solver.csv", self.results.as_csv())
        write_whole(folder / "solver.md", self._markdown())
        figure = time_against_scenarios(self.results)
        for kind in ("png", "svg"):
            with whole_file(folder / f"solver.{kind}") as temporary:
                # Without a date, the same numbers give the same file.
                metadata = {"Date": None} if kind == "svg" else None
                figure.savefig(temporary, format=kind, dpi=160, metadata=metadata)

    def _markdown(self) -> str:
        *others, bars = (table.as_markdown() for table in self.tables())
        missing = [f"- {line}" for line in self.missing]
        parts = [
            "# forewise against its peers",
            LEGEND,
            bars,
            *others,
            *(["### Not measured", "\n".join(missing)] if missing else []),
            "### Machine",
            f"```\n{self.machine}```",
        ]
        return "\n\n".join(parts) + "\n"


def bars_of(results: Measurements) -> list[Bar]:
    """Every bar with what was measured."""
    growth = [
        _exponent_bar(results, family, quantity, what)
        for family in ("nvqp", "pop")
        for quantity, what in ((Quantity.BOTH, "time"), (Quantity.ABOVE_BASELINE, "peak memory"))
    ]
    ratios = []
    for family, size, peer, quantity, times in RATIOS:
        passes = "forward" if quantity == Quantity.FORWARD else "forward + backward"
        what = f"{family}, M = {size}: faster than {peer}, {passes}"
        ours = results.median(family, size, FOREWISE, Quantity.BOTH)
        ratios.append(at_least(what, times, ours, results.median(family, size, peer, quantity)))
    return [*ratios, *growth, _peak_bar(results), _accuracy_bar(results)]


def _exponent_bar(results: Measurements, family: str, quantity: str, what: str) -> Bar:
    values = between(results.series(family, FOREWISE, quantity), GROWTH_SIZES)
    exponent = fitted_exponent(values)
    label = f"{family}, M = {GROWTH_SIZES[0]} to {GROWTH_SIZES[-1]}: exponent of {what}"
    wanted = f"≤ {LARGEST_EXPONENT:g}"
    if math.isnan(exponent):
        return Bar(label, wanted, NOT_MEASURED, None)
    return Bar(label, wanted, f"{exponent:.3f}", exponent <= LARGEST_EXPONENT)


def _peak_bar(results: Measurements) -> Bar:
    size = GROWTH_SIZES[-1]
    peak = results.median("nvqp", size, FOREWISE, Quantity.PEAK)
    what, wanted = f"nvqp, M = {size}: peak memory of the process", "< 2 GB"
    if peak is None:
        return Bar(what, wanted, NOT_MEASURED, None)
    return Bar(what, wanted, f"{peak:.0f} MiB", peak * 1.024**2 < LARGEST_PEAK_MIB)


def _accuracy_bar(results: Measurements) -> Bar:
    rows = (row for row in results.rows if row.peer == FOREWISE)
    errors = [row.relative_error for row in rows if row.relative_error is not None]
    compared = [error for error in errors if not math.isnan(error)]
    what, wanted = "forewise's largest relative error", f"≤ {WANTED:g}"
    if not compared:
        return Bar(what, wanted, NOT_MEASURED, None)
    return Bar(what, wanted, f"{max(compared):.1e}", max(compared) <= WANTED)


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
            cells = (seconds(series[0].get(size)), *(_mebibytes(s.get(size)) for s in series[1:]))
            rows.append((family, str(size), *cells))
        time, _, above = (fitted_exponent(values) for values in series)
        rows.append((family, "exponent", _exponent(time), ABSENT, _exponent(above)))
    return TextTable("forewise's growth with M", columns, rows)


def _mebibytes(value: float | None) -> str:
    return ABSENT if value is None else f"{value:.0f} MiB"


def _exponent(value: float) -> str:
    return ABSENT if math.isnan(value) else f"{value:.2f}"


def _case_row(peer: str, found: dict[str, Measurement], ours: float | None) -> tuple[str, ...]:
    medians = {quantity: row.median for quantity, row in found.items()}
    # A peer without a backward pass is compared by what it can do.
    longest = medians.get(Quantity.BOTH, medians[Quantity.FORWARD])
    ratio = ABSENT if ours is None or longest is None else f"{longest / ours:.1f}×"
    times = (row for row in found.values() if row.unit == "s")
    notes = dict.fromkeys(row.note for row in times if row.note)
    return (
        peer,
        seconds(medians.get(Quantity.BUILD)),
        seconds(medians[Quantity.FORWARD]),
        seconds(medians.get(Quantity.BOTH)),
        _error(found[Quantity.FORWARD].relative_error),
        ratio,
        "; ".join(notes),
    )


def _error(value: float | None) -> str:
    if value is None or math.isnan(value):
        return ABSENT
    return (f"{value:.0e}" if value else "0") + (" ✗" if value > WANTED else "")


def time_against_scenarios(results: Measurements) -> Figure:
    """One panel for each instance that was measured at several sizes."""
    families = dict.fromkeys(row.instance for row in results.rows)
    grown = [family for family in families if len(_sizes(results, family)) > 1]
    peers = dict.fromkeys(peer for family in grown for peer in results.peers(family))
    others = (peer for peer in peers if peer != FOREWISE)
    colours = {FOREWISE: "black", **dict(zip(others, cycle(_COLOURS), strict=False))}
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(1 + 5.2 * max(len(grown), 1), 4.2), layout="constrained")
        for i, family in enumerate(grown):
            _panel(figure.add_subplot(1, len(grown), i + 1), results, family, colours)
    return figure


def _sizes(results: Measurements, family: str) -> set[int]:
    return {row.n_scenarios for row in results.rows if row.instance == family and row.unit == "s"}


def _panel(axes: Axes, results: Measurements, family: str, colours: dict[str, str]) -> None:
    ends: dict[str, tuple[int, float]] = {}
    for peer in results.peers(family):
        both = results.series(family, peer, Quantity.BOTH)
        values = both or results.series(family, peer, Quantity.FORWARD)
        width, colour = 2.2 if peer == FOREWISE else 1.3, colours[peer]
        line = "o-" if both else "o--"
        axes.loglog(list(values), list(values.values()), line, ms=3.5, lw=width, color=colour)
        ends[peer] = list(values.items())[-1]
    for peer, at in _apart(ends).items():
        label = axes.annotate(peer, at, xytext=(7, 0), textcoords="offset points", va="center")
        label.set(color=colours[peer], fontweight="bold" if peer == FOREWISE else "normal")
        # Other lines pass behind the label.
        label.set_bbox({"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.6})
    _dress(axes, family, sorted(_sizes(results, family)))


def _apart(ends: dict[str, tuple[int, float]]) -> dict[str, tuple[int, float]]:
    """Where the labels go: at the lines' ends, moved up where two would cover each other."""
    placed: dict[str, tuple[int, float]] = {}
    highest: dict[int, float] = {}
    for peer, (size, height) in sorted(ends.items(), key=lambda item: item[1][1]):
        clear = max(height, highest.get(size, 0.0) * _LABEL_FACTOR)
        highest[size] = clear
        placed[peer] = (size, clear)
    return placed


def _dress(axes: Axes, family: str, sizes: Iterable[int]) -> None:
    ticks = list(sizes)
    axes.set_title(f"{family}: forward + backward (dashed: forward only)", loc="left")
    axes.set_xlabel("scenarios M")
    axes.set_ylabel("seconds, all contexts, one core")
    axes.set_xticks(ticks, [str(size) for size in ticks])
    axes.minorticks_off()
    # Room to the right for the labels of the longest lines.
    axes.set_xlim(ticks[0] / 1.2, ticks[-1] * (ticks[-1] / ticks[0]) ** 0.25)
    axes.grid(True, color="#dddddd", lw=0.6)
    axes.spines[["top", "right"]].set_visible(False)
