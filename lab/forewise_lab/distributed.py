"""Maps: where independent tasks are computed, in this process, in others, or on a cluster.

A function and its tasks must be importable and picklable, and tasks should take a second or more.
To add a map: a frozen dataclass with the two methods of `Map`.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

from joblib.externals.loky import ProcessPoolExecutor

from forewise.exceptions import ForewiseError, InvalidInputError, MissingDependencyError

TaskT = TypeVar("TaskT")
ResultT = TypeVar("ResultT")

#: Times that a task is tried before its worker's death is taken to be its fault.
_ATTEMPTS = 5
_WATCH_SECONDS = 0.5  # between looks of a worker at its driver
_LOOPBACK = "127.0.0.1"
#: One thread each: workers share the cores, and the last digits depend on the number of threads.
ONE_THREAD = {
    f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "NUMBA")
}


class WorkerLostError(ForewiseError, RuntimeError):
    """Workers died again and again while computing the same task."""


class Map(ABC):
    """Applies a function to tasks, wherever that is."""

    @property
    @abstractmethod
    def jobs(self) -> int:
        """Number of tasks that are computed at the same time."""

    @abstractmethod
    def imap_unordered(
        self, function: Callable[[TaskT], ResultT], tasks: Iterable[TaskT]
    ) -> Iterator[ResultT]:
        """Results in order of completion.

        A task is taken from `tasks` when a worker is free, in the caller's own thread. Tasks of a
        worker that died are computed again. An exception of the function, or closing the
        iterator, ends all workers.
        """


@dataclass(frozen=True)
class SerialMap(Map):
    """One task after the other, in this process."""

    @property
    def jobs(self) -> int:
        """One."""
        return 1

    def imap_unordered(
        self, function: Callable[[TaskT], ResultT], tasks: Iterable[TaskT]
    ) -> Iterator[ResultT]:
        """Results in the order of the tasks."""
        for task in tasks:
            yield function(task)


@dataclass(frozen=True)
class ProcessMap(Map):
    """`n_jobs` processes on this computer, one thread each."""

    n_jobs: int

    def __post_init__(self) -> None:
        if not isinstance(self.n_jobs, int) or isinstance(self.n_jobs, bool) or self.n_jobs < 1:
            raise InvalidInputError(
                f"n_jobs must be an integer of at least 1, but is {self.n_jobs!r}"
            )

    @property
    def jobs(self) -> int:
        """Number of processes."""
        return self.n_jobs

    def imap_unordered(
        self, function: Callable[[TaskT], ResultT], tasks: Iterable[TaskT]
    ) -> Iterator[ResultT]:
        """Results as they come; the pool is started again when one of its processes dies."""
        todo = ((task, 1) for task in tasks)
        again: list[tuple[TaskT, int]] = []  # tasks whose worker died, and which attempt is next
        running: dict[Future[ResultT], tuple[TaskT, int]] = {}
        pool = _process_pool(self.n_jobs)
        try:
            while True:
                while len(running) < self.n_jobs:
                    entry = again.pop() if again else next(todo, None)
                    if entry is None:
                        break
                    running[pool.submit(function, entry[0])] = entry
                if not running:
                    return
                finished, _ = wait(running, return_when=FIRST_COMPLETED)
                broken = False
                for future in finished:
                    try:
                        result = future.result()
                    except BrokenExecutor:
                        broken = True  # its task stays in `running`, with all the others
                    else:
                        del running[future]
                        yield result
                if broken:
                    again = [_next_attempt(*entry) for entry in running.values()]
                    running.clear()
                    pool.shutdown(wait=True, kill_workers=True)
                    pool = _process_pool(self.n_jobs)
        finally:
            pool.shutdown(wait=True, kill_workers=True)


@dataclass(frozen=True)
class RayMap(Map):
    """Workers of a Ray cluster, one processor each. Needs the extra ``forewise-lab[ray]``.

    Without an address, a private cluster is started on this computer, reachable from this computer
    only, and stopped at the end.

    Parameters
    ----------
    address : str, optional
        ``"auto"`` for the cluster that this computer belongs to, or the address of one.
    n_jobs : int, optional
        Tasks at the same time; by default as many as the cluster has processors.
    """

    address: str | None = None
    n_jobs: int | None = None

    @property
    def jobs(self) -> int:
        """`n_jobs`, or the processors of this computer until the cluster is known."""
        return self.n_jobs or os.cpu_count() or 1

    def imap_unordered(
        self, function: Callable[[TaskT], ResultT], tasks: Iterable[TaskT]
    ) -> Iterator[ResultT]:
        """Results as they come; Ray starts a task again when its worker dies."""
        ray = _ray()
        started_here = not ray.is_initialized()
        if started_here:
            self._start(ray)
        try:
            width = self.n_jobs or int(ray.cluster_resources().get("CPU", 1))
            remote = ray.remote(
                num_cpus=1, max_retries=_ATTEMPTS - 1, runtime_env={"env_vars": ONE_THREAD}
            )(_quietly)
            shared = ray.put(function)
            todo = iter(tasks)
            running: dict[Any, TaskT] = {}
            while True:
                for task in islice(todo, width - len(running)):
                    running[remote.remote(shared, task)] = task
                if not running:
                    return
                (first, *_), _ = ray.wait(list(running), num_returns=1)
                task = running.pop(first)
                try:
                    result = ray.get(first)
                except (ray.exceptions.WorkerCrashedError, ray.exceptions.NodeDiedError) as error:
                    raise _lost(task) from error
                yield result
        finally:
            if started_here:
                ray.shutdown()

    def _start(self, ray: Any) -> None:
        if self.address is not None:
            self._init(ray, f"reached at {self.address!r}", address=self.address)
            return
        with _loopback_only(ray):
            self._init(
                ray, "started here", address="local", include_dashboard=False, num_cpus=self.jobs
            )
        if ray.util.get_node_ip_address() != _LOOPBACK:
            ray.shutdown()
            raise ForewiseError(
                f"a Ray {ray.__version__} that is started here listens on the network, which was "
                "not asked for: start a cluster yourself, and pass its address"
            )

    def _init(self, ray: Any, where: str, **options: Any) -> None:
        try:
            ray.init(log_to_driver=False, logging_level="error", **options)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise ForewiseError(f"no Ray cluster could be {where}: {error}") from error


@contextmanager
def _loopback_only(ray: Any) -> Iterator[None]:
    """Make Ray use the loopback interface only, for which it has no public setting."""
    constants = ray._private.ray_constants
    before = constants.ENABLE_RAY_CLUSTER
    constants.ENABLE_RAY_CLUSTER = False
    try:
        yield
    finally:
        constants.ENABLE_RAY_CLUSTER = before


def _quietly(function: Callable[[TaskT], ResultT], task: TaskT) -> ResultT:
    _settle_worker()
    return function(task)


def _settle_worker() -> None:
    """Start of a worker: it ignores Ctrl-C, which the driver handles, and has one thread."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)


