"""`forewise-lab demo | run | table | report | report-real | planner | suite | bench | data`."""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from typer import Option

import forewise as fw
from forewise.cli import run_app
from forewise_lab import demo as demonstration
from forewise_lab import suite as suites
from forewise_lab.bench import cvxpy_bench, learning
from forewise_lab.bench import planning as planning_bench
from forewise_lab.bench import scale as scale_bench
from forewise_lab.bench import solver as solver_bench
from forewise_lab.bench.smps import run as smps_bench
from forewise_lab.datasets.fetching import fetch as download
from forewise_lab.experiments.configuration import load_settings
from forewise_lab.experiments.planning import PlannerFit
from forewise_lab.experiments.rows import read_rows
from forewise_lab.experiments.runner import RunSummary, run_works
from forewise_lab.experiments.runner import run as run_experiments
from forewise_lab.report import figures, page, pay, planned, rendering, results, tables
from forewise_lab.suite.methods import AUTO, METHODS, cliff_methods
from forewise_lab.suite.page import write_suite_page

# What is tracked is published; quick results have a folder of their own, which is not.
_RESULTS, _QUICK = Path("lab/results"), Path("quick")


def _app(text: str) -> typer.Typer:
    return typer.Typer(
        help=text, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False
    )


app = _app("The laboratory of forewise: experiments, real cases, benches.")
bench = _app("Measure forewise, alone and against other solvers.")
data = _app("Real data sets: which are there, and how to get the rest.")
suite = _app("Compare predictors on tables, by the cost of decisions.")
for name, part in {"suite": suite, "bench": bench, "data": data}.items():
    app.add_typer(part, name=name)


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


def _optional(text: str | None, read: Callable[[str], Any] = _names) -> Any:
    return None if text is None else read(text)


def _folder(name: str, quick: bool = False) -> Path:
    return (_QUICK if quick else _RESULTS) / name


def _end(summary: RunSummary) -> None:
    if summary.failed:
        raise typer.Exit(1)  # the reasons have been printed


def _say(what: str, place: Path) -> None:
    Console().print(f"{what} [bold]{escape(str(place))}[/]", highlight=False)


Quick = Annotated[bool, Option("--quick", help="A tiny version; its numbers mean nothing.")]
Output = Annotated[
    Path | None,
    Option(help="Folder of results; in lab/results by default, in quick with --quick."),
]
DataDir = Annotated[
    Path | None, Option(help="Folder with a subfolder for each data set; FOREWISE_DATA by default.")
]
Jobs = Annotated[int, Option(min=1, help="Local processes, one thread each.")]
Inner = Annotated[bool, Option("--inner", help="Evaluate on held-out training rows, for tuning.")]
Page = Annotated[Path | None, Option(help="The page; report.html or .md in the folder.")]
Repeats = Annotated[int, Option(min=1, help="Turns of each; cvxpylayers has 3 at most.")]


class Form(StrEnum):
    """How a table is written."""

    TEXT = "text"
    MARKDOWN = "markdown"
    LATEX = "latex"


@app.command()
def demo(
    picture: Annotated[Path, Option(help="File of the picture.")] = Path("forewise-demo.png"),
) -> None:
    """Solve the paper's three problems, then learn to decide in six ways; about 3 minutes."""
    # Checked now, and not after minutes.
    for wanted, met in {
        "be in a folder that exists": picture.absolute().parent.is_dir(),
        "end in .png, .pdf or .svg": picture.suffix in (".png", ".pdf", ".svg"),
    }.items():
        if not met:
            raise fw.exceptions.StorageError(f"picture must {wanted}, but is {str(picture)!r}")
    demonstration.run_solving_demo(Console())
    demonstration.run_learning_demo(Console(), picture)


