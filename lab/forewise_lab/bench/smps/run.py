"""The bench: what is measured in which order, what is kept, and what is left out."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from forewise.exceptions import InvalidInputError
from forewise_lab.bench.peers import PeerFailedError
from forewise_lab.bench.results import Measurement, Measurements, Quantity
from forewise_lab.bench.smps.instances import available, instance
from forewise_lab.bench.smps.peers import FOREWISE, PEERS, SOLVED, Outcome
from forewise_lab.bench.smps.report import FAILED, GROWTH, LEFT_OUT, smps_figure, smps_page
from forewise_lab.bench.smps.worker import Worker
from forewise_lab.bench.solver_report import save_figure
from forewise_lab.bench.timing import Announce, Timed, take_turns
from forewise_lab.machine import description, one_core, write_whole

#: An answer agrees if its cost and its violation are within this, relative to the best one.
AGREEMENT = 1e-6
# Turns of a peer take no longer than this together; a solve over a second has few.
_LONGEST_SECONDS = 6.0


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
            raise InvalidInputError(f"{what} must be of {known}, but has {', '.join(unknown)}")
    chosen = [name for name in there if names is None or name in names]
    plan = plan_of(chosen, quick)
    wanted = [name for name in PEERS if peers is None or name in (FOREWISE, *peers)]
    able = [name for name in wanted if not PEERS[name].package or find_spec(PEERS[name].package)]
    missing += [f"{name} is not installed" for name in wanted if name not in able]
    for line in missing:
        console.print(f"[yellow]not measured:[/] {escape(line)}")
    output.mkdir(parents=True, exist_ok=True)
    facts = description()
    results = Measurements(_kept(output, facts))
    write_whole(output / "smps_machine.txt", facts)
    cases = [(name, size) for name in plan.instances for size in _sizes(name, plan, data_dir)]
    try:
        with one_core(), console.status("starting") as status, _workers(able, plan, data_dir) as at:
            progress = _Progress(len(cases) + len(plan.growth), console)
            for name, size in cases:
                if not _is_complete(results, name, size, able):
                    said = _announcer(status.update, f"{name}, M = {size}")
                    rows = measure(results, name, size, at, repeats, plan.limit, said)
                    results.rows.extend(rows)
                    write_whole(output / "smps.csv", results.as_csv())
                progress.step(f"{name}, M = {size}")
            for name, size in plan.growth if FOREWISE in able else ():
                if not _is_grown(results, name, size):
                    status.update(f"{name}, M = {size}: growth")
                    results.rows.extend(grow(name, size, plan.limit, data_dir))
                    write_whole(output / "smps.csv", results.as_csv())
                progress.step(f"{name}, M = {size}, growth")
    finally:
        if results.rows:
            page = smps_page(results, missing, facts, plan.limit, repeats)
            write_whole(output / "smps.csv", results.as_csv())
            write_whole(output / "smps.md", page.as_markdown())
            save_figure(smps_figure(results), output / "smps")
            page.print(console)
            console.print(f"written to {escape(str(output))}")
    return results


class _Progress:
    """A line per case, with the time that is left if the others take as long as those so far."""

    def __init__(self, total: int, console: Console) -> None:
        self.total, self.done, self.console = total, 0, console
        self.start = time.monotonic()

    def step(self, what: str) -> None:
        self.done += 1
        gone = time.monotonic() - self.start
        left = gone / self.done * (self.total - self.done)
        line = f"{self.done}/{self.total} {what}: {gone / 60:.1f} min, about {left / 60:.0f} left"
        self.console.print(line, highlight=False)


@contextmanager
def _workers(
    names: Sequence[str], plan: Plan, data_dir: Path | None
) -> Iterator[dict[str, Worker]]:
    folder = None if data_dir is None else str(data_dir)
    workers = {name: Worker(name, plan.limit, folder) for name in names}
    try:
        yield workers
    finally:
        for worker in workers.values():
            worker.stop()


def _announcer(update: Callable[[str], None], case: str) -> Announce:
    return lambda text: update(f"{case}: {text}")


def _sizes(name: str, plan: Plan, data_dir: Path | None) -> list[int]:
    """The sizes of the plan, the last one whole where there are fewer scenarios."""
    count = instance(name, data_dir).n_scenarios
    return sorted({int(min(size, count)) for size in plan.sizes})


def measure(
    results: Measurements,
    name: str,
    n_scenarios: int,
    workers: dict[str, Worker],
    repeats: int,
    limit: float,
    announce: Announce,
) -> list[Measurement]:
    """All peers on one instance, in turns."""
    reasons: dict[str, str] = {}
    builds: dict[str, float] = {}
    for peer, worker in workers.items():
        series = results.series(name, peer, Quantity.FORWARD)
        expected = max((t * n_scenarios / size for size, t in series.items()), default=0.0)
        if expected > limit:
            reasons[peer] = f"{LEFT_OUT}: a solve would take over {limit:g} s"
            continue
        if _failed_before(results, name, peer):
            reasons[peer] = f"{LEFT_OUT}: failed with fewer scenarios"
            continue
        announce(f"{peer}: build")
        try:
            builds[peer] = worker.build(name, n_scenarios)
        except PeerFailedError as error:
            reasons[peer] = f"failed: {error}"
    failures: dict[str, Exception] = {}
    calls = {peer: workers[peer].solve for peer in builds}
    timed = take_turns(calls, repeats, announce, failures, _LONGEST_SECONDS)
    reasons |= {peer: f"failed: {error}" for peer, error in failures.items()}
    errors = relative_errors({peer: found.result for peer, found in timed.items()})
    rows = [_row(name, n_scenarios, peer, found, errors[peer]) for peer, found in timed.items()]
    rows += [
        Measurement(name, 1, n_scenarios, peer, Quantity.BUILD, "s", builds[peer], builds[peer], 1)
        for peer in timed
    ]
    rows += [
        Measurement(name, 1, n_scenarios, peer, Quantity.SKIPPED, note=reason)
        for peer, reason in reasons.items()
    ]
    return rows


def _row(
    name: str, n_scenarios: int, peer: str, found: Timed[Outcome], error: float
) -> Measurement:
    """A peer's times; one that is not solved to the accuracy is said to have failed."""
    notes = []
    if found.result.verdict != SOLVED:
        notes.append(f"failed: says {found.result.verdict}")
    if not error <= AGREEMENT:
        notes.append(f"failed: {error:.0e} from the best answer")
    if not found.turns:
        notes.append("one run")
    return Measurement(
        *(name, 1, n_scenarios, peer, Quantity.FORWARD, "s", found.median),
        *(min(found.measured), len(found.measured), error, "; ".join(notes)),
    )


