"""The command line: `forewise demo`, `forewise bench solver`.

May import: everything.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from forewise.bench import run_deciding_bench, run_solver_bench, run_training_bench
from forewise.demo import run_learning_demo, run_solving_demo
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
def demo(
    picture: Annotated[Path, typer.Option(help="Where the picture goes.")] = Path(
        "forewise-demo.png"
    ),
) -> None:
    """Solve the paper's three problems, then learn to decide in six ways; about 3 minutes."""
    console = Console()
    run_solving_demo(console)
    run_learning_demo(console, picture)


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


@bench.command()
def training(
    output: Annotated[Path, typer.Option(help="Folder for what was measured.")] = Path(
        "results/bench"
    ),
    repeats: Annotated[int, typer.Option(min=1, help="Turns of each kind of step.")] = 30,
) -> None:
    """Time one step of training: combined, decoupled, and by hand in plain torch."""
    output.mkdir(parents=True, exist_ok=True)
    run_training_bench(output, repeats, Console())


@bench.command()
def decide(
    output: Annotated[Path, typer.Option(help="Folder for what was measured.")] = Path(
        "results/bench"
    ),
    contexts: Annotated[int, typer.Option(min=1, help="How many decisions.")] = 1_000_000,
) -> None:
    """Time one call that decides for very many contexts, and take its memory."""
    output.mkdir(parents=True, exist_ok=True)
    run_deciding_bench(output, contexts, Console())


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
