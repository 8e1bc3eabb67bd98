"""`forewise init`: from a table to a plan, by looking at it and asking a little."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from forewise.cli.screen import escape, note, result, table_of
from forewise.exceptions import InvalidInputError


def init(
    table: Annotated[Path, typer.Argument(help="CSV, Parquet or Excel, with a row per day.")],
    template: Annotated[
        str | None,
        typer.Option(help="newsvendor, budget, portfolio, schedule or cvxpy; asks nothing."),
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The plan.")] = Path("plan.toml"),
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Take every proposal.")] = False,
    time_limit: Annotated[
        float | None, typer.Option(min=0.1, help="Seconds for comparing methods.")
    ] = None,
    force: Annotated[bool, typer.Option(help="Write over a plan that is there.")] = False,
) -> None:
    """Look at a table, ask what is not clear, and write a commented plan."""
    from forewise import tables
    from forewise.cli.proposal import propose
    from forewise.cli.templates import TEMPLATES
    from forewise.cli.writing import OWN_PROBLEM, plan_text
    from forewise.storage import write_file

    kind = template or "newsvendor"
    if kind not in TEMPLATES:
        raise InvalidInputError(f"--template must be {', '.join(TEMPLATES)}, but is {kind!r}")
    module = output.with_name("problem.py")
    for file in [output, *([module] if kind == "cvxpy" else [])]:
        if file.exists() and not force:
            raise InvalidInputError(
                f"{file} exists already: --force writes over it, -o another.toml beside it"
            )
    tables.require_writable(output, ".toml")
    asked = template is None and not yes and _watched()
    rows = next(tables.chunks(table))
    proposal = propose(rows, TEMPLATES[kind].several)
    refused = [name for name, made in proposal.kinds.items() if made == "refused"]
    if not proposal.outcome:
        raise InvalidInputError(
            f"{table} must have a column of numbers to decide about, but has none: its columns are "
            + ", ".join(f"{name} ({kind})" for name, kind in proposal.kinds.items())
            + "".join(f"; {note}" for name, note in proposal.notes.items() if name in refused)
        )
    more = " or more" if len(rows) == 100_000 else ""
    result(f"[bold]{escape(str(table))}[/]: {len(rows):,}{more} rows, {rows.shape[1]} columns")
    values: dict[str, Any] = {}
    horizon = 1
    if asked:
        values, horizon = _ask(proposal)
    if kind == "portfolio":
        from forewise.planner.roles import numbers

        returns = [float(f"{numbers(rows[n]).mean():.4g}") for n in proposal.outcome]
        values = {"expected_return": returns}
    shown = [
        (name, made, proposal.role(name) or "[dim]-[/]", escape(proposal.notes[name]))
        for name, made in proposal.kinds.items()
    ]
    result(table_of(["column", "what it is", "role", ""], shown))
    if proposal.date is None:
        note("no column of days was found: rows are taken to be in no order")
    text = plan_text(proposal, kind, values, str(table), horizon, time_limit)
    write_file(output, text.encode())
    result(f"Wrote [bold]{escape(str(output))}[/]: correct what is wrong there, then")
    own = ""
    if kind == "cvxpy":
        write_file(module, OWN_PROBLEM.format(module="problem", n=len(proposal.outcome)).encode())
        result(f"Wrote [bold]{escape(str(module))}[/], an example of a problem in Python")
        own = " --problem problem:problem"
    result(f"  [cyan]forewise fit {table} --plan {output}{own} -o policy[/]")


def _watched() -> bool:
    """Whether somebody can answer."""
    return sys.stdin.isatty()


def _ask(proposal: Any) -> tuple[dict[str, float], int]:
    """Put the roles right by a few questions; the problem's costs and the horizon."""
    names = list(proposal.kinds)

    def columns(text: str) -> list[str]:
        chosen = [] if text.strip() in ("", "none") else [n.strip() for n in text.split(",")]
        unknown = [name for name in chosen if name not in names]
        if unknown:
            raise typer.BadParameter(f"there is no column {unknown[0]!r}: {', '.join(names)}")
        return chosen

    def asked(question: str, default: list[str]) -> list[str]:
        text = typer.prompt(question, ", ".join(default) or "none", value_proc=_checked(columns))
        return columns(text)

    result("Enter takes what stands in brackets; several columns with commas between.")
    proposal.outcome = asked("What is uncertain (the outcome)", proposal.outcome)
    if proposal.date is not None:
        proposal.series = asked("Which columns tell series apart", proposal.series)
        known = [n for n in proposal.known if n not in [*proposal.outcome, *proposal.series]]
        proposal.known = asked("Which are known before the day is decided", known)
    costs = {
        "shortage": typer.prompt("What does a unit too few cost", 3.0),
        "excess": typer.prompt("What does a unit too many cost", 1.0),
    }
    horizon = 1
    if proposal.date is not None:
        horizon = typer.prompt("How many days ahead is it decided", 1)
    return costs, horizon


def _checked(read: Callable[[str], Any]) -> Callable[[Any], str]:
    def check(text: Any) -> str:
        read(str(text))
        return str(text)

    return check
