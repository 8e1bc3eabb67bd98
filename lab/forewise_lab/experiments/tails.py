"""What a case is judged by, decision by decision: the cost, or what it adds to the tail.

May import: nothing of forewise.
"""

from __future__ import annotations

import numpy as np
import pandas as pd


def judged_costs(
    cost: np.ndarray, days: np.ndarray, series: np.ndarray, cvar: float | None
) -> np.ndarray:
    """One figure per row whose mean is what the case is judged by.

    For a risk it is t + (cost − t)₊ / (1 − cvar), with t the quantile at `cvar` of the method's own
    costs on the same weekday of the same series: the mean of these figures is the mean CVaR of such
    groups. One CVaR of all rows would be about the busiest days alone, on which every method fills
    the oven.

    Parameters
    ----------
    cost : array (n_rows,)
    days : array of datetime64[D] (n_rows,)
    series : array of int (n_rows,)
    cvar : float or None
    """
    if cvar is None:
        return cost
    weekday = pd.DatetimeIndex(days.astype("datetime64[s]")).day_of_week.to_numpy()
    column = pd.Series(cost)
    threshold = column.groupby([series, weekday]).transform(lambda own: own.quantile(cvar))
    return (threshold + (column - threshold).clip(lower=0) / (1 - cvar)).to_numpy()
