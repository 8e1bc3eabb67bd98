"""The decorator under which every kernel is compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def compiled(kernel: Kernel) -> Kernel:
    """Compile a kernel, keep the machine code on disk, and release the interpreter's lock.

    Sums may be reordered, so that they use vector instructions; NaN and infinity keep their
    meaning.
    """
    fast = {"reassoc", "contract", "nsz", "arcp"}
    options = {"nogil": True, "cache": True, "fastmath": fast, "error_model": "numpy"}
    decorated: Kernel = numba.njit(**options)(kernel)
    return decorated
