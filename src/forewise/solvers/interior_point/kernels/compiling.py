"""The decorators under which every kernel is compiled."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba

from forewise.solvers.interior_point.kernels.stale_code import forget_stale_code

Kernel = TypeVar("Kernel", bound=Callable[..., Any])

_OPTIONS: dict[str, Any] = {
    "nogil": True,
    "cache": True,
    "fastmath": {"reassoc", "contract", "nsz", "arcp"},
    "error_model": "numpy",
    # Memory that nobody allocates need not be counted, and counting took as long as a solve's
    # smallest loops.
    "_nrt": False,
}


def compiled(kernel: Kernel) -> Kernel:
    """Compile a kernel, keep the machine code on disk, and release the interpreter's lock.

    Sums may be reordered, so that they use vector instructions; NaN and infinity keep their
    meaning. It cannot allocate.
    """
    decorated: Kernel = numba.njit(**_OPTIONS)(kernel)
    return decorated


def inlined(kernel: Kernel) -> Kernel:
    """Compile a kernel into its callers: for those whose arguments cost more than their work."""
    decorated: Kernel = numba.njit(**_OPTIONS, forceinline=True)(kernel)
    return decorated


def view(kernel: Kernel) -> Kernel:
    """Write a kernel that returns a view of memory into its callers: only they can know whose."""
    decorated: Kernel = numba.njit(**_OPTIONS | {"_nrt": True}, inline="always")(kernel)
    return decorated


def allocating(kernel: Kernel) -> Kernel:
    """Compile a kernel that makes arrays, outside of the loops that matter."""
    decorated: Kernel = numba.njit(**_OPTIONS | {"_nrt": True})(kernel)
    return decorated


def _nothing() -> None:
    """A kernel to be asked for its place, which only numba knows."""


def _cache() -> Path:
    """The folder in which numba keeps the code of the kernels here."""
    return Path(numba.njit(cache=True)(_nothing).stats.cache_path)


forget_stale_code(Path(__file__).parent.glob("*.py"), _cache())
