"""What all bootstrap intervals share: their arguments, draws in parts, and their ends.

May import: exceptions, tables, and its sibling `checks`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from forewise.evaluation.checks import as_constant, as_count
from forewise.exceptions import InvalidInputError
from forewise.validation.tables import check_same_rows

# Draws of blocks that are held at once.
_MAX_ENTRIES = 2**20


def as_rows(name: str, value: Any) -> np.ndarray:
    """A vector of at least two finite numbers."""
    rows = as_constant(name, value)
    if rows.ndim != 1 or len(rows) < 2:
        raise InvalidInputError(
            f"{name} must have shape (n_rows,), at least 2 of them, but has shape "
            f"{tuple(rows.shape)}"
        )
    return rows.numpy()


def as_paired_rows(a: Any, b: Any) -> tuple[np.ndarray, np.ndarray]:
    """Costs of two methods on the same rows."""
    check_same_rows(a=a, b=b)
    first, second = as_rows("a", a), as_rows("b", b)
    if len(first) != len(second):
        raise InvalidInputError(
            f"a and b must be costs of the same rows, but have {len(first)} and {len(second)} rows"
        )
    return first, second


def as_generator(random_state: int | np.random.Generator) -> np.random.Generator:
    """The generator of a seed; a generator is returned as it is."""
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            "random_state must be a nonnegative whole number or a numpy.random.Generator, but is "
            f"{random_state!r}"
        ) from error


def require_enough_resamples(n_resamples: Any, level: float) -> int:
    """A whole number, large enough that resamples lie beyond the ends of the interval."""
    n_resamples = as_count("n_resamples", n_resamples)
    if n_resamples * (1 - level) / 2 < 1 - 1e-9:
        raise InvalidInputError(
            f"n_resamples must be at least 2 / (1 − level) = {2 / (1 - level):.0f}, but is "
            f"{n_resamples}: no resample would lie beyond the ends of the interval"
        )
    return n_resamples


def parts(n_resamples: int, n_blocks: int) -> Iterator[slice]:
    """Resamples of so many blocks each, in parts whose draws fit into memory."""
    size = max(1, _MAX_ENTRIES // n_blocks)
    for start in range(0, n_resamples, size):
        yield slice(start, min(start + size, n_resamples))


def ends(resampled: np.ndarray, level: float) -> tuple[float, float]:
    """Between the (1 − level)/2 and (1 + level)/2 quantiles of what was resampled."""
    lower, upper = np.quantile(resampled, [(1 - level) / 2, (1 + level) / 2])
    return float(lower), float(upper)
