"""The figure of an explanation: the cost around each decision, and the scenarios behind it."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from forewise.figures.costs import CostCurveDisplay
from forewise.figures.style import BLUE, DISPLAY_STYLE, ORANGE, QUIET

_MOST = 4  # decisions
_BINS = 24


def explanation_figure(
    displays: Sequence[CostCurveDisplay],
    outcome: np.ndarray,
    weight: np.ndarray,
    leading: Sequence[np.ndarray],
    outcome_names: Sequence[str],
) -> Figure:
    """A row per decision, at most four: its cost curve, and the scenarios that decide it.

    `outcome` is ``(n_scenarios, n_outcomes)``, `weight` ``(n_scenarios,)``; `leading` are the
    numbers of the scenarios that carry most of each decision.
    """
    shown = displays[:_MOST]
    with mpl.rc_context(DISPLAY_STYLE):
        figure = Figure(figsize=(8.4, 0.4 + 2.5 * len(shown)), layout="constrained")
        axes = figure.subplots(len(shown), 2, squeeze=False)
    for i, (curve, (left, right)) in enumerate(zip(shown, axes, strict=True)):
        curve.plot(left)
        same = outcome.shape[1] == len(displays)
        k = i if same else int(np.argmax(outcome.std(0)))
        with mpl.rc_context(DISPLAY_STYLE):
            _draw_scenarios(right, outcome[:, k], weight, leading[i], outcome_names[k])
            if same and outcome[:, k].min() <= curve.chosen <= outcome[:, k].max():
                right.axvline(curve.chosen, color=BLUE, lw=1.4)
    return figure


def _draw_scenarios(
    ax: Axes, outcome: np.ndarray, weight: np.ndarray, leading: np.ndarray, name: str
) -> None:
    """A histogram, with the scenarios that decide on top of the others."""
    edges = np.histogram_bin_edges(outcome, _BINS)
    decides = np.isin(np.arange(len(outcome)), leading)
    ax.hist([outcome[decides], outcome[~decides]], list(edges), stacked=True,
            weights=[weight[decides], weight[~decides]], color=[ORANGE, QUIET], rwidth=0.92,
            label=["decide it", "the others"])  # fmt: skip
    ax.yaxis.set_major_formatter("{x:.0%}")
    ax.set(xlabel=f"{name} in the scenarios", ylabel="probability")
    ax.legend(loc="upper left")
