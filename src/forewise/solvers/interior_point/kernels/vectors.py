"""What is done to the elements of an array one by one, and what small numbers mean.

Arrays of any shape are looked at as one long vector.
"""

from __future__ import annotations

import numpy as np

from forewise.solvers.interior_point.kernels.compiling import compiled, view
from forewise.solvers.interior_point.kernels.views import look

Array = np.ndarray

#: What a sum of products is off by, relative to its terms.
ROUNDING = 1e-15
#: Keeps zero from being divided by zero.
TINY = 1e-300


@view
def flattened(values: Array) -> Array:
    """A contiguous array as a vector; `reshape` would take longer than the loops it is for."""
    return look(values, 0, (values.size,))


@compiled
def largest(values: Array) -> float:
    """Largest absolute value of an array of any shape; infinity if there is a NaN."""
    top = 0.0
    broken = False
    flat = flattened(values)
    for i in range(flat.shape[0]):
        size = abs(flat[i])
        top = max(top, size)
        broken |= size != size
    return np.inf if broken else top


@compiled
def fill(out: Array, value: float) -> None:
    """out := value, for an array of any shape."""
    flat = flattened(out)
    for i in range(flat.shape[0]):
        flat[i] = value


@compiled
def copy(out: Array, source: Array, factor: float) -> None:
    """out := factor source, for arrays of one shape."""
    a, b = flattened(out), flattened(source)
    for i in range(a.shape[0]):
        a[i] = factor * b[i]


@compiled
def add(out: Array, source: Array, factor: float) -> None:
    """out := out + factor source, for arrays of one shape."""
    a, b = flattened(out), flattened(source)
    for i in range(a.shape[0]):
        a[i] += factor * b[i]
