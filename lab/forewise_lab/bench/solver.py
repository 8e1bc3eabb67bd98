"""The benchmark of the solver, from start to files.

``python -m forewise_lab.bench.solver nvqp 32 4096`` is the child process that measures memory: a
process's peak never falls, so each size has a process of its own. It prints one line of JSON.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.markup import escape

from forewise_lab.bench.accuracy import WANTED, relative_errors
from forewise_lab.bench.instances import FAMILIES, Instance
from forewise_lab.bench.peers import Answer, ForewisePeer, Gradient, Peer, default_peers
from forewise_lab.bench.results import Measurement, Measurements, Quantity
from forewise_lab.bench.solver_report import (
    GROWTH_SIZES,
    save_figure,
    solver_page,
    time_against_scenarios,
)
from forewise_lab.bench.timing import Announce, Timed, take_turns
from forewise_lab.machine import description, one_core, peak_memory, restart_peak, write_whole

FOREWISE = ForewisePeer.name
# A peer's turns at one quantity take no longer than this together, whatever `repeats` says.
_LONGEST_SECONDS = 30.0
# CPU time over wall time above which a peer has used more than one core.
_MANY_CORES = 1.3


@dataclass(frozen=True)
class Case:
    """One instance of a family, not yet drawn."""

    family: str
    n_contexts: int
    n_scenarios: int

    @property
    def name(self) -> str:
        return f"{self.family}, M = {self.n_scenarios}"


@dataclass(frozen=True)
class Plan:
    """The cases in the order of measuring, smallest first in each family.

    `growth` are the cases whose memory is measured too and whose time is fitted. A peer whose
    solve would take longer than `limit_seconds` is left out from that size on.
    """

    cases: tuple[Case, ...]
    growth: tuple[Case, ...]
    limit_seconds: float = 30.0


_NVQP = tuple(Case("nvqp", 32, size) for size in (8, 16, 32, 64, *GROWTH_SIZES))
_POP = tuple(Case("pop", 128, size) for size in (16, 64, *GROWTH_SIZES))
FULL = Plan((*_NVQP, *_POP, Case("recourse", 32, 128)), growth=(*_NVQP[4:], *_POP[2:]))
QUICK = Plan(
    cases=(Case("nvqp", 3, 4), Case("nvqp", 3, 8), Case("pop", 3, 32), Case("recourse", 2, 4)),
    growth=(Case("nvqp", 3, 4), Case("nvqp", 3, 8)),
)


def run_solver_bench(
    output: Path,
    repeats: int = 5,
    quick: bool = False,
    peers: Sequence[Peer] | None = None,
    console: Console | None = None,
) -> Measurements:
    """Measure forewise against its peers, print the tables and write the files to `output`.

    Peers take turns on one core after a warm-up: medians of `repeats` turns, fewer where they would
    take too long. What was measured is kept when the run is interrupted.
    """
    console = console or Console()
    plan = QUICK if quick else FULL
    chosen = default_peers() if peers is None else peers
    missing = {peer.name: line for peer in chosen if (line := peer.missing()) is not None}
    able = [peer for peer in chosen if peer.name not in missing]
    for line in missing.values():
        console.print(f"[yellow]not measured:[/] {escape(line)}")
    output.mkdir(parents=True, exist_ok=True)
    facts = description()
    write_whole(output / "machine.txt", facts)
    results, titles = Measurements(), dict[str, str]()
    growth = [(case.family, case.n_scenarios) for case in plan.growth]
    try:
        with one_core(), console.status("starting") as status:
            for case in plan.cases:
                instance = FAMILIES[case.family](case.n_scenarios, case.n_contexts)
                titles[case.family] = instance.title

                def announce(text: str, name: str = case.name) -> None:
                    status.update(f"{name}: {text}")

                left_out = _too_slow(results, instance, able, plan.limit_seconds)
                quick_enough = [peer for peer in able if peer.name not in left_out]
                results.rows.extend(measure(instance, quick_enough, repeats, announce))
                results.rows.extend(left_out.values())
                write_whole(output / "solver.csv", results.as_csv())
            if any(peer.name == FOREWISE for peer in able):
                for case in plan.growth:
                    status.update(f"{case.name}: peak memory")
                    results.rows.extend(_memory(case))
    finally:
        if results.rows:
            page = solver_page(results, growth, titles, list(missing.values()), facts)
            write_whole(output / "solver.csv", results.as_csv())
            write_whole(output / "solver.md", page.as_markdown())
            save_figure(time_against_scenarios(results), output / "solver")
            page.print(console)
            console.print(f"written to {escape(str(output))}")
    return results


def measure(
    instance: Instance, peers: Sequence[Peer], repeats: int, announce: Announce
) -> list[Measurement]:
    """Measure every peer on one instance; those that cannot solve it get a row that says why."""
    calls: dict[str, Callable[[], Answer | Gradient]] = {}
    builds: dict[str, float] = {}
    reasons: dict[str, str] = {}
    for peer in peers:
        reason = peer.supports(instance.program)
        if reason is None:
            announce(f"{peer.name}: build")
            start = time.perf_counter()
            try:
                prepared = peer.prepare(instance)
            except (RuntimeError, MemoryError) as error:
                reason = f"failed: {error}"
        if reason is not None:
            reasons[peer.name] = reason
            continue
        builds[peer.name] = time.perf_counter() - start
        calls[_label(peer.name, Quantity.FORWARD)] = prepared.forward
        if prepared.forward_backward is not None:
            calls[_label(peer.name, Quantity.BOTH)] = prepared.forward_backward
    failures: dict[str, Exception] = {}
    timed = take_turns(calls, repeats, announce, failures, _LONGEST_SECONDS)
    for label, failure in failures.items():
        reasons.setdefault(label.rpartition(": ")[0], f"failed: {failure}")
    able = [name for name in builds if name not in reasons]
    answers: Any = {name: timed[_label(name, Quantity.FORWARD)].result for name in able}
    errors = relative_errors(instance, answers)
    rows = []
    for name in able:
        case = (instance.name, instance.n_contexts, instance.n_scenarios, name)
        rows.append(Measurement(*case, Quantity.BUILD, "s", builds[name], builds[name], 1))
        for quantity in (Quantity.FORWARD, Quantity.BOTH):
            own = timed.get(_label(name, quantity))
            if own is not None:
                notes = "; ".join(_notes(answers[name], own, errors[name]))
                least, count = min(own.measured), len(own.measured)
                row = Measurement(*case, quantity, "s", own.median, least, count)
                rows.append(replace(row, relative_error=errors[name], note=notes))
    return [*rows, *(skipped(instance, name, reason) for name, reason in reasons.items())]


def skipped(instance: Instance, peer: str, note: str) -> Measurement:
    """The row of a peer that was not measured."""
    case = (instance.name, instance.n_contexts, instance.n_scenarios, peer)
    return Measurement(*case, Quantity.SKIPPED, note=note)


def memory_of(family: str, n_contexts: int, n_scenarios: int) -> dict[str, float]:
    """Peak memory of one forward and backward pass, in MiB, whole and above the baseline.

    The baseline is taken after the imports and one tiny solve.
    """
    torch.set_num_threads(1)
    _forward_backward(FAMILIES[family](2, 2))
    baseline = restart_peak()
    _forward_backward(FAMILIES[family](n_scenarios, n_contexts))
    peak = peak_memory()
    return {Quantity.PEAK: peak, Quantity.ABOVE_BASELINE: peak - baseline}


def _forward_backward(instance: Instance) -> None:
    both = ForewisePeer().prepare(instance).forward_backward
    assert both is not None
    both()


def _memory(case: Case) -> list[Measurement]:
    """Memory of forewise on a case, in a fresh process."""
    row = (case.family, case.n_contexts, case.n_scenarios, FOREWISE)
    command = [sys.executable, "-m", "forewise_lab.bench.solver", *(str(part) for part in row[:3])]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return [Measurement(*row, Quantity.PEAK, "MiB", note=f"failed: {reason}")]
    found: dict[str, float] = json.loads(done.stdout)
    return [Measurement(*row, name, "MiB", size, size, 1) for name, size in found.items()]


def _label(peer: str, quantity: str) -> str:
    return f"{peer}: {quantity}"


def _too_slow(
    results: Measurements, instance: Instance, peers: Sequence[Peer], limit: float
) -> dict[str, Measurement]:
    """Rows of the peers whose solve would take too long, in proportion to the scenarios."""
    left_out = {}
    for peer in peers:
        expected = 0.0
        for quantity in (Quantity.FORWARD, Quantity.BOTH):
            for size, median in results.series(instance.name, peer.name, quantity).items():
                expected = max(expected, median * instance.n_scenarios / size)
        if expected > limit and peer.supports(instance.program) is None:
            note = f"left out: a solve would take over {limit:g} s"
            left_out[peer.name] = skipped(instance, peer.name, note)
    return left_out


def _notes(answer: Answer, timed: Timed[Answer | Gradient], error: float) -> list[str]:
    notes = {
        f"{answer.n_unsolved} contexts not solved": answer.n_unsolved,
        f"misses the accuracy of {WANTED:g}": error > WANTED,
        f"used {timed.cores:.1f} cores": timed.cores > _MANY_CORES,
        "one run, without warm-up": not timed.turns,
    }
    return [note for note, holds in notes.items() if holds]


if __name__ == "__main__":
    print(json.dumps(memory_of(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
