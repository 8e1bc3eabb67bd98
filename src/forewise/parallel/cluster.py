"""Tasks on a Ray cluster, or on one that is started here and listens on loopback alone."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from forewise.exceptions import ForewiseError, MissingDependencyError
from forewise.parallel.base import ATTEMPTS, Map, ResultT, TaskT, in_worker, lost
from forewise.validation.parameters import require_count

#: With it a cluster of one computer has the address of loopback, on every system.
_LOOPBACK_ALONE = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"


@dataclass(frozen=True)
class RayMap(Map):
    """Tasks of a Ray cluster, `n_jobs` at a time. It needs the extra `ray`.

    Parameters
    ----------
    n_jobs : int, optional
        As many as the cluster has processors.
    address : str, optional
        Of a cluster: "auto" for the one this computer belongs to, by ``ray start``, or
        "host:6379". By default the one that this program is connected to, or one of this computer's
        own, which ends with the program, listens on loopback and has no dashboard.

    Examples
    --------
    >>> import forewise as fw
    >>> where = fw.parallel.RayMap(16, "auto")
    >>> fw.AutoLearner(fw.Newsvendor(3, 1), map=where).map.n_jobs
    16
    """

    n_jobs: int | None = None
    address: str | None = None

    def __post_init__(self) -> None:
        if self.n_jobs is not None:
            require_count("n_jobs", self.n_jobs, 1)

    def numbered(
        self, function: Callable[[TaskT], ResultT], tasks: Iterable[TaskT]
    ) -> Iterator[tuple[int, ResultT]]:
        ray = connected(self.address, self.n_jobs)
        width = self.n_jobs or max(1, int(ray.cluster_resources().get("CPU", 1)))
        # Retries are counted here: Ray's own would try a task that exhausts memory for ever.
        remote = ray.remote(num_cpus=1, max_retries=0)(in_worker)
        shared = ray.put(function)  # with the data it holds: sent once to every computer
        waiting, deaths = list(enumerate(tasks))[::-1], dict[int, int]()
        running: dict[Any, tuple[int, TaskT]] = {}
        try:
            while waiting or running:
                while waiting and len(running) < width:
                    task = waiting.pop()
                    running[remote.remote(shared, *task)] = task
                (done, *_), _ = ray.wait(list(running), num_returns=1)
                task = running.pop(done)
                try:
                    yield ray.get(done)
                except ray.exceptions.RayTaskError as error:
                    raise error.as_instanceof_cause() from None
                except ray.exceptions.RayError as error:
                    deaths[task[0]] = deaths.get(task[0], 0) + 1
                    if deaths[task[0]] >= ATTEMPTS:
                        raise lost(len(waiting) + len(running) + 1, _reason(error)) from error
                    waiting.insert(0, task)
        finally:
            for reference in running:
                ray.cancel(reference, force=True)


def connected(address: str | None, n_jobs: int | None = None) -> Any:
    """Ray, connected to a cluster; by default to one of this computer's own."""
    own = address is None and not _is_connected()
    if own:
        _require_loopback()
    ray = _imported()
    if ray.is_initialized():
        return ray
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "error"}
    if own:
        options |= {"include_dashboard": False, "num_cpus": n_jobs}
    try:
        _require_listener(address)
        ray.init(address="local" if own else address, **options)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        text = str(error).strip()
        if "ersion" in text and "mismatch" in text:
            raise ForewiseError(
                f"the Ray cluster at {address!r} has other versions of Ray or Python than this "
                f"program, and they must be the same: {text}"
            ) from error
        where = "of this computer's own could be started" if own else f"answers at {address!r}"
        raise ForewiseError(
            f"no Ray cluster {where}: {text}. `ray start --head` starts one; without an address "
            "one of this computer's own is used"
        ) from error
    return ray


def _is_connected() -> bool:
    ray = sys.modules.get("ray")
    return ray is not None and bool(ray.is_initialized())


def _imported() -> Any:
    try:
        import ray
    except ImportError as error:
        raise MissingDependencyError(
            "this needs Ray, which is not installed: pip install 'forewise[ray]'"
        ) from error
    return ray


def _require_loopback() -> None:
    """Ray reads where it listens when it is imported."""
    if os.environ.get(_LOOPBACK_ALONE) == "0":
        return
    if "ray" in sys.modules:
        raise ForewiseError(
            "Ray was imported before, and would listen on all interfaces: connect it yourself with "
            f"ray.init(), or set {_LOOPBACK_ALONE}=0 before the import"
        )
    os.environ[_LOOPBACK_ALONE] = "0"


def _require_listener(address: str | None) -> None:
    """Raise where nothing listens at a "host:port": Ray itself would try for minutes."""
    host, _, port = (address or "").removeprefix("ray://").rpartition(":")
    if host and port.isdecimal():
        socket.create_connection((host, int(port)), timeout=10).close()


def _reason(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    kind = "out of memory" if "OutOfMemory" in type(error).__name__ else type(error).__name__
    return f"{kind}, {lines[0][:200]}" if lines else kind
