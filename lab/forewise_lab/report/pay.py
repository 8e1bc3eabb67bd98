"""The page "Does it pay?": made from the rows of real cases, as often as there are new ones.

May import: exceptions, experiments, metrics, and its siblings `cases`, `pay_tables`, `pay_plots`.
"""

from __future__ import annotations

import os
from pathlib import Path

from forewise.exceptions import StorageError
from forewise_lab.experiments import Settings, load_settings
from forewise_lab.report.cases import CaseResult, gather_cases
from forewise_lab.report.pay_plots import plot_over_time
from forewise_lab.report.pay_tables import (
    combined_table,
    cost_table,
    level_table,
    pooling_table,
    unavoidable,
    verdict,
    worth,
)

_HEAD = """# Does it pay?

Made by `forewise report-real` from the rows in `{folder}`; `forewise run real` adds what is
missing. Costs are mean costs of a decision; lower is better. Intervals are 95 %, from whole weeks
drawn anew (block bootstrap); differences are paired, week by week.

**How it is judged.** Windows follow each other in time. In each, a method is fitted on rows before
the window, and decides all rows of it in one call; nothing is shuffled. Every method has four
settings to try. They are compared on the {tuning} days before the first day that is judged, and the
best is used throughout; plain SAA has nothing to try. *SAA of the series* is the plain one: all
past demand of the same store and product, whatever the day. Tomorrow's weather is not known: it is
yesterday's, with noise. Costs (shortage, excess, ovens, the battery) are made up; demand is real.
"""


def write_pay_page(
    folder: str | os.PathLike[str],
    page: str | os.PathLike[str],
    settings: Settings | None = None,
    *,
    remarks: str | os.PathLike[str] | None = None,
) -> Path:
    """Write the page, and its pictures beside it.

    Parameters
    ----------
    folder : path
        Of the results table.
    page : path
        A Markdown file; its folder must exist.
    settings : Settings, optional
        Those that come with forewise by default.
    remarks : path, optional
        A Markdown file with what people have to say about the figures; it becomes the last section.

    Returns
    -------
    Path
        The page.

    Raises
    ------
    InvalidInputError
        If the folder has no rows of cases, or rows of a quick run.
    StorageError
        If something cannot be read or written.
    """
    place = Path(page)
    if not place.absolute().parent.is_dir():
        raise StorageError(f"page must be in a folder that exists, but is {str(place)!r}")
    results = gather_cases(folder, settings or load_settings())
    parts = [_HEAD.format(folder=folder, tuning=results[0].table.tuning_days if results else 90)]
    parts += [_glance(results)]
    parts += [_section(result, place.parent) for result in results]
    compared = [part for part in (combined_table(results), pooling_table(results)) if part]
    parts += compared
    if remarks is not None:
        try:
            parts.append(Path(remarks).read_text(encoding="utf-8").strip() + "\n")
        except (OSError, UnicodeDecodeError) as error:
            raise StorageError(f"cannot read remarks {str(remarks)!r}: {error}") from error
    try:
        place.write_text("\n".join(parts), encoding="utf-8")
    except OSError as error:
        raise StorageError(f"cannot write {str(place)!r}: {error.strerror}") from error
    return place


def _glance(results: tuple[CaseResult, ...]) -> str:
    lines = [f"- **{result.table.title}.** {verdict(result)}" for result in results]
    return "## At a glance\n\n" + "\n".join(lines) + "\n"


def _section(result: CaseResult, folder: Path) -> str:
    parts = [f"## {result.table.title}", _periods(result)]
    if result.missing:
        told = "; ".join(result.missing)
        parts.append(f"**Not finished, and not in the table:** {told}.")
    if len(result.methods) > 1:
        parts.append(cost_table(result))
        if len(result.table.decision.levels) > 1:
            parts.append(level_table(result))
        picture = f"pay_{result.name.replace('-', '_')}.png"
        plot_over_time(result, folder / picture)
        parts += [f"![Cost over time]({picture})", unavoidable(result), worth(result)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _periods(result: CaseResult) -> str:
    table = result.table
    told = f"Decided from {table.first_day} to {table.last_day}, fitted anew every {table.window}"
    told += f", M = {table.m} scenarios"
    if table.most_m is not None:
        told += f" and never more than {table.most_m}"
    if table.history_days is not None:
        told += f", at most {table.history_days} days to learn from"
    if result.methods:
        n_series = result.methods[0].costs["series"].nunique()
        told += f"; {len(result.dates):,} decisions of {n_series} series"
    return told + "."
