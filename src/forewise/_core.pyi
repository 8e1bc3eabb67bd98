"""Types of the compiled core (`src/core/module.cpp`), which fills the arrays that it is given."""

from typing import Any

import numpy as np

def follow(
    program: tuple[np.ndarray, ...],
    n_threads: int,
    tolerance: float,
    max_iterations: int,
    targets: np.ndarray,
    solutions: tuple[Any, ...],
    centres: tuple[Any, ...],
    ended: np.ndarray,
    iterations: np.ndarray,
    /,
) -> None: ...
def adjoint(
    program: tuple[np.ndarray, ...],
    n_threads: int,
    ends: tuple[Any, ...],
    right: tuple[np.ndarray, ...],
    wanted: np.ndarray,
    out: tuple[np.ndarray, ...],
    corrections: np.ndarray,
    /,
) -> None: ...
def weigh(
    program: tuple[np.ndarray, ...],
    points: tuple[np.ndarray, ...],
    found: tuple[np.ndarray, ...],
    /,
) -> None: ...
def units(program: tuple[np.ndarray, ...], out: np.ndarray, /) -> None: ...
def describe(program: tuple[np.ndarray, ...], /) -> dict[str, Any]: ...
def instructions() -> str: ...
