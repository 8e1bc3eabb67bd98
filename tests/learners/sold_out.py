"""Demand of which sold-out days say only "at least this much", and what is learned from it.

``python -m tests.learners.sold_out`` prints the table of every predictor (minutes).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from sklearn.base import clone

import forewise as fw
from forewise.predictors import (
    BayesianPredictor,
    EmpiricalPredictor,
    ForestPredictor,
    GaussianProcessPredictor,
    MixturePredictor,
    NeighborPredictor,
    QuantileBoostingPredictor,
    ResidualPredictor,
)

PROBLEM = fw.Newsvendor(shortage=3, excess=1)


@dataclass(frozen=True)
class Shop:
    """Days (n_days,) with a demand that is known here, and what was sold of it."""

    X: np.ndarray
    demand: np.ndarray
    sales: np.ndarray
    sold_out: np.ndarray

    def __getitem__(self, days: slice) -> Shop:
        return Shop(self.X[days], self.demand[days], self.sales[days], self.sold_out[days])


def shop(n_days: int, share: float, noise: str = "gamma", seed: int = 0) -> Shop:
    """Weekday, season and promotions with gamma or negative binomial noise.

    Stock is a quantile of demand times a lognormal error of 25 %: what is censored depends on the
    context. Its level is the one at which `share` of the days are sold out.
    """
    random, day = np.random.default_rng(seed), np.arange(n_days)
    season, promotion = 2 * np.pi * day / 365, random.random(n_days) < 0.2
    weekday = np.array([0.7, 0.75, 0.8, 0.9, 1.2, 1.5, 1.15])[day % 7]
    mean = 40 * weekday * (1 + 0.3 * np.sin(season)) * (1 + 0.4 * promotion)
    demand = random.gamma(8, mean / 8)
    if noise == "negative binomial":
        demand = random.poisson(demand).astype(float)
    stock = mean * np.exp(0.25 * random.normal(size=n_days))
    stock *= np.quantile(demand / stock, 1 - share)
    if noise == "negative binomial":
        stock = np.round(stock)
    X = np.column_stack([day % 7, np.sin(season), np.cos(season), promotion])
    return Shop(X, demand, np.minimum(demand, stock), demand >= stock)


def learner_of(method: Any) -> Any:
    return method if isinstance(method, fw.Learner) else fw.DecoupledLearner(PROBLEM, method)


def compared(
    method: Any, share: float, noise: str = "gamma", seed: int = 0, n_days: int = 1500
) -> dict[str, tuple[float, float]]:
    """Mean order and cost on true demand, relative to what is learned from true demand."""
    whole = shop(n_days + 3000, share, noise, seed)
    past, new = whole[:n_days], whole[n_days:]
    known = ~past.sold_out
    fits: dict[str, tuple[Any, ...]] = {
        "true": (past.X, past.demand, {}),
        "censored": (past.X, past.sales, {"censored": past.sold_out}),
        "taken as demand": (past.X, past.sales, {}),
        "dropped": (past.X[known], past.sales[known], {}),
    }
    found = {}
    for treatment, (X, y, more) in fits.items():
        orders = clone(learner_of(method)).fit(X, y, **more).decide(new.X)[:, 0]
        short, left = np.maximum(new.demand - orders, 0), np.maximum(orders - new.demand, 0)
        found[treatment] = orders.mean(), (3 * short + left).mean()
    order, cost = found.pop("true")
    return {name: (own / order - 1, paid / cost - 1) for name, (own, paid) in found.items()}


METHODS: dict[str, Any] = {
    "BayesianPredictor": BayesianPredictor(random_state=0),
    "ForestPredictor": ForestPredictor(n_jobs=1),
    "QuantileBoostingPredictor": QuantileBoostingPredictor(),
    "NeighborPredictor": NeighborPredictor(),
    "ResidualPredictor": ResidualPredictor(),
    "EmpiricalPredictor": EmpiricalPredictor(),
    "MixturePredictor": MixturePredictor(random_state=0),
    "GaussianProcessPredictor": GaussianProcessPredictor(random_state=0),
    "AutoLearner": fw.AutoLearner(PROBLEM, random_state=0),
    "AutoLearner of fast candidates": fw.AutoLearner(
        PROBLEM,
        {
            "empirical": EmpiricalPredictor(),
            "linear residuals": ResidualPredictor(),
            "neighbours": NeighborPredictor(),
            "forest": ForestPredictor(n_jobs=1),
        },
        random_state=0,
    ),
}


def main(names: list[str]) -> None:
    """Print order and cost, in per cent of those learned from true demand."""
    torch.set_num_threads(1)
    for name in names or METHODS:
        for share in (0.2, 0.4):
            for noise in ("gamma", "negative binomial"):
                found = compared(METHODS[name], share, noise)
                figures = (
                    f"{treatment}: order {100 * order:+.1f} % cost {100 * cost:+.1f} %"
                    for treatment, (order, cost) in found.items()
                )
                print(f"{name}, {share:.0%} {noise}:", "; ".join(figures), flush=True)


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
