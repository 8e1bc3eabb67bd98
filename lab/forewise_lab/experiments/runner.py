"""Run a grid of fits: compute wherever the map says, append the rows, go on.

Only the calling process writes rows, so that they are the same whatever the map.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

import forewise as fw
from forewise_lab.experiments.configuration import Settings, load_settings
from forewise_lab.experiments.fits import all_fits
from forewise_lab.experiments.kinds import unknown
from forewise_lab.experiments.rolling import CaseGrid
from forewise_lab.experiments.rows import FitResult, Row, RowTable, Work, compute, storage_errors
from forewise_lab.machine import revision, write_whole

_SHOWN = 2  # metrics in the line of a fit


@dataclass
class RunSummary:
    """What a run did: fits that were computed now or `found` finished before, rows that were added,
    and fits that `failed`, with the reason; the next run tries them again.
    """

    computed: int = 0
    found: int = 0
    rows: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0


def run(
    experiments: str | Iterable[str],
    methods: Iterable[str] | None = None,
    seeds: int | Iterable[int] | None = None,
    *,
    output: str | os.PathLike[str],
    map: fw.parallel.Map | None = None,
    settings: Settings | None = None,
    data_dir: str | os.PathLike[str] | None = None,
    quick: bool = False,
    progress: bool = True,
) -> RunSummary:
    """Compute experiments, and append the results to the table of a folder.

    What is in the table already is not computed again: an interrupted run goes on where it
    stopped when it is called again.

    Parameters
    ----------
    experiments : str or list of str
        Names of experiments (``"nv1"``, ``"bakery-b"``), or of settings files (``"table1"``).
    methods : list of str, optional
        Those of the experiments' methods to run; all by default.
    seeds : int or list of int, optional
        How many runs, or the seeds themselves; the experiment's own number by default, 1 in cases.
    output : path
        Folder of the results table, for one run at a time, either of quick runs or of full ones.
    map : Map, optional
        Where to compute, in this process by default. The values do not depend on it.
    settings, data_dir : optional
        The shipped settings by default; where real data are, see `forewise.datasets.files`.
    quick : bool
        A tiny version of everything, to see that it works. Its rows are marked.
    progress : bool
        Print a line per fit.
    """
    chosen = settings or load_settings()
    chosen = chosen.quick() if quick else chosen
    names = chosen.experiment_names([experiments] if isinstance(experiments, str) else experiments)
    if not names:
        known = ", ".join([*chosen.experiments, *chosen.cases])
        raise fw.InvalidInputError(f"experiments must name at least one of {known}")
    wanted = None if methods is None else list(methods)
    place = None if data_dir is None else Path(data_dir)
    own_seeds = None if seeds is None else _seed_list(seeds)
    fits = all_fits(chosen, [n for n in names if n in chosen.experiments], wanted, own_seeds, place)
    rolling = [name for name in names if name in chosen.cases]
    cases = CaseGrid(chosen, rolling, wanted, own_seeds or [0], place)
    found = {fit.method.name for fit in fits} | cases.methods
    for method in wanted or ():
        if method not in found:
            listed = (m for name in names for m in chosen.method_names(name))
            raise unknown(f"method of {', '.join(names)}", method, listed)
    first: list[Work] = [*fits, *cases.trials()]
    _require_data([*first, *cases.windows(())])
    # The best trial is known when all trials are finished.
    return _run_stages([lambda rows: first, cases.windows], output, map, progress, quick)


def _run_stages(
    stages: Sequence[Callable[[Iterable[Row]], Sequence[Work]]],
    output: str | os.PathLike[str],
    map: fw.parallel.Map | None,
    progress: bool,
    quick: bool = False,
) -> RunSummary:
    """Compute what is missing of works, stage after stage; a stage sees the rows so far."""
    summary, started = RunSummary(), time.perf_counter()
    with RowTable(output, quick=quick) as table:
        for stage in stages:
            _compute_stage(stage(table), table, map or fw.parallel.Processes(), progress, summary)
    summary.seconds = time.perf_counter() - started
    return summary


def run_works(
    works: Sequence[Work],
    output: str | os.PathLike[str],
    map: fw.parallel.Map | None,
    progress: bool,
) -> RunSummary:
    """Compute what is missing of some works, in the way of `run`."""
    _require_data(works)
    return _run_stages([lambda rows: works], output, map, progress)


def _compute_stage(
    fits: Sequence[Work],
    table: RowTable,
    where: fw.parallel.Map,
    progress: bool,
    summary: RunSummary,
) -> None:
    """Compute what is not finished, and of equal fits of several experiments one."""
    console = Console(stderr=True, quiet=not progress)
    pending = [fit for fit in fits if not all(key in table for key in fit.row_keys())]
    done = len(fits) - len(pending)
    summary.found += done
    if done:
        console.print(f"{done} of {len(fits)} fits were finished before", highlight=False)
    while pending:
        chosen, waiting = _without_equals(pending, table, summary)
        done += len(pending) - len(chosen) - len(waiting)
        with closing(where.imap_unordered(compute, chosen)) as results:  # type: ignore[type-var]
            for result in results:
                _store(result, table, summary)
                done += 1
                line = f"{done}/{len(fits)} {_line(result)}"
                console.print(line, highlight=False, markup=False, soft_wrap=True)
        pending = waiting


def _without_equals(
    fits: Sequence[Work], table: RowTable, summary: RunSummary
) -> tuple[list[Work], list[Work]]:
    """Fits to compute now, and those that wait for an equal one; rows that are there are taken."""
    chosen: list[Work] = []
    waiting: list[Work] = []
    coming: set[tuple[object, ...]] = set()  # keys without the experiment's name
    for fit in fits:
        keys = {key[1:] for key in fit.row_keys()}
        if fit.borrows and table.append(table.borrowed(fit.row_keys())):
            summary.found += 1
        elif fit.borrows and keys <= coming:
            waiting.append(fit)
        else:
            chosen.append(fit)
            coming |= keys
    return chosen, waiting


def _store(result: FitResult, table: RowTable, summary: RunSummary) -> None:
    """Write the files of a fit, then the rows that refer to them."""
    for place, content in result.files.items():
        with storage_errors("write to", table.folder):
            path = table.folder / place
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, content)
    summary.rows += table.append([row | revision() for row in result.rows])
    summary.computed += 1
    if result.error is not None:
        summary.failed[result.fit.name] = result.error


def _line(result: FitResult) -> str:
    """Name, first metrics at the last M, and seconds of a fit."""
    last = [row for row in result.rows if row["m"] == result.rows[-1]["m"]][:_SHOWN]
    found = result.error or ", ".join(f"{row['metric']} {row['value']:.4g}" for row in last)
    return f"{result.fit.name}: {found}; {result.seconds:.1f} s"


def _seed_list(seeds: int | Iterable[int]) -> list[int]:
    """A number of seeds as 0, 1, 2 ...; a list as it is."""
    numbers = list(range(seeds)) if isinstance(seeds, int) else list(seeds)
    for seed in numbers:
        if not isinstance(seed, int) or isinstance(seed, bool) or seed < 0:
            raise fw.InvalidInputError(f"seeds must be integers of at least 0, but has {seed!r}")
    if not numbers:
        raise fw.InvalidInputError("seeds must be at least one seed, but there is none")
    return list(dict.fromkeys(numbers))


def _require_data(fits: Iterable[Work]) -> None:
    """Load real data before anything is computed, so that a missing file is reported at once."""
    for fit in {fit.source: fit for fit in fits if fit.source is not None}.values():
        fit.require_data()
