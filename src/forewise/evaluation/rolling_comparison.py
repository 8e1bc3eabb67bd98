"""Methods that decided the same rows, side by side. May import: exceptions, metrics."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from forewise.evaluation.blocks import block_bootstrap, block_bootstrap_difference
from forewise.exceptions import InvalidInputError


def compare_rolling(
    tables: Mapping[str, pd.DataFrame],
    baseline: str,
    block_days: int = 7,
    level: float = 0.95,
    n_resamples: int = 2000,
    random_state: int = 0,
) -> pd.DataFrame:
    """Methods side by side: mean cost, and how much less or more than a baseline, with intervals.

    Parameters
    ----------
    tables : mapping of name to DataFrame
        From `evaluate_rolling`, all with the same rows.
    baseline : str
        Name of the one that the others are compared with.
    block_days, level, n_resamples, random_state
        As for `block_bootstrap`; all methods have the same weeks drawn.

    Returns
    -------
    DataFrame (n_methods, 9)
        Cheapest first: `cost`, `difference` (to the baseline) and `relative` (share of the
        baseline's cost), each followed by its ends, `cost_lower`, `cost_upper` and so on.
    """
    if baseline not in tables:
        raise InvalidInputError(f"baseline must be one of {list(tables)}, but is {baseline!r}")
    other = tables[baseline]
    settings = (block_days, level, n_resamples, random_state)
    rows = {}
    for name, table in tables.items():
        same = table.index.equals(other.index) and table["date"].equals(other["date"])
        if not same:
            raise InvalidInputError(
                f"tables must have the same rows, but those of {name!r} ({len(table)}) differ from "
                f"those of {baseline!r} ({len(other)})"
            )
        costs, dates = table["cost"], table["date"]
        found = {
            "cost": block_bootstrap(costs, dates, *settings),
            "difference": block_bootstrap_difference(costs, other["cost"], dates, *settings),
            "relative": block_bootstrap_difference(
                costs, other["cost"], dates, *settings, relative=True
            ),
        }
        rows[name] = {
            f"{figure}{end}": getattr(value, attribute)
            for figure, value in found.items()
            for end, attribute in (("", "estimate"), ("_lower", "lower"), ("_upper", "upper"))
        }
    return pd.DataFrame.from_dict(rows, orient="index").sort_values("cost")
