"""Calls that take turns: warm each up, then go round, so that all see the same machine."""

from __future__ import annotations

import gc
import math
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

#: A shorter call is repeated until it fills this time, and the mean is taken.
SHORTEST_SECONDS = 0.02
# A first call may only have compiled: unless it took longer than this, it is warmed up again.
_LONG_SECONDS = 1.0

Announce = Callable[[str], None]
Found = TypeVar("Found")


@dataclass
class Timed(Generic[Found]):
    """What a call returned when it was warmed up, and the seconds of its turns.

    `cores` is the largest CPU time over wall time of a turn.
    """

    result: Found
    warm_up: float
    cores: float
    turns: list[float] = field(default_factory=list)

    @property
    def measured(self) -> list[float]:
        """The turns; the warm-up itself where it took so long that there were none."""
        return self.turns or [self.warm_up]

    @property
    def median(self) -> float:
        return statistics.median(self.measured)


def take_turns(
    calls: Mapping[str, Callable[[], Found]],
    repeats: int,
    announce: Announce,
    failures: dict[str, Exception] | None = None,
    longest: float = math.inf,
) -> dict[str, Timed[Found]]:
    """Time every call in turns.

    `failures` gets the calls that raise a RuntimeError or MemoryError when they are warmed up;
    without it they raise. The turns of one call take at most `longest` seconds together.
    """
    found: dict[str, Timed[Found]] = {}
    for name, call in calls.items():
        announce(f"{name}: warm-up")
        try:
            found[name] = Timed(*_timed(call))
            if found[name].warm_up < _LONG_SECONDS:
                found[name] = Timed(*_timed(call))
        except (RuntimeError, MemoryError) as error:
            if failures is None:
                raise
            found.pop(name, None)
            failures[name] = error
    gc.freeze()  # so that collecting before every turn does not go through all that is loaded
    try:
        for turn in range(repeats):
            for name, timed in found.items():
                if (turn + 1) * timed.warm_up <= longest:
                    announce(f"{name}: turn {turn + 1} of {repeats}")
                    count = max(1, int(SHORTEST_SECONDS / timed.warm_up))
                    gc.collect()
                    _, seconds, cores = _timed(calls[name], count)
                    timed.turns.append(seconds)
                    timed.cores = max(timed.cores, cores)
    finally:
        gc.unfreeze()
    return found


def _timed(call: Callable[[], Found], count: int = 1) -> tuple[Found, float, float]:
    """The last result, the mean seconds of a call, and how many cores they used.

    A result that has `seconds` was timed in a process of its own.
    """
    cpu, wall, inside = time.process_time(), time.perf_counter(), 0.0
    for _ in range(count):
        result: Any = call()
        inside += getattr(result, "seconds", None) or 0.0
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    # In a shorter time the clock of the CPU is too coarse.
    cores = cpu / wall if wall > SHORTEST_SECONDS / 2 else 1.0
    return result, (inside or wall) / count, cores
