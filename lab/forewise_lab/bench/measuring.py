"""Peers that take turns on one instance: what is timed, and the rows of those that cannot."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from rich.console import Console

from forewise_lab.bench.peers.base import Peer, Prepared
from forewise_lab.bench.results import Measurement, Measurements, Page, Quantity
from forewise_lab.bench.timing import Announce, Timed, take_turns
from forewise_lab.machine import write_whole

LEFT_OUT = "left out"


@dataclass(frozen=True)
class Assessment:
    """How answers are compared: the error of each by peer, and what is noted of one.

    A peer's turns at one quantity take no longer than `longest` seconds together.
    """

    errors: Callable[[Any, dict[str, Any]], dict[str, float]]
    notes: Callable[[Any, Timed[Any], float], list[str]]
    longest: float


def measure(
    instance: Any, peers: Sequence[Peer], repeats: int, announce: Announce, how: Assessment
) -> list[Measurement]:
    """Measure every peer on one instance; those that cannot solve it get a row that says why.

    `instance` is what the peers prepare; it has a name, `n_contexts` and `n_scenarios`.
    """
    calls: dict[str, Callable[[], Any]] = {}
    builds: dict[str, float] = {}
    reasons: dict[str, str] = {}
    for peer in peers:
        announce(f"{peer.name}: build")
        prepared = _prepared(peer, instance)
        if isinstance(prepared, str):
            reasons[peer.name] = prepared
            continue
        builds[peer.name] = prepared.seconds
        calls[_label(peer.name, Quantity.FORWARD)] = prepared.forward
        if prepared.forward_backward is not None:
            calls[_label(peer.name, Quantity.BOTH)] = prepared.forward_backward
    failures: dict[str, Exception] = {}
    timed = take_turns(calls, repeats, announce, failures, how.longest)
    for label, failure in failures.items():
        reasons.setdefault(label.rpartition(": ")[0], f"failed: {failure}")
    able = [name for name in builds if name not in reasons]
    answers = {name: timed[_label(name, Quantity.FORWARD)].result for name in able}
    errors = how.errors(instance, answers)
    rows = []
    for name in able:
        case = (instance.name, instance.n_contexts, instance.n_scenarios, name)
        rows.append(Measurement(*case, Quantity.BUILD, "s", builds[name], builds[name], 1))
        for quantity in (Quantity.FORWARD, Quantity.BOTH):
            own = timed.get(_label(name, quantity))
            if own is not None:
                notes = "; ".join(how.notes(answers[name], own, errors[name]))
                least, count = min(own.measured), len(own.measured)
                row = Measurement(*case, quantity, "s", own.median, least, count)
                rows.append(replace(row, relative_error=errors[name], note=notes))
    return [*rows, *(skipped(instance, name, reason) for name, reason in reasons.items())]


def _prepared(peer: Peer, instance: Any) -> Prepared | str:
    """The instance as the peer builds it, with the seconds of that; or why it cannot."""
    reason = peer.supports(instance.program)
    if reason is not None:
        return reason
    start = time.perf_counter()
    try:
        prepared = peer.prepare(instance)
    except (RuntimeError, MemoryError) as error:
        return f"failed: {error}"
    return replace(prepared, seconds=prepared.seconds or time.perf_counter() - start)


def _label(peer: str, quantity: str) -> str:
    return f"{peer}: {quantity}"


def skipped(instance: Any, peer: str, note: str) -> Measurement:
    """The row of a peer that was not measured."""
    case = (instance.name, instance.n_contexts, instance.n_scenarios, peer)
    return Measurement(*case, Quantity.SKIPPED, note=note)


def too_slow(results: Measurements, instance: Any, peer: str, limit: float) -> str | None:
    """Why a peer is left out: a solve would take too long, in proportion to the scenarios."""
    expected = max(
        (
            median * instance.n_scenarios / size
            for quantity in (Quantity.FORWARD, Quantity.BOTH)
            for size, median in results.series(instance.name, peer, quantity).items()
        ),
        default=0.0,
    )
    return f"{LEFT_OUT}: a solve would take over {limit:g} s" if expected > limit else None


@contextmanager
def published(
    results: Measurements,
    folder: Path,
    name: str,
    console: Console,
    make: Callable[[], tuple[Page, Figure]],
) -> Iterator[Callable[[Sequence[Measurement]], None]]:
    """Takes rows and keeps the table of a run on disk; at the end, also of one that is interrupted,
    the page is printed and written, with its figure beside it.
    """

    def add(rows: Sequence[Measurement]) -> None:
        results.rows.extend(rows)
        write_whole(folder / f"{name}.csv", results.as_csv())

    try:
        yield add
    finally:
        if results.rows:
            add(())
            page, figure = make()
            for kind in ("png", "svg"):
                # Without a date, the same numbers give the same file.
                metadata = {"Date": None} if kind == "svg" else None
                figure.savefig(folder / f"{name}.{kind}", dpi=160, metadata=metadata)
            page.publish(folder, name, console)
