"""`forewise tune`: the settings of one predictor by what its decisions cost, then a policy."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from forewise.cli import screen
from forewise.cli.learn import PLAN, Json, Table, planner_of
from forewise.cli.screen import escape, result, table_of
from forewise.exceptions import InvalidInputError, MissingDependencyError

_SHOWN = 5  # trials on the screen


class Kind(StrEnum):
    """What is tuned."""

    BOOSTING = "boosting"
    FOREST = "forest"
    NEIGHBOURS = "neighbours"
    NETWORK = "network"


def tune(
    table: Table,
    plan: Annotated[Path, typer.Option(help="Written by `forewise init`.")] = Path(PLAN),
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of the policy.")] = Path(
        "policy"
    ),
    predictor: Annotated[Kind, typer.Option(help="What is tuned.")] = Kind.BOOSTING,
    trials: Annotated[int, typer.Option(min=1, help="Of the whole search.")] = 50,
    storage: Annotated[
        Path | None, typer.Option(help="File of the search; a killed one goes on, others join.")
    ] = None,
    picture: Annotated[
        Path | None, typer.Option(help="File for a picture of the search: .svg or .png.")
    ] = None,
    problem: Annotated[
        str | None, typer.Option(help="A problem in your code: package.module:name.")
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Workers.")] = 1,
    ray: Annotated[
        str | None, typer.Option(help="Address of a Ray cluster, auto, or local for one of here.")
    ] = None,
    json: Json = False,
) -> None:
    """Search the settings of a predictor by the cost of its decisions; learn with the best."""
    from forewise import tables
    from forewise.cli.plan import read_plan
    from forewise.cli.stream import about
    from forewise.cli.templates import own_problem
    from forewise.parallel import Processes, RayMap
    from forewise.storage import write_file
    from forewise.tuning import Search, TunedLearner

    if picture is not None:
        tables.require_writable(picture, ".svg", ".png")
        _require_figures()
    read = read_plan(plan)
    made = read.made_problem(None if problem is None else own_problem(problem))
    with screen.work(f"reading {table}"):
        frame = tables.read(table)
    read.require_columns(frame, table)
    where = RayMap(jobs, None if ray == "local" else ray) if ray else Processes(jobs)
    settings = read.arguments()
    search = Search(
        trials,
        ordered=settings.get("date") is not None,
        n_scenarios=settings.get("n_scenarios", 64),
        n_at_once=max(4, jobs),
        storage=storage,
        map=where,
    )
    planner = planner_of(read, made, learner=TunedLearner(made, _of_kind(predictor), search=search))
    with about(table), screen.work(f"tuning: {trials} trials"):
        planner.fit(frame)
    planner.save(output)
    write_file(output / PLAN, plan.read_bytes())
    tuning = planner.learner_.tuning_
    if picture is not None:
        from forewise.plots import TuningDisplay

        TuningDisplay.from_tuning(tuning).plot().figure_.savefig(picture, dpi=150)
    if json:
        screen.as_json(
            {
                "policy": str(output),
                "verdict": tuning.verdict,
                "settings": {name: repr(v) for name, v in tuning.best_settings.items()},
                "trials": tuning.trials.astype(object).reset_index(),
            }
        )
        return
    _show(tuning)
    result(f"\nThe policy is in [bold]{escape(str(output))}[/]")
    if picture is not None:
        result(f"The picture is in [bold]{escape(str(picture))}[/]")


def _of_kind(kind: Kind) -> Any:
    import forewise as fw

    made: dict[Kind, Any] = {
        Kind.BOOSTING: fw.QuantileBoostingPredictor,
        Kind.FOREST: fw.ForestPredictor,
        Kind.NEIGHBOURS: fw.NeighborPredictor,
        Kind.NETWORK: fw.BayesianPredictor,
    }
    return made[kind]()


def _require_figures() -> None:
    try:
        import forewise.plots  # noqa: F401
    except MissingDependencyError as error:
        raise InvalidInputError(f"--picture cannot be drawn: {error}") from error


def _show(tuning: Any) -> None:
    """The verdict, and the best trials."""
    best = tuning.trials[tuning.trials["state"] == "complete"].nsmallest(_SHOWN, "cost")
    names = [name for name in best.columns if name in tuning.best_settings] or ["note"]
    rows = [
        [number, row["cost"], *(row[name] for name in names)]
        for number, row in zip(best.index, best.to_dict("records"), strict=True)
    ]
    short = [name.rpartition("__")[2] for name in names]
    result(table_of(["trial", "cost", *short], rows))
    result(f"  {escape(tuning.verdict)}")
