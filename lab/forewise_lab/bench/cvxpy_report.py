"""What was measured of problems written in CVXPY: bars and tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from forewise_lab.bench.peers import ForewisePeer
from forewise_lab.bench.results import ABSENT, Bar, TextTable, at_least, bars_table, seconds

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
        times, differences = [], []
        for row in self.built_in:
            ratio, largest = row.written / row.built_in, max(row.decisions, row.gradients)
            what = f"{row.name}: in CVXPY / built-in, forward + backward"
            wanted = f"≤ {LONGEST_RATIO:g}×"
            times.append(Bar(what, wanted, f"{ratio:.2f}×", ratio <= LONGEST_RATIO))
            what = f"{row.name}: largest difference of decisions and gradients"
            met = largest <= LARGEST_DIFFERENCE
            differences.append(Bar(what, f"≤ {LARGEST_DIFFERENCE:g}", f"{largest:.0e}", met))
        faster = [
            at_least(
                f"M = {row.n_scenarios}: faster than {LOOP}, forward + backward",
                LEAST_SPEED_UP, row.both[FOREWISE], row.both.get(LOOP),
            )
            for row in self.layers
        ]  # fmt: skip
        last = self.layers[-1]
        building = at_least(
            f"M = {last.n_scenarios}: building faster than {LOOP}",
            LEAST_BUILD_SPEED_UP, last.build[FOREWISE], last.build.get(LOOP),
        )  # fmt: skip
        slowest = max(self.constructions, key=lambda row: row.seconds)
        construction = Bar(
            f"construction, {slowest.n_decisions} decisions, any M: the slowest, {slowest.name}",
            f"≤ {seconds(LONGEST_CONSTRUCTION)}",
            seconds(slowest.seconds),
            slowest.seconds <= LONGEST_CONSTRUCTION,
        )
        return [*times, *differences, *faster, building, construction]

    def tables(self) -> list[TextTable]:
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

    def _built_in_table(self) -> TextTable:
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
        return TextTable("The paper's problems, built-in and in CVXPY", columns, rows)

    def _construction_table(self) -> TextTable:
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
        return TextTable(title, columns, rows)


def _layers_table(found: AgainstLayers) -> TextTable:
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
    return TextTable(found.title, columns, rows, FOREWISE)
