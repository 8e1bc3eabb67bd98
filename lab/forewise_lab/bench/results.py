"""The long table of what was measured: one row per instance, size, peer and quantity."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from dataclasses import astuple, dataclass, field, fields

BUILD, FORWARD, BOTH = "build", "forward", "forward_backward"
PEAK, ABOVE_BASELINE = "peak_memory", "peak_memory_above_baseline"
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
class Results:
    """All rows so far, in the order of measuring."""

    rows: list[Measurement] = field(default_factory=list)

    def extend(self, rows: Iterable[Measurement]) -> None:
        """Add rows."""
        self.rows.extend(rows)

    def find(self, instance: str, n_scenarios: int, peer: str, quantity: str) -> Measurement | None:
        """The row of one quantity, or None where it was not measured."""
        key = (instance, n_scenarios, peer, quantity)
        for row in self.rows:
            if (row.instance, row.n_scenarios, row.peer, row.quantity) == key:
                return row
        return None

    def median(self, instance: str, n_scenarios: int, peer: str, quantity: str) -> float | None:
        """The median of one quantity, or None where it was not measured."""
        row = self.find(instance, n_scenarios, peer, quantity)
        return None if row is None else row.median

    def series(self, instance: str, peer: str, quantity: str) -> dict[int, float]:
        """The medians of one quantity by number of scenarios, in growing order."""
        rows = [row for row in self.rows if row.median is not None]
        wanted = [
            row
            for row in rows
            if (row.instance, row.peer, row.quantity) == (instance, peer, quantity)
        ]
        return {row.n_scenarios: row.median or 0.0 for row in sorted(wanted, key=_size)}

    def peers(self, instance: str) -> list[str]:
        """The peers with a time on an instance, in the order of measuring."""
        timed = (row for row in self.rows if row.instance == instance and row.unit == "s")
        return list(dict.fromkeys(row.peer for row in timed))

    def cases(self) -> list[tuple[str, int, int]]:
        """The (instance, n_contexts, n_scenarios) of which there is a time or a skip."""
        rows = (row for row in self.rows if row.unit == "s" or row.quantity == SKIPPED)
        return list(dict.fromkeys((r.instance, r.n_contexts, r.n_scenarios) for r in rows))

    def as_csv(self) -> str:
        """The table as CSV; what was not measured is empty."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([column.name for column in fields(Measurement)])
        writer.writerows(astuple(row) for row in self.rows)
        return text.getvalue()


def _size(row: Measurement) -> int:
    return row.n_scenarios
