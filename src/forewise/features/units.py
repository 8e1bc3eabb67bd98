"""Features of series of all sizes, in units that make them alike.

May import: exceptions, and its sibling `grid`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from forewise.exceptions import InvalidInputError
from forewise.features.grid import as_numbers, require_columns


def relative_to(
    features: pd.DataFrame, unit: str, columns: Sequence[str], least: float = 1.0
) -> pd.DataFrame:
    """Columns as multiples of another, and that one as its logarithm.

    Prefer it where one model learns many series: large and small ones then look alike, and how
    large a series is, which often says how noisy it is, stays in one column. Let the model learn
    outcomes in the same unit.

    Parameters
    ----------
    features : DataFrame (n_rows, n_features)
    unit : str
        Column that the others are multiples of, such as a recent mean.
    columns : sequence of str
        Columns in the units of that one; all others stay as they are.
    least : float
        The smallest unit: a series that sold nothing lately has this one.

    Returns
    -------
    DataFrame (n_rows, n_features)
        The same columns in the same order.

    Examples
    --------
    >>> table = pd.DataFrame({"mean": [1.0, 100.0], "lag_1": [2.0, 50.0], "rain": [0.0, 3.0]})
    >>> relative_to(table, "mean", ["lag_1"]).round(2)
       mean  lag_1  rain
    0  0.00    2.0   0.0
    1  4.61    0.5   3.0
    """
    if not least > 0:
        raise InvalidInputError(f"least must be positive, but is {least!r}")
    if unit in columns:
        raise InvalidInputError(f"unit {unit!r} is among the columns, and would be 1 everywhere")
    require_columns(features, [unit, *columns])
    size = as_numbers(features[unit]).clip(min=least)
    scaled = {name: as_numbers(features[name]) / size for name in columns}
    return features.assign(**scaled, **{unit: np.log(size)})
