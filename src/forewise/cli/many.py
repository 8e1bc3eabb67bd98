"""`forewise decide` for many files: parts of a folder, on an engine."""

from __future__ import annotations

from pathlib import Path

import typer

from forewise.cli import screen
from forewise.cli.screen import escape, note, result
from forewise.exceptions import InvalidInputError


def names_many(rows: Path | None) -> bool:
    """Whether a pattern or a folder is named, rather than one file."""
    return rows is not None and (rows.is_dir() or any(sign in str(rows) for sign in "*?["))


def decide_many(
    policy: Path,
    table: Path | None,
    future: Path | None,
    output: Path | None,
    workers: tuple[str, int, str | None],
    scenarios: int | None,
    seed: int,
    keep: str | None,
    json: bool,
) -> None:
    """Decide files into a folder, and say what became of them."""
    from forewise.bulk import decide_files
    from forewise.bulk.engines import ENGINES

    inputs, past = (table, None) if future is None else (future, table)
    if inputs is None or output is None:
        missing = "the files to decide" if inputs is None else "their folder, -o out"
        raise InvalidInputError(f"many files are decided into a folder: name {missing}")
    name, jobs, address = workers
    with screen.work("deciding") as status:
        summary = decide_files(
            policy,
            inputs,
            output,
            past=past,
            engine=ENGINES[name](jobs, address),
            n_scenarios=scenarios,
            random_state=seed,
            keep=None if keep is None else [part.strip() for part in keep.split(",") if part],
            watch=lambda so_far: status.update(f"deciding: {so_far.done:,} files done"),
        )
    for text in summary.notes:
        note(text)
    if json:
        screen.as_json({"output": str(output)} | vars(summary))
    else:
        said = f"{summary.rows:,} rows are in [bold]{escape(str(output))}[/]"
        result(f"{said}: {summary.done:,} files decided now, {summary.skipped:,} before")
        if summary.failed:
            result(f"  · {summary.failed:,} rows have no decision")
    for text in summary.errors.values():
        screen.error(text)
    if summary.errors:
        raise typer.Exit(1)
