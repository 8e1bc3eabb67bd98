"""Types of the compiled core (`src/core/module.cpp`), which fills the arrays that it is given."""

from collections.abc import Callable
from typing import Any

import numpy as np

Matrix = np.ndarray | tuple[np.ndarray, np.ndarray, np.ndarray]  # sparse: starts, columns, entries
Program = tuple[Matrix, ...]

def follow(
    program: Program,
    n_threads: int,
    tolerance: float,
    max_iterations: int,
    seconds: float,
    log: Callable[..., object] | None,
    targets: np.ndarray,
    start: Any,
    solutions: tuple[Any, ...],
    centres: tuple[Any, ...],
    ended: np.ndarray,
    iterations: np.ndarray,
    /,
) -> None: ...
def adjoint(
    program: Program,
    n_threads: int,
    ends: tuple[Any, ...],
    right: tuple[np.ndarray, ...],
    wanted: np.ndarray,
    out: tuple[np.ndarray, ...],
    corrections: np.ndarray,
    /,
) -> None: ...
def weigh(
    program: Program,
    points: tuple[np.ndarray, ...],
    found: tuple[np.ndarray, ...],
    /,
) -> None: ...
def units(program: Program, out: np.ndarray, /) -> None: ...
def describe(program: Program, /) -> dict[str, Any]: ...
def entries(
    block: np.ndarray, share: float, /
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None: ...
def balance(program: Program, /) -> tuple[np.ndarray, np.ndarray]: ...
def convex(
    block: tuple[np.ndarray, np.ndarray, np.ndarray], size: int, contexts: int, scenarios: int, /
) -> list[int]: ...
def pick_from_forest(
    forest: tuple[Any, ...],
    contexts: np.ndarray,
    start: float,
    picks: np.ndarray,
    weights: np.ndarray,
    /,
) -> None: ...
def instructions() -> str: ...
