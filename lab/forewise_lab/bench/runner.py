"""The benchmark of the solver, from start to files.

May import: everything in this package.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from forewise_lab.bench import machine
from forewise_lab.bench.bars import FOREWISE
from forewise_lab.bench.files import write_text
from forewise_lab.bench.growth import peak_memory
from forewise_lab.bench.instances import Instance
from forewise_lab.bench.measure import Announce, measure, skipped
from forewise_lab.bench.peers import Peer, PeerFailedError, default_peers
from forewise_lab.bench.plan import FULL, QUICK, Case, Plan
from forewise_lab.bench.report import Report
from forewise_lab.bench.results import BOTH, FORWARD, PEAK, Measurement, Results
from forewise_lab.bench.threads import one_core


def run_solver_bench(
    output: Path,
    repeats: int = 5,
    quick: bool = False,
    peers: Sequence[Peer] | None = None,
    console: Console | None = None,
) -> Results:
    """Measure forewise against its peers, print the tables and write the files.

    Peers take turns on one core after a warm-up, and medians are taken. A peer that is not
    installed costs a line. What was measured is kept when the run is interrupted.

    Parameters
    ----------
    output : Path
        Folder for solver.csv, solver.md, solver.png, solver.svg and machine.txt.
    repeats : int
        Turns of each peer at each quantity; fewer where they would take too long.
    quick : bool
        A tiny version, for trying it out; its numbers mean little.
    peers : sequence of Peer, optional
        Who is measured; `default_peers()` by default.
    console : rich Console, optional

    Returns
    -------
    Results
        The rows of solver.csv.
    """
    console = console or Console()
    plan = QUICK if quick else FULL
    able, missing = _split(default_peers() if peers is None else peers)
    for line in missing:
        console.print(f"[yellow]not measured:[/] {escape(line)}")
    output.mkdir(parents=True, exist_ok=True)
    facts = machine.description()
    write_text(output / "machine.txt", facts)
    results, titles = Results(), dict[str, str]()
    report = Report(results, plan, titles, missing, facts)
    try:
        with one_core(), console.status("starting") as status:
            for case in plan.cases:
                instance = case.instance()
                titles[case.family] = instance.title
                announce = _announcer(status.update, case)
                results.extend(_measured(results, instance, able, repeats, plan, announce))
                write_text(output / "solver.csv", results.as_csv())
            if any(peer.name == FOREWISE for peer in able):
                for case in plan.growth:
                    status.update(f"{_name(case)}: peak memory")
                    results.extend(_memory(case))
    finally:
        if results.rows:
            report.write(output)
            report.print(console)
            console.print(f"written to {escape(str(output))}")
    return results


def _split(peers: Sequence[Peer]) -> tuple[list[Peer], list[str]]:
    """The peers that can run, and a line for each that cannot."""
    lines = [(peer, peer.missing()) for peer in peers]
    able = [peer for peer, line in lines if line is None]
    return able, [line for _, line in lines if line is not None]


def _announcer(update: Announce, case: Case) -> Announce:
    return lambda text: update(f"{_name(case)}: {text}")


def _name(case: Case) -> str:
    return f"{case.family}, M = {case.n_scenarios}"


def _measured(
    results: Results,
    instance: Instance,
    peers: Sequence[Peer],
    repeats: int,
    plan: Plan,
    announce: Announce,
) -> list[Measurement]:
    """The rows of one instance; peers that would take too long are left out with a line."""
    rows, quick_enough = [], []
    for peer in peers:
        expected = _expected_seconds(results, instance, peer.name)
        if expected > plan.limit_seconds and peer.supports(instance.program) is None:
            note = f"left out: a solve would take over {plan.limit_seconds:g} s"
            rows.append(skipped(instance, peer.name, note))
        else:
            quick_enough.append(peer)
    return [*measure(instance, quick_enough, repeats, announce), *rows]


def _expected_seconds(results: Results, instance: Instance, peer: str) -> float:
    """Time of the largest smaller instance, if it grew in proportion to the scenarios."""
    expected = 0.0
    for quantity in (FORWARD, BOTH):
        series = results.series(instance.name, peer, quantity)
        if series:
            size, median = list(series.items())[-1]
            expected = max(expected, median * instance.n_scenarios / size)
    return expected


def _memory(case: Case) -> list[Measurement]:
    try:
        return peak_memory(case.family, case.n_contexts, case.n_scenarios, FOREWISE)
    except PeerFailedError as error:
        row = (case.family, case.n_contexts, case.n_scenarios, FOREWISE, PEAK)
        return [Measurement(*row, "MiB", note=f"failed: {error}")]
