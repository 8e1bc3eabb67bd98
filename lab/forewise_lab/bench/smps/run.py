"""The bench: what is measured in which order, what is kept, and what is left out."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from matplotlib.figure import Figure
from rich.console import Console
from rich.markup import escape

import forewise as fw
from forewise_lab.bench.measuring import (
    LEFT_OUT,
    Assessment,
    measure,
    published,
    skipped,
    too_slow,
)
from forewise_lab.bench.peers.base import PeerFailedError
from forewise_lab.bench.results import Measurement, Measurements, Page, Quantity
from forewise_lab.bench.smps.instances import available, instance
from forewise_lab.bench.smps.peers import FOREWISE, PEERS, SOLVED, Outcome
from forewise_lab.bench.smps.report import FAILED, GROWTH, smps_figure, smps_page
from forewise_lab.bench.smps.worker import Worker
from forewise_lab.bench.timing import Timed
from forewise_lab.machine import description, one_core, write_whole

#: An answer agrees if its cost and its violation are within this, relative to the best one.
AGREEMENT = 1e-6


@dataclass(frozen=True)
class Plan:
    """`growth` is forewise alone: its time and memory by number of scenarios.

    A peer whose solve would take over `limit` seconds, in proportion to fewer scenarios, is left
    out; one that does is stopped.
    """

    instances: tuple[str, ...]
    sizes: tuple[int, ...] = (100, 500, 2000)
    growth: tuple[tuple[str, int], ...] = ()
    limit: float = 40.0


_GROWN = ("lands3", "ssn")
_GROWTH_SIZES = (100, 300, 1000, 2000, 10_000)


def plan_of(names: Sequence[str], quick: bool) -> Plan:
    """All sizes of the named instances; two tiny ones if `quick`."""
    if quick:
        return Plan(tuple(names[:2]), (3, 6), tuple((names[0], size) for size in (3, 6)), 20.0)
    grown = tuple((name, size) for name in _GROWN if name in names for size in _GROWTH_SIZES)
    return Plan(tuple(names), growth=grown)


@dataclass(frozen=True, eq=False)
class Case:
    """An instance with a number of its scenarios."""

    name: str
    n_scenarios: int
    program: fw.smps.TwoStageProgram
    n_contexts: int = 1


def run_smps_bench(
    output: Path,
    repeats: int = 3,
    quick: bool = False,
    names: Sequence[str] | None = None,
    peers: Sequence[str] | None = None,
    data_dir: Path | None = None,
    console: Console | None = None,
) -> Measurements:
    """Measure forewise against its peers on SMPS programs, print tables and write the files.

    Cases that stand in the folder's table already are not measured again, if the machine, the
    versions and the revision are the same.
    """
    console = console or Console()
    there, missing = available(data_dir)
    for what, given, known in (("instances", names, there), ("peers", peers, list(PEERS))):
        unknown = sorted(set(given or ()) - set(known))
        if unknown:
            raise fw.InvalidInputError(f"{what} must be of {known}, but has {', '.join(unknown)}")
    plan = plan_of([name for name in there if names is None or name in names], quick)
    wanted = [name for name in PEERS if peers is None or name in (FOREWISE, *peers)]
    able = [name for name in wanted if not PEERS[name].package or find_spec(PEERS[name].package)]
    missing += [f"{name} is not installed" for name in wanted if name not in able]
    for line in missing:
        console.print(f"[yellow]not measured:[/] {escape(line)}")
    output.mkdir(parents=True, exist_ok=True)
    facts = description()
    results = Measurements(_kept(output, facts))
    write_whole(output / "smps_machine.txt", facts)
    cases = list(_cases(plan, data_dir))
    total = len(cases) + len(plan.growth)

    def report() -> tuple[Page, Figure]:
        return smps_page(results, missing, facts, plan.limit, repeats), smps_figure(results)

    with (
        published(results, output, "smps", console, report) as add,
        one_core(),
        console.status("starting") as status,
        _workers(able, plan, data_dir) as workers,
    ):
        for done, case in enumerate(cases, start=1):
            title = f"{case.name}, M = {case.n_scenarios}"
            if not _is_complete(results, case.name, case.n_scenarios, able):

                def announce(text: str, title: str = title) -> None:
                    status.update(f"{title}: {text}")

                reasons = {worker.name: _left_out(results, case, worker) for worker in workers}
                chosen = [worker for worker in workers if reasons[worker.name] is None]
                rows = measure(case, chosen, repeats, announce, ASSESSMENT)
                add([*rows, *(skipped(case, name, why) for name, why in reasons.items() if why)])
            console.print(f"{done}/{total} {title}", highlight=False)
        grown = plan.growth if FOREWISE in able else ()
        for done, (name, size) in enumerate(grown, start=len(cases) + 1):
            if not _is_grown(results, name, size):
                status.update(f"{name}, M = {size}: growth")
                add(grow(name, size, plan.limit, data_dir))
            console.print(f"{done}/{total} {name}, M = {size}, growth", highlight=False)
    return results


def _cases(plan: Plan, data_dir: Path | None) -> Iterator[Case]:
    """The sizes of the plan, the last one whole where there are fewer scenarios."""
    for name in plan.instances:
        program = instance(name, data_dir)
        for size in sorted({int(min(size, program.n_scenarios)) for size in plan.sizes}):
            yield Case(name, size, program)


@contextmanager
def _workers(names: Sequence[str], plan: Plan, data_dir: Path | None) -> Iterator[list[Worker]]:
    workers = [Worker(name, plan.limit, data_dir) for name in names]
    try:
        yield workers
    finally:
        for worker in workers:
            worker.stop()


def _left_out(results: Measurements, case: Case, worker: Worker) -> str | None:
    """Why a peer is not asked: it is too slow, or gave nothing at all with fewer scenarios."""
    failed = any(
        row.note.startswith((FAILED, LEFT_OUT))
        for row in results.rows
        if (row.instance, row.peer, row.quantity) == (case.name, worker.name, Quantity.SKIPPED)
    )
    return too_slow(results, case, worker.name, worker.limit) or (
        f"{LEFT_OUT}: failed with fewer scenarios" if failed else None
    )


def _notes(answer: Outcome, timed: Timed[Outcome], error: float) -> list[str]:
    """A peer that has not solved to the accuracy is said to have failed."""
    notes = {
        f"failed: says {answer.verdict}": answer.verdict != SOLVED,
        f"failed: {error:.0e} from the best answer": not error <= AGREEMENT,
        "one run": not timed.turns,
    }
    return [note for note, holds in notes.items() if holds]


def relative_errors(case: Case | None, outcomes: dict[str, Outcome]) -> dict[str, float]:
    """How far each cost is from the best feasible one, or its violation; infinite if no point."""
    feasible = [o.objective for o in outcomes.values() if o.violation <= AGREEMENT]
    best = min(feasible, default=math.nan)
    errors = {}
    for peer, outcome in outcomes.items():
        far = abs(outcome.objective - best) / max(1.0, abs(best))
        worst = max(far, outcome.violation)
        errors[peer] = math.inf if math.isnan(far) or math.isnan(worst) else worst
    return errors


# A solve over a second has few turns.
ASSESSMENT = Assessment(relative_errors, _notes, longest=6.0)


def grow(name: str, n_scenarios: int, limit: float, data_dir: Path | None) -> list[Measurement]:
    """forewise's time and memory in a fresh process."""
    worker = Worker(FOREWISE, 2 * limit, data_dir)
    row = (name, 1, n_scenarios, GROWTH)
    try:
        worker.build(name, 2)  # imports and a first solve are no part of it
        worker.solve()
        worker.build(name, n_scenarios)
        outcomes = [worker.solve()]
        if outcomes[0].seconds < 1.0:
            outcomes += [worker.solve() for _ in range(4)]
        peak, above = worker.memory()
    except PeerFailedError as error:
        return [Measurement(*row, Quantity.SKIPPED, note=f"failed: {error}")]
    finally:
        worker.stop()
    taken = [outcome.seconds for outcome in outcomes]
    note = "" if outcomes[0].verdict == SOLVED else f"failed: says {outcomes[0].verdict}"
    times = (statistics.median(taken), min(taken), len(taken))
    return [
        Measurement(*row, Quantity.FORWARD, "s", *times, note=note),
        Measurement(*row, Quantity.PEAK, "MiB", peak, peak, 1),
        Measurement(*row, Quantity.ABOVE_BASELINE, "MiB", above, above, 1),
    ]


def _kept(output: Path, facts: str) -> list[Measurement]:
    """The rows of an earlier run of the same code on the same machine."""
    rows, machine = output / "smps.csv", output / "smps_machine.txt"
    if not (rows.exists() and machine.exists()):
        return []
    then, now = (
        [line for line in text.splitlines() if not line.startswith("command")]
        for text in (machine.read_text(encoding="utf-8"), facts)
    )
    return Measurements.read(rows).rows if then == now else []


def _is_grown(results: Measurements, name: str, n_scenarios: int) -> bool:
    keys = {(row.instance, row.n_scenarios, row.peer) for row in results.rows}
    return (name, n_scenarios, GROWTH) in keys


def _is_complete(results: Measurements, name: str, n_scenarios: int, peers: Sequence[str]) -> bool:
    """Whether all peers have a row of a case; the rows of one that is not are dropped."""
    case = [r for r in results.rows if (r.instance, r.n_scenarios) == (name, n_scenarios)]
    case = [row for row in case if row.peer != GROWTH]
    if set(peers) <= {row.peer for row in case}:
        return True
    results.rows[:] = [row for row in results.rows if row not in case]
    return False
