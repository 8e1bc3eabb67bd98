"""Tasks in processes of this computer, by joblib."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from forewise.parallel.base import ATTEMPTS, Map, ResultT, TaskT, in_worker, lost
from forewise.validation.parameters import require_count

_IDLE_SECONDS = 10  # after which a worker ends whose driver was killed


@dataclass(frozen=True)
class Processes(Map):
    """Processes with one thread each.

    Parameters
    ----------
    n_jobs : int or None
        1 is this process, -1 one for every core. None asks joblib: one, or as many as
        ``joblib.parallel_config`` says, on the backend that it names.

    Examples
    --------
    >>> import forewise as fw
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]] * 5, [1.0, 2.0, 3.0, 4.0] * 5
    >>> where = fw.parallel.Processes(1)
    >>> learner = fw.AutoLearner(fw.Newsvendor(3, 1), [fw.EmpiricalPredictor()], map=where)
    >>> learner.fit(X, y).leaderboard_.method.tolist()
    ['EmpiricalPredictor']
    """

    n_jobs: int | None = 1

    def __post_init__(self) -> None:
        if self.n_jobs not in (None, -1) or isinstance(self.n_jobs, bool):
            require_count("n_jobs", self.n_jobs, 1)

    def numbered(
        self, function: Callable[[TaskT], ResultT], tasks: Iterable[TaskT]
    ) -> Iterator[tuple[int, ResultT]]:
        from joblib import effective_n_jobs

        width = effective_n_jobs(self.n_jobs)
        if width == 1:
            yield from enumerate(map(function, tasks))
        elif self.n_jobs is None:
            yield from _of_joblib(function, list(enumerate(tasks)))
        else:
            yield from _until_done(function, dict(enumerate(tasks)), width)


def _of_joblib(
    function: Callable[[TaskT], ResultT], tasks: list[tuple[int, TaskT]]
) -> Iterator[tuple[int, ResultT]]:
    """On the backend that the user's own `parallel_config` names, which may give all at once."""
    from joblib import Parallel, delayed

    yield from Parallel()(delayed(in_worker)(function, *task) for task in tasks)


def _until_done(
    function: Callable[[TaskT], ResultT], left: dict[int, TaskT], width: int
) -> Iterator[tuple[int, ResultT]]:
    """In processes; those that died with a task are replaced."""
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    deaths = 0
    while left:
        # One process that dies takes all along: tasks that are suspected of it wait for the
        # others, and run alone in the end.
        at_once = width if deaths < 2 else 1
        try:
            for number, result in _in_processes(function, list(left.items()), at_once):
                del left[number]
                deaths = 0
                yield number, result
        except TerminatedWorkerError as error:
            deaths += 1
            if deaths >= ATTEMPTS + len(left) - 1:
                raise lost(len(left)) from error
            for number in list(left)[:at_once]:
                left[number] = left.pop(number)


def _in_processes(
    function: Callable[[TaskT], ResultT], tasks: list[tuple[int, TaskT]], width: int
) -> Iterator[tuple[int, ResultT]]:
    from joblib import Parallel, delayed, parallel_config

    with parallel_config("loky", inner_max_num_threads=1, idle_worker_timeout=_IDLE_SECONDS):
        # Two processes even for one task at a time: with one, joblib would compute it here.
        yield from Parallel(
            max(2, width), return_as="generator_unordered", batch_size=1, pre_dispatch=width
        )(delayed(in_worker)(function, *task) for task in tasks)
