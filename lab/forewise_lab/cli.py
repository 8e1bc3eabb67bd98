"""`forewise-lab demo | run | table | report | report-real | planner | suite | bench | data`."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

import forewise as fw
from forewise import datasets
from forewise.cli import run_app
from forewise_lab import bench as benches
from forewise_lab import report as reports
from forewise_lab import suite as suites
from forewise_lab.datasets import fetch as download
from forewise_lab.experiments import load_settings, read_rows
from forewise_lab.experiments import run as run_experiments
from forewise_lab.experiments.planning import PlannerFit
from forewise_lab.experiments.runner import require_data, run_stages

# What is tracked is published; quick results have a folder of their own, which is not.
_RESULTS, _QUICK = Path("lab/results"), Path("quick")
_OPTIONS = {"no_args_is_help": True, "add_completion": False, "pretty_exceptions_enable": False}

app = typer.Typer(help="The laboratory of forewise: experiments, real cases, benches.", **_OPTIONS)  # type: ignore[arg-type]
bench = typer.Typer(help="Measure forewise, alone and against other solvers.", **_OPTIONS)  # type: ignore[arg-type]
data = typer.Typer(help="Real data sets: which are there, and how to get the rest.", **_OPTIONS)  # type: ignore[arg-type]
suite = typer.Typer(help="Compare predictors on tables, by the cost of decisions.", **_OPTIONS)  # type: ignore[arg-type]
app.add_typer(suite, name="suite")
app.add_typer(bench, name="bench")
app.add_typer(data, name="data")

Quick = Annotated[bool, typer.Option("--quick", help="A tiny version; its numbers mean nothing.")]
Output = Annotated[
    Path | None,
    typer.Option(help="Folder of results; in lab/results by default, in quick with --quick."),
]
DataDir = Annotated[
    Path | None,
    typer.Option(help="Folder with a subfolder for each data set; FOREWISE_DATA by default."),
]
Jobs = Annotated[int, typer.Option(min=1, help="Local processes, one thread each.")]
Inner = Annotated[
    bool,
    typer.Option("--inner", help="Evaluate on held-out training rows, for tuning."),
]


class Form(StrEnum):
    """How a table is written."""

    TEXT = "text"
    MARKDOWN = "markdown"
    LATEX = "latex"


@app.command()
def demo(
    picture: Annotated[Path, typer.Option(help="File of the picture.")] = Path("forewise-demo.png"),
) -> None:
    """Solve the paper's three problems, then learn to decide in six ways; about 3 minutes."""
    # Checked now, and not after minutes.
    if not picture.absolute().parent.is_dir():
        raise fw.exceptions.StorageError(
            f"picture must be in a folder that exists, but is {str(picture)!r}"
        )
    if picture.suffix not in (".png", ".pdf", ".svg"):
        raise fw.exceptions.StorageError(
            f"picture must end in .png, .pdf or .svg, but is {str(picture)!r}"
        )
    from forewise_lab.demo import run_learning_demo, run_solving_demo

    console = Console()
    run_solving_demo(console)
    run_learning_demo(console, picture)


@app.command()
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
    jobs: Jobs = 1,
    ray: Annotated[
        str | None, typer.Option(help="Address of a Ray cluster, or auto: --jobs at a time there.")
    ] = None,
    output: Output = None,
    data_dir: DataDir = None,
    quick: Quick = False,
) -> None:
    """Compute experiments; what is in the results table already is not computed again."""
    settings = load_settings()
    rolling = set(settings.experiment_names(experiments)) <= set(settings.cases)
    summary = run_experiments(
        experiments,
        None if methods is None else methods.split(","),
        None if seeds is None else _seeds(seeds),
        settings=settings,
        output=output or _folder("real" if rolling else "paper", quick),
        map=fw.parallel.Processes(jobs) if ray is None else fw.parallel.RayMap(jobs, ray),
        data_dir=data_dir,
        quick=quick,
    )
    if summary.failed:
        raise typer.Exit(1)  # the reasons have been printed


@app.command()
def table(
    which: Annotated[int, typer.Argument(min=1, max=2, help="1 or 2, as in the paper.")] = 1,
    form: Annotated[Form, typer.Option(help="How to write it.")] = Form.TEXT,
    output: Output = None,
    quick: Quick = False,
) -> None:
    """Print our results beside the paper's: mean, interval over seeds, and whether they differ."""
    rows = reports.gather(read_rows(output or _folder("paper", quick)), quick=quick)
    made = reports.table1(rows) if which == 1 else reports.table2(rows)
    if form is Form.TEXT:
        reports.print_table(made, Console())
    else:
        typer.echo(reports.as_latex(made) if form is Form.LATEX else reports.as_markdown(made))


