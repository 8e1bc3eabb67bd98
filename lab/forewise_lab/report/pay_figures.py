"""The pictures of "Does it pay?": differences to the best baseline, one colour per method."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

import forewise as fw
from forewise.figures.style import DISPLAY_STYLE, INK, QUIET
from forewise_lab.report.cases import CaseResult, MethodCosts

# A method has the same colour in all pictures; those without one are named by the axis alone.
COLOURS = {
    "real-bnn-ensemble": "#0072B2",
    "real-ensemble": "#E69F00",
    "real-c-bnn": "#009E73",
    "real-d-bnn": "#56B4E9",
    "real-mixture": "#8B6FD6",
    "real-direct": "#CC79A7",
    "real-c-ann": "#999933",
    "real-boosting-residuals": "#D55E00",
    "real-boosted-quantiles": "#8C2D04",
    "real-forest": "#6B4423",
}
_FARTHEST = 0.3  # differences above it stand as numbers at the border
_SMALLEST = 0.06  # the axis reaches at least so far to either side
_WEEKS = 4  # of the moving mean
_WIDTH = 9.0

Gap = tuple[MethodCosts, fw.metrics.Difference]


def colour_of(method: MethodCosts) -> str:
    return COLOURS.get(method.name, QUIET)


def plot_case(result: CaseResult, gaps: Sequence[Gap], baseline: MethodCosts, path: Path) -> None:
    """All methods against the best baseline, with intervals; beside it, the best over time.

    `gaps` has the methods, cheapest first, with their differences relative to the baseline's cost.
    """
    with mpl.rc_context(DISPLAY_STYLE):
        figure = Figure(figsize=(_WIDTH, 1.3 + 0.2 * len(gaps)), layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=(1.15, 1))
        _dots(left, gaps, baseline)
        _weeks(right, result, gaps, baseline)
        figure.suptitle(result.table.title, x=0.01, ha="left", fontweight="bold", fontsize=11)
        figure.savefig(path, dpi=130)


def _dots(axes: Axes, gaps: Sequence[Gap], baseline: MethodCosts) -> None:
    near = [gap for _, gap in gaps if gap.estimate <= _FARTHEST]
    least = min([-_SMALLEST, *(1.1 * gap.lower for gap in near)])
    most = max(_SMALLEST, min(_FARTHEST, max(1.1 * gap.upper for gap in near)))
    for place, (method, gap) in enumerate(gaps):
        colour = colour_of(method)
        if method is baseline:
            axes.plot(0.0, place, "D", color=colour, ms=5)
        elif gap.estimate > most:
            label = f"{100 * gap.estimate:+.0f} % ▸"
            axes.text(most, place, label, color=INK, ha="right", va="center", fontsize=8)
        else:
            axes.hlines(place, gap.lower, min(gap.upper, most), color=colour, lw=1.8)
            axes.plot(gap.estimate, place, "o", color=colour, ms=5.5)
    axes.axvline(0.0, color=INK, lw=0.8)
    axes.set_xlim(least, most)
    axes.set_ylim(len(gaps) - 0.4, -0.6)
    axes.set_yticks(range(len(gaps)), [method.title for method, _ in gaps])
    axes.tick_params(axis="y", length=0)
    axes.xaxis.set_major_locator(MaxNLocator(6))
    axes.xaxis.set_major_formatter(FuncFormatter(_percent))
    axes.set_xlabel(f"cost against {baseline.title}, with 95 % interval")


def _weeks(axes: Axes, result: CaseResult, gaps: Sequence[Gap], baseline: MethodCosts) -> None:
    cvar, days = result.table.decision.cvar, pd.DatetimeIndex(result.dates)
    zero = moving_mean(pd.Series(baseline.scored(cvar), index=days))
    coloured = [method for method, _ in gaps if method.name in COLOURS and method is not baseline]
    for method in coloured[:4]:
        share = moving_mean(pd.Series(method.scored(cvar), index=days)) / zero - 1
        axes.plot(share.index, share, color=colour_of(method), lw=1.6, label=method.title)
    axes.axhline(0.0, color=INK, lw=0.8)
    axes.yaxis.set_major_formatter(FuncFormatter(_percent))
    axes.xaxis.set_major_locator(mpl.dates.MonthLocator(interval=2))
    axes.xaxis.set_major_formatter(mpl.dates.DateFormatter("%b %y"))
    axes.set_xlabel(f"the same over time, moving mean of {_WEEKS} weeks")
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 0.99), ncols=2, fontsize=8)


def plot_answer(cases: Sequence[tuple[str, MethodCosts, Sequence[Gap]]], path: Path) -> None:
    """Every case's best learner against the best baseline (full) and plain SAA (hollow).

    `cases` has titles, learners and their differences to baselines, the best baseline first.
    """
    with mpl.rc_context(DISPLAY_STYLE):
        figure = Figure(figsize=(_WIDTH, 0.9 + 0.5 * len(cases)), layout="constrained")
        axes = figure.subplots()
        for place, (_, learner, gaps) in enumerate(cases):
            colour = colour_of(learner)
            for shift, (baseline, gap) in zip((-0.18, 0.18), gaps, strict=False):
                face = "white" if shift > 0 else colour
                axes.hlines(place + shift, gap.lower, gap.upper, color=colour, lw=2.2)
                axes.plot(gap.estimate, place + shift, "o", color=colour, mfc=face, ms=6)
                share = f"{100 * gap.estimate:+.1f} %".replace("-", "−")
                end = max(gap.upper, 0.0) + 0.015
                axes.text(
                    end, place + shift, f"{share} against {baseline.title}", va="center", fontsize=8
                )
        axes.axvline(0.0, color=INK, lw=0.8)
        axes.set_xlim(-0.92, 0.7)
        axes.set_ylim(len(cases) - 0.5, -0.5)
        names = [f"{title}\n{learner.title}" for title, learner, _ in cases]
        axes.set_yticks(range(len(cases)), names)
        axes.tick_params(axis="y", length=0)
        axes.set_xticks(np.arange(-0.8, 0.01, 0.2))
        axes.xaxis.set_major_formatter(FuncFormatter(_percent))
        axes.set_xlabel("cost of the best learner, with 95 % interval; further left is cheaper")
        figure.savefig(path, dpi=130)


def _percent(share: float, _: int | None = None) -> str:
    return f"{100 * share:+.3g} %".replace("-", "−") if round(share, 6) else "0"


def moving_mean(costs: pd.Series) -> pd.Series:
    """At the end of each week, the mean over all decisions of the last four weeks."""
    weeks = costs.resample("W-SUN").agg(["sum", "count"])
    least = min(_WEEKS, len(weeks))
    recent = weeks.rolling(_WEEKS, min_periods=least).sum()
    return (recent["sum"] / recent["count"]).dropna()
