"""The page on the planner in the bakery: its costs beside the best method's, and its intervals."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd

from forewise.evaluation import block_bootstrap_difference
from forewise.exceptions import InvalidInputError
from forewise_lab.experiments.configuration import Settings, load_settings
from forewise_lab.experiments.planning import COVERED, FITTED, LEAST, METHOD
from forewise_lab.experiments.rolling import COST, read_costs
from forewise_lab.experiments.rows import read_rows
from forewise_lab.machine import write_whole
from forewise_lab.report.cases import gather_cases

_ROWS = ["date", "series"]


def write_planner_page(
    folder: str | os.PathLike[str],
    page: str | os.PathLike[str],
    experiment: str = "bakery-a",
    settings: Settings | None = None,
) -> Path:
    """Write the page from the rows of a results folder; every level must be there."""
    rows, place = read_rows(folder), Path(folder)
    case = next(
        c for c in gather_cases(folder, settings or load_settings()) if c.name == experiment
    )
    best = min(case.methods, key=lambda method: method.scored(None).mean())
    levels, costs, lines = [f"{level:g}" for level in case.table.decision.levels], {}, []
    for level in levels:
        own = rows[(rows["experiment"] == experiment) & (rows["method"] == f"{METHOD} {level}")]
        if not len(own):
            raise InvalidInputError(f"{place} must have the planner at {level}, but has not")
        last = own[own["finished_at"] == own["finished_at"].max()].set_index("metric")
        table = read_costs(place / str(last["costs_file"].iloc[0]))
        joined = table.merge(best.costs[[*_ROWS, level]], on=_ROWS, validate="one_to_one")
        costs[level] = joined
        value = last["value"]
        lines.append(
            f"| {level} | {value[COST]:.2f} | {joined[level].mean():.2f} | "
            f"{_difference(joined['cost'], joined[level], joined['date'])} | "
            f"{_percent(value[COVERED])} | {_percent(value[LEAST])} | {value[FITTED]:.0f} s |"
        )
    dates = costs[levels[0]]["date"]
    ours = np.mean([costs[level]["cost"].to_numpy() for level in levels], axis=0)
    other = np.mean([costs[level][level].to_numpy() for level in levels], axis=0)
    inside = [costs[level]["cost"].between(costs[level]["lower"], costs[level]["upper"])
              for level in levels]  # fmt: skip
    months = pd.concat(inside, axis=1).mean(axis=1).groupby(dates.dt.strftime("%Y-%m")).mean()
    lines.append(
        f"| mean | **{ours.mean():.2f}** | {other.mean():.2f} | "
        f"{_difference(pd.Series(ours), pd.Series(other), dates)} | "
        f"{_percent(np.mean(inside))} | {_percent(months.min())} | |"
    )
    best_title = f"{best.title} ({best.chosen})" if best.chosen else best.title
    text = f"""# The planner in the bakery

A `Planner` that knows the roles of the columns and nothing else, on the rows and in the windows of
case (a) of "Does it pay?". Each service level has a planner of its own; it chooses its method on
the rows before the first window and learns anew before every window. Beside it the best of the
methods that were tuned for this case: {best_title}.
Differences are paired, with 95 % intervals by a block bootstrap over weeks. Made by
`forewise-lab planner`; the fit's time, choice of the method included, is that of one processor.

| level | planner | {best.title} | difference | within the 90 % interval | worst month | one fit |
| --: | --: | --: | --: | --: | --: | --: |
{chr(10).join(lines)}

{len(dates):,} decisions at each level. The worst month of all levels together is
{months.idxmin()}, with {_percent(months.min())} of the costs within their interval.
"""
    target = Path(page)
    write_whole(target, text)
    return target


def _difference(ours: pd.Series, other: pd.Series, dates: pd.Series) -> str:
    found = block_bootstrap_difference(ours, other, dates, relative=True)
    parts = [_signed(value) for value in (found.estimate, found.lower, found.upper)]
    return f"{parts[0]} [{parts[1]}, {parts[2]}]"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _signed(share: float) -> str:
    return f"{100 * share:+.1f} %".replace("-", "−")
