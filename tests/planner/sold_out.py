"""A planner on the bundled demand, of which some days are sold out, against one that knows it.

``python -m tests.planner.sold_out`` prints mean order and cost on true demand, relative to those of
a planner that learned from true demand (minutes; a word such as ``linear`` takes one method).
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pandas as pd
import torch

import forewise as fw

_DAYS, _AHEAD = 365, 120
ROLES = {
    "outcome": "sales",
    "date": "date",
    "series": ["store", "product"],
    "known": ["price", "promotion", "temperature_forecast"],
    "sold_out": "sold_out",
    "closed": "closed",
}
METHODS: dict[str, Any] = {
    "auto": None,
    "linear": fw.ResidualPredictor(shuffle=False, random_state=0),
    "neighbours": fw.NeighborPredictor(),
    "forest": fw.ForestPredictor(random_state=0),
    "boosted": fw.QuantileBoostingPredictor(random_state=0),
    "network": fw.BayesianPredictor(random_state=0),
}


def decided(share: float, seed: int, learner: Any, known: bool) -> pd.DataFrame:
    """Orders of the days ahead, and their true demand; `known`: learned from true demand."""
    table = fw.datasets.shop_demand(_DAYS + _AHEAD, share, seed, true_demand=True)
    demand = table.pop("demand")
    if known:
        table = table.assign(sales=demand, sold_out=False)
    past = table["date"] < np.sort(table["date"].unique())[_DAYS]
    planner = fw.Planner(fw.Newsvendor(3, 1), **ROLES, learner=learner).fit(table[past])
    # Every day is decided on its eve: sales of the days before are in the table.
    orders = planner.decide(table, table[~past])
    return orders.assign(demand=demand[~past])[~table["closed"][~past]]


def figures(orders: pd.DataFrame) -> tuple[float, float]:
    """Mean order, and mean cost on true demand."""
    order, demand = orders["decision"], orders["demand"]
    cost = 3 * (demand - order).clip(lower=0) + (order - demand).clip(lower=0)
    return float(order.mean()), float(cost.mean())


def main(names: list[str]) -> None:
    """Print order and cost, in per cent of those learned from true demand."""
    torch.set_num_threads(1)
    for name in names or METHODS:
        for seed in (0, 1):
            order, cost = figures(decided(0.2, seed, METHODS[name], known=True))
            for share in (0.2, 0.4):
                own, paid = figures(decided(share, seed, METHODS[name], known=False))
                print(
                    f"{name}, seed {seed}, {share:.0%} sold out: order {own / order - 1:+.1%}, "
                    f"cost {paid / cost - 1:+.1%}",
                    flush=True,
                )


if __name__ == "__main__":
    main(sys.argv[1:])
