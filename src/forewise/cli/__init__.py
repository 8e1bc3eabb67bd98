"""The command line."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from forewise import __version__
from forewise.exceptions import ForewiseError, StorageError

HELP = "Contextual stochastic optimisation with learned distributions."
app = typer.Typer(
    help=HELP, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"forewise {__version__}")
        raise typer.Exit


@app.callback(help=HELP)
def common(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Options of all commands."""


@app.command()
def demo(
    picture: Annotated[Path, typer.Option(help="File of the picture.")] = Path("forewise-demo.png"),
) -> None:
    """Solve the paper's three problems, then learn to decide in six ways; about 3 minutes."""
    # Checked now, and not after minutes.
    if not picture.absolute().parent.is_dir():
        raise StorageError(f"picture must be in a folder that exists, but is {str(picture)!r}")
    if picture.suffix not in (".png", ".pdf", ".svg"):
        raise StorageError(f"picture must end in .png, .pdf or .svg, but is {str(picture)!r}")
    # What a command needs is imported when it runs: `--help` and `--version` are for reading.
    from forewise.demo import run_learning_demo, run_solving_demo

    console = Console()
    run_solving_demo(console)
    run_learning_demo(console, picture)


def run_app(app: typer.Typer) -> None:
    """Run a command line; expected errors are one line, without a traceback."""
    try:
        app()
    except (ForewiseError, OSError) as error:
        # As text: brackets of a message, as in forewise[cvxpy], are no markup.
        message = Text.assemble(("error:", "red"), f" {error}")
        Console(stderr=True).print(message, soft_wrap=True)
        sys.exit(1)
    except KeyboardInterrupt:
        Console(stderr=True).print("stopped")
        sys.exit(130)


def main() -> None:
    """Run the command line."""
    run_app(app)
