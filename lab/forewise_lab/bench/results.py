"""The long table of measurements, and tables of text with their bars."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Self

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table as RichTable

from forewise_lab.machine import description, write_whole
from forewise_lab.report.rendering import markdown_table

ABSENT, NOT_MEASURED = "—", "not measured"
LEGENDS = tomllib.loads((Path(__file__).parent / "legends.toml").read_text(encoding="utf-8"))


class Quantity(StrEnum):
    """What is measured of a peer."""

    BUILD = "build"
    FORWARD = "forward"
    BOTH = "forward_backward"
    PEAK = "peak_memory"
    ABOVE_BASELINE = "peak_memory_above_baseline"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class Measurement:
    """One row. Times are in seconds, memory in MiB; `unit` says which."""

    instance: str
    n_contexts: int
    n_scenarios: int
    peer: str
    quantity: str
    unit: str = ""
    median: float | None = None
    minimum: float | None = None
    repeats: int = 0
    relative_error: float | None = None
    note: str = ""


@dataclass(frozen=True)
class Measurements:
    """All rows so far, in the order of measuring."""

    rows: list[Measurement] = field(default_factory=list)

    def median(self, instance: str, n_scenarios: int, peer: str, quantity: str) -> float | None:
        return self.series(instance, peer, quantity).get(n_scenarios)

    def series(self, instance: str, peer: str, quantity: str) -> dict[int, float]:
        """The medians of one quantity by number of scenarios, in growing order."""
        key = (instance, peer, quantity)
        found = {
            row.n_scenarios: row.median
            for row in self.rows
            if row.median is not None and (row.instance, row.peer, row.quantity) == key
        }
        return dict(sorted(found.items()))

    def names(self) -> list[str]:
        """The instances, in the order of measuring."""
        return list(dict.fromkeys(row.instance for row in self.rows))

    def peers(self, instance: str) -> list[str]:
        """The peers with a time on an instance, in the order of measuring."""
        timed = (row for row in self.rows if row.instance == instance and row.unit == "s")
        return list(dict.fromkeys(row.peer for row in timed))

    def cases(self) -> list[tuple[str, int, int]]:
        """The (instance, n_contexts, n_scenarios) of which there is a time or a skip."""
        rows = (row for row in self.rows if row.unit == "s" or row.quantity == Quantity.SKIPPED)
        return list(dict.fromkeys((r.instance, r.n_contexts, r.n_scenarios) for r in rows))

    @classmethod
    def read(cls, path: Path) -> Self:
        """The rows that `as_csv` wrote to a file."""
        table = pd.read_csv(path, keep_default_na=False, dtype={"note": str, "unit": str})
        numbers = ["median", "minimum", "relative_error"]
        table[numbers] = table[numbers].apply(pd.to_numeric).astype(object)
        table = table.where(table.notna(), None)
        return cls([Measurement(*row) for row in table.itertuples(index=False, name=None)])

    def as_csv(self) -> str:
        return str(pd.DataFrame(self.rows, dtype=object).to_csv(index=False))


@dataclass(frozen=True)
class Bar:
    """A bound that was set, and what was measured; `met` is None where it was not measured."""

    what: str
    wanted: str
    measured: str
    met: bool | None


@dataclass(frozen=True)
class TextTable:
    """Text in rows; `highlighted` is the first cell of the row that stands out."""

    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    highlighted: str = ""

    def as_rich(self) -> RichTable:
        """For the terminal: numbers to the right, verdicts in colour."""
        table = RichTable(title=self.title, title_justify="left", title_style="bold")
        for i, column in enumerate(self.columns):
            table.add_column(column, justify="left" if i == 0 or column == "note" else "right")
        for row in self.rows:
            verdict = {"met": "green", "missed": "bold red"}.get(row[-1], "")
            table.add_row(*row, style="bold" if row[0] == self.highlighted else verdict)
        return table

    def as_markdown(self) -> str:
        return f"### {self.title}\n\n" + markdown_table(self.columns, self.rows)


def bars_table(bars: Iterable[Bar], title: str) -> TextTable:
    """What was wanted, what was measured, and whether it is met."""
    verdicts = {True: "met", False: "missed", None: ABSENT}
    rows = [(bar.what, bar.wanted, bar.measured, verdicts[bar.met]) for bar in bars]
    return TextTable(title, ("what", "wanted", "measured", "verdict"), rows)


@dataclass(frozen=True)
class Page:
    """What a bench shows and writes: its tables, of which the last has the bars."""

    title: str
    legend: str
    tables: Sequence[TextTable]
    notes: Mapping[str, Sequence[str]] = field(default_factory=dict)  # lines by their heading
    machine: str = ""

    def print(self, console: Console) -> None:
        """On a terminal the bars come last, because that is where its reader looks first."""
        for table in self.tables:
            console.print(table.as_rich(), "")
        for lines in self.notes.values():
            for line in lines:
                console.print(line, highlight=False, markup=False)
        console.print(self.legend, style="dim")

    def as_markdown(self) -> str:
        """The bars first."""
        *others, bars = (table.as_markdown() for table in self.tables)
        parts = [f"# {self.title}", self.legend, bars, *others]
        for heading, lines in self.notes.items():
            if lines:
                parts += [f"### {heading}", "\n".join(f"- {line}" for line in lines)]
        if self.machine:
            parts += ["### Machine", f"```\n{self.machine}```"]
        return "\n\n".join(parts) + "\n"

    def publish(self, folder: Path, name: str, console: Console) -> None:
        """Print it, and write it to a folder with the machine beside it."""
        self.print(console)
        write_whole(folder / f"{name}.md", self.as_markdown())
        if not self.machine:
            write_whole(folder / f"{name}_machine.txt", description())
        console.print(f"written to {folder}", markup=False)


def growth_table(
    series: Mapping[str, Sequence[Mapping[int, float]]],
    sizes: Mapping[str, Sequence[int]],
    what: str,
) -> TextTable:
    """Time, peak memory and what is above the baseline by number of scenarios, with exponents.

    `series` has these three by instance, each by size; `sizes` what was planned.
    """
    rows: list[tuple[str, ...]] = []
    for name, (times, *memory) in series.items():
        for size in sizes[name]:
            cells = (f"{own[size]:.0f} MiB" if size in own else ABSENT for own in memory)
            rows.append((name, str(size), seconds(times.get(size)), *cells))
        fitted = [fitted_exponent(own) for own in (times, memory[-1])]
        first, last = (ABSENT if math.isnan(value) else f"{value:.2f}" for value in fitted)
        rows.append((name, "exponent", first, ABSENT, last))
    columns = ("instance", "M", what, "peak memory", "above the baseline")
    return TextTable("forewise's growth with M", columns, rows)


def at_least(what: str, wanted: float, ours: float | None, theirs: float | None) -> Bar:
    """A speed-up: the peer's time over ours."""
    if ours is None or theirs is None:
        return Bar(what, f"≥ {wanted:g}×", NOT_MEASURED, None)
    return Bar(what, f"≥ {wanted:g}×", f"{theirs / ours:.1f}×", theirs / ours >= wanted)


def at_most(what: str, shown: str, bound: float, value: float | None, form: str) -> Bar:
    """An upper bound, and the value in a format."""
    if value is None or math.isnan(value):
        return Bar(what, f"≤ {shown}", NOT_MEASURED, None)
    return Bar(what, f"≤ {shown}", form.format(value), value <= bound)


def seconds(value: float | None) -> str:
    """A time in the unit that suits it."""
    if value is None:
        return ABSENT
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value / 1e-6:.0f} µs"


def fitted_exponent(values: Mapping[int, float]) -> float:
    """p of the least-squares fit value ≈ c · size^p, from values by size.

    NaN where fewer than two values are positive: a memory too small to be seen is 0.
    """
    seen = {size: value for size, value in values.items() if value > 0}
    if len(seen) < 2:
        return float("nan")
    sizes, heights = np.array(list(seen), dtype=float), np.array(list(seen.values()))
    return float(np.polyfit(np.log(sizes), np.log(heights), 1)[0])


def between(values: Mapping[int, float], sizes: Iterable[int]) -> dict[int, float]:
    """The values of the given sizes, where there are any."""
    return {size: values[size] for size in sizes if size in values}
