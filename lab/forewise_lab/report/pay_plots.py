"""Costs over time, for the page "Does it pay?". May import: plots, and its siblings."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure

from forewise.plots import STYLE
from forewise_lab.report.cases import CaseResult, MethodCosts
from forewise_lab.report.pay_tables import BAYESIAN, ranked

# Okabe and Ito's colours, which colour-blind readers can tell apart.
_COLOURS = ("black", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00")
_DASHES = ("--", "-", "-", "-", "-.", ":")
_FLOOR = ("0.6", ":")
_WEEKS = 4  # of the moving mean


def plot_over_time(result: CaseResult, path: Path) -> None:
    """Cost, or its risk, in the last four weeks, of the methods that a reader asks for first."""
    lines = list(zip(_shown(result), _COLOURS, _DASHES, strict=False))
    if result.foresight is not None:
        lines.append((result.foresight, *_FLOOR))
    cvar = result.table.decision.cvar
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(8, 3.6), layout="constrained")
        axes = figure.subplots()
        for method, colour, dash in lines:
            costs = pd.Series(method.judged(cvar), index=pd.DatetimeIndex(result.dates))
            recent = _moving_mean(costs)
            axes.plot(recent.index, recent, color=colour, ls=dash, lw=1.4, label=method.title)
        axes.set_ylim(bottom=0)
        figure_name = "mean cost" if cvar is None else f"CVaR {cvar:g}"
        axes.set_ylabel(f"{figure_name} of a decision, four weeks")
        axes.set_title(result.table.title, loc="left", fontweight="bold")
        figure.legend(loc="outside lower center", frameon=False, ncols=4, fontsize=8)
        figure.savefig(path, dpi=120)


def _moving_mean(costs: pd.Series) -> pd.Series:
    """At the end of each week, the mean over all decisions of four weeks.

    Decisions count, not weeks: one that is cut off, as the first is, may have one day. Before there
    are four weeks (or all there are) nothing is shown.
    """
    weeks = costs.resample("W-SUN").agg(["sum", "count"])
    least = min(_WEEKS, len(weeks))
    recent = weeks.rolling(_WEEKS, min_periods=least).sum()
    return (recent["sum"] / recent["count"]).dropna()


def _shown(result: CaseResult) -> list[MethodCosts]:
    """Plain SAA, the best two baselines, the best learner, the best Bayesian ones."""
    baselines, learners = ranked(result, learners=False), ranked(result, learners=True)
    bayesian = [method for method in ranked(result) if method.name in BAYESIAN]
    saa = [method for method in baselines if method.name == "real-saa"]
    wanted = [*saa, *baselines[:2], *learners[:1], *bayesian[:2]]
    return list({method.name: method for method in wanted}.values())[: len(_COLOURS)]
