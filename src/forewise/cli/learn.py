"""`forewise fit` and `evaluate`: from a table and a plan to a policy, and what it is worth."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from forewise.cli import screen
from forewise.cli.screen import escape, interval, result, table_of

if TYPE_CHECKING:
    import pandas as pd

    import forewise as fw
    from forewise.cli.plan import Plan
    from forewise.planner.evaluation import Evaluation
    from forewise.planner.policy import PlannerPolicy

Table = Annotated[Path, typer.Argument(help="CSV, Parquet or Excel, with a row per day.")]
Folder = Annotated[Path, typer.Argument(help="Folder of a policy, made by `forewise fit`.")]
Json = Annotated[bool, typer.Option("--json", help="JSON on standard output, and nothing else.")]
TimeLimit = Annotated[
    float | None, typer.Option(min=0.1, help="Seconds for comparing methods; the plan's otherwise.")
]
Current = Annotated[
    str | None, typer.Option(help="Column with what was decided so far, to compare with.")
]
Window = Annotated[
    str, typer.Option(help="Learned anew each week, month, quarter or year, or so many days.")
]
#: The plan that a policy was fitted by, kept in its folder.
PLAN = "plan.toml"


def fit(
    table: Table,
    plan: Annotated[Path, typer.Option(help="Written by `forewise init`.")] = Path(PLAN),
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of the policy.")] = Path(
        "policy"
    ),
    problem: Annotated[
        str | None, typer.Option(help="A problem in your code: package.module:name.")
    ] = None,
    time_limit: TimeLimit = None,
    jobs: Annotated[int | None, typer.Option(help="Processes; -1 is one per core.")] = None,
    json: Json = False,
) -> None:
    """Learn a policy from a table by a plan; say what was read, and what it is worth."""
    from forewise import tables
    from forewise.cli.plan import read_plan
    from forewise.cli.reading import rows_to_learn_from
    from forewise.cli.stream import about
    from forewise.cli.templates import own_problem
    from forewise.storage import write_file

    read = read_plan(plan)
    own = None if problem is None else own_problem(problem)
    made = read.made_problem(own)
    planner = planner_of(read, made, time_limit=time_limit, n_jobs=jobs, progress=True)
    with screen.work(f"reading {table}"):
        read.require_columns(next(tables.chunks(table)), table)
        frame = rows_to_learn_from(table, planner.roles)
    with about(table):
        planner.fit(frame)
    planner.save(output)
    write_file(output / PLAN, plan.read_bytes())
    if json:
        screen.as_json(
            {
                "policy": str(output),
                "rows": len(frame),
                "notes": planner.notes_,
                "columns": planner.columns_.reset_index(),
                "leaderboard": planner.leaderboard_,
                "verdict": planner.verdict_,
            }
        )
        return
    _show_fit(planner, table)
    result(f"\nThe policy is in [bold]{escape(str(output))}[/]. Then:")
    result(f"  [cyan]forewise decide {output} {table} --future tomorrow.csv -o orders.csv[/]")
    result(f"  [cyan]forewise report {output} {table}[/]")


def evaluate(
    policy: Folder,
    table: Table,
    current: Current = None,
    window: Window = "month",
    time_limit: TimeLimit = None,
    json: Json = False,
) -> None:
    """Evaluate a policy as if it had been used: learn from the past, decide the days after it."""
    evaluation = evaluated(policy, table, current, window, time_limit)
    if json:
        screen.as_json(
            {
                "baseline": evaluation.baseline,
                "saving": evaluation.saving,
                "summary": evaluation.summary.reset_index(),
                "coverage": evaluation.coverage.reset_index(),
                "notes": evaluation.notes,
            }
        )
        return
    show_evaluation(evaluation)


def evaluated(
    folder: Path, table: Path, current: str | None, window: str, time_limit: float | None
) -> Evaluation:
    """The evaluation of a policy; one that was made of the same files is taken again."""
    from forewise.cli.kept import keep, kept
    from forewise.cli.reading import rows_to_learn_from
    from forewise.cli.stream import about

    planner, asked = planner_in(folder, time_limit), [current, window, time_limit]
    known = kept(folder, table, asked)
    if known is not None:
        return known
    with screen.work(f"reading {table}"):
        frame = rows_to_learn_from(table, planner.roles)
    length = int(window) if window.isdecimal() else window
    with about(table), screen.work("evaluating: every window decided by what was known before it"):
        evaluation = planner.evaluate(frame, current=current, window=length)
    keep(evaluation, folder, table, asked)
    return evaluation


def planner_of(plan: Plan, problem: fw.Problem, **overriding: Any) -> fw.Planner:
    """The planner of a plan; what is not None overrides it."""
    import forewise as fw

    said = {name: value for name, value in overriding.items() if value is not None}
    return fw.Planner(problem, **(plan.arguments() | said))


def planner_in(folder: Path, time_limit: float | None = None) -> fw.Planner:
    """The planner by whose plan the policy of a folder was fitted, not fitted itself."""
    from forewise.cli.plan import read_plan

    stored = load(folder)
    return planner_of(read_plan(folder / PLAN), stored.problem, time_limit=time_limit)


def load(folder: Path) -> PlannerPolicy:
    """The policy of a folder; raise if it is of another kind."""
    import forewise as fw
    from forewise.exceptions import InvalidInputError

    stored = fw.load_policy(folder)
    if not isinstance(stored, fw.PlannerPolicy):
        raise InvalidInputError(
            f"{folder} must hold a policy of `forewise fit` or of fw.Planner, but holds a "
            f"{type(stored).__name__}, which decides contexts and not tables of days"
        )
    return stored


def show_evaluation(evaluation: Evaluation) -> None:
    """The answer, the comparison, and how good the intervals were."""
    rows = []
    for name, row in evaluation.summary.iterrows():
        saved = [
            f"{row['relative']:+.1%}",
            interval(row["difference_lower"], row["difference_upper"]),
        ]
        against = saved if name != evaluation.baseline else ["", ""]
        rows.append([name, row["cost"], interval(row["cost_lower"], row["cost_upper"]), *against])
    names = [
        "method",
        "cost",
        "95 % interval",
        f"against {evaluation.baseline}",
        "difference, 95 %",
    ]
    result(table_of(names, rows, "What a decision cost, made by what was known before"))
    result(f"[bold]{escape(evaluation.text)}[/]")
    if evaluation.interval_text:
        result(evaluation.interval_text)


def _show_fit(planner: fw.Planner, table: Path) -> None:
    result(f"[bold]{escape(str(table))}[/]")
    for text in planner.notes_:
        result(f"  · {escape(text)}")
    columns = planner.columns_
    rows = [(n, r["role"], r["kind"], escape(str(r["note"]))) for n, r in columns.iterrows()]
    result(table_of(["column", "role", "kind", ""], rows))
    if planner.leaderboard_ is not None:
        _show_leaderboard(planner.leaderboard_)
    if planner.verdict_:
        result(f"[bold]{escape(planner.verdict_)}[/]")


def _show_leaderboard(board: pd.DataFrame) -> None:
    """Methods by cost, and below them what is to be said of some."""
    rows = []
    for _, r in board[board["cost"].notna()].iterrows():
        weight = f"{r['weight']:.0%}" if r["weight"] else ""
        seconds = f"{r['seconds']:.1f}" if r["seconds"] >= 0 else ""
        rows.append([r["method"], r["cost"], interval(r["lower"], r["upper"]), weight, seconds])
    names = ["method", "cost", "95 % interval", "in the policy", "seconds a fit"]
    result(table_of(names, rows, "What a decision of each method costs, on days after its past"))
    noted = board[board["note"].fillna("") != ""]
    for text, methods in noted.groupby("note", sort=False)["method"]:
        result(f"  · {escape(', '.join(methods))}: {escape(str(text))}")
    result("")
