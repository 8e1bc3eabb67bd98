"""Displays of what was forecast and decided, beside what happened."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from scipy.stats import binom

from forewise.evaluation import calibration_curve
from forewise.evaluation.bootstrap import as_days
from forewise.exceptions import InvalidInputError
from forewise.figures.display import Display
from forewise.figures.style import INK, QUIET, SKY, looks
from forewise.policy import ScenarioPolicy
from forewise.scenarios import Scenarios


@dataclass(eq=False, repr=False)
class DecisionDisplay(Display):
    """Decisions and outcomes over time, with a band in which the outcome was expected.

    Parameters
    ----------
    dates : array of days (n_rows,), in order
    decision, outcome : arrays (n_rows,); NaN where there is none
    lower, upper : arrays (n_rows,), optional
        Ends of the band.
    level : float
        Share of outcomes that should lie in it.
    at_least : array of bool (n_rows,), optional
        Rows whose outcome was more than what was seen, as on sold-out days.
    names : tuple of str
        What the decision and the outcome are called.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> import forewise as fw
    >>> days = pd.date_range("2024-01-01", periods=3).to_numpy()
    >>> display = fw.plots.DecisionDisplay(days, np.array([9.0, 11, 10]), np.array([8.0, 12, 9]))
    >>> display.plot().ax_ is not None
    True
    """

    dates: np.ndarray
    decision: np.ndarray
    outcome: np.ndarray
    lower: np.ndarray | None = None
    upper: np.ndarray | None = None
    level: float = 0.9
    at_least: np.ndarray | None = None
    names: tuple[str, str] = ("decision", "outcome")

    size = (7.2, 3.2)

    @classmethod
    def from_policy(
        cls,
        policy: ScenarioPolicy,
        X: Any,
        y: Any,
        dates: Any,
        *,
        given: Any = None,
        outcome: int = 0,
        decision: int = 0,
        level: float = 0.9,
        n_scenarios: int = 256,
    ) -> Self:
        """Decide for past contexts (n_rows, n_features), and forecast one of their outcomes.

        `outcome` and `decision` are numbers of columns. The policy should not have been fitted to
        these rows.
        """
        decided = np.asarray(policy.decide(X, given=given))[:, decision]
        scenarios = policy.predictor.sample(X, n_scenarios, random_state=0)
        seen = np.asarray(y, dtype=float).reshape(len(decided), -1)[:, outcome]
        lower, upper = scenario_quantiles(scenarios, outcome, [(1 - level) / 2, (1 + level) / 2])
        days = as_days(dates)
        order = np.argsort(days, kind="stable")
        names = policy.outcome_names
        days, decided, seen, lower, upper = (
            part[order] for part in (days, decided, seen, lower, upper)
        )
        called = policy.decision_names[decision], names[outcome] if names else "outcome"
        return cls(days, decided, seen, lower, upper, level, names=called)

    def _draw(self, ax: Axes) -> None:
        dates = self.dates.astype("datetime64[s]")
        if self.lower is not None and self.upper is not None:
            ax.fill_between(
                dates, self.lower, self.upper, color=SKY, alpha=0.3, lw=0, step="mid",
                label=f"{self.level:.0%} of outcomes expected here",
            )  # fmt: skip
        colour, _ = looks(["policy"])["policy"]
        decision, outcome = self.names
        same = decision == outcome
        ax.step(dates, self.decision, where="mid", color=colour, lw=1.8,
                label=f"{decision} decided" if same else decision)  # fmt: skip
        hidden = np.zeros(len(dates), bool) if self.at_least is None else self.at_least
        size = 4.0 if len(dates) <= 120 else 2.5
        ax.plot(dates[~hidden], self.outcome[~hidden], "o", ms=size, color=INK, mew=0,
                label=f"{outcome} seen" if same else outcome)  # fmt: skip
        if hidden.any():
            ax.plot(dates[hidden], self.outcome[hidden], "^", ms=size + 2, mfc="none", color=INK,
                    label="sold out: at least this")  # fmt: skip
        locator = AutoDateLocator(minticks=3, maxticks=8)
        ax.xaxis.set_major_locator(locator)
        ax.xaxis.set_major_formatter(ConciseDateFormatter(locator))
        legend_above(ax, columns=2)


@dataclass(eq=False, repr=False)
class CalibrationDisplay(Display):
    """How often outcomes lay below the forecast's quantiles; on the diagonal if calibrated.

    Parameters
    ----------
    levels, observed : arrays (n_levels,)
    n_rows : int
        Outcomes behind it. The band has 90 % of the points of a calibrated forecast of independent
        outcomes.
    name : str

    Examples
    --------
    >>> import numpy as np
    >>> import forewise as fw
    >>> levels = np.array([0.1, 0.5, 0.9])
    >>> observed = np.array([0.12, 0.5, 0.85])
    >>> display = fw.plots.CalibrationDisplay(levels, observed, n_rows=300)
    >>> display.plot().ax_ is not None
    True
    """

    levels: np.ndarray
    observed: np.ndarray
    n_rows: int
    name: str = "policy"

    size = (3.8, 3.6)

    @classmethod
    def from_scenarios(
        cls, scenarios: Scenarios, outcome: Any, column: int = 0, name: str = "policy"
    ) -> Self:
        """From scenarios of past contexts and one column of their outcomes."""
        curve = calibration_curve(scenarios, outcome)
        observed = curve.observed[:, column].numpy()
        return cls(curve.levels.numpy(), observed, scenarios.n_contexts, name)

    def _draw(self, ax: Axes) -> None:
        grid = np.linspace(0, 1, 101)
        low, high = (binom.ppf(q, self.n_rows, grid) / self.n_rows for q in (0.05, 0.95))
        ax.fill_between(grid, low, high, color=QUIET, alpha=0.25, lw=0, label="if calibrated")
        ax.plot([0, 1], [0, 1], color=QUIET, lw=1)
        colour, marker = looks([self.name])[self.name]
        ax.plot(self.levels, self.observed, color=colour, marker=marker, ms=4, lw=1.4, mew=0,
                label=self.name)  # fmt: skip
        ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", xlabel="quantile of the forecast",
               ylabel="share of outcomes below it")  # fmt: skip
        ax.xaxis.set_major_formatter("{x:.0%}")
        ax.yaxis.set_major_formatter("{x:.0%}")
        legend_above(ax, columns=2)


@dataclass(eq=False, repr=False)
class CoverageDisplay(Display):
    """Share of outcomes or costs within their interval, period by period.

    Parameters
    ----------
    periods : list of str, in order
    covered : array (n_periods,)
    n_rows : array of int (n_periods,)
        Rows behind each share. The band has 90 % of the shares if intervals are right and rows
        independent.
    level : float
        Share that the intervals promise.

    Examples
    --------
    >>> import numpy as np
    >>> import forewise as fw
    >>> share, rows = np.array([0.9, 0.86, 0.93]), np.array([30, 31, 30])
    >>> display = fw.plots.CoverageDisplay(["Jan", "Feb", "Mar"], share, rows, level=0.9)
    >>> display.plot().ax_ is not None
    True
    """

    periods: list[str]
    covered: np.ndarray
    n_rows: np.ndarray
    level: float

    def _draw(self, ax: Axes) -> None:
        places = np.arange(len(self.periods))
        low, high = (binom.ppf(q, self.n_rows, self.level) / self.n_rows for q in (0.05, 0.95))
        ax.bar(
            places, high - low, 0.7, low, color=QUIET, alpha=0.25, label="if intervals are right"
        )
        ax.axhline(self.level, color=QUIET, lw=1)
        colour, marker = looks(["policy"])["policy"]
        ax.plot(places, self.covered, marker, color=colour, ms=6, mew=0, label="within")
        width = ax.get_window_extent().width / ax.figure.dpi * 72
        room = max(1, int(width / (6 * max(map(len, self.periods)) + 8)))
        step = -(-len(places) // room)
        ax.set_xticks(places[::step], self.periods[::step])
        ax.set_ylim(min(0.6, *(self.covered - 0.05), *(low - 0.05)), 1.03)
        ax.yaxis.set_major_formatter("{x:.0%}")
        legend_above(ax, columns=2)


def legend_above(ax: Axes, columns: int) -> None:
    """Above the axes, where it hides nothing."""
    ax.legend(loc="lower left", bbox_to_anchor=(-0.01, 1.0), ncols=columns, borderaxespad=0.2,
              handlelength=1.4, columnspacing=1.2)  # fmt: skip


def scenario_quantiles(scenarios: Scenarios, column: int, levels: list[float]) -> list[np.ndarray]:
    """Weighted quantiles ``(n_contexts,)`` of one outcome."""
    if not 0 <= column < scenarios.n_outcomes:
        raise InvalidInputError(
            f"outcome must be the number of a column below {scenarios.n_outcomes}, but is {column}"
        )
    values = scenarios.values[..., column].double().numpy()
    order = np.argsort(values, axis=1)
    ordered = np.take_along_axis(values, order, 1)
    reached = np.take_along_axis(scenarios.weights.double().numpy(), order, 1).cumsum(1)
    places = [(reached < level - 1e-12).sum(1).clip(max=values.shape[1] - 1) for level in levels]
    return [ordered[np.arange(len(ordered)), place] for place in places]
