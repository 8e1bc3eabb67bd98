"""Bakeries whose products share an oven: one row per store and day, in percent of the oven."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from forewise.datasets.bakeries import PRODUCTS, bakery_contexts, columns_in_pieces
from forewise.exceptions import InvalidInputError

#: Contexts that differ between the products of a store.
_OWN = ("demand_", "promotion")
_WHOLE = 100.0  # percent


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
    if not share > 0:
        raise InvalidInputError(f"share must be positive, but is {share!r}")
    table = table.sort_values(["store", "date", "product"], ignore_index=True)
    contexts = bakery_contexts(table)
    products = contexts.columns[contexts.columns.str.startswith("product_")]
    own = [name for name in contexts.columns if name.startswith(_OWN)]
    shared = contexts.columns.drop([*own, *products])
    of_product = {product: (table["product"] == product).to_numpy() for product in PRODUCTS}
    first = of_product[PRODUCTS[0]]
    if any(mask.sum() * len(PRODUCTS) != len(table) for mask in of_product.values()):
        raise InvalidInputError(
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
    """Pieces that each store's oven holds."""
    sizes = {}
    for store, days in rows.groupby("store"):
        age = (end - days["date"]).dt.days
        year = (age > 0) & (age <= 365)
        if not year.any():
            year = pd.Series(np.arange(len(days)) < 56, index=days.index)
        sizes[store] = share * float(total[days.index[year]].mean())
    return pd.Series(sizes, name="oven")
