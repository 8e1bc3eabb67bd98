"""The files and the terminal's tables, all made from the one table of results.

May import: bars, files, machine, plan, plot, results, tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from forewise_lab.bench.bars import judge
from forewise_lab.bench.files import whole_file, write_text
from forewise_lab.bench.plan import Plan
from forewise_lab.bench.plot import time_against_scenarios
from forewise_lab.bench.results import Results
from forewise_lab.bench.tables import Table, bars_table, case_table, growth_table

LEGEND = (
    "Times are medians for all contexts on one core. “error” is the worst context's relative "
    "error in cost or constraints against the best known answer, ✗ where it is over 1e-6. "
    "“ratio” is the peer's forward + backward time, or its forward time where it has no backward "
    "pass, over forewise's forward + backward time."
)


@dataclass(frozen=True)
class Report:
    """What is told of a run, complete or not."""

    results: Results
    plan: Plan
    titles: dict[str, str]
    missing: Sequence[str]
    machine: str

    def tables(self) -> list[Table]:
        """The bars last, because that is where a terminal's reader looks first."""
        tables = [
            case_table(self.results, case, self.titles[case[0]]) for case in self.results.cases()
        ]
        growth = growth_table(self.results, self.plan.growth)
        return [*tables, growth, bars_table(judge(self.results))]

    def print(self, console: Console) -> None:
        """Show the tables."""
        for table in self.tables():
            console.print(table.as_rich(), "")
        console.print(LEGEND, style="dim")

    def write(self, folder: Path) -> None:
        """Write solver.csv, solver.md, solver.png and solver.svg, each whole."""
        write_text(folder / "solver.csv", self.results.as_csv())
        write_text(folder / "solver.md", self._markdown())
        figure = time_against_scenarios(self.results)
        for kind in ("png", "svg"):
            with whole_file(folder / f"solver.{kind}") as temporary:
                # Without a date, the same numbers give the same file.
                metadata = {"Date": None} if kind == "svg" else None
                figure.savefig(temporary, format=kind, dpi=160, metadata=metadata)

    def _markdown(self) -> str:
        *others, bars = (table.as_markdown() for table in self.tables())
        missing = [f"- {line}" for line in self.missing]
        parts = [
            "# forewise against its peers",
            LEGEND,
            bars,
            *others,
            *(["### Not measured", "\n".join(missing)] if missing else []),
            "### Machine",
            f"```\n{self.machine}```",
        ]
        return "\n\n".join(parts) + "\n"
