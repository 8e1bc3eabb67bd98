"""What was measured of problems written in CVXPY: its bars and its tables.

May import: bars, tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from forewise_lab.bench.bars import Bar
from forewise_lab.bench.peers import ForewisePeer
from forewise_lab.bench.tables import ABSENT, Table, bars_table, seconds

FOREWISE = ForewisePeer.name
LOOP, AT_ONCE = LAYERS = (
    "cvxpylayers, a loop over scenarios",
    "cvxpylayers, all scenarios in one array",
)

LONGEST_RATIO = 2.0
LARGEST_DIFFERENCE = 1e-6
LEAST_SPEED_UP = 50.0
LEAST_BUILD_SPEED_UP = 10.0
LONGEST_CONSTRUCTION = 0.1
# A core of which less than this share was ours is said to have been shared.
_QUIET = 0.9


@dataclass(frozen=True)
class AgainstBuiltIn:
    """Seconds of a forward and backward pass, built in and in CVXPY, and how they differ."""

    name: str
    title: str
    built_in: float
    written: float
    closed_form: float | None
    decisions: float
    gradients: float


@dataclass(frozen=True)
class AgainstLayers:
    """Seconds and differences from forewise, by who was measured."""

    title: str
    n_scenarios: int
    build: dict[str, float]
    both: dict[str, float]
    decisions: dict[str, float]
    gradients: dict[str, float]


@dataclass(frozen=True)
class Construction:
    """Seconds for making a problem, and for lifting it to a number of scenarios."""

    name: str
    n_decisions: int
    n_contexts: int
    seconds: float
    lifting: dict[int, float]


@dataclass(frozen=True)
class Findings:
    """All that one run measured."""

    built_in: Sequence[AgainstBuiltIn]
    layers: Sequence[AgainstLayers]
    constructions: Sequence[Construction]
    turns: int
    layer_turns: int
    missing: str | None
    #: CPU time over wall time of the whole run.
    share: float

    def bars(self) -> list[Bar]:
        """What is asked for, and what came out."""
        times = [
            _bar_at_most(
                f"{row.name}: in CVXPY / built-in, forward + backward",
                LONGEST_RATIO, row.written / row.built_in, f"≤ {LONGEST_RATIO:g}×",
                f"{row.written / row.built_in:.2f}×",
            )
            for row in self.built_in
        ]  # fmt: skip
        differences = [
            _bar_at_most(
                f"{row.name}: largest difference of decisions and gradients",
                LARGEST_DIFFERENCE, max(row.decisions, row.gradients), f"≤ {LARGEST_DIFFERENCE:g}",
                f"{max(row.decisions, row.gradients):.0e}",
            )
            for row in self.built_in
        ]  # fmt: skip
        faster = [
            _speed_up(
                f"M = {row.n_scenarios}: faster than {LOOP}, forward + backward",
                row.both, LEAST_SPEED_UP,
            )
            for row in self.layers
        ]  # fmt: skip
        largest = self.layers[-1]
        building = _speed_up(
            f"M = {largest.n_scenarios}: building faster than {LOOP}",
            largest.build, LEAST_BUILD_SPEED_UP,
        )  # fmt: skip
        slowest = max(self.constructions, key=lambda row: row.seconds)
        construction = _bar_at_most(
            f"construction, {slowest.n_decisions} decisions, any M: the slowest, {slowest.name}",
            LONGEST_CONSTRUCTION, slowest.seconds, f"≤ {seconds(LONGEST_CONSTRUCTION)}",
            seconds(slowest.seconds),
        )  # fmt: skip
        return [*times, *differences, *faster, building, construction]

    def tables(self) -> list[Table]:
        """The bars last, because that is where a terminal's reader looks first."""
        return [
            self._built_in_table(),
            *(_layers_table(row) for row in self.layers),
            self._construction_table(),
            bars_table(self.bars(), "The bars for problems written in CVXPY"),
        ]

    def as_markdown(self) -> str:
        """For a file."""
        *others, bars = (table.as_markdown() for table in self.tables())
        notes = [f"Not measured: {self.missing}."] if self.missing else []
        if self.share < _QUIET:
            notes.append(
                f"Other work ran on the core meanwhile: this run had {self.share:.0%} of it. Times "
                "are longer than on a quiet machine; ratios, taken in turns, less so."
            )
        parts = ["# Problems written in CVXPY", self._legend(), *notes, bars, *others]
        return "\n\n".join(parts) + "\n"

    def _legend(self) -> str:
        return (
            f"Medians of {self.turns} turns, {self.layer_turns} against cvxpylayers, in one run on "
            "one core. Decisions and gradients of Σ v·decision with respect to the scenarios; a "
            "difference is relative for entries above 1 and absolute for others. cvxpylayers "
            "solves with Clarabel and differentiates with diffcp's default, LSQR, which is fast "
            "and inexact: see the differences of its gradients. The bars are judged on the problem "
            "as one writes it, a parameter and a cost for each scenario in a loop; the same with "
            "all scenarios in one array and no loop is shown below it. Building includes writing "
            "the problem, and for forewise the lifting to the M scenarios. Construction includes "
            "the writing, too, and no scenario is needed for it: the same problem is then lifted "
            "to any M."
        )

    def _built_in_table(self) -> Table:
        columns = (
            "interior point, forward + backward", "built-in", "in CVXPY", "ratio", "decisions",
            "gradients", "closed form",
        )  # fmt: skip
        rows = [
            (
                row.title,
                seconds(row.built_in),
                seconds(row.written),
                f"{row.written / row.built_in:.2f}×",
                f"{row.decisions:.0e}",
                f"{row.gradients:.0e}",
                seconds(row.closed_form),
            )
            for row in self.built_in
        ]
        return Table("The paper's problems, built-in and in CVXPY", columns, rows)

    def _construction_table(self) -> Table:
        first = self.constructions[0]
        columns = ("problem", "construction", *(f"then to M = {M}" for M in first.lifting))
        rows = [
            (row.name, seconds(row.seconds), *(seconds(value) for value in row.lifting.values()))
            for row in self.constructions
        ]
        title = (
            f"Construction with {first.n_decisions} decisions, and lifting to the scenarios of "
            f"{first.n_contexts} contexts"
        )
        return Table(title, columns, rows)


def _layers_table(found: AgainstLayers) -> Table:
    columns = (
        "who", "build", "ratio of builds", "forward + backward", "ratio", "decisions", "gradients",
    )  # fmt: skip
    rows = []
    for name in (FOREWISE, *LAYERS):
        if name not in found.both:
            rows.append((name, *[ABSENT] * 6))
            continue
        build, both = found.build[name], found.both[name]
        rows.append(
            (
                name,
                seconds(build),
                f"{build / found.build[FOREWISE]:.1f}×",
                seconds(both),
                f"{both / found.both[FOREWISE]:.1f}×",
                f"{found.decisions[name]:.0e}",
                f"{found.gradients[name]:.0e}",
            )
        )
    return Table(found.title, columns, rows, FOREWISE)


def _bar_at_most(what: str, bound: float, value: float, wanted: str, measured: str) -> Bar:
    return Bar(what, wanted, measured, value <= bound)


def _speed_up(what: str, times: dict[str, float], wanted: float) -> Bar:
    bound = f"≥ {wanted:g}×"
    if LOOP not in times:
        return Bar(what, bound, "not measured", None)
    ratio = times[LOOP] / times[FOREWISE]
    return Bar(what, bound, f"{ratio:.1f}×", ratio >= wanted)
