"""`forewise decide`, `explain` and `report`: what a policy says of the days to come."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import pandas as pd
import typer
from rich.text import Text

from forewise.cli import screen
from forewise.cli.learn import (
    Current,
    Folder,
    Json,
    Table,
    TimeLimit,
    Window,
    evaluated,
    load,
)
from forewise.cli.screen import escape, interval, note, result, table_of
from forewise.exceptions import InvalidInputError

if TYPE_CHECKING:
    from forewise.explanation import Explanation
    from forewise.planner.policy import PlannerPolicy

Future = Annotated[
    Path | None,
    typer.Option(help="Rows to decide, with all that is known ahead; else, the table's open rows."),
]
_SHOWN = 20  # decisions on the screen


class Engine(StrEnum):
    """Where many files are decided."""

    LOCAL = "local"
    RAY = "ray"
    DASK = "dask"


def decide(
    policy: Folder,
    table: Annotated[
        Path | None,
        typer.Argument(help="The past: CSV, Parquet or Excel. Of contexts, files to decide."),
    ] = None,
    future: Future = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File of the decisions, or folder.")
    ] = None,
    scenarios: Annotated[int | None, typer.Option(min=1, help="Scenarios of each.")] = None,
    seed: Annotated[int, typer.Option(help="The same number, the same decisions.")] = 0,
    json: Json = False,
    engine: Annotated[
        Engine | None, typer.Option(help="Where many files are decided, into a folder.")
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Workers of the engine.")] = 1,
    address: Annotated[
        str | None, typer.Option(help="Of a Ray or Dask cluster; else, workers of this computer.")
    ] = None,
    keep: Annotated[
        str | None, typer.Option(help="Columns that come along, by commas; else, those not used.")
    ] = None,
) -> None:
    """Decide for the days to come, each with its cost and an interval; any number of rows.

    A pattern such as 'data/*.parquet', or --engine, decides files one by one into a folder; called
    again, it goes on where it stopped.
    """
    from forewise import tables
    from forewise.cli.many import decide_many, names_many
    from forewise.cli.stream import decisions

    if engine is not None or names_many(future or table):
        workers = (engine or Engine.LOCAL).value, jobs, address
        decide_many(policy, table, future, output, workers, scenarios, seed, keep, json)
        return
    if output is not None:
        tables.require_writable(output, ".csv", ".parquet", ".xlsx")
    stored = load(policy)
    found = decisions(stored, table, future, n_scenarios=scenarios, random_state=seed)
    if output is None:
        with screen.work("deciding"):
            decided = pd.concat(list(found))
        if json:
            screen.as_json(decided)
        else:
            show_decisions(decided)
        return
    with tables.Writer(output) as writer, screen.work("deciding") as status:
        for piece in found:
            writer.append(piece)
            status.update(f"deciding: {writer.rows:,} rows done")
    if json:
        screen.as_json({"output": str(output), "rows": writer.rows})
    else:
        result(f"{writer.rows:,} rows are in [bold]{escape(str(output))}[/]")
        if writer.rows <= _SHOWN:
            show_decisions(piece)


def explain(
    policy: Folder,
    table: Table,
    future: Future = None,
    row: Annotated[int, typer.Option(min=2, help="Row in the file; the header is row 1.")] = 2,
    json: Json = False,
) -> None:
    """Why a decision is what it is: what drives it, and what would change it."""
    with screen.work("explaining"):
        why = explanation(load(policy), table, future, row)
    if json:
        screen.as_json(why.to_dict())
        return
    if future is not None:
        result(f"[bold]{escape(str(future))}, row {row}[/]\n")
    result(Text(why.text()))


def report(
    policy: Folder,
    table: Table,
    future: Future = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="One page, for a browser.")] = Path(
        "report.html"
    ),
    current: Current = None,
    window: Window = "month",
    time_limit: TimeLimit = None,
) -> None:
    """One self-contained page: what it saves, how sure that is, tomorrow's decisions, and more."""
    from forewise import tables
    from forewise.cli.reading import rows_to_learn_from
    from forewise.cli.stream import decisions
    from forewise.planner.roles import numbers
    from forewise.report import report as write_report

    tables.require_writable(output, ".html", ".htm")
    stored = load(policy)
    decided, why = None, None
    if future is not None:
        with screen.work("deciding"):
            decided = pd.concat(list(decisions(stored, table, future)))
            made = decided[decided[stored.decision_names[0]].notna()]
            if len(made):
                why = explanation(stored, table, future, int(made.index[0]))
    evaluation = evaluated(policy, table, current, window, time_limit)
    with screen.work("drawing the page"):
        frame = rows_to_learn_from(table, stored.roles)
        frame = frame.assign(**{name: numbers(frame[name]) for name in stored.roles.outcome})
        write_report(stored, frame, evaluation, output, decisions=decided, explanation=why)
    result(f"The report is in [bold]{escape(str(output))}[/]: open it in a browser")


def explanation(policy: PlannerPolicy, table: Path, future: Path | None, row: int) -> Explanation:
    """Why one row of a file, or of the table's open rows, is decided as it is."""
    from forewise import tables
    from forewise.cli.stream import about, recent

    rows, first, past = None, None, None
    if future is not None:
        rows = tables.read(future)
        if row not in rows.index:
            raise InvalidInputError(
                f"--row must be a row of {future}, from {rows.index[0]} to {rows.index[-1]}, but "
                f"is {row}"
            )
        rows = rows.loc[[row]]
        if policy.roles.date is not None:
            first = policy.roles.days(rows, "the future", policy.recipe.day_first).min()
    if policy.roles.date is not None or rows is None:
        past = recent(policy, table, first)
    with about(future or table, table):
        why = policy.explain(past, rows)
    # Without --future the table may have several open rows: the first of them.
    return why[0] if isinstance(why, list) else why


def show_decisions(decided: pd.DataFrame) -> None:
    """A table of the first decisions, in 80 columns: what is decided, its cost, how sure."""
    named = [n for n in decided.columns if n.startswith("decision")]
    keys = list(decided.columns[: decided.columns.get_loc(named[0])])
    shown = decided.head(_SHOWN)
    rows = [
        [row, *(values[n] for n in [*keys, *named, "expected_cost"]),
         interval(values["cost_lower"], values["cost_upper"])]
        for row, values in zip(shown.index, shown.to_dict("records"), strict=True)
    ]  # fmt: skip
    names = [n.removeprefix("decision_") for n in named]
    result(table_of(["row", *keys, *names, "cost", "90 % interval"], rows))
    result("  · cost: what is expected. The interval is made to hold 9 of 10 costs; how many")
    result("    it held in the past, `forewise evaluate` and `forewise report` say")
    for text, own in shown[shown["note"] != ""].groupby("note", sort=False):
        many = ", ".join(map(str, own.index))
        result(f"  · row{'s' if len(own) > 1 else ''} {many}: {escape(str(text))}")
    if len(decided) > _SHOWN:
        note(f"the first {_SHOWN} of {len(decided):,} rows; -o orders.csv has all of them")
