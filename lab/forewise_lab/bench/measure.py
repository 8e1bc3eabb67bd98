"""Time the peers on one instance: build, warm up, then take turns.

May import: accuracy, instances, peers.base, results.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from forewise_lab.bench.accuracy import WANTED, relative_errors
from forewise_lab.bench.instances import Instance
from forewise_lab.bench.peers.base import Answer, Gradient, Peer, Prepared
from forewise_lab.bench.results import BOTH, BUILD, FORWARD, SKIPPED, Measurement

# What a peer may raise on an instance that is too hard or too large for it.
FAILURES = (RuntimeError, MemoryError)

# A shorter call is repeated until it fills this time, and the mean is taken.
SHORTEST_SECONDS = 0.02
# A peer's turns at one quantity take no longer than this together, whatever `repeats` says.
LONGEST_SECONDS = 30.0
# CPU time over wall time from which on a peer is said to have used more than one core.
MANY_CORES = 1.3

Announce = Callable[[str], None]
Found = TypeVar("Found", bound=Answer | Gradient)


@dataclass
class _Turns:
    """One quantity of one peer: how to call it, and the seconds of each turn so far."""

    call: Callable[[], Answer | Gradient]
    warm_up: float
    cores: float
    seconds: list[float] = field(default_factory=list)

    def wants(self, turn: int, repeats: int) -> bool:
        return turn < min(repeats, int(LONGEST_SECONDS / self.warm_up))

    def take(self) -> None:
        calls = max(1, int(SHORTEST_SECONDS / self.warm_up))
        gc.collect()
        _, seconds, cores = _timed(self.call, calls)
        self.cores = max(self.cores, cores)
        self.seconds.append(seconds)

    def measured(self) -> list[float]:
        """The turns; the warm-up itself where it took so long that there were none."""
        return self.seconds or [self.warm_up]


@dataclass
class _Entry:
    """A peer that was built on the instance and warmed up."""

    peer: str
    build: float
    answer: Answer
    turns: dict[str, _Turns]


def measure(
    instance: Instance, peers: Sequence[Peer], repeats: int, announce: Announce
) -> list[Measurement]:
    """Measure every peer on one instance; those that cannot solve it get a row that says why."""
    left_out: list[Measurement] = []
    entries: list[_Entry] = []
    for peer in peers:
        reason = peer.supports(instance.program)
        if reason is not None:
            left_out.append(skipped(instance, peer.name, reason))
            continue
        announce(f"{peer.name}: warm-up")
        try:
            entries.append(_warm_up(peer, instance))
        except FAILURES as error:
            left_out.append(skipped(instance, peer.name, f"failed: {error}"))
    for turn in range(repeats):
        for entry in entries:
            for quantity, turns in entry.turns.items():
                if turns.wants(turn, repeats):
                    announce(f"{entry.peer}: {quantity}, turn {turn + 1} of {repeats}")
                    turns.take()
    errors = relative_errors(instance, {entry.peer: entry.answer for entry in entries})
    rows = [row for entry in entries for row in _rows(instance, entry, errors[entry.peer])]
    return [*rows, *left_out]


def skipped(instance: Instance, peer: str, note: str) -> Measurement:
    """The row of a peer that was not measured."""
    return Measurement(
        instance.name, instance.n_contexts, instance.n_scenarios, peer, SKIPPED, note=note
    )


def _warm_up(peer: Peer, instance: Instance) -> _Entry:
    start = time.perf_counter()
    prepared: Prepared = peer.prepare(instance)
    build = time.perf_counter() - start
    answer, seconds, cores = _timed(prepared.forward)
    turns = {FORWARD: _Turns(prepared.forward, seconds, cores)}
    if prepared.forward_backward is not None:
        _, seconds, cores = _timed(prepared.forward_backward)
        turns[BOTH] = _Turns(prepared.forward_backward, seconds, cores)
    return _Entry(peer.name, build, answer, turns)


def _timed(call: Callable[[], Found], calls: int = 1) -> tuple[Found, float, float]:
    """What the last call gave, the mean seconds of a call, and how many cores they used."""
    cpu, wall, inside = time.process_time(), time.perf_counter(), 0.0
    for _ in range(calls):
        found = call()
        inside += found.seconds or 0.0
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    # In a shorter time the clock of the CPU is too coarse to tell.
    cores = cpu / wall if wall > SHORTEST_SECONDS / 2 else 1.0
    return found, (inside or wall) / calls, cores


def _rows(instance: Instance, entry: _Entry, error: float) -> list[Measurement]:
    case = (instance.name, instance.n_contexts, instance.n_scenarios, entry.peer)
    rows = [Measurement(*case, BUILD, "s", entry.build, entry.build, 1)]
    for quantity, turns in entry.turns.items():
        seconds = turns.measured()
        median, least = statistics.median(seconds), min(seconds)
        note = "; ".join(_notes(entry, turns, error))
        rows.append(Measurement(*case, quantity, "s", median, least, len(seconds), error, note))
    return rows


def _notes(entry: _Entry, turns: _Turns, error: float) -> list[str]:
    notes = []
    if entry.answer.n_unsolved:
        notes.append(f"{entry.answer.n_unsolved} contexts not solved")
    if error > WANTED:
        notes.append(f"misses the accuracy of {WANTED:g}")
    if turns.cores > MANY_CORES:
        notes.append(f"used {turns.cores:.1f} cores")
    if not turns.seconds:
        notes.append("one run, without warm-up")
    return notes
