"""Checks of what a predictor was constructed with, called by `fit`; messages name the setting.

May import: exceptions.
"""

from __future__ import annotations

from collections.abc import Collection
from numbers import Integral, Real
from typing import Any

import numpy as np

from forewise.exceptions import InvalidInputError


def require_count(name: str, value: Any, at_least: int) -> int:
    """A whole number of at least `at_least`."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < at_least:
        raise InvalidInputError(
            f"{name} must be a whole number of at least {at_least}, but is {value!r}"
        )
    return int(value)


def require_choice(name: str, value: Any, choices: Collection[str]) -> str:
    """One of the names that exist."""
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        raise InvalidInputError(f"{name} must be one of {listed}, but is {value!r}")
    return value


def require_positive(name: str, value: Any) -> float:
    """A finite number above 0."""
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not number or not np.isfinite(value) or value <= 0:
        raise InvalidInputError(f"{name} must be a finite number above 0, but is {value!r}")
    return float(value)


def require_bounds(name: str, value: Any) -> tuple[float, float]:
    """Two positive numbers, the lower one first."""
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise InvalidInputError(f"{name} must be a pair (lowest, highest), but is {value!r}")
    low, high = (require_positive(f"each end of {name}", end) for end in value)
    if low > high:
        raise InvalidInputError(f"{name} must have its lower end first, but is {value!r}")
    return low, high


def as_generator(random_state: Any) -> np.random.Generator:
    """The generator of a seed; a `numpy.random.Generator` is returned as it is."""
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            "random_state must be an integer of at least 0 or a numpy.random.Generator, but is "
            f"{random_state!r}"
        ) from error
