"""Calls that take turns: warm each up, then go round, and take the median of each.

May import: its siblings `measure`, `peers`.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Generic, NamedTuple, TypeVar

from forewise_lab.bench.measure import SHORTEST_SECONDS, Announce
from forewise_lab.bench.peers import PeerFailedError

# A first call that takes longer than this tells enough; a shorter one may only have compiled.
_LONG_SECONDS = 1.0

Found = TypeVar("Found")


class Timed(NamedTuple, Generic[Found]):
    """Median seconds of a call's turns, and what it returned when it was warmed up."""

    seconds: float
    result: Found


def in_turns(
    calls: Mapping[str, Callable[[], Found]], turns: int, announce: Announce
) -> dict[str, Timed[Found]]:
    """Time every call; one that raises `PeerFailedError` when it is warmed up is left out.

    A short call is repeated within its turn, and the mean is taken.
    """
    results: dict[str, Found] = {}
    often: dict[str, int] = {}
    for name, call in calls.items():
        announce(f"{name}: warm-up")
        try:
            results[name], once = _timed(call, 1)
            if once < _LONG_SECONDS:
                results[name], once = _timed(call, 1)
        except PeerFailedError:
            continue
        often[name] = max(1, int(SHORTEST_SECONDS / once))
    seconds: dict[str, list[float]] = {name: [] for name in results}
    for turn in range(turns):
        for name, count in often.items():
            announce(f"{name}: turn {turn + 1} of {turns}")
            gc.collect()
            seconds[name].append(_timed(calls[name], count)[1])
    return {name: Timed(statistics.median(seconds[name]), results[name]) for name in results}


def _timed(call: Callable[[], Found], count: int) -> tuple[Found, float]:
    start = time.perf_counter()
    for _ in range(count):
        found = call()
    return found, (time.perf_counter() - start) / count
