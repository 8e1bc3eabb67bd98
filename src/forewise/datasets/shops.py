"""Made-up demand of three shops: what a planner's table looks like, with its true demand known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from forewise.exceptions import InvalidInputError
from forewise.validation.parameters import as_generator, require_count

_FIRST_DAY = "2023-01-02"  # a Monday
# Mean demand of a usual day, and how it changes from Monday to Sunday.
_STORES = {
    "Harbour": (1.0, [0.85, 0.85, 0.9, 1.0, 1.15, 1.35, 1.2]),
    "Market": (1.6, [0.9, 0.95, 1.0, 1.05, 1.2, 1.5, 0.0]),
    "Station": (0.7, [1.15, 1.15, 1.15, 1.1, 1.2, 0.7, 0.6]),
}
# Mean demand, price, elasticity, effect of a promotion and of a degree, height of the season.
_PRODUCTS = {
    "bread": (60.0, 3.2, -0.8, 1.25, -0.004, 0.05),
    "cake": (25.0, 4.5, -1.4, 1.6, -0.012, -0.15),
}
_OVERDISPERSION = 25.0  # shape of the gamma distribution of a day's mean
_PROMOTED = 0.08  # share of days with a promotion


def shop_demand(
    n_days: int = 730,
    sold_out: float = 0.15,
    random_state: Any = 0,
    *,
    true_demand: bool = False,
) -> pd.DataFrame:
    """Daily sales of two products in three shops, as a shop would have them.

    Demand is a negative binomial around a mean that depends on the weekday, the season, promotions,
    the price, the temperature and a level that drifts. A shelf holds what its shop guessed; when it
    is empty the day is sold out, and sales say only that demand was at least as high. Market is
    closed on Sundays, all shops on 25 December and 1 January.

    Parameters
    ----------
    n_days : int
        Days, from Monday 2 January 2023.
    sold_out : float
        Share of the open rows that are sold out, from 0 to below 1.
    random_state : int or numpy.random.Generator
    true_demand : bool
        Add the column `demand`: what would have been sold from a full shelf. No shop knows it.

    Returns
    -------
    DataFrame (6 n_days, 9)
        By date, store and product: `date`, `store`, `product`, `price`, `promotion`,
        `temperature_forecast` (of the day before, °C), `closed`, `sales` (0 when closed) and
        `sold_out`.

    Examples
    --------
    >>> import forewise as fw
    >>> table = fw.datasets.shop_demand(n_days=7)
    >>> table.shape
    (42, 9)
    >>> table[["store", "product", "sales", "sold_out"]].head(2)
         store product  sales  sold_out
    0  Harbour   bread     34     False
    1  Harbour    cake     30     False
    """
    n_days, generator = require_count("n_days", n_days, 1), as_generator(random_state)
    if not 0 <= sold_out < 1:
        raise InvalidInputError(f"sold_out must be a share from 0 to below 1, but is {sold_out!r}")
    days = pd.date_range(_FIRST_DAY, periods=n_days)
    # One array per fact, (n_days, n_stores, n_products).
    shape = (n_days, len(_STORES), len(_PRODUCTS))
    angle = 2 * np.pi * (days.day_of_year.to_numpy() - 15) / 365.25
    temperature = 10 - 9 * np.cos(angle) + _drift(generator, n_days, 0.8, 2.0)
    forecast = np.round(temperature + generator.normal(0, 1, n_days), 1)
    promotion = generator.random(shape) < _PROMOTED
    base, price, elasticity, promoted, degree, season = np.array(list(_PRODUCTS.values())).T
    cut = np.where(promotion, 0.8, 1.0)
    raised = np.round(price * (1 + 0.03 * (np.arange(n_days) // 180))[:, None], 2)[:, None, :]
    prices = np.round(raised * cut, 2)
    size = np.array([size for size, _ in _STORES.values()])
    week = np.array([week for _, week in _STORES.values()]).T[days.day_of_week]
    level = np.exp(
        np.stack([_drift(generator, n_days, 0.97, 0.03) for _ in range(6)], axis=1)
    ).reshape(shape)
    mean = base * size[:, None] * week[:, :, None] * level
    mean = mean * (prices / price) ** elasticity * np.where(promotion, promoted, 1.0)
    mean *= np.exp(
        degree * (temperature[:, None, None] - 10) + season * np.cos(angle)[:, None, None]
    )
    holiday = (days.month == 12) & (days.day == 25) | (days.month == 1) & (days.day == 1)
    closed = np.broadcast_to(((week == 0) | holiday[:, None])[:, :, None], shape)
    rate = generator.gamma(_OVERDISPERSION, mean / _OVERDISPERSION)
    demand = np.where(closed, 0, generator.poisson(rate)).astype(float)
    shelf = np.where(closed, 1.0, mean) * np.exp(generator.normal(0, 0.15, shape))
    empty = np.zeros(shape, dtype=bool)
    if sold_out and not closed.all():
        shelf *= np.quantile((demand / shelf)[~closed], 1 - sold_out)
        empty = (demand > shelf) & ~closed
    dates, stores, products = np.meshgrid(days, list(_STORES), list(_PRODUCTS), indexing="ij")
    columns = {
        "date": dates,
        "store": stores,
        "product": products,
        "price": prices,
        "promotion": promotion,
        "temperature_forecast": np.broadcast_to(forecast[:, None, None], shape),
        "closed": closed,
        "sales": np.where(empty, np.floor(shelf), demand).astype(int),
        "sold_out": empty,
    }
    columns |= {"demand": demand.astype(int)} if true_demand else {}
    return pd.DataFrame({name: values.ravel() for name, values in columns.items()})


def _drift(generator: np.random.Generator, n: int, memory: float, step: float) -> np.ndarray:
    """An autoregression of order one that starts at 0."""
    noise = generator.normal(0, step, n)
    values = np.zeros(n)
    for day in range(1, n):
        values[day] = memory * values[day - 1] + noise[day]
    return values
