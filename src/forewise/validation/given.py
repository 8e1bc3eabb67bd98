"""What is known in each context, as a table whose rows can be taken.

`given` has one meaning wherever it is an argument: row i belongs to row i of contexts, decisions
and outcomes; one row serves them all. It comes as an array, a tensor, a series, a data frame, a
dict of these by the name of the parameter, or a `Given`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from forewise.exceptions import InvalidInputError
from forewise.validation.frames import take_rows


@dataclass(frozen=True, init=False, eq=False)
class Given:
    """Values of given parameters by name, one row per context, whose rows can be taken.

    When to use: in scikit-learn's cross-validation, which takes rows of tables but not of dicts, as
    in ``search.fit(X, y, given=fw.Given(price=price, room=room))``. A data frame with a column per
    parameter does as well.

    Parameters
    ----------
    parts : dict, optional
        Values by name, for names that are no Python names.
    **by_name : arrays, tensors, series or data frames (n_contexts, *shape)

    Examples
    --------
    >>> import forewise as fw
    >>> known = fw.Given(price=[4.0, 5.0, 6.0], room=[10.0, 20.0, 30.0])
    >>> known[[0, 2]]
    Given(price, room; 2 rows)
    """

    parts: dict[str, Any]

    def __init__(self, parts: Mapping[str, Any] | None = None, /, **by_name: Any) -> None:
        whole = {**(parts or {}), **by_name}
        if not whole:
            raise InvalidInputError("Given must have values for a parameter, but has none")
        lengths = {name: _n_rows(name, part) for name, part in whole.items()}
        if len(set(lengths.values())) > 1:
            raise InvalidInputError(
                f"Given must have the same number of rows in every part, but has {lengths}"
            )
        object.__setattr__(self, "parts", whole)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of parameters: what scikit-learn asks for before it takes rows."""
        return len(self), len(self.parts)

    def __len__(self) -> int:
        return len(next(iter(self.parts.values())))

    def __getitem__(self, rows: Any) -> Given:
        """The values of some rows."""
        # scikit-learn asks for table[rows, ...], as of an array.
        rows = rows[0] if isinstance(rows, tuple) else rows
        return Given({name: take_rows(part, rows) for name, part in self.parts.items()})

    def __repr__(self) -> str:
        return f"Given({', '.join(self.parts)}; {len(self)} rows)"


def given_rows(given: Any, rows: np.ndarray) -> Any:
    """What is given in some contexts; all of it where one row serves any number of them."""
    if given is None:
        return None
    if isinstance(given, Mapping):
        return {name: given_rows(part, rows) for name, part in given.items()}
    return given if len(given) == 1 else take_rows(given, rows)


def _n_rows(name: str, part: Any) -> int:
    try:
        return len(part)
    except TypeError as error:
        raise InvalidInputError(
            f"Given must have one row per context, but {name} is a {type(part).__name__}: {error}"
        ) from error
