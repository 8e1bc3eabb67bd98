"""Random elements of a program and their distribution: independent groups of them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np

Array = np.ndarray


class Place(StrEnum):
    """What of the program is random.

    Examples
    --------
    >>> import forewise as fw
    >>> print(fw.smps.Place.RIGHT_SIDE)
    right-hand side
    """

    COST = "cost"
    ENTRY = "entry"
    RIGHT_SIDE = "right-hand side"
    OFFSET = "right-hand side of the cost"  # minus a constant
    LOWER = "lower bound"
    UPPER = "upper bound"
    FIXED = "fixed value"


class Element(NamedTuple):
    """One random number, by the names of its row and column; "" where it has none.

    Examples
    --------
    >>> import forewise as fw
    >>> print(fw.smps.Element(fw.smps.Place.COST, column="rush"))
    cost rush
    """

    place: Place
    row: str = ""
    column: str = ""

    def __str__(self) -> str:
        at = " of ".join(name for name in (self.row, self.column) if name)
        return f"{self.place} {at}".strip()


@dataclass(frozen=True, eq=False)
class Discrete:
    """Elements that have one of finitely many values, all together.

    `values` is ``(n_realisations, n_elements)``, `probabilities` ``(n_realisations,)``; these sum
    to one.

    Examples
    --------
    >>> import numpy as np
    >>> import forewise as fw
    >>> demand = fw.smps.Element(fw.smps.Place.RIGHT_SIDE, row="demand")
    >>> values, probabilities = np.array([[8.0], [12.0]]), np.array([0.25, 0.75])
    >>> fw.smps.Discrete("demand", (demand,), values, probabilities).size
    2
    """

    name: str
    elements: tuple[Element, ...]
    values: Array
    probabilities: Array

    @property
    def size(self) -> int:
        """Number of realisations."""
        return len(self.values)

    def sample(self, count: int, generator: np.random.Generator) -> Array:
        """Independent draws, ``(count, n_elements)``."""
        return self.values[generator.choice(self.size, size=count, p=self.probabilities)]


#: Family of distributions -> what its two parameters are.
FAMILIES = {
    "UNIFORM": "the ends of the interval",
    "NORMAL": "mean and variance",
    "GAMMA": "scale and shape",
    "BETA": "the two shapes",
}


@dataclass(frozen=True, eq=False)
class Continuous:
    """One element with a density; `FAMILIES` says what the two parameters are.

    Examples
    --------
    >>> import numpy as np
    >>> import forewise as fw
    >>> demand = fw.smps.Element(fw.smps.Place.RIGHT_SIDE, row="demand")
    >>> uniform = fw.smps.Continuous(demand, "UNIFORM", 8.0, 12.0)
    >>> drawn = uniform.sample(100, np.random.default_rng(0))
    >>> bool((drawn >= 8.0).all() and (drawn <= 12.0).all())
    True
    """

    element: Element
    family: str
    first: float
    second: float

    @property
    def elements(self) -> tuple[Element, ...]:
        """The element, as groups have them."""
        return (self.element,)

    def sample(self, count: int, generator: np.random.Generator) -> Array:
        """Independent draws, ``(count, 1)``."""
        first, second = self.first, self.second
        draw = {
            "UNIFORM": lambda: generator.uniform(first, second, count),
            "NORMAL": lambda: generator.normal(first, np.sqrt(second), count),
            "GAMMA": lambda: generator.gamma(second, first, count),
            "BETA": lambda: generator.beta(first, second, count),
        }
        return draw[self.family]()[:, None]


Group = Discrete | Continuous
