"""Displays of what decisions cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes

from forewise.display import rounded
from forewise.exceptions import InvalidInputError
from forewise.figures.display import Display
from forewise.figures.forecasts import legend_above, scenario_quantiles
from forewise.figures.style import INK, QUIET, VERMILION, looks
from forewise.problems.base import Problem
from forewise.scenarios import Scenarios

_LEVELS = tuple(np.round(np.arange(0.3, 0.99, 0.02), 2))


@dataclass(eq=False, repr=False)
class CostServiceDisplay(Display):
    """Mean cost against the share of demand that is served.

    Parameters
    ----------
    service, cost : arrays (n_levels,)
        Of orders at a quantile of the forecast.
    level : array (n_levels,), of the quantile
    points : dict of (service, cost), optional
        Of methods by name.

    Examples
    --------
    >>> import numpy as np
    >>> import forewise as fw
    >>> service, cost = np.array([0.8, 0.9, 0.99]), np.array([9.0, 7.0, 12.0])
    >>> display = fw.plots.CostServiceDisplay(
    ...     service, cost, level=np.array([0.7, 0.8, 0.95]), points={"today": (0.85, 11.0)}
    ... )
    >>> display.plot().ax_ is not None
    True
    """

    service: np.ndarray
    cost: np.ndarray
    level: np.ndarray
    points: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    size = (5.2, 3.4)

    @classmethod
    def from_decisions(
        cls,
        problem: Problem,
        scenarios: Scenarios,
        outcome: Any,
        decisions: Mapping[str, Any] | None = None,
        levels: Any = _LEVELS,
    ) -> Self:
        """Orders at many quantiles of the scenarios (one outcome, nonnegative), and of methods.

        Service is Σ min(order, outcome) / Σ outcome over all rows. `decisions` are
        ``(n_contexts, 1)`` by the name of a method.
        """
        seen = np.asarray(outcome, dtype=float).reshape(scenarios.n_contexts, -1)
        if seen.shape[1] != 1 or problem.n_decisions(1) != 1:
            raise InvalidInputError(
                "cost against service is for one outcome and one order, but there are "
                f"{seen.shape[1]} outcome(s): pass one product at a time"
            )

        def point(order: np.ndarray) -> tuple[float, float]:
            order = order.reshape(-1, 1).clip(min=0)
            served = float(np.minimum(order, seen).sum() / seen.sum())
            return served, float(problem.cost(order, seen).mean())

        wanted = np.asarray(levels, dtype=float)
        curve = np.array([point(q) for q in scenario_quantiles(scenarios, 0, wanted.tolist())])
        named = {name: point(np.asarray(z, float)) for name, z in (decisions or {}).items()}
        return cls(curve[:, 0], curve[:, 1], wanted, named)

    def _draw(self, ax: Axes) -> None:
        colour, _ = looks(["policy"])["policy"]
        ax.plot(self.service, self.cost, color=colour, lw=1.6, label="quantiles of the forecast")
        for name, look in looks(self.points).items():
            ax.plot(*self.points[name], color=look[0], marker=look[1], ms=8, mew=0, ls="",
                    label=name)  # fmt: skip
        ax.xaxis.set_major_formatter("{x:.0%}")
        ax.set(xlabel="share of demand served", ylabel="mean cost")
        legend_above(ax, columns=3)


@dataclass(eq=False, repr=False)
class CostCurveDisplay(Display):
    """Expected cost around one decision; what constraints forbid is infinite.

    Parameters
    ----------
    value, cost : arrays (n_points,)
    chosen : float
        The decision.
    name : str

    Examples
    --------
    >>> import numpy as np
    >>> import forewise as fw
    >>> value, cost = np.array([8.0, 10.0, 12.0]), np.array([9.0, 5.0, 7.0])
    >>> curve = fw.plots.CostCurveDisplay(value, cost, chosen=10.0)
    >>> curve.plot().ax_ is not None
    True
    """

    value: np.ndarray
    cost: np.ndarray
    chosen: float
    name: str = "decision"

    size = (4.2, 2.8)

    def _draw(self, ax: Axes) -> None:
        colour, marker = looks(["policy"])["policy"]
        known = np.isfinite(self.cost)
        ax.plot(self.value[known], self.cost[known], color=colour, lw=1.8)
        at = int(np.abs(self.value - self.chosen).argmin())
        if known[at]:
            ax.plot(self.chosen, self.cost[at], marker, color=colour, ms=7, mew=0)
            ax.annotate(
                rounded(self.chosen), (self.chosen, self.cost[at]), (0, 9), ha="center",
                textcoords="offset points", fontweight="bold", color=colour,
            )  # fmt: skip
        ax.set_xlim(self.value[0], self.value[-1])
        for side in (self.value[~known & (self.value < self.chosen)],
                     self.value[~known & (self.value > self.chosen)]):  # fmt: skip
            if len(side):
                ax.axvspan(side.min(), side.max(), color=VERMILION, alpha=0.12, lw=0)
                ax.text(side.mean(), 0.5, "not allowed", rotation=90, ha="center", va="center",
                        color=QUIET, transform=ax.get_xaxis_transform())  # fmt: skip
        ax.margins(y=0.15)
        ax.set(xlabel=self.name, ylabel="expected cost")


@dataclass(eq=False, repr=False)
class LeaderboardDisplay(Display):
    """Costs of methods with their intervals, cheapest first.

    Parameters
    ----------
    methods : list of str
    cost, lower, upper : arrays (n_methods,)
    chosen : str, optional
        Drawn in bold.

    Examples
    --------
    >>> import numpy as np
    >>> import forewise as fw
    >>> cost = np.array([4.0, 6.0])
    >>> board = fw.plots.LeaderboardDisplay(["forest", "empirical"], cost, cost - 0.5, cost + 0.5)
    >>> board.plot().figure_ is not None
    True
    """

    methods: list[str]
    cost: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    chosen: str | None = None

    @classmethod
    def from_leaderboard(cls, table: Any, chosen: str | None = None) -> Self:
        """From `AutoLearner.leaderboard_` or the table of `compare_rolling`; failed ones left out.

        The chosen method is the heaviest in the policy, where the table says so.
        """
        names = list(table.get("method", table.index))
        ends = ("lower", "upper") if "lower" in table else ("cost_lower", "cost_upper")
        missing = [c for c in ("cost", *ends) if c not in table]
        if missing:
            raise InvalidInputError(
                f"table must have the columns cost, lower and upper, but has no {missing}: pass "
                "leaderboard_ of an AutoLearner or what compare_rolling returns"
            )
        columns = [table[c].to_numpy(dtype=float) for c in ("cost", *ends)]
        known = np.flatnonzero(np.isfinite(columns[0]))
        order = known[np.argsort(columns[0][known], kind="stable")]
        methods = [str(names[i]) for i in order]
        if chosen is None and "weight" in table and methods:
            weights = table["weight"].to_numpy(dtype=float)[order]
            if np.nan_to_num(weights).max() > 0:
                chosen = methods[int(np.nanargmax(weights))]
        cost, lower, upper = (column[order] for column in columns)
        return cls(methods, cost, lower, upper, chosen)

    def plot(self, ax: Axes | None = None, size: tuple[float, float] | None = None) -> Self:
        """As `Display.plot`; a figure of its own is as high as there are methods."""
        height = 0.9 + 0.34 * len(self.methods)
        return super().plot(ax, size or (self.size[0], height))

    def _draw(self, ax: Axes) -> None:
        ax.grid(False)
        ax.grid(axis="x", color=QUIET, alpha=0.25, lw=0.6)
        chosen = looks(self.methods)
        places = np.arange(len(self.methods))[::-1]
        for place, name, cost, low, high in zip(
            places, self.methods, self.cost, self.lower, self.upper, strict=True
        ):
            colour, marker = chosen[name]
            ax.plot([low, high], [place, place], color=colour, lw=2.2, alpha=0.55,
                    solid_capstyle="round")  # fmt: skip
            ax.plot(cost, place, marker, color=colour, ms=7, mew=0)
            ax.annotate(rounded(cost), (cost, place), (0, 6), textcoords="offset points",
                        ha="center", fontsize=8)  # fmt: skip
        ax.set_yticks(places, self.methods)
        for label, name in zip(ax.get_yticklabels(), self.methods, strict=True):
            label.set_fontweight("bold" if name == self.chosen else "normal")
            label.set_color(INK)
        ax.spines["left"].set_visible(False)
        ax.tick_params(axis="y", length=0)
        ax.set_ylim(-0.6, len(self.methods) - 0.3)
        ax.set_xlabel("mean cost, with a 95 % interval")
