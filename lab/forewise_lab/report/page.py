"""The report: one HTML file with everything in it, readable offline and without scripts."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

import forewise as fw
from forewise_lab.experiments.configuration import Settings
from forewise_lab.machine import processor, write_whole
from forewise_lab.report import claims, figures, paper, rendering
from forewise_lab.report.results import Results, failed_fits, gather, missing_fits
from forewise_lab.report.tables import Table, table1, table2

_TEMPLATES = Path(__file__).parent / "templates"
# Section and title of the charts of fair regret.
_CURVES = {
    paper.OVER_SCENARIOS: ("scenarios", "FR against M"),
    paper.OVER_ROWS: ("rows", "FR against training rows"),
}
_FIT = ["experiment", "method", "seed", "n_train", "m_train"]


class Fact(NamedTuple):
    """A line of the page's head."""

    name: str
    value: str


def render_report(
    rows: pd.DataFrame | Results,
    settings: Settings | None = None,
    *,
    policies: str | os.PathLike[str] | None = None,
    machine: str | None = None,
    made_at: datetime | None = None,
) -> str:
    """The report as HTML.

    `rows` come from `read_rows`, `settings` are the shipped ones by default. `policies` is a folder
    of saved NV1 policies, one subfolder each; `machine` says where the rows were computed, this
    machine by default.
    """
    results = gather(rows, settings)
    checked = claims.check_claims(results)
    first, second = _table(table1, results), _table(table2, results)
    shown = first.notes if first else results.warnings
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        # Every text is escaped, whatever the template's file is called.
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("report.html.j2").render(
        warnings=results.warnings,
        facts=_facts(results, machine or _this_machine(), made_at or datetime.now(UTC)),
        glance=_glance(results, [t for t in (first, second) if t], checked),
        tables=[
            ("table-1", "Table 1", first, _new_notes(first, results.warnings)),
            ("table-2", "Table 2", second, _new_notes(second, shown)),
        ],
        curves=[
            (*head, figures.over(results, experiment), experiment)
            for experiment, head in _CURVES.items()
        ],
        panels=None if policies is None else figures.nv1_panels(policies),
        coverages=figures.coverages(results),
        times=figures.times(results),
        claims=checked,
        missing=missing_fits(results),
        failed=failed_fits(results),
        superseded=results.superseded,
        formats=rendering,
        style=Markup((_TEMPLATES / "style.css").read_text(encoding="utf-8")),
    )


def write_report(
    rows: pd.DataFrame | Results,
    path: str | os.PathLike[str],
    settings: Settings | None = None,
    **options: Any,
) -> Path:
    """Write the report to a file, atomically; the parameters are those of `render_report`."""
    text = render_report(rows, settings, **options)
    place = Path(path)
    try:
        write_whole(place, text)
    except OSError as error:
        advice = "" if place.parent.is_dir() else "; choose a folder that exists"
        raise fw.exceptions.StorageError(
            f"cannot write {str(place)!r}: {error.strerror}{advice}"
        ) from error
    return place


def _table(make: Callable[[Results], Table], results: Results) -> Table | None:
    try:
        return make(results)
    except fw.InvalidInputError:
        return None  # the page says that there are no rows for it


def _new_notes(table: Table | None, shown: tuple[str, ...]) -> tuple[str, ...]:
    """The notes that are not on the page yet."""
    return tuple(note for note in (table.notes if table else ()) if note not in shown)


def _facts(results: Results, machine: str, made_at: datetime) -> list[Fact]:
    rows = results.rows
    versions = [
        f"{package} {', '.join(sorted(found))}"
        for package in ("forewise", "torch", "numpy", "python")
        if (found := {str(version) for version in rows[package].dropna()})
    ]
    finished = sorted(str(moment) for moment in rows["finished_at"].dropna() if moment)
    span = sorted({moment[:10] for moment in (*finished[:1], *finished[-1:])})
    order = {name: place for place, name in enumerate(paper.TABLE1)}
    names = sorted(results.experiments, key=lambda name: order.get(name, len(order)))
    return [
        Fact("Experiments", "; ".join(results.experiments[name].title for name in names)),
        Fact("Computed", " to ".join(span) or "unknown"),
        Fact("Revision", _revisions(rows) or "unknown"),
        Fact("Versions", ", ".join(versions) or "unknown"),
        Fact("Machine", machine),
        Fact("Report made", f"{made_at:%Y-%m-%d %H:%M} {made_at.tzname() or ''}".strip()),
    ]


def _revisions(rows: pd.DataFrame) -> str:
    """Short revisions, the most frequent first; “changed” where the sources had changes."""
    known = rows[rows["revision"].notna()]
    counts = known.groupby("revision", sort=False)["dirty"].agg(["size", "any"])
    counts = counts.sort_values("size", ascending=False)
    found = [
        f"{str(revision)[:10]}{' (changed)' if dirty else ''}"
        for revision, dirty in zip(counts.index, counts["any"], strict=True)
    ]
    shown = ", ".join(found[:4])
    return shown + (f" and {len(found) - 4} more" if len(found) > 4 else "")


def _glance(results: Results, tables: list[Table], checked: tuple[claims.Claim, ...]) -> list[Fact]:
    fits = results.rows.drop_duplicates(_FIT)
    cells = [cell for table in tables for cell in table.cells]
    verdicts = [cell.comparison.verdict for cell in cells if cell.comparison is not None]
    found = [claim.verdict for claim in checked]
    held, tested = found.count(claims.HOLDS), len(found) - found.count(claims.ABSENT)
    seeds = fits.groupby(["experiment", "method"])["seed"].nunique()
    spread = sorted({int(seeds.min()), int(seeds.max())})
    compared = " · ".join(
        f"{sign} {verdicts.count(verdict)}" for verdict, sign in rendering.SIGNS.items()
    )
    return [
        Fact("fits", f"{len(fits):,}"),
        Fact("seeds each", " to ".join(map(str, spread))),
        Fact("of fitting, one core", rendering.seconds(float(fits["seconds"].fillna(0).sum()))),
        Fact("better, worse, same as the paper", compared),
        Fact("claims of the paper hold throughout", f"{held} of {tested}"),
    ]


def _this_machine() -> str:
    return f"{processor()}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}"
