"""`forewise bench solver | training | decide | cvxpy`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from forewise_lab.bench import (
    run_cvxpy_bench,
    run_deciding_bench,
    run_solver_bench,
    run_training_bench,
)

# What is tracked is published; quick results have a folder of their own, which is not.
_FOLDER, _QUICK = Path("lab/results/bench"), Path("quick/bench")
Output = Annotated[Path, typer.Option(help="Folder for what was measured.")]
OutputOrQuick = Annotated[
    Path | None,
    typer.Option(help="Folder for what was measured; lab/results/bench, quick/bench with --quick."),
]
Quick = Annotated[bool, typer.Option("--quick", help="A tiny version, to try it out.")]

bench = typer.Typer(help="Measure forewise, alone and against other solvers.", no_args_is_help=True)


@bench.command()
def solver(
    output: OutputOrQuick = None,
    repeats: Annotated[int, typer.Option(min=1, help="Turns of each solver.")] = 5,
    quick: Quick = False,
) -> None:
    """Time scenario programs, one thread, against Clarabel, HiGHS, Moreau, qpth, cvxpylayers."""
    folder = output or (_QUICK if quick else _FOLDER)
    run_solver_bench(folder, repeats=repeats, quick=quick, console=Console())


@bench.command()
def training(
    output: Output = _FOLDER,
    repeats: Annotated[int, typer.Option(min=1, help="Turns of each kind of step.")] = 30,
) -> None:
    """Time one step of training: combined, decoupled, and by hand in plain torch."""
    output.mkdir(parents=True, exist_ok=True)
    run_training_bench(output, repeats, Console())


@bench.command()
def decide(
    output: Output = _FOLDER,
    contexts: Annotated[int, typer.Option(min=1, help="How many decisions.")] = 1_000_000,
) -> None:
    """Time one call that decides for very many contexts, and take its memory."""
    output.mkdir(parents=True, exist_ok=True)
    run_deciding_bench(output, contexts, Console())


@bench.command()
def cvxpy(
    output: OutputOrQuick = None,
    repeats: Annotated[int, typer.Option(min=1, help="Turns; cvxpylayers has 3 at most.")] = 15,
    quick: Quick = False,
) -> None:
    """Time problems written in CVXPY, against the built-in ones and against cvxpylayers."""
    folder = output or (_QUICK if quick else _FOLDER)
    run_cvxpy_bench(folder, repeats, Console(), quick=quick)
