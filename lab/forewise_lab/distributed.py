"""Where independent tasks are computed: in this process, in others, or on a Ray cluster.

A function and its tasks must be importable and picklable, and tasks should take a second or more.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from joblib import Parallel, delayed, parallel_config
from joblib.externals.loky.process_executor import ProcessPoolExecutor, TerminatedWorkerError

import forewise as fw
from forewise.validation.parameters import require_count

TaskT = TypeVar("TaskT")
ResultT = TypeVar("ResultT")

#: Deaths of workers before the tasks are given up.
_ATTEMPTS = 5
_IDLE_SECONDS = 10  # after which a worker ends whose driver was killed


class WorkerLostError(fw.ForewiseError, RuntimeError):
    """Workers died again and again."""


@dataclass(frozen=True)
class Map:
    """Applies a function to tasks: in `n_jobs` processes with one thread each, 1 being this one.

    `ray` is the address of a Ray cluster, or "auto" for the one that this computer belongs to,
    started with ``ray start``; `n_jobs` tasks run there at a time. It needs ``forewise-lab[ray]``.
    """

    n_jobs: int = 1
    ray: str | None = None

    def __post_init__(self) -> None:
        require_count("n_jobs", self.n_jobs, 1)

    def imap_unordered(
        self, function: Callable[[TaskT], ResultT], tasks: Iterable[TaskT]
    ) -> Iterator[ResultT]:
        """Results in order of completion.

        Tasks of a worker that died are computed again. An error, or closing the iterator, ends all
        workers.
        """
        if self.n_jobs == 1 and self.ray is None:
            yield from map(function, tasks)
            return
        left = dict(enumerate(tasks))
        for _ in range(_ATTEMPTS):
            try:
                for number, result in self._computed(function, list(left.items())):
                    del left[number]
                    yield result
                return
            except TerminatedWorkerError:
                continue
        raise WorkerLostError(
            f"{_ATTEMPTS} times a worker died, with {len(left)} tasks left: were they killed, or "
            "did memory run out? Try fewer at a time; everything that was finished before is kept"
        )

    def _computed(
        self, function: Callable[[TaskT], ResultT], tasks: Sequence[tuple[int, TaskT]]
    ) -> Iterator[tuple[int, ResultT]]:
        calls = [delayed(_in_worker)(function, *task) for task in tasks]
        if self.ray is None:
            with parallel_config(
                "loky", inner_max_num_threads=1, idle_worker_timeout=_IDLE_SECONDS
            ):
                yield from Parallel(
                    self.n_jobs,
                    return_as="generator_unordered",
                    batch_size=1,
                    pre_dispatch=self.n_jobs,
                )(calls)
            return
        _connect_to_ray(self.ray)
        with parallel_config("ray"):
            # Ray's backend gives no results before all are there.
            for start in range(0, len(calls), self.n_jobs):
                yield from Parallel(self.n_jobs)(calls[start : start + self.n_jobs])


def in_new_process(function: Callable[..., ResultT], *arguments: Any) -> ResultT:
    """The result of a call in a process of its own, started for it."""
    with ProcessPoolExecutor(1) as pool:
        result: ResultT = pool.submit(function, *arguments).result()
    return result


def _in_worker(
    function: Callable[[TaskT], ResultT], number: int, task: TaskT
) -> tuple[int, ResultT]:
    """Ignore Ctrl-C, which the driver handles, and use one thread."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)
    return number, function(task)


def _connect_to_ray(address: str) -> None:
    try:
        import ray
        from ray.util.joblib import register_ray
    except ImportError as error:
        raise fw.exceptions.MissingDependencyError(
            "Map(ray=...) needs Ray, which is not installed: pip install 'forewise-lab[ray]'"
        ) from error
    if not ray.is_initialized():
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": "error"}
        try:
            ray.init(address=address, **options)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise fw.ForewiseError(
                f"no Ray cluster could be reached at {address!r}: {error}"
            ) from error
    register_ray()
