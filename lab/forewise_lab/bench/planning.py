"""How fast `forewise decide` is, from file to file: policies that a planner chose by itself."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
from rich.console import Console

import forewise as fw
from forewise import tables
from forewise.cli.use import decide
from forewise_lab.bench.results import Bar, Page, TextTable, at_most, bars_table
from forewise_lab.machine import one_core, peak_memory

_LEARNED = 4000  # rows without days that a planner learns from
_DAYS, _BRANCHES = 730, 250  # of shops; branches of each in the file that is decided
_PAST, _AHEAD = 120, 60  # days of the past and to decide, of these
_ITEMS, _KIB = 3, 1024


@dataclass(frozen=True)
class Case:
    """What is learned, and what is decided: the past, if there is one, and the rows to come."""

    title: str
    bar: int  # decisions a second
    planner: Callable[[float | None], fw.Planner]
    learned: Callable[[], pd.DataFrame]
    files: Callable[[int], tuple[pd.DataFrame | None, pd.DataFrame]]


def run_planning_bench(
    output: Path, n_rows: int, time_limit: float | None, console: Console
) -> None:
    """Fit a planner for each case, decide files with it on one core; print and write the result."""
    output.mkdir(parents=True, exist_ok=True)
    rows, bars = [], list[Bar]()
    for case in cases():
        with console.status(f"fitting: {case.title}"):
            planner = case.planner(time_limit).fit(case.learned())
        with TemporaryDirectory() as folder, console.status(f"deciding: {case.title}"):
            found = _measured(planner, case, Path(folder), n_rows)
        speed = found["rows"] / found["seconds"]
        rows.append(
            (
                case.title,
                f"{found['rows']:,.0f} rows in {found['seconds']:,.0f} s, {speed:,.0f} a second, "
                f"{found['peak'] / _KIB:.2f} GiB; {planner.verdict_}",
            )
        )
        what, wanted = f"{case.title}: decisions a second", f"≥ {case.bar:,}"
        bars.append(Bar(what, wanted, f"{speed:,.0f}", speed >= case.bar))
        bars.append(at_most(f"{case.title}: GiB", "2", 2.0, found["peak"] / _KIB, "{:.2f}"))
    page = Page(
        "forewise decide, from file to file",
        "Processor time of a fresh process with one thread: start, reading and writing included. "
        "The methods are those "
        "that a planner without settings chose"
        + ("." if time_limit is None else f" in {time_limit:g} s."),
        [TextTable("Cases", ("what", "measured"), rows), bars_table(bars, "The bars")],
    )
    page.publish(output, "planning", console)


def _measured(planner: fw.Planner, case: Case, folder: Path, n_rows: int) -> dict[str, float]:
    planner.save(folder / "policy")
    past, ahead = case.files(n_rows)
    tables.write(ahead, folder / "ahead.csv")
    names = [str(folder / "policy"), "", str(folder / "ahead.csv"), str(folder / "out.csv")]
    if past is not None:
        names[1] = str(folder / "past.csv")
        tables.write(past, folder / "past.csv")
    call = f"from forewise_lab.bench.planning import measure_files as m; m(*{names!r})"
    with one_core():
        command = [sys.executable, "-c", call]
        ended = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, float] = json.loads(ended.stdout.splitlines()[-1])
    return found | {"rows": len(ahead)}


def measure_files(policy: str, table: str, future: str, output: str) -> None:
    """Print the processor seconds and MiB of this process, whose work is one `forewise decide`."""
    past = Path(table) if table else None
    decide(Path(policy), past, Path(future), Path(output), None, 0, False)
    # With one thread it is what a quiet machine's clock would show.
    print(json.dumps({"seconds": time.process_time(), "peak": peak_memory()}))


def cases() -> tuple[Case, ...]:
    """A newsvendor of rows without days, one of days that may be sold out, and a budget."""
    return (
        Case("Newsvendor, rows", 10_000, _of_rows, _rows_with_demand, _rows_to_decide),
        Case("Newsvendor, days of shops", 10_000, _of_shops, _shops, _branches),
        Case("Three items, one budget", 2_000, _of_items, _rows_with_items, _rows_to_decide),
    )


def _of_rows(limit: float | None) -> fw.Planner:
    return fw.Planner(fw.Newsvendor(3, 1), outcome="demand", time_limit=limit)


def _of_shops(limit: float | None) -> fw.Planner:
    return fw.Planner(
        fw.Newsvendor(3, 1),
        outcome="sales",
        date="date",
        series=["store", "product"],
        known=["price", "promotion", "temperature_forecast"],
        sold_out="sold_out",
        closed="closed",
        time_limit=limit,
    )


def _of_items(limit: float | None) -> fw.Planner:
    none, price = np.zeros(_ITEMS), np.array([1.0, 2.0, 1.0])
    problem = fw.QuadraticNewsvendor(none, none, none, none + 3, none, none + 1, price, 18.0)
    return fw.Planner(problem, outcome=[f"demand_{i}" for i in range(_ITEMS)], time_limit=limit)


def _rows(n: int, seed: int) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    numbers = {name: random.normal(size=n).round(3) for name in ("x", "z")}
    kinds = {"kind": random.choice(list("abc"), n), "promotion": random.choice(["yes", "no"], n)}
    return pd.DataFrame(numbers | kinds)


def _demand(rows: pd.DataFrame, favoured: str, seed: int) -> np.ndarray:
    size = 0.3 * rows["x"] + 0.1 * rows["z"] + 0.2 * (rows["kind"] == favoured)
    return np.random.default_rng(seed).gamma(4.0, np.exp(size.to_numpy()))


def _rows_with_demand() -> pd.DataFrame:
    rows = _rows(_LEARNED, 0)
    return rows.assign(demand=_demand(rows, "a", 1))


def _rows_with_items() -> pd.DataFrame:
    rows = _rows(_LEARNED, 0)
    return rows.assign(**{f"demand_{i}": _demand(rows, "abc"[i], i) for i in range(_ITEMS)})


def _rows_to_decide(n_rows: int) -> tuple[None, pd.DataFrame]:
    return None, _rows(n_rows, 2)


def _shops() -> pd.DataFrame:
    return fw.datasets.shop_demand(_DAYS)


def _branches(n_rows: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Many branches of the shops, all with a past: about a tenth of the rows, two months of days.

    Dates lie behind those that were learned from.
    """
    table = fw.datasets.shop_demand(_DAYS + _PAST + _AHEAD)
    days = np.sort(table["date"].unique())
    first, last = days[_DAYS + _PAST], days[_DAYS]
    n_series = len(table) // len(days)
    count = max(1, min(_BRANCHES, n_rows // (_AHEAD * n_series)))
    table = table[table["date"] >= last]
    copies = [table.assign(store=table["store"] + f" {k}") for k in range(count)]
    joined = pd.concat(copies).sort_values("date", kind="stable")
    ahead = joined["date"] >= first
    return joined[~ahead], joined[ahead].drop(columns=["sales", "sold_out"])