def relative_errors(outcomes: dict[str, Outcome]) -> dict[str, float]:
    """How far each cost is from the best feasible one, or its violation; infinite if no point."""
    feasible = [o.objective for o in outcomes.values() if o.violation <= AGREEMENT]
    best = min(feasible, default=math.nan)
    errors = {}
    for peer, outcome in outcomes.items():
        far = abs(outcome.objective - best) / max(1.0, abs(best))
        worst = max(far, outcome.violation)
        errors[peer] = math.inf if math.isnan(far) or math.isnan(worst) else worst
    return errors


def grow(name: str, n_scenarios: int, limit: float, data_dir: Path | None) -> list[Measurement]:
    """forewise's time and memory in a fresh process."""
    worker = Worker(FOREWISE, 2 * limit, None if data_dir is None else str(data_dir))
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
    taken = sorted(outcome.seconds for outcome in outcomes)
    note = "" if outcomes[0].verdict == SOLVED else f"failed: says {outcomes[0].verdict}"
    median = taken[len(taken) // 2]
    return [
        Measurement(*row, Quantity.FORWARD, "s", median, taken[0], len(taken), note=note),
        Measurement(*row, Quantity.PEAK, "MiB", peak, peak, 1),
        Measurement(*row, Quantity.ABOVE_BASELINE, "MiB", above, above, 1),
    ]


def _failed_before(results: Measurements, name: str, peer: str) -> bool:
    """Whether a peer gave nothing at all with fewer scenarios; a wrong answer is tried again."""
    return any(
        row.note.startswith((FAILED, LEFT_OUT))
        for row in results.rows
        if (row.instance, row.peer, row.quantity) == (name, peer, Quantity.SKIPPED)
    )


def _kept(output: Path, facts: str) -> list[Measurement]:
    """The rows of an earlier run of the same code on the same machine."""
    rows, machine = output / "smps.csv", output / "smps_machine.txt"
    if not (rows.exists() and machine.exists()):
        return []
    if _without_command(machine.read_text(encoding="utf-8")) != _without_command(facts):
        return []
    return Measurements.read(rows).rows


def _without_command(facts: str) -> list[str]:
    return [line for line in facts.splitlines() if not line.startswith("command")]


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