@app.command()
def report(
    output: Output = None,
    page: Annotated[Path | None, typer.Option(help="The page; report.html in the folder.")] = None,
    policies: Annotated[
        Path | None,
        typer.Option(
            help="Folder of saved NV1 policies to draw, one per subfolder; by default those of "
            "`forewise-lab run nv1-panels`."
        ),
    ] = None,
    machine: Annotated[str | None, typer.Option(help="Where the results were computed.")] = None,
    quick: Quick = False,
) -> None:
    """Make one self-contained HTML page of all results."""
    folder = output or _folder("paper", quick)
    target = page or folder / "report.html"
    rows = reports.gather(read_rows(folder), quick=quick)
    kept = policies or reports.kept_panels(folder)
    reports.write_report(rows, target, policies=kept, machine=machine)
    Console().print(f"The report is [bold]{escape(str(target))}[/]", highlight=False)


@app.command()
def report_real(
    output: Annotated[Path, typer.Option(help="Folder of results.")] = _RESULTS / "real",
    page: Annotated[Path, typer.Option(help="The page; pictures go beside it.")] = Path(
        "docs/does_it_pay.md"
    ),
    remarks: Annotated[
        Path | None,
        typer.Option(help="A Markdown file for the last section; remarks.md beside the rows."),
    ] = None,
) -> None:
    """Make the page "Does it pay?" from the rows of real cases."""
    beside = output / "remarks.md"
    chosen = remarks or (beside if beside.exists() else None)
    reports.write_pay_page(output, page, remarks=chosen)
    Console().print(f"The page is [bold]{escape(str(page))}[/]", highlight=False)


@app.command()
def planner(
    levels: Annotated[
        str | None, typer.Option(help="Service levels to compute, such as 0.1,0.5; all by default.")
    ] = None,
    output: Annotated[Path, typer.Option(help="Folder of results.")] = _RESULTS / "real",
    data_dir: DataDir = None,
) -> None:
    """The planner in the bakery (a), with nothing but the roles of its columns; 10 minutes a level.

    What is in the results table already is not computed again. When all levels are there, the page
    is made: planner.md in the folder.
    """
    case = load_settings().cases["bakery-a"]
    chosen = case.decision.levels if levels is None else [float(part) for part in _names(levels)]
    fits = [PlannerFit("bakery-a", level, case, data_dir=data_dir) for level in chosen]
    require_data(fits)
    summary = run_stages([lambda rows: fits], output, None, progress=True)
    if summary.failed:
        raise typer.Exit(1)
    done = {row for row in read_rows(output)["method"] if str(row).startswith("planner ")}
    if len(done) == len(case.decision.levels):
        page = reports.write_planner_page(output, output / "planner.md")
        Console().print(f"The page is [bold]{escape(str(page))}[/]", highlight=False)


@suite.command("run")
def suite_run(
    methods: Annotated[
        str | None,
        typer.Option(help="Such as forest,bayesian:n_members=8; all with their defaults if none."),
    ] = None,
    tables: Annotated[
        str | None, typer.Option(help="Such as yacht,nv1; all that are here by default.")
    ] = None,
    splits: Annotated[
        str, typer.Option(help="How many, or which: 3, or 0,4. Seeds of nv1, nv2, nvqp, pop.")
    ] = "3",
    cliff: Annotated[
        bool, typer.Option("--cliff", help="Also with every default halved, and doubled.")
    ] = False,
    jobs: Jobs = 1,
    inner: Inner = False,
    output: Output = None,
    data_dir: DataDir = None,
) -> None:
    """Fit methods to splits of tables and decide; what is in the results is not computed again."""
    chosen = None if methods is None else _names(methods)
    if cliff:
        varied = [name for name in chosen or suites.METHODS if name != suites.AUTO]
        chosen = [made for name in varied for made in (name, *suites.cliff_methods(name))]
    numbers = _seeds(splits)
    summary = suites.run_suite(
        chosen,
        None if tables is None else _names(tables),
        range(numbers) if isinstance(numbers, int) else numbers,
        output=output or _folder("suite"),
        map=fw.parallel.Processes(jobs),
        inner=inner,
        data_dir=data_dir,
    )
    if summary.failed:
        raise typer.Exit(1)  # the reasons have been printed


@suite.command("report")
def suite_report(
    output: Output = None,
    page: Annotated[Path | None, typer.Option(help="The page; report.md in the folder.")] = None,
    against: Annotated[
        str, typer.Option(help="Methods to compare with, the first also table by table.")
    ] = "forest,earlier forest,RealMLP",
    inner: Inner = False,
) -> None:
    """Make one page of the suite's results, with a picture beside it."""
    folder = output or _folder("suite")
    target = page or folder / ("inner.md" if inner else "report.md")
    suites.write_suite_page(folder, target, _names(against), inner=inner)
    Console().print(f"The page is [bold]{escape(str(target))}[/]", highlight=False)


@bench.command()
def solver(
    output: Output = None,
    repeats: Annotated[int, typer.Option(min=1, help="Turns of each solver.")] = 5,
    quick: Quick = False,
) -> None:
    """Time scenario programs, one thread, against Clarabel, HiGHS, Moreau, qpth, cvxpylayers."""
    folder = output or _folder("bench", quick)
    benches.run_solver_bench(folder, repeats=repeats, quick=quick, console=Console())


