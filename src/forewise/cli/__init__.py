"""The command line, one module per group of commands. May import: everything."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from forewise.cli.bench import bench
from forewise.cli.data import data
from forewise.cli.experiments import report, report_real, run, table
from forewise.demo import run_learning_demo, run_solving_demo
from forewise.exceptions import ForewiseError

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


@app.command()
def demo(
    picture: Annotated[Path, typer.Option(help="Where the picture goes.")] = Path(
        "forewise-demo.png"
    ),
) -> None:
    """Solve the paper's three problems, then learn to decide in six ways; about 3 minutes."""
    console = Console()
    run_solving_demo(console)
    run_learning_demo(console, picture)


def main() -> None:
    """Run the command line; errors that forewise foresees are one line, without a traceback."""
    try:
        app()
    except ForewiseError as error:
        Console(stderr=True).print(f"[red]error:[/] {error}", highlight=False)
        sys.exit(1)
    except KeyboardInterrupt:
        Console(stderr=True).print("stopped")
        sys.exit(130)