@app.command()
def run(
    experiments: Annotated[
        list[str], typer.Argument(help="Such as nv1, bakery-b; table1 or real for all of theirs.")
    ],
    methods: Annotated[
        str | None, Option(help="Such as d-bnn,c-bnn; all of the experiment by default.")
    ] = None,
    seeds: Annotated[
        str | None,
        Option(help="How many, or which: 5, or 0,3,4. By default 5 in most, 1 on real data."),
    ] = None,
    jobs: Jobs = 1,
    ray: Annotated[
        str | None, Option(help="Address of a Ray cluster, or auto: --jobs at a time there.")
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
        _optional(methods),
        _optional(seeds, _seeds),
        settings=settings,
        output=output or _folder("real" if rolling else "paper", quick),
        map=fw.parallel.Processes(jobs) if ray is None else fw.parallel.RayMap(jobs, ray),
        data_dir=data_dir,
        quick=quick,
    )
    _end(summary)


@app.command()
def table(
    which: Annotated[int, typer.Argument(min=1, max=2, help="1 or 2, as in the paper.")] = 1,
    form: Annotated[Form, Option(help="How to write it.")] = Form.TEXT,
    output: Output = None,
    quick: Quick = False,
) -> None:
    """Print our results beside the paper's: mean, interval over seeds, and whether they differ."""
    rows = results.gather(read_rows(output or _folder("paper", quick)), quick=quick)
    made = tables.table1(rows) if which == 1 else tables.table2(rows)
    if form is Form.TEXT:
        rendering.print_table(made, Console())
    else:
        as_text = rendering.as_latex if form is Form.LATEX else rendering.as_markdown
        typer.echo(as_text(made))


@app.command()
def report(
    output: Output = None,
    page_file: Annotated[Path | None, Option("--page", help="report.html in the folder.")] = None,
    policies: Annotated[
        Path | None,
        Option(
            help="Folder of saved NV1 policies to draw, one per subfolder; by default those of "
            "`forewise-lab run nv1-panels`."
        ),
    ] = None,
    machine: Annotated[str | None, Option(help="Where the results were computed.")] = None,
    quick: Quick = False,
) -> None:
    """Make one self-contained HTML page of all results."""
    folder = output or _folder("paper", quick)
    target = page_file or folder / "report.html"
    rows = results.gather(read_rows(folder), quick=quick)
    kept = policies or figures.kept_panels(folder)
    page.write_report(rows, target, policies=kept, machine=machine)
    _say("The report is", target)


@app.command()
def report_real(
    output: Annotated[Path, Option(help="Folder of results.")] = _RESULTS / "real",
    page: Annotated[Path, Option(help="The page; pictures go beside it.")] = Path(
        "docs/does_it_pay.md"
    ),
    remarks: Annotated[
        Path | None,
        Option(help="A Markdown file for the last section; remarks.md beside the rows."),
    ] = None,
) -> None:
    """Make the page "Does it pay?" from the rows of real cases."""
    beside = output / "remarks.md"
    pay.write_pay_page(output, page, remarks=remarks or (beside if beside.exists() else None))
    _say("The page is", page)


@app.command()
def planner(
    levels: Annotated[
        str | None, Option(help="Service levels to compute, such as 0.1,0.5; all by default.")
    ] = None,
    output: Annotated[Path, Option(help="Folder of results.")] = _RESULTS / "real",
    data_dir: DataDir = None,
) -> None:
    """The planner in the bakery (a), with nothing but the roles of its columns; 10 minutes a level.

    What is in the results table already is not computed again. When all levels are there, the page
    is made: planner.md in the folder.
    """
    case = load_settings().cases["bakery-a"]
    chosen = case.decision.levels if levels is None else [float(part) for part in _names(levels)]
    fits = [PlannerFit("bakery-a", level, case, data_dir=data_dir) for level in chosen]
    _end(run_works(fits, output, None, progress=True))
    done = {row for row in read_rows(output)["method"] if str(row).startswith("planner ")}
    if len(done) == len(case.decision.levels):
        _say("The page is", planned.write_planner_page(output, output / "planner.md"))


@suite.command("run")
def suite_run(
    methods: Annotated[
        str | None,
        Option(help="Such as forest,bayesian:n_members=8; all with their defaults if none."),
    ] = None,
    tables: Annotated[
        str | None, Option(help="Such as yacht,nv1; all that are here by default.")
    ] = None,
    splits: Annotated[
        str, Option(help="How many, or which: 3, or 0,4. Seeds of nv1, nv2, nvqp, pop.")
    ] = "3",
    cliff: Annotated[
        bool, Option("--cliff", help="Also with every default halved, and doubled.")
    ] = False,
    jobs: Jobs = 1,
    inner: Inner = False,
    output: Output = None,
    data_dir: DataDir = None,
) -> None:
    """Fit methods to splits of tables and decide; what is in the results is not computed again."""
    chosen = _optional(methods)
    if cliff:
        varied = [name for name in chosen or METHODS if name != AUTO]
        chosen = [made for name in varied for made in (name, *cliff_methods(name))]
    numbers = _seeds(splits)
    summary = suites.run_suite(
        chosen,
        _optional(tables),
        range(numbers) if isinstance(numbers, int) else numbers,
        output=output or _folder("suite"),
        map=fw.parallel.Processes(jobs),
        inner=inner,
        data_dir=data_dir,
    )
    _end(summary)


@suite.command("report")
def suite_report(
    output: Output = None,
    page: Page = None,
    against: Annotated[
        str, Option(help="Methods to compare with, the first also table by table.")
    ] = "forest,earlier forest,RealMLP",
    inner: Inner = False,
) -> None:
    """Make one page of the suite's results, with a picture beside it."""
    folder = output or _folder("suite")
    target = page or folder / ("inner.md" if inner else "report.md")
    write_suite_page(folder, target, _names(against), inner=inner)
    _say("The page is", target)


@bench.command()
def solver(output: Output = None, repeats: Repeats = 5, quick: Quick = False) -> None:
    """Time scenario programs, one thread, against Clarabel, HiGHS, Moreau, qpth, cvxpylayers."""
    folder = output or _folder("bench", quick)
    solver_bench.run_solver_bench(folder, repeats=repeats, quick=quick, console=Console())


@bench.command()
def smps(
    output: Output = None,
    repeats: Repeats = 3,
    instances: Annotated[
        str | None, Option(help="Such as plants,ssn; all that are here by default.")
    ] = None,
    peers: Annotated[str | None, Option(help="Such as forewise,PIQP; all by default.")] = None,
    data_dir: DataDir = None,
    quick: Quick = False,
) -> None:
    """Time classic two-stage programs against HiGHS, Clarabel, PIQP and Moreau, one thread."""
    chosen = _optional(instances), _optional(peers)
    folder = output or _folder("bench", quick)
    smps_bench.run_smps_bench(folder, repeats, quick, *chosen, data_dir, Console())


@bench.command()
def cvxpy(output: Output = None, repeats: Repeats = 15, quick: Quick = False) -> None:
    """Time problems written in CVXPY, against the built-in ones and against cvxpylayers."""
    cvxpy_bench.run_cvxpy_bench(output or _folder("bench", quick), repeats, Console(), quick=quick)


@bench.command()
def training(output: Output = None, repeats: Repeats = 30) -> None:
    """Time one step of training: combined, decoupled, and by hand in plain torch."""
    learning.run_training_bench(output or _folder("bench"), repeats, Console())


@bench.command()
def deciding(
    output: Output = None,
    contexts: Annotated[int, Option(min=1, help="How many decisions.")] = 1_000_000,
) -> None:
    """Time one call that decides for very many contexts, and take its memory."""
    learning.run_deciding_bench(output or _folder("bench"), contexts, Console())


@bench.command()
def planning(
    output: Output = None,
    rows: Annotated[int, Option(min=100, help="Rows of the file that is decided.")] = 100_000,
    time_limit: Annotated[
        float | None, Option(help="Seconds for each planner's choice; none by default.")
    ] = None,
) -> None:
    """Time `forewise decide` from file to file, on one core, by policies of planners."""
    planning_bench.run_planning_bench(output or _folder("bench"), rows, time_limit, Console())


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
    scale_bench.run_scale_bench(what, output or _folder("bench"), Console(), **sizes)


@data.command("list")
def list_command(data_dir: DataDir = None) -> None:
    """List the data sets: which are there, which are missing, and where to get them."""
    for found in fw.datasets.available(data_dir):
        Console().print(str(found), highlight=False, markup=False, soft_wrap=True)


@data.command()
def fetch(
    name: Annotated[str, typer.Argument(help="Of the data set, such as cnnpred.")],
    data_dir: DataDir = None,
) -> None:
    """Download a data set, check it, and put it in its place."""
    with Console().status(f"fetching {name}"):
        folder = download(name, data_dir)
    _say(f"{name} is in", folder)


def main() -> None:
    """Run the command line."""
    run_app(app)
