"""The decorators under which every kernel is compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

Kernel = TypeVar("Kernel", bound=Callable[..., Any])

_OPTIONS: dict[str, Any] = {
    "nogil": True,
    "cache": True,
    "fastmath": {"reassoc", "contract", "nsz", "arcp"},
    "error_model": "numpy",
}


def compiled(kernel: Kernel) -> Kernel:
    """Compile a kernel, keep the machine code on disk, and release the interpreter's lock.

    Sums may be reordered, so that they use vector instructions; NaN and infinity keep their
    meaning.
    """
    decorated: Kernel = numba.njit(**_OPTIONS)(kernel)
    return decorated


def inlined(kernel: Kernel) -> Kernel:
    """Compile a kernel into its callers: for those whose arguments cost more than their work."""
    decorated: Kernel = numba.njit(**_OPTIONS, forceinline=True)(kernel)
    return decorated