def _settle_process(driver: int) -> None:
    """Start of a process of a pool: as any worker, and it does not outlive its driver."""
    _settle_worker()
    threading.Thread(target=_end_with, args=(driver,), daemon=True).start()


def _end_with(driver: int) -> None:
    """End this process when the driver is gone; a killed driver cannot end it."""
    while os.getppid() == driver:
        time.sleep(_WATCH_SECONDS)
    os._exit(1)


def _process_pool(n_jobs: int) -> Any:
    # joblib's pool starts clean processes, and takes functions that were defined in a notebook.
    return ProcessPoolExecutor(
        n_jobs, initializer=_settle_process, initargs=(os.getpid(),), env=ONE_THREAD
    )


def _next_attempt(task: TaskT, attempt: int) -> tuple[TaskT, int]:
    if attempt == _ATTEMPTS:
        raise _lost(task)
    return task, attempt + 1


def _lost(task: object) -> WorkerLostError:
    name = getattr(task, "name", None) or repr(task)[:200]
    return WorkerLostError(
        f"{_ATTEMPTS} workers died while computing {name}: were they killed, or did memory run "
        "out? Try fewer at a time; everything that was finished before is kept"
    )


def _ray() -> Any:
    try:
        import ray
        import ray.exceptions
        import ray.util
    except ImportError as error:
        raise MissingDependencyError(
            "RayMap needs Ray, which is not installed: pip install 'forewise-lab[ray]'"
        ) from error
    return ray
