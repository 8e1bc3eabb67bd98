"""`forewise run | table | report | report-real`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from forewise.distributed import Map, ProcessMap, RayMap, SerialMap
from forewise.exceptions import InvalidInputError
from forewise_lab.experiments import load_settings, read_rows
from forewise_lab.experiments import run as run_experiments
from forewise_lab.report import (
    as_latex,
    as_markdown,
    gather,
    kept_panels,
    print_table,
    table1,
    table2,
    write_pay_page,
    write_report,
)

# What is tracked is published; quick results have a folder of their own, which is not.
_FOLDER, _REAL, _QUICK = Path("lab/results/paper"), Path("lab/results/real"), Path("quick")
Results = Annotated[
    Path | None,
    typer.Option(help="Folder of the results table; results/paper, quick/paper with --quick."),
]
OfQuick = Annotated[
    bool, typer.Option("--quick", help="Of a quick run, whose figures mean nothing.")
]


class Form(StrEnum):
    """How a table is written."""

    TEXT = "text"
    MARKDOWN = "markdown"
    LATEX = "latex"


def run(
    experiments: Annotated[
        list[str], typer.Argument(help="Such as nv1, bakery-b; table1 or real for all of theirs.")
    ],
    methods: Annotated[
        str | None, typer.Option(help="Such as d-bnn,c-bnn; all of the experiment by default.")
    ] = None,
    seeds: Annotated[
        str | None,
        typer.Option(help="How many, or which: 5, or 0,3,4. By default 5 in most, 1 on real data."),
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Local processes, one thread each.")] = 1,
    ray: Annotated[
        str | None, typer.Option(help="Address of a Ray cluster, auto, or local.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            help="Folder; results/paper, or results/real for cases; quick/paper and quick/real "
            "with --quick."
        ),
    ] = None,
    data_dir: Annotated[Path | None, typer.Option(help="Where real data are.")] = None,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="A tiny version of everything; its figures mean nothing."),
    ] = False,
) -> None:
    """Compute experiments; what is in the results table already is not computed again."""
    settings = load_settings()
    rolling = set(settings.experiment_names(experiments)) <= set(settings.cases)
    summary = run_experiments(
        experiments,
        None if methods is None else methods.split(","),
        None if seeds is None else _seeds(seeds),
        settings=settings,
        output=output or _default(_REAL if rolling else _FOLDER, quick),
        map=_map(jobs, ray),
        data_dir=data_dir,
        quick=quick,
    )
    if summary.failed:
        raise typer.Exit(1)  # why they failed has been told


def table(
    which: Annotated[int, typer.Argument(min=1, max=2, help="1 or 2, as in the paper.")] = 1,
    form: Annotated[Form, typer.Option(help="How to write it.")] = Form.TEXT,
    output: Results = None,
    quick: OfQuick = False,
) -> None:
    """Print ours beside the paper's: mean, interval over seeds, and whether they differ."""
    rows = gather(read_rows(output or _default(_FOLDER, quick)), quick=quick)
    made = table1(rows) if which == 1 else table2(rows)
    if form is Form.TEXT:
        print_table(made, Console())
    else:
        typer.echo(as_latex(made) if form is Form.LATEX else as_markdown(made))


def report(
    output: Results = None,
    page: Annotated[Path | None, typer.Option(help="The page; report.html in the folder.")] = None,
    policies: Annotated[
        Path | None,
        typer.Option(
            help="Folder of saved NV1 policies to draw, one per subfolder; by default those that "
            "`forewise run nv1-panels` kept."
        ),
    ] = None,
    machine: Annotated[str | None, typer.Option(help="What the results were made on.")] = None,
    quick: OfQuick = False,
) -> None:
    """Make one self-contained HTML page of all results."""
    folder = output or _default(_FOLDER, quick)
    target = page or folder / "report.html"
    kept = policies or kept_panels(folder)
    rows = gather(read_rows(folder), quick=quick)
    write_report(rows, target, policies=kept, machine=machine)
    Console().print(f"The report is [bold]{target}[/]", highlight=False)


def report_real(
    output: Annotated[Path, typer.Option(help="Folder of the results table.")] = _REAL,
    page: Annotated[Path, typer.Option(help="The page; pictures go beside it.")] = Path(
        "docs/does_it_pay.md"
    ),
    remarks: Annotated[
        Path | None,
        typer.Option(
            help="A Markdown file that becomes the last section; by default remarks.md beside the "
            "rows, if there is one."
        ),
    ] = None,
) -> None:
    """Make the page "Does it pay?" from the rows of real cases."""
    beside = output / "remarks.md"
    write_pay_page(output, page, remarks=remarks or (beside if beside.exists() else None))
    Console().print(f"The page is [bold]{page}[/]", highlight=False)


def _default(folder: Path, quick: bool) -> Path:
    """Where results go and are read from if nobody says where."""
    return _QUICK / folder.name if quick else folder


def _seeds(text: str) -> int | list[int]:
    try:
        numbers = [int(part) for part in text.removesuffix(",").split(",")]
    except ValueError as error:
        raise InvalidInputError(
            f"seeds must be a number such as 5, or a list such as 0,3,4, but is {text!r}"
        ) from error
    if numbers == [0] and "," not in text:
        raise InvalidInputError("seeds must be at least one, but is 0: for seed 0 alone write 0,")
    return numbers if "," in text else numbers[0]


def _map(jobs: int, ray: str | None) -> Map:
    if ray is not None:
        return RayMap(None if ray == "local" else ray)
    return ProcessMap(jobs) if jobs > 1 else SerialMap()
