"""Maps: where independent tasks are computed, in this process, in others, or on a cluster.

A function and its tasks must be importable and picklable, and tasks should take a second or more.
To add a map: a frozen dataclass that is a `Map`.
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
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

from joblib.externals.loky import ProcessPoolExecutor

from forewise.exceptions import ForewiseError, InvalidInputError, MissingDependencyError

TaskT = TypeVar("TaskT")
ResultT = TypeVar("ResultT")

#: Attempts at a task before its worker's death is taken to be its fault.
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
    """Applies a function to tasks."""

    @abstractmethod
    def imap_unordered(
        self, function: Callable[[TaskT], ResultT], tasks: Iterable[TaskT]
    ) -> Iterator[ResultT]:
        """Results in order of completion.

        A task is taken from `tasks` when a worker is free, in the caller's own thread. Tasks of a
        worker that died are computed again. An error, or closing the iterator, ends all workers.
        """


@dataclass(frozen=True)
class SerialMap(Map):
    """One task after the other, in this process."""

    def imap_unordered(
        self, function: Callable[[TaskT], ResultT], tasks: Iterable[TaskT]
    ) -> Iterator[ResultT]:
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

    def imap_unordered(
        self, function: Callable[[TaskT], ResultT], tasks: Iterable[TaskT]
    ) -> Iterator[ResultT]:
        todo = ((task, 1) for task in tasks)
        again: list[tuple[TaskT, int]] = []  # tasks whose worker died, and which attempt is next
        running: dict[Future[ResultT], tuple[TaskT, int]] = {}
        pool = self._pool()
        try:
            while True:
                free = self.n_jobs - len(running)
                entries, again = again[:free], again[free:]
                for entry in (*entries, *islice(todo, free - len(entries))):
                    running[pool.submit(function, entry[0])] = entry
                if not running:
                    return
                broken = False
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    try:
                        result = future.result()
                    except BrokenExecutor:
                        broken = True  # its task stays in `running`, with all the others
                    else:
                        del running[future]
                        yield result
                if broken:
                    for task, attempt in running.values():
                        if attempt == _ATTEMPTS:
                            raise _lost(task)
                        again.append((task, attempt + 1))
                    running.clear()
                    pool.shutdown(wait=True, kill_workers=True)
                    pool = self._pool()
        finally:
            pool.shutdown(wait=True, kill_workers=True)

    def _pool(self) -> Any:
        # joblib's pool starts clean processes, and takes functions that were defined in a notebook.
        return ProcessPoolExecutor(
            self.n_jobs, initializer=_start_process, initargs=(os.getpid(),), env=ONE_THREAD
        )


@dataclass(frozen=True)
class RayMap(Map):
    """Workers of a Ray cluster, one processor each. Needs the extra ``forewise-lab[ray]``.

    `address` is ``"auto"`` for the cluster that this computer belongs to, or the address of one.
    Without it a private cluster is started, reachable from this computer only, and stopped at the
    end. `n_jobs` tasks run at the same time, by default one per processor.
    """

    address: str | None = None
    n_jobs: int | None = None

    def imap_unordered(
        self, function: Callable[[TaskT], ResultT], tasks: Iterable[TaskT]
    ) -> Iterator[ResultT]:
        ray = _ray()
        started_here = not ray.is_initialized()
        if started_here:
            self._start(ray)
        try:
            width = self.n_jobs or int(ray.cluster_resources().get("CPU", 1))
            options = {"num_cpus": 1, "runtime_env": {"env_vars": ONE_THREAD}}
            remote = ray.remote(max_retries=_ATTEMPTS - 1, **options)(_quietly)
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
        options: dict[str, Any] = {"address": self.address}
        what = f"reached at {self.address!r}"
        constants = ray._private.ray_constants
        before = constants.ENABLE_RAY_CLUSTER
        if self.address is None:
            n_cpus = self.n_jobs or os.cpu_count() or 1
            options = {"address": "local", "include_dashboard": False, "num_cpus": n_cpus}
            what = "started here"
            # Ray has no public setting for it: 127.0.0.1 is replaced by the network's address.
            constants.ENABLE_RAY_CLUSTER = False
        try:
            ray.init(log_to_driver=False, logging_level="error", **options)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise ForewiseError(f"no Ray cluster could be {what}: {error}") from error
        finally:
            constants.ENABLE_RAY_CLUSTER = before
        if self.address is None and ray.util.get_node_ip_address() != _LOOPBACK:
            ray.shutdown()
            raise ForewiseError(
                f"a Ray {ray.__version__} that is started here listens on the network, which was "
                "not asked for: start a cluster yourself, and pass its address"
            )


def _quietly(function: Callable[[TaskT], ResultT], task: TaskT) -> ResultT:
    _start_worker()
    return function(task)


def _start_worker() -> None:
    """Ignore Ctrl-C, which the driver handles, and use one thread."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)


def _start_process(driver: int) -> None:
    """As any worker; and end when the driver is gone, because a killed one cannot end it."""
    _start_worker()

    def watch() -> None:
        while os.getppid() == driver:
            time.sleep(_WATCH_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


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
