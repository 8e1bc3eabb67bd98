"""What the solver bench found: bars, tables, the plot of time against scenarios, the files."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import cycle

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from forewise_lab.bench.accuracy import WANTED
from forewise_lab.bench.peers.moreau_batch import MoreauBatch
from forewise_lab.bench.peers.qpth_dense import QpthDense
from forewise_lab.bench.peers.solvers import ClarabelLoop, ForewisePeer, HighsLoop
from forewise_lab.bench.results import (
    ABSENT,
    LEGENDS,
    Bar,
    Measurement,
    Measurements,
    Page,
    Quantity,
    TextTable,
    at_least,
    at_most,
    bars_table,
    between,
    fitted_exponent,
    growth_table,
    seconds,
)

FOREWISE = ForewisePeer.name
GROWTH_SIZES = (256, 1024, 4096)
LARGEST_EXPONENT = 1.05
LARGEST_PEAK_MIB = 2000.0 / 1.024**2  # 2 GB
GROWTH_QUANTITIES = (Quantity.BOTH, Quantity.PEAK, Quantity.ABOVE_BASELINE)
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


def solver_page(
    results: Measurements,
    growth: Sequence[tuple[str, int]],
    titles: Mapping[str, str],
    missing: Sequence[str],
    machine: str,
) -> Page:
    """The page of a run, complete or not; `growth` has the (family, M) with memory."""
    sizes = {name: [size for other, size in growth if other == name] for name, _ in growth}
    series = {
        family: tuple(between(results.series(family, FOREWISE, q), own) for q in GROWTH_QUANTITIES)
        for family, own in sizes.items()
    }
    tables = [
        *(case_table(results, case, titles[case[0]]) for case in results.cases()),
        growth_table(series, sizes, "forward + backward"),
        bars_table(bars_of(results), "The bars for forewise's forward + backward"),
    ]
    notes = {"Not measured": missing}
    return Page("forewise against its peers", LEGENDS["solver"], tables, notes, machine)


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
    several = (name for name in results.names() if len(_sizes(results, name)) > 1)
    return panels(
        results, {name: f"{name}: forward + backward (dashed: forward only)" for name in several}
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
