"""The command line, one module per group of commands. May import: everything."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from forewise import __version__
from forewise.cli.bench import bench
from forewise.cli.data import data
from forewise.cli.experiments import report, report_real, run, table
from forewise.demo import run_learning_demo, run_solving_demo
from forewise.exceptions import ForewiseError, StorageError

app = typer.Typer(
    help="Decisions that are ready for what the data cannot tell.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for command in (run, table, report, report_real):
    app.command()(command)
app.add_typer(bench, name="bench")
app.add_typer(data, name="data")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"forewise {__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Say which it is."),
    ] = False,
) -> None:
    """Decisions that are ready for what the data cannot tell."""


@app.command()
def demo(
    picture: Annotated[Path, typer.Option(help="Where the picture goes.")] = Path(
        "forewise-demo.png"
    ),
) -> None:
    """Solve the paper's three problems, then learn to decide in six ways; about 3 minutes."""
    if not picture.absolute().parent.is_dir():  # to say so now, and not after minutes
        raise StorageError(f"picture must be in a folder that exists, but is {str(picture)!r}")
    console = Console()
    run_solving_demo(console)
    run_learning_demo(console, picture)


def main() -> None:
    """Run the command line; errors that forewise foresees are one line, without a traceback."""
    try:
        app()
    except ForewiseError as error:
        # As it is: brackets of a message, as in forewise[cvxpy], are no markup.
        told = Text.assemble(("error:", "red"), f" {error}")
        Console(stderr=True).print(told, soft_wrap=True)
        sys.exit(1)
    except KeyboardInterrupt:
        Console(stderr=True).print("stopped")
        sys.exit(130)
