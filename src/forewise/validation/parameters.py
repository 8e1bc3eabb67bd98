"""One validator for each kind of setting: counts, numbers, levels, choices, objects, seeds."""

from __future__ import annotations

import math
from collections.abc import Collection
from numbers import Integral, Real
from typing import Any

import numpy as np
import torch

from forewise.exceptions import InputTypeError, InvalidInputError

_LARGEST_SEED = 2**32 - 1


def require_count(name: str, value: Any, at_least: int = 1) -> int:
    """An integer of at least `at_least`."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < at_least:
        expected = "a positive integer" if at_least == 1 else f"an integer of at least {at_least}"
        raise InvalidInputError(f"{name} must be {expected}, but is {value!r}")
    return int(value)


def require_number(
    name: str,
    value: Any,
    *,
    above: float | None = None,
    at_least: float | None = None,
    below: float | None = None,
    at_most: float | None = None,
) -> float:
    """A finite number within the limits."""
    number = math.nan
    if isinstance(value, Real) and not isinstance(value, bool):
        number = float(value)
    if (
        not math.isfinite(number)
        or (above is not None and number <= above)
        or (at_least is not None and number < at_least)
        or (below is not None and number >= below)
        or (at_most is not None and number > at_most)
    ):
        limits = {"above": above, "of at least": at_least, "below": below, "at most": at_most}
        words = [f"{word} {limit:g}" for word, limit in limits.items() if limit is not None]
        expected = f"a finite number {' and '.join(words)}".rstrip()
        raise InvalidInputError(f"{name} must be {expected}, but is {value!r}")
    return number


def require_positive(name: str, value: Any) -> float:
    """A finite number above 0."""
    return require_number(name, value, above=0)


def require_level(name: str, value: Any) -> float:
    """A probability strictly between 0 and 1, also as an array or tensor of one number."""
    if isinstance(value, np.ndarray | torch.Tensor) and value.shape in ((), (1,)):
        value = value.item()
    if not isinstance(value, Real) or isinstance(value, bool) or not 0 < float(value) < 1:
        raise InvalidInputError(
            f"{name} must lie strictly between 0 and 1, but is {value!r}: 95 % is 0.95"
        )
    return float(value)


def require_bounds(name: str, value: Any) -> tuple[float, float]:
    """Two positive numbers, the lower one first."""
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise InvalidInputError(f"{name} must be a pair (lowest, highest), but is {value!r}")
    low, high = (require_positive(f"each end of {name}", end) for end in value)
    if low > high:
        raise InvalidInputError(f"{name} must have its lower end first, but is {value!r}")
    return low, high


def require_choice(name: str, value: Any, choices: Collection[str]) -> str:
    """One of some strings."""
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        raise InvalidInputError(f"{name} must be one of {listed}, but is {value!r}")
    return value


def require_instance(
    name: str, value: Any, kind: type, example: str, *, optional: bool = False
) -> None:
    """An object of a class, or None if `optional`; `example` is how one is made."""
    if isinstance(value, kind) or (optional and value is None):
        return
    room = ".".join(kind.__module__.split(".")[:2])  # which exports it
    expected = f"a {room}.{kind.__name__} such as {example}" + (" or None" if optional else "")
    raise InputTypeError(f"{name} must be {expected}, but is {came_as(value)}")


def came_as(value: Any) -> str:
    """What `value` is, for messages: "a str", or a class where an object of it is wanted."""
    if isinstance(value, type):
        return f"the class {value.__name__} itself: make an object, {value.__name__}(...)"
    return f"a {type(value).__name__}"


def as_random_state(value: Any) -> np.random.RandomState:
    """The random numbers of `random_state`: a seed, a RandomState, or None for NumPy's own."""
    if isinstance(value, np.random.RandomState):
        return value
    if value is None:
        return np.random.mtrand._rand  # as scikit-learn does
    seed = isinstance(value, Integral) and not isinstance(value, bool)
    if seed and 0 <= value <= _LARGEST_SEED:
        return np.random.RandomState(int(value))
    advice = ""
    if isinstance(value, np.random.Generator):
        advice = ": draw a seed from it, int(generator.integers(2**31))"
    elif isinstance(value, torch.Generator):
        advice = ": pass its seed, generator.initial_seed() % 2**32"
    raise InvalidInputError(
        "random_state must be an integer between 0 and 2**32 - 1, a numpy.random.RandomState or "
        f"None, but is {value!r}{advice}"
    )


def as_generator(random_state: Any) -> np.random.Generator:
    """The generator of a seed; a `numpy.random.Generator` is returned as it is."""
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            "random_state must be an integer of at least 0 or a numpy.random.Generator, but is "
            f"{random_state!r}"
        ) from error
