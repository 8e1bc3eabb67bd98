"""Problems and contexts of the bakery and of Victoria. Costs are made up: only demand is real."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

import forewise as fw
from forewise.datasets.bakeries import PRODUCTS, bakery_contexts, columns_in_pieces
from forewise.problems.cvxpy.expressions import import_cvxpy
from forewise.validation.parameters import require_level, require_positive

#: Cost of a unit too few and of a unit too many, together.
SHORTAGE_AND_EXCESS = 10.0
_HALF_HOURS, _HOURS = 48, 24
#: Contexts that differ between the products of a store.
_OWN = ("demand_", "promotion")
_WHOLE = 100.0  # percent


def bakery_newsvendor(level: float) -> fw.Newsvendor:
    """How many pieces to bake where a share `level` of the days should have enough.

    Shortage and excess cost 10 together, so that costs of several levels can be compared.
    """
    require_level("level", level)
    total = SHORTAGE_AND_EXCESS
    return fw.Newsvendor(shortage=total * level, excess=total * (1 - level))


def oven_problem(capacity: float = 100.0, cvar: float | None = None) -> fw.Problem:
    """How to fill an oven that three products share; demand is in percent of the oven.

        cost = Σ_i 3 shortage_i + excess_i + 0.1 excess_i²,    Σ_i order_i ≤ capacity

    A little waste is given away at cost; much of it has to be carted off. With `cvar`, minimise the
    mean of the worst 1 − cvar of the outcomes instead of the mean of all.
    """
    problem = fw.QuadraticNewsvendor(
        quadratic=[0.0] * 3, linear=[0.0] * 3, shortage_quadratic=[0.0] * 3, shortage=[3.0] * 3,
        excess_quadratic=[0.1] * 3, excess=[1.0] * 3, price=[1.0] * 3, budget=capacity,
    )  # fmt: skip
    return problem if cvar is None else problem.with_risk(fw.CVaR(cvar))


def day_ahead_problem(
    ramp: float = 0.35,
    power: float = 0.3,
    energy: float = 1.2,
    shortage: float = 3.0,
    excess: float = 1.0,
) -> fw.CvxpyProblem:
    """A schedule of 48 half-hours, made a day ahead, with a battery that helps on the day.

    What is still missing after the battery costs `shortage` per squared GW, what is too much
    `excess`. `ramp` is the largest change of the schedule from one half-hour to the next, in GW.
    The battery, of `power` GW and `energy` GWh, is recourse: it starts half full, knows the whole
    day, and is set once an hour.
    """
    cp = import_cvxpy()
    schedule = cp.Variable(_HALF_HOURS, nonneg=True, name="schedule")
    load = cp.Parameter(_HALF_HOURS, name="load")
    battery = cp.Variable(_HOURS)  # what it gives; negative when it is charged
    by_half_hour = np.kron(np.eye(_HOURS), np.ones((_HALF_HOURS // _HOURS, 1)))
    missing = load - schedule - by_half_hour @ battery
    stored = 0.5 * energy - cp.cumsum(battery)
    imbalance = shortage * cp.sum_squares(cp.pos(missing))
    imbalance += excess * cp.sum_squares(cp.pos(-missing))
    rows = [
        cp.abs(cp.diff(schedule)) <= ramp,
        cp.abs(battery) <= power,
        stored >= 0,
        stored <= energy,
    ]
    return fw.CvxpyProblem(cp.Minimize(imbalance), rows, decision=schedule, outcome=load)


@dataclass(frozen=True, eq=False)
class StoreDays:
    """Contexts and demand of the stores of a bakery, day by day.

    `contexts` (n_rows, n_features) has columns that the products share, and columns such as
    ``demand_lag_1_101`` of each; those that count pieces are in percent of the oven. `demand`
    (n_rows, 3) is that of each product, in percent of the oven. `oven` has the pieces that each
    store's oven holds.
    """

    contexts: pd.DataFrame
    demand: pd.DataFrame
    date: pd.Series
    store: pd.Series
    oven: pd.Series


def bakery_store_days(
    table: pd.DataFrame, sized_before: str | pd.Timestamp, *, share: float = 1.0
) -> StoreDays:
    """The bakery's open days, one row for all three products of a store, by store and date.

    The files say nothing of ovens. Here a store's oven holds `share` times the mean of its total
    demand on the open days of the year before `sized_before`; a store that opened later is sized by
    its first eight weeks. Demand is in percent of it, so that one problem with a capacity of 100
    serves stores of all sizes. `table` is from `bakery`, or some stores of it with all their days.
    """
    require_positive("share", share)
    table = table.sort_values(["store", "date", "product"], ignore_index=True)
    contexts = bakery_contexts(table)
    products = contexts.columns[contexts.columns.str.startswith("product_")]
    own = [name for name in contexts.columns if name.startswith(_OWN)]
    shared = contexts.columns.drop([*own, *products])
    of_product = {product: (table["product"] == product).to_numpy() for product in PRODUCTS}
    first = of_product[PRODUCTS[0]]
    if any(mask.sum() * len(PRODUCTS) != len(table) for mask in of_product.values()):
        raise fw.InvalidInputError(
            f"table must have the products {', '.join(map(str, PRODUCTS))} on every day of a store"
        )
    demand = pd.DataFrame(
        {f"demand_{p}": table.loc[mask, "demand"].to_numpy() for p, mask in of_product.items()}
    )
    rows = table.loc[first, ["date", "store", "closed"]].reset_index(drop=True)
    is_open = ~rows["closed"].to_numpy()
    oven = _ovens(rows[is_open], demand.sum(axis=1)[is_open], pd.Timestamp(sized_before), share)
    percent = _WHOLE / table["store"].map(oven)
    pieces = columns_in_pieces(contexts)
    contexts = contexts.assign(**contexts[pieces].mul(percent, axis=0))
    parts = [contexts.loc[first, shared].reset_index(drop=True)]
    parts += [
        contexts.loc[mask, own].add_suffix(f"_{product}").reset_index(drop=True)
        for product, mask in of_product.items()
    ]
    return StoreDays(
        pd.concat(parts, axis=1)[is_open].reset_index(drop=True),
        demand.mul(percent[first].to_numpy(), axis=0)[is_open].reset_index(drop=True),
        rows.loc[is_open, "date"].reset_index(drop=True),
        rows.loc[is_open, "store"].reset_index(drop=True),
        oven,
    )


def _ovens(rows: pd.DataFrame, total: pd.Series, end: pd.Timestamp, share: float) -> pd.Series:
    sizes = {}
    for store, days in rows.groupby("store"):
        age = (end - days["date"]).dt.days
        year = (age > 0) & (age <= 365)
        if not year.any():
            year = pd.Series(np.arange(len(days)) < 56, index=days.index)
        sizes[store] = share * float(total[days.index[year]].mean())
    return pd.Series(sizes, name="oven")
