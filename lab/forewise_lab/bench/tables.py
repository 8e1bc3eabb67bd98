"""The results as tables, for the terminal and for Markdown.

May import: bars, growth, plan, results.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from rich.table import Table as RichTable

from forewise_lab.bench.accuracy import WANTED
from forewise_lab.bench.bars import FOREWISE, Bar
from forewise_lab.bench.growth import between, fitted_exponent
from forewise_lab.bench.plan import Case
from forewise_lab.bench.results import (
    ABOVE_BASELINE,
    BOTH,
    BUILD,
    FORWARD,
    PEAK,
    SKIPPED,
    Measurement,
    Results,
)

ABSENT = "—"


@dataclass(frozen=True)
class Table:
    """Text in rows; `highlighted` is the first cell of the row that stands out."""

    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    highlighted: str = ""

    def as_rich(self) -> RichTable:
        """For the terminal: numbers to the right, verdicts in colour."""
        table = RichTable(title=self.title, title_justify="left", title_style="bold")
        for i, column in enumerate(self.columns):
            text = i == 0 or column == "note"
            table.add_column(column, justify="left" if text else "right")
        for row in self.rows:
            table.add_row(*row, style=_style(row, self.highlighted))
        return table

    def as_markdown(self) -> str:
        """For a file."""
        marks = [":--", *("--:" for _ in self.columns[1:])]
        lines = [self.columns, tuple(marks), *self.rows]
        return f"### {self.title}\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines)


def case_table(results: Results, case: tuple[str, int, int], title: str) -> Table:
    """All peers on one instance: times, accuracy, and how much longer than forewise."""
    family, _, n_scenarios = case
    columns = ("peer", "build", "forward", "forward + backward", "error", "ratio", "note")
    ours = results.median(family, n_scenarios, FOREWISE, BOTH)
    here = [row for row in results.rows if (row.instance, row.n_contexts, row.n_scenarios) == case]
    rows = []
    for peer in dict.fromkeys(row.peer for row in here):
        found = {row.quantity: row for row in here if row.peer == peer}
        if FORWARD in found:
            rows.append(_case_row(peer, found, ours))
        elif SKIPPED in found:
            rows.append((peer, *[ABSENT] * 5, found[SKIPPED].note))
    return Table(f"{title}, M = {n_scenarios}", columns, rows, FOREWISE)


def bars_table(
    bars: Sequence[Bar], title: str = "The bars for forewise's forward + backward"
) -> Table:
    """What was wanted, what was measured, and whether it is met."""
    verdicts = {True: "met", False: "missed", None: ABSENT}
    rows = [(bar.what, bar.wanted, bar.measured, verdicts[bar.met]) for bar in bars]
    columns = ("what", "wanted", "measured", "verdict")
    return Table(title, columns, rows)


def growth_table(results: Results, cases: Sequence[Case]) -> Table:
    """forewise's time and memory by number of scenarios, with fitted exponents."""
    columns = ("instance", "M", "forward + backward", "peak memory", "above the baseline")
    rows = []
    for family in dict.fromkeys(case.family for case in cases):
        sizes = [case.n_scenarios for case in cases if case.family == family]
        series = [
            between(results.series(family, FOREWISE, quantity), sizes)
            for quantity in (BOTH, PEAK, ABOVE_BASELINE)
        ]
        for size in sizes:
            cells = (seconds(series[0].get(size)), *(mebibytes(s.get(size)) for s in series[1:]))
            rows.append((family, str(size), *cells))
        time, _, above = (fitted_exponent(values) for values in series)
        rows.append((family, "exponent", _exponent(time), ABSENT, _exponent(above)))
    return Table("forewise's growth with M", columns, rows)


def seconds(value: float | None) -> str:
    """A time in the unit that suits it."""
    if value is None:
        return ABSENT
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value / 1e-6:.0f} µs"


def mebibytes(value: float | None) -> str:
    """A size in MiB."""
    return ABSENT if value is None else f"{value:.0f} MiB"


def _exponent(value: float) -> str:
    return ABSENT if math.isnan(value) else f"{value:.2f}"


def _case_row(peer: str, found: dict[str, Measurement], ours: float | None) -> tuple[str, ...]:
    medians = {quantity: row.median for quantity, row in found.items()}
    # A peer without a backward pass is compared by what it can do.
    longest = medians.get(BOTH, medians[FORWARD])
    ratio = ABSENT if ours is None or longest is None else f"{longest / ours:.1f}×"
    times = (row for row in found.values() if row.unit == "s")
    notes = dict.fromkeys(row.note for row in times if row.note)
    return (
        peer,
        seconds(medians.get(BUILD)),
        seconds(medians[FORWARD]),
        seconds(medians.get(BOTH)),
        _error(found[FORWARD].relative_error),
        ratio,
        "; ".join(notes),
    )


def _error(value: float | None) -> str:
    if value is None or math.isnan(value):
        return ABSENT
    return (f"{value:.0e}" if value else "0") + (" ✗" if value > WANTED else "")


def _style(row: tuple[str, ...], highlighted: str) -> str:
    by_verdict = {"met": "green", "missed": "bold red"}
    if row[0] == highlighted:
        return "bold"
    return by_verdict.get(row[-1], "")
