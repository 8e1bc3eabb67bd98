"""`forewise demo`: the whole way on made-up shops, as the commands that a person would type."""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from typing import Annotated

import typer

from forewise.cli.screen import escape, result

_LIMIT, _AGAIN = 45, 20  # seconds in which methods are compared, in fit and evaluate
_DAYS = 404  # of the past; the day after them, a Saturday, is decided


def demo(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(help="Folder of the files that are made.")] = Path(
        "forewise-demo"
    ),
    files: Annotated[
        bool, typer.Option("--files", help="Make sales.csv and tomorrow.csv, and no more.")
    ] = False,
) -> None:
    """A year of three made-up shops: fit, evaluate, decide, explain, report; two minutes."""
    import forewise as fw
    from forewise import tables

    folder.mkdir(parents=True, exist_ok=True)
    table = fw.datasets.shop_demand(_DAYS + 1)
    tomorrow = table["date"] == table["date"].max()
    future = table[tomorrow].drop(columns=["sales", "sold_out"])
    tables.write(table[~tomorrow], folder / "sales.csv")
    tables.write(future, folder / "tomorrow.csv")
    result(
        f"[bold]{escape(str(folder / 'sales.csv'))}[/]: {(~tomorrow).sum():,} rows, two products "
        f"in three made-up shops; [bold]tomorrow.csv[/]: the {len(future)} rows to decide"
    )
    if files:
        return
    start = time.perf_counter()
    made = ["sales.csv", "tomorrow.csv", "plan.toml", "policy", "orders.csv", "report.html"]
    names = {name.split(".")[0]: shlex.quote(str(folder / name)) for name in made}
    options = f"--window quarter --time-limit {_AGAIN}"
    for line in (
        f"init {{sales}} --yes --force --time-limit {_LIMIT} -o {{plan}}",
        "fit {sales} --plan {plan} -o {policy}",
        f"evaluate {{policy}} {{sales}} {options}",
        "decide {policy} {sales} --future {tomorrow} -o {orders}",
        "explain {policy} {sales} --future {tomorrow} --row 2",
        f"report {{policy}} {{sales}} --future {{tomorrow}} {options} -o {{report}}",
    ):
        typed = line.format_map(names)
        result(f"\n[bold green]$[/] [bold]forewise {escape(typed)}[/]")
        context.find_root().command(shlex.split(typed), standalone_mode=False)
    result(f"\nAll of it took {time.perf_counter() - start:.0f} seconds.")
