"""The command line: `forewise demo`, `forewise bench solver`.

May import: everything.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from forewise.bench import run_solver_bench
from forewise.demo import run_demo
from forewise.exceptions import ForewiseError

app = typer.Typer(
    help="Decisions that are ready for what the data cannot tell.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
bench = typer.Typer(help="Measure forewise against other solvers.", no_args_is_help=True)
app.add_typer(bench, name="bench")


@app.command()
def demo() -> None:
    """Solve the paper's three problems on synthetic scenarios."""
    run_demo(Console())


@bench.command()
def solver(
    output: Annotated[Path, typer.Option(help="Folder for the table, plot and CSV.")] = Path(
        "results/bench"
    ),
    repeats: Annotated[int, typer.Option(min=1, help="Turns of each solver.")] = 5,
    quick: Annotated[bool, typer.Option(help="A tiny version, to try it out.")] = False,
) -> None:
    """Time scenario programs, one thread, against Clarabel, HiGHS, Moreau, qpth, cvxpylayers."""
    run_solver_bench(output, repeats=repeats, quick=quick, console=Console())


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


if __name__ == "__main__":
    main()
