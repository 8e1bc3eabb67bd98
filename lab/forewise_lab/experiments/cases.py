"""The rows and the problems of a case: real data, in order of time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd

from forewise.datasets import bakery, bakery_contexts, victoria, victoria_contexts
from forewise.datasets.bakeries import columns_in_pieces
from forewise.features import relative_to
from forewise.problems import Problem
from forewise_lab.datasets import (
    bakery_newsvendor,
    bakery_store_days,
    day_ahead_problem,
    oven_problem,
)
from forewise_lab.experiments.configuration import DecisionTable, SourceTable

_MEGAWATTS = 1000.0
#: Column with a recent mean of the series, and the least that outcomes are divided by.
_RECENT, _LEAST_UNIT = "demand_mean_28", 1.0


@dataclass(frozen=True, eq=False)
class CaseRows:
    """Contexts and outcomes, row by row, in order of time.

    `series` are numbers of `series_names`. Relative outcomes are multiples of `unit`, a recent
    mean known before; 1 if there is none. `columns` of X say together which series, or which
    weekday, a row is of.
    """

    X: np.ndarray
    y: np.ndarray
    days: np.ndarray
    series: np.ndarray
    unit: np.ndarray
    columns: Mapping[str, tuple[int, ...]]
    series_names: tuple[str, ...]


# Fits of one case follow each other, and making contexts takes longer than many a fit.
@lru_cache(maxsize=1)
def load_case(source: SourceTable, data_dir: Path | None, sized_before: date) -> CaseRows:
    """The rows of a case; `sized_before` is the day before which ovens are sized."""
    if source.name == "victoria":
        return _victoria(data_dir)
    table = bakery(data_dir)
    if source.stores is not None:
        table = table[table["store"].isin(source.stores)].reset_index(drop=True)
    if source.name == "bakery-series":
        return _series(table)
    return _stores(table, sized_before, source.oven)


def problems_of(decision: DecisionTable) -> dict[str, Problem]:
    """What is decided, by name: one problem, or one for each service level."""
    if decision.name == "newsvendor":
        return {f"{level:g}": bakery_newsvendor(level) for level in decision.levels}
    if decision.name == "oven":
        return {"oven": oven_problem(cvar=decision.cvar)}
    return {"day-ahead": day_ahead_problem()}


def _series(table: pd.DataFrame) -> CaseRows:
    contexts = bakery_contexts(table)
    pieces = [name for name in columns_in_pieces(contexts) if name != _RECENT]
    unit = contexts[_RECENT].clip(lower=_LEAST_UNIT)
    contexts = relative_to(contexts, _RECENT, pieces, least=_LEAST_UNIT)
    # The first open days of a series have no past: they are not used.
    kept = ~table["closed"] & (contexts[f"{_RECENT}_missing"] == 0)
    table, contexts = table[kept], contexts[kept]
    names = table["store"].astype(str) + "/" + table["product"].astype(str)
    return _in_order(
        contexts,
        table["demand"].to_numpy()[:, None],
        table["date"],
        names,
        unit[kept].to_numpy(),
    )


def _stores(table: pd.DataFrame, sized_before: date, share: float) -> CaseRows:
    days = bakery_store_days(table, pd.Timestamp(sized_before), share=share)
    unit = np.ones(len(days.demand))
    names = days.store.astype(str)
    return _in_order(days.contexts, days.demand.to_numpy(), days.date, names, unit)


def _victoria(data_dir: Path | None) -> CaseRows:
    data = victoria(data_dir)
    contexts = victoria_contexts(data)
    whole = contexts.notna().all(axis=1).to_numpy()  # the first week lacks a week before
    contexts = contexts[whole]
    dates = pd.Series(contexts.index)
    demand = data.demand.to_numpy()[whole] / _MEGAWATTS
    return _in_order(
        contexts, demand, dates, dates.map(lambda day: "Victoria"), np.ones(len(dates))
    )


def _in_order(
    contexts: pd.DataFrame, y: np.ndarray, dates: pd.Series, names: pd.Series, unit: np.ndarray
) -> CaseRows:
    days = dates.to_numpy().astype("datetime64[D]")
    series, listed = pd.factorize(names.to_numpy(), sort=True)
    order = np.lexsort([series, days])
    return CaseRows(
        contexts.to_numpy(dtype=np.float64)[order],
        y[order],
        days[order],
        series[order],
        unit[order],
        {
            "series": _named(contexts, ("store_", "product_")),
            "weekday": _named(contexts, ("weekday_",)),
        },
        tuple(str(name) for name in listed),
    )


def _named(contexts: pd.DataFrame, beginnings: tuple[str, ...]) -> tuple[int, ...]:
    return tuple(i for i, name in enumerate(contexts.columns) if name.startswith(beginnings))


def cost_or_risk(
    cost: np.ndarray, days: np.ndarray, series: np.ndarray, cvar: float | None
) -> np.ndarray:
    """One number per row whose mean is the metric of the case: the cost, or its CVaR.

    For a CVaR it is t + (cost − t)₊ / (1 − cvar), with t the quantile at `cvar` of the method's own
    costs on the same weekday of the same series: the mean of these numbers is the mean CVaR of such
    groups. One CVaR of all rows would be about the busiest days alone.
    """
    if cvar is None:
        return cost
    weekday = pd.DatetimeIndex(days.astype("datetime64[s]")).day_of_week.to_numpy()
    column = pd.Series(cost)
    threshold = column.groupby([series, weekday]).transform(lambda own: own.quantile(cvar))
    return (threshold + (column - threshold).clip(lower=0) / (1 - cvar)).to_numpy()
