"""Run a grid of fits: claim, compute wherever the map says, append the rows, go on.

Only the driver writes rows, so that they are the same whatever the map. May import: exceptions,
datasets, distributed, and all its siblings.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from forewise.distributed import Map, SerialMap
from forewise.exceptions import InvalidInputError
from forewise_lab.experiments.claims import Claim, Claims
from forewise_lab.experiments.disk import write_beside
from forewise_lab.experiments.grid import all_fits, seed_list
from forewise_lab.experiments.loading import Settings, load_settings, unknown
from forewise_lab.experiments.progress import GridProgress
from forewise_lab.experiments.resources import revision
from forewise_lab.experiments.rolling_grid import CaseGrid
from forewise_lab.experiments.rows import RowTable, read_rows
from forewise_lab.experiments.work import FitResult, Work, compute

_CLAIMS = "claims"
_PATIENCE_SECONDS = 0.5  # between looks at what another run is computing


@dataclass(frozen=True)
class RunSummary:
    """What a run did.

    Attributes
    ----------
    computed, found, elsewhere : int
        Fits that were computed now, that were finished before (maybe as a part of another
        experiment), and that another run on the same folder computed meanwhile.
    rows : int
        Rows that were added.
    failed : dict of str to str
        Fits without figures, and why. They are tried again by the next run.
    seconds : float
    """

    computed: int
    found: int
    elsewhere: int
    rows: int
    failed: dict[str, str]
    seconds: float

    def __add__(self, later: RunSummary) -> RunSummary:
        """What this run and a later one did."""
        return RunSummary(
            self.computed + later.computed,
            self.found + later.found,
            self.elsewhere + later.elsewhere,
            self.rows + later.rows,
            self.failed | later.failed,
            self.seconds + later.seconds,
        )


class _StoppedError(BaseException):
    """Ctrl-C, as the run sees it.

    Not a KeyboardInterrupt: a method's `Training` may take that as a wish to end early and to keep
    what it has, and half-trained methods must not get into the table.
    """


def run(
    experiments: str | Iterable[str],
    methods: Iterable[str] | None = None,
    seeds: int | Iterable[int] | None = None,
    *,
    output: str | os.PathLike[str],
    map: Map | None = None,
    settings: Settings | None = None,
    data_dir: str | os.PathLike[str] | None = None,
    quick: bool = False,
    progress: bool = True,
) -> RunSummary:
    """Compute experiments, and append the results to the table of a folder.

    What is in the table already is not computed again: a run that was interrupted, in whatever
    way, goes on where it stopped when it is called again. Several runs may work on one folder at
    the same time; they share the fits.

    Parameters
    ----------
    experiments : str or list of str
        Names of experiments (``"nv1"``, ``"bakery-b"``), or of settings files for all of theirs
        (``"table1"``, ``"real"``).
    methods : list of str, optional
        Those of the experiments' methods to run; all by default.
    seeds : int or list of int, optional
        How many runs, or the seeds themselves. By default the experiment's own number, 5 in
        most as in the paper, and 1 in cases: they have the same data for every seed.
    output : path
        Folder of the results table; made if it does not exist. Quick results and whole ones
        cannot be in one.
    map : Map, optional
        Where to compute: `SerialMap()` by default, `ProcessMap(2)`, `RayMap()`. The values do
        not depend on it.
    settings : Settings, optional
        Those that come with forewise by default.
    data_dir : path, optional
        Where real data are; see `forewise.datasets.files`.
    quick : bool
        A tiny version of everything, to see that it works. Its rows are marked, and stand in no
        table of results.
    progress : bool
        Tell on the terminal what is done and how long the rest will take.

    Returns
    -------
    RunSummary

    Raises
    ------
    ForewiseError
        For unknown names, missing data, a folder that cannot be written to or has rows of the
        other kind. Rows that were finished before are kept.
    KeyboardInterrupt
        After Ctrl-C, when everything is in order.
    """
    chosen = settings or load_settings()
    asked = [experiments] if isinstance(experiments, str) else list(experiments)
    names = chosen.experiment_names(asked)
    if not names:
        known = ", ".join([*chosen.experiments, *chosen.cases])
        raise InvalidInputError(f"experiments must name at least one of {known}")
    wanted = None if methods is None else list(methods)
    place = None if data_dir is None else Path(data_dir)
    plain = [name for name in names if name in chosen.experiments]
    chosen_seeds = None if seeds is None else seed_list(seeds)
    fits = all_fits(chosen, plain, wanted, chosen_seeds, place, quick)
    rolling = [name for name in names if name in chosen.cases]
    cases = CaseGrid(chosen, rolling, wanted, chosen_seeds or [0], place, quick)
    _require_methods(chosen, names, wanted, {fit.method.name for fit in fits} | cases.methods)
    first = [*fits, *cases.trials()]
    _require_data([*first, *cases.windows(None)])
    table = RowTable(output, quick=quick)
    where = map or SerialMap()
    summary = _compute_stage(first, table, where, progress)
    if not rolling:
        return summary
    # Windows are judged with the best trial, which is known when all trials are finished.
    windows = cases.windows(read_rows(output) if len(table) else None)
    return summary + _compute_stage(windows, table, where, progress)


def _compute_stage(fits: Sequence[Work], table: RowTable, where: Map, progress: bool) -> RunSummary:
    """Compute those that are not in the table."""
    started = time.perf_counter()
    pending = [fit for fit in fits if not (_is_finished(fit, table) or _borrow(fit, table))]
    shown = GridProgress(pending, len(fits) - len(pending), where.jobs, shown=progress)
    if table.set_aside:
        shown.say(
            f"{table.set_aside} damaged line(s) of the table were set aside in "
            f"{table.folder / 'damaged.jsonl'}; what they were about is computed again"
        )
    work = _Stage(table, Claims(table.folder / _CLAIMS), list(pending), shown)
    try:
        with _stoppable(), shown:
            work.compute_all(where)
    except _StoppedError:
        shown.say(
            f"stopped: {work.computed} of {len(pending)} fits were computed and are in "
            f"{table.folder}; run the same again to go on"
        )
        raise KeyboardInterrupt from None
    return RunSummary(
        computed=work.computed,
        found=len(fits) - len(pending),
        elsewhere=len(pending) - work.computed,
        rows=work.rows,
        failed=work.failed,
        seconds=time.perf_counter() - started,
    )


class _Stage:
    """The fits that are left, and what became of them."""

    def __init__(
        self, table: RowTable, claims: Claims, pending: list[Work], shown: GridProgress
    ) -> None:
        self._table, self._claims, self._shown = table, claims, shown
        self._pending = pending
        self._held: dict[str, Claim] = {}
        self.computed = self.rows = 0
        self.failed: dict[str, str] = {}

    def compute_all(self, where: Map) -> None:
        """Compute what nobody else does, and wait for what others do."""
        try:
            while self._pending:
                first = self._next()
                if first is None:
                    # All that is left is being computed by others; if they die, it is ours.
                    time.sleep(_PATIENCE_SECONDS)
                    continue
                results = where.imap_unordered(compute, chain([first], iter(self._next, None)))
                with _closing(results):
                    for result in results:
                        self._store(result)
        finally:
            for claim in self._held.values():
                claim.release()

    def _next(self) -> Work | None:
        """A fit to compute, claimed; None if others have claimed all that is left."""
        for fit in tuple(self._pending):
            claim = self._claims.take(fit.identifier)
            if claim is None:
                continue
            self._pending.remove(fit)
            self._held[fit.identifier] = claim
            # Another run may have finished it since we looked.
            self._table.refresh()
            if not (_is_finished(fit, self._table) or _borrow(fit, self._table)):
                return fit
            self._release(fit)
            self._shown.finished_elsewhere(fit)
        return None

    def _store(self, result: FitResult) -> None:
        for place, content in result.files.items():
            write_beside(self._table.folder, place, content)
        self.rows += self._table.append([row | revision() for row in result.rows])
        self._release(result.fit)
        self.computed += 1
        if result.error is not None:
            self.failed[result.fit.name] = result.error
        self._shown.finished(result)

    def _release(self, fit: Work) -> None:
        self._held.pop(fit.identifier).release()


def _is_finished(fit: Work, table: RowTable) -> bool:
    return all(key in table for key in fit.row_keys())


def _borrow(fit: Work, table: RowTable) -> bool:
    """Take the rows over from an equal fit of another experiment; whether there was one."""
    return fit.borrows and table.append(table.borrowed(fit.row_keys())) > 0


def _require_data(fits: Iterable[Work]) -> None:
    """Load real data once before anything is computed, so that a missing file is told at once."""
    for fit in {fit.source: fit for fit in fits if fit.source is not None}.values():
        fit.require_data()


def _require_methods(
    settings: Settings, names: list[str], wanted: list[str] | None, found: set[str]
) -> None:
    """Raise if a method that was asked for belongs to none of the experiments."""
    for method in wanted or ():
        if method not in found:
            listed = dict.fromkeys(m for name in names for m in settings.method_names(name))
            raise unknown(f"method of {', '.join(names)}", method, listed)


@contextmanager
def _closing(results: Iterator[Any]) -> Iterator[None]:
    """Close an iterator at once, and with it its workers, whatever happens."""
    try:
        yield
    finally:
        close: Callable[[], None] | None = getattr(results, "close", None)
        if close is not None:
            close()


@contextmanager
def _stoppable() -> Iterator[None]:
    """Ctrl-C, and the system's request to end, raise `_StoppedError` meanwhile."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may handle signals, and only it gets them
        return

    def stop(number: int, frame: Any) -> None:
        raise _StoppedError

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
