"""Calls in processes of their own; `forewise.parallel` has what computes many tasks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from joblib.externals.loky.process_executor import ProcessPoolExecutor

ResultT = TypeVar("ResultT")


def in_new_process(function: Callable[..., ResultT], *arguments: Any) -> ResultT:
    """The result of a call in a process of its own, started for it."""
    with ProcessPoolExecutor(1) as pool:
        result: ResultT = pool.submit(function, *arguments).result()
    return result