@bench.command()
def smps(
    output: Output = None,
    repeats: Annotated[int, typer.Option(min=1, help="Turns of each solver.")] = 3,
    instances: Annotated[
        str | None, typer.Option(help="Such as plants,ssn; all that are here by default.")
    ] = None,
    peers: Annotated[
        str | None, typer.Option(help="Such as forewise,PIQP; all by default.")
    ] = None,
    data_dir: DataDir = None,
    quick: Quick = False,
) -> None:
    """Time classic two-stage programs against HiGHS, Clarabel, PIQP and Moreau, one thread."""
    benches.run_smps_bench(
        output or _folder("bench", quick),
        repeats,
        quick,
        None if instances is None else _names(instances),
        None if peers is None else _names(peers),
        data_dir,
        Console(),
    )


@bench.command()
def cvxpy(
    output: Output = None,
    repeats: Annotated[int, typer.Option(min=1, help="Turns; cvxpylayers has 3 at most.")] = 15,
    quick: Quick = False,
) -> None:
    """Time problems written in CVXPY, against the built-in ones and against cvxpylayers."""
    benches.run_cvxpy_bench(output or _folder("bench", quick), repeats, Console(), quick=quick)


@bench.command()
def training(
    output: Output = None,
    repeats: Annotated[int, typer.Option(min=1, help="Turns of each kind of step.")] = 30,
) -> None:
    """Time one step of training: combined, decoupled, and by hand in plain torch."""
    benches.run_training_bench(output or _folder("bench"), repeats, Console())


@bench.command()
def deciding(
    output: Output = None,
    contexts: Annotated[int, typer.Option(min=1, help="How many decisions.")] = 1_000_000,
) -> None:
    """Time one call that decides for very many contexts, and take its memory."""
    benches.run_deciding_bench(output or _folder("bench"), contexts, Console())


@bench.command()
def scale(
    what: Annotated[
        str, typer.Argument(help="newsvendor, budget (on engines), fits, scenarios, growth, steps.")
    ],
    output: Output = None,
    size: Annotated[
        int | None, typer.Option(min=1, help="Rows, fits, or values of each demand.")
    ] = None,
    engines: Annotated[
        str | None, typer.Option(help="Of folders, with their workers: local:1,ray:2.")
    ] = None,
) -> None:
    """Measure what grows: decisions on engines, fits on workers, a million scenarios."""
    names = {"newsvendor": "rows", "budget": "rows", "fits": "fits", "scenarios": "values"}
    sizes: dict[str, int | str] = {} if size is None else {names.get(what, "rows"): size}
    if engines is not None:
        sizes["engines"] = engines
    benches.run_scale_bench(what, output or _folder("bench"), Console(), **sizes)


@bench.command()
def planning(
    output: Output = None,
    rows: Annotated[int, typer.Option(min=100, help="Rows of the file that is decided.")] = 100_000,
    time_limit: Annotated[
        float | None, typer.Option(help="Seconds for each planner's choice; none by default.")
    ] = None,
) -> None:
    """Time `forewise decide` from file to file, on one core, by policies of planners."""
    benches.run_planning_bench(output or _folder("bench"), rows, time_limit, Console())


@data.command("list")
def list_command(data_dir: DataDir = None) -> None:
    """List the data sets: which are there, which are missing, and where to get them."""
    console = Console()
    for found in datasets.available(data_dir):
        console.print(str(found), highlight=False, markup=False, soft_wrap=True)


@data.command()
def fetch(
    name: Annotated[str, typer.Argument(help="Of the data set, such as cnnpred.")],
    data_dir: DataDir = None,
) -> None:
    """Download a data set, check it, and put it in its place."""
    console = Console()
    with console.status(f"fetching {name}"):
        folder = download(name, data_dir)
    console.print(f"{name} is in [bold]{escape(str(folder))}[/]", highlight=False)


def main() -> None:
    """Run the command line."""
    run_app(app)


def _folder(name: str, quick: bool = False) -> Path:
    return (_QUICK if quick else _RESULTS) / name


def _names(text: str) -> list[str]:
    """Names between commas; those within parentheses belong to a setting."""
    return [name.strip() for name in re.split(r",(?![^(]*\))", text) if name.strip()]


def _seeds(text: str) -> int | list[int]:
    try:
        numbers = [int(part) for part in text.removesuffix(",").split(",")]
    except ValueError as error:
        raise fw.InvalidInputError(
            f"seeds must be a number such as 5, or a list such as 0,3,4, but is {text!r}"
        ) from error
    if numbers == [0] and "," not in text:
        raise fw.InvalidInputError(
            "seeds must be at least one, but is 0: for seed 0 alone write 0,"
        )
    return numbers if "," in text else numbers[0]
