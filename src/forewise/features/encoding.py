"""Encoding of categories, missing values, and units that make series of all sizes alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from forewise.exceptions import InvalidInputError
from forewise.features.grid import as_numbers, require_columns

_SHOWN = 5  # categories that an error message lists


def one_hot(values: pd.Series, categories: Iterable[Any], unseen: str = "raise") -> pd.DataFrame:
    """One column of 0 and 1 for each category.

    Parameters
    ----------
    values : Series (n_rows,)
    categories : iterable
        All that a model shall know, in columns such as ``product_101``. Write them down rather than
        take them from the rows at hand, or training and deciding have different columns.
    unseen : {"raise", "zeros"}
        What to do with a value that is no category: raise, or have 0 in every column.

    Examples
    --------
    >>> import pandas as pd
    >>> import forewise as fw
    >>> fw.features.one_hot(pd.Series(["a", "b"], name="shop"), categories=["a", "b", "c"])
       shop_a  shop_b  shop_c
    0     1.0     0.0     0.0
    1     0.0     1.0     0.0
    """
    if unseen not in ("raise", "zeros"):
        raise InvalidInputError(f'unseen must be "raise" or "zeros", but is {unseen!r}')
    known = pd.Index(list(categories))
    if not len(known) or known.has_duplicates:
        raise InvalidInputError("categories must be different values, at least one")
    place = known.get_indexer(pd.Index(values))
    unknown = pd.unique(values[place < 0]).tolist()
    if unknown and unseen == "raise":
        more = f" and {len(unknown) - _SHOWN} more" if len(unknown) > _SHOWN else ""
        listed = ", ".join(repr(value) for value in unknown[:_SHOWN])
        raise InvalidInputError(
            f"{values.name} has values that are no categories: {listed}{more}. Add them to "
            'categories and fit again, or pass unseen="zeros"'
        )
    hot = (place[:, None] == np.arange(len(known))).astype(float)
    columns = [f"{values.name}_{category}" for category in known]
    return pd.DataFrame(hot, index=values.index, columns=columns)


def fill_missing(
    features: pd.DataFrame,
    fallback: str | None = None,
    value: float = 0.0,
    flags: Sequence[str] = (),
) -> pd.DataFrame:
    """Missing values replaced, and columns that say where.

    Parameters
    ----------
    features : DataFrame (n_rows, n_features)
        Numbers.
    fallback : str, optional
        Column whose value in the same row replaces missing ones, where it is known itself; it
        should have the units of the others.
    value : float
        What replaces the rest.
    flags : sequence of str
        Columns that get another one, such as ``demand_lag_28_missing``, 1 where the value was
        missing and otherwise 0; they come last.

    Examples
    --------
    >>> import pandas as pd
    >>> import forewise as fw
    >>> table = pd.DataFrame({"lag": [None, 3.0], "mean": [5.0, 4.0]})
    >>> fw.features.fill_missing(table, fallback="mean", flags=["lag"])
       lag  mean  lag_missing
    0  5.0   5.0          1.0
    1  3.0   4.0          0.0
    """
    require_columns(features, [*flags, *([] if fallback is None else [fallback])])
    numbers = pd.DataFrame(
        {name: as_numbers(features[name]) for name in features.columns}, index=features.index
    )
    missing = numbers[list(flags)].isna().astype(float).add_suffix("_missing")
    if fallback is not None:
        numbers = numbers.apply(lambda column: column.fillna(numbers[fallback]))
    return pd.concat([numbers.fillna(value), missing], axis=1)


def relative_to(
    features: pd.DataFrame, unit: str, columns: Sequence[str], least: float = 1.0
) -> pd.DataFrame:
    """Columns as multiples of another one, and that one as its logarithm.

    *When to use*: one model learns many series of different sizes. Let it learn outcomes in the
    same unit.

    Parameters
    ----------
    features : DataFrame (n_rows, n_features)
        Its columns are returned in the same order.
    unit : str
        Column that the others are multiples of, such as a recent mean.
    columns : sequence of str
        Columns to divide; all others stay as they are.
    least : float
        Lower bound of the unit.

    Examples
    --------
    >>> import pandas as pd
    >>> import forewise as fw
    >>> table = pd.DataFrame({"lag": [8.0, 150.0], "mean": [10.0, 100.0]})
    >>> fw.features.relative_to(table, unit="mean", columns=["lag"]).round(2)
       lag  mean
    0  0.8  2.30
    1  1.5  4.61
    """
    if not least > 0:
        raise InvalidInputError(f"least must be positive, but is {least!r}")
    if unit in columns:
        raise InvalidInputError(f"unit {unit!r} is among the columns, and would be 1 everywhere")
    require_columns(features, [unit, *columns])
    size = as_numbers(features[unit]).clip(min=least)
    scaled = {name: as_numbers(features[name]) / size for name in columns}
    return features.assign(**scaled, **{unit: np.log(size)})
