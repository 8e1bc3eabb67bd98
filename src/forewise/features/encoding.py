"""Names to numbers, and what to do where a feature is missing.

May import: exceptions, and its sibling `grid`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from forewise.exceptions import InvalidInputError
from forewise.features.grid import as_numbers, require_columns

_SHOWN = 5  # categories that an error message lists


def one_hot(values: pd.Series, categories: Iterable[Any], unseen: str = "raise") -> pd.DataFrame:
    """One column of 0 and 1 for each category, always the same ones.

    Parameters
    ----------
    values : Series (n_rows,)
    categories : iterable
        All that a model shall know; write them down rather than take them from the rows at hand,
        or training and deciding have different columns.
    unseen : {"raise", "zeros"}
        What a value that is no category does: it is an error, or has 0 in every column, which
        leaves it to the other features what to make of it.

    Returns
    -------
    DataFrame (n_rows, n_categories)
        Columns such as ``product_101``.

    Examples
    --------
    >>> one_hot(pd.Series([101, 110], name="product"), [101, 109, 110])
       product_101  product_109  product_110
    0          1.0          0.0          0.0
    1          0.0          0.0          1.0
    """
    if unseen not in ("raise", "zeros"):
        raise InvalidInputError(f'unseen must be "raise" or "zeros", but is {unseen!r}')
    known = pd.Index(list(categories))
    if not len(known) or known.has_duplicates:
        raise InvalidInputError("categories must be different values, at least one")
    place = known.get_indexer(pd.Index(values))
    strangers = pd.unique(values[place < 0]).tolist()
    if strangers and unseen == "raise":
        more = f" and {len(strangers) - _SHOWN} more" if len(strangers) > _SHOWN else ""
        listed = ", ".join(repr(value) for value in strangers[:_SHOWN])
        raise InvalidInputError(
            f"{values.name} has values that are no categories: {listed}{more}. A model cannot know "
            'them: add them to categories and fit anew, or pass unseen="zeros"'
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
    """No missing values: a stand-in for each, and columns that say where.

    Prefer it to dropping rows where series are short: a shop that opened three weeks ago has no
    lag of four weeks, but has to be decided for.

    Parameters
    ----------
    features : DataFrame (n_rows, n_features)
        Numbers.
    fallback : str, optional
        Column whose value stands in, in the same row, where it is known itself. It should have
        the units of the others.
    value : float
        What stands in otherwise.
    flags : sequence of str
        Columns that get another one beside them, such as ``demand_lag_28_missing``: 1 where the
        value is a stand-in, otherwise 0.

    Returns
    -------
    DataFrame (n_rows, n_features + len(flags))
    """
    require_columns(features, [*flags, *([] if fallback is None else [fallback])])
    numbers = pd.DataFrame(
        {name: as_numbers(features[name]) for name in features.columns}, index=features.index
    )
    told = numbers[list(flags)].isna().astype(float).add_suffix("_missing")
    if fallback is not None:
        numbers = numbers.apply(lambda column: column.fillna(numbers[fallback]))
    return pd.concat([numbers.fillna(value), told], axis=1)
