"""Demand of stores, day by day, with a promotion and what only the past is known of."""

from __future__ import annotations

import numpy as np
import pandas as pd


def sales_table(
    n_days: int = 150, levels: tuple[float, ...] = (50.0, 5.0), seed: int = 0
) -> pd.DataFrame:
    """Columns date, store, promotion, closed, temperature, sales; Sundays are closed."""
    random = np.random.default_rng(seed)
    days = pd.date_range("2023-01-02", periods=n_days)
    tables = []
    for k, level in enumerate(levels):
        promotion = random.random(n_days) < 0.15
        mean = level * (1 + 0.3 * (days.day_of_week > 3) + 0.5 * promotion)
        closed = np.asarray(days.day_of_week == 6)
        own = {"date": days, "store": f"store {k}", "promotion": promotion, "closed": closed}
        own |= {"temperature": random.normal(10, 5, n_days)}
        tables.append(
            pd.DataFrame(own).assign(sales=np.where(closed, 0, random.poisson(mean)).astype(float))
        )
    return pd.concat(tables, ignore_index=True)


def days_after(table: pd.DataFrame, n_days: int = 1) -> pd.DataFrame:
    """Rows of the days behind a table, without what is not known ahead."""
    last = table["date"].max()
    rows = [
        {"date": last + pd.Timedelta(days=k), "store": store, "promotion": k == 1, "closed": False}
        for store in table["store"].unique()
        for k in range(1, n_days + 1)
    ]
    return pd.DataFrame(rows)


def sold_out_table(n_days: int = 300, seed: int = 0) -> tuple[pd.DataFrame, pd.Series]:
    """One store whose stock is often too small, and its true demand."""
    table = sales_table(n_days, (50.0,), seed)
    demand = table["sales"].copy()
    stock = np.random.default_rng(seed + 1).uniform(35, 90, n_days)
    sold_out = (demand > stock) & ~table["closed"]
    sold = np.where(sold_out, np.floor(stock), demand)
    return table.assign(sales=sold, sold_out=sold_out), demand
