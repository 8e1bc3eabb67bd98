"""The benchmark of the solver, from start to files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from matplotlib.figure import Figure
from rich.console import Console
from rich.markup import escape

from forewise_lab.bench.accuracy import WANTED, relative_errors
from forewise_lab.bench.instances import FAMILIES, Instance
from forewise_lab.bench.measuring import Assessment, measure, published, skipped, too_slow
from forewise_lab.bench.peers import default_peers
from forewise_lab.bench.peers.base import Answer, Gradient, Peer
from forewise_lab.bench.peers.solvers import ForewisePeer
from forewise_lab.bench.results import Measurement, Measurements, Page, Quantity
from forewise_lab.bench.solver_report import GROWTH_SIZES, solver_page, time_against_scenarios
from forewise_lab.bench.timing import Timed
from forewise_lab.distributed import in_new_process
from forewise_lab.machine import description, one_core, peak_memory, restart_peak, write_whole

FOREWISE = ForewisePeer.name
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

    def report() -> tuple[Page, Figure]:
        page = solver_page(results, growth, titles, list(missing.values()), facts)
        return page, time_against_scenarios(results)

    with (
        published(results, output, "solver", console, report) as add,
        one_core(),
        console.status("starting") as status,
    ):
        for case in plan.cases:
            instance = FAMILIES[case.family](case.n_scenarios, case.n_contexts)
            titles[case.family] = instance.title

            def announce(text: str, name: str = case.name) -> None:
                status.update(f"{name}: {text}")

            slow = {
                peer.name: skipped(instance, peer.name, reason)
                for peer in able
                if peer.supports(instance.program) is None
                and (reason := too_slow(results, instance, peer.name, plan.limit_seconds))
            }
            quick_enough = [peer for peer in able if peer.name not in slow]
            add([*measure(instance, quick_enough, repeats, announce, ASSESSMENT), *slow.values()])
        if any(peer.name == FOREWISE for peer in able):
            for case in plan.growth:
                status.update(f"{case.name}: peak memory")
                add(_memory(case))
    return results


def memory_of(family: str, n_contexts: int, n_scenarios: int) -> dict[str, float]:
    """Peak memory of one forward and backward pass, in MiB, whole and above the baseline.

    The baseline is taken after the imports and one tiny solve. A process's peak never falls, so
    each size has a process of its own.
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
    place = (case.family, case.n_contexts, case.n_scenarios)
    try:
        found = in_new_process(memory_of, *place)
    except Exception as error:  # whatever ends it is its result
        note = f"failed: {type(error).__name__}: {error}"
        return [Measurement(*place, FOREWISE, Quantity.PEAK, "MiB", note=note)]
    return [
        Measurement(*place, FOREWISE, name, "MiB", size, size, 1) for name, size in found.items()
    ]


def _notes(answer: Answer, timed: Timed[Answer | Gradient], error: float) -> list[str]:
    notes = {
        f"{answer.n_unsolved} contexts not solved": answer.n_unsolved,
        f"misses the accuracy of {WANTED:g}": error > WANTED,
        f"used {timed.cores:.1f} cores": timed.cores > _MANY_CORES,
        "one run, without warm-up": not timed.turns,
    }
    return [note for note, holds in notes.items() if holds]


ASSESSMENT = Assessment(relative_errors, _notes, longest=30.0)
