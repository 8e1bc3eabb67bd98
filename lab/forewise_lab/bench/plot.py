"""Time against the number of scenarios, one line per peer, on logarithmic axes.

May import: bars, results.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import cycle

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from forewise_lab.bench.bars import FOREWISE
from forewise_lab.bench.results import BOTH, FORWARD, Results

# Okabe and Ito's colours, which colour-blind readers can tell apart; black is forewise's.
COLOURS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
STYLE = {"font.size": 9, "svg.hashsalt": "forewise", "svg.fonttype": "none"}
# Labels of lines that end side by side are kept apart by this factor in time.
LABEL_FACTOR = 1.5


def time_against_scenarios(results: Results) -> Figure:
    """One panel for each instance that was measured at several sizes."""
    families = dict.fromkeys(row.instance for row in results.rows)
    grown = [family for family in families if len(_sizes(results, family)) > 1]
    peers = dict.fromkeys(peer for family in grown for peer in results.peers(family))
    others = (peer for peer in peers if peer != FOREWISE)
    colours = {FOREWISE: "black", **dict(zip(others, cycle(COLOURS), strict=False))}
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(1 + 5.2 * max(len(grown), 1), 4.2), layout="constrained")
        for i, family in enumerate(grown):
            _panel(figure.add_subplot(1, len(grown), i + 1), results, family, colours)
    return figure


def _sizes(results: Results, family: str) -> set[int]:
    return {row.n_scenarios for row in results.rows if row.instance == family and row.unit == "s"}


def _panel(axes: Axes, results: Results, family: str, colours: dict[str, str]) -> None:
    ends: dict[str, tuple[int, float]] = {}
    for peer in results.peers(family):
        both = results.series(family, peer, BOTH)
        values = both or results.series(family, peer, FORWARD)
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
        clear = max(height, highest.get(size, 0.0) * LABEL_FACTOR)
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
