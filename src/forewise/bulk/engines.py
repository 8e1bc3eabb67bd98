"""Where parts are decided: processes of this computer, Ray Data or Dask.

An engine gives a record of every part, in order of completion. A part whose worker died is decided
again; one that kills its workers is recorded as an error, and the others are done.
"""

from __future__ import annotations

import contextlib
import logging
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from forewise.bulk.job import ATTEMPTS, LOST, Job
from forewise.bulk.parts import Part
from forewise.exceptions import ForewiseError, MissingDependencyError
from forewise.parallel import Processes, WorkerLostError
from forewise.parallel.cluster import connected
from forewise.validation.parameters import require_count

_BLOCKS = 4096  # of Ray Data: parts of one block are decided one after the other


@dataclass(frozen=True)
class Engine(ABC):
    """Decides parts in `n_jobs` workers with one thread each.

    Parameters
    ----------
    n_jobs : int
    address : str, optional
        Of a cluster; by default workers of this computer, which listen on loopback alone.

    Examples
    --------
    >>> import forewise as fw
    >>> [engine(2).n_jobs for engine in fw.bulk.Engine.__subclasses__()][:3]
    [2, 2, 2]
    """

    n_jobs: int = 1
    address: str | None = None

    def __post_init__(self) -> None:
        require_count("n_jobs", self.n_jobs, 1)

    @abstractmethod
    def records(self, job: Job, parts: list[Part]) -> Iterator[dict[str, Any]]:
        """What `Job.decide` says of each part, in order of completion."""


@dataclass(frozen=True)
class LocalEngine(Engine):
    """Processes of this computer, without any cluster.

    Examples
    --------
    >>> import forewise as fw
    >>> fw.bulk.LocalEngine(2)
    LocalEngine(n_jobs=2, address=None)
    """

    def records(self, job: Job, parts: list[Part]) -> Iterator[dict[str, Any]]:
        if self.address is not None:
            raise ForewiseError("the local engine has no address: leave it out, or use ray or dask")
        left = {part.name for part in parts}
        try:
            for record in Processes(self.n_jobs).imap_unordered(job.decide, parts):
                left.discard(record["part"])
                yield record
        except WorkerLostError:
            yield from _lost(left)


@dataclass(frozen=True)
class RayEngine(Engine):
    """Ray Data's `map_batches` over parts, streaming, with a pool of actors.

    Examples
    --------
    >>> import forewise as fw
    >>> fw.bulk.RayEngine(16, "auto")
    RayEngine(n_jobs=16, address='auto')
    """

    def records(self, job: Job, parts: list[Part]) -> Iterator[dict[str, Any]]:
        connected(self.address, self.n_jobs)
        import ray.data

        class Worker:  # an actor, with the job in its class: it is restarted without arguments
            def __init__(self) -> None:
                import torch

                torch.set_num_threads(1)
                job.prepare()

            def __call__(self, batch: dict[str, Any]) -> dict[str, list[Any]]:
                return {"record": [job.decide(part) for part in batch["item"]]}

        context = ray.data.DataContext.get_current()
        # A part that kills its worker must not end the others.
        ours = {"enable_progress_bars": False, "max_errored_blocks": -1}
        theirs = {name: getattr(context, name) for name in ours}
        logger, level = logging.getLogger("ray.data"), logging.getLogger("ray.data").level
        left = {part.name for part in parts}
        try:
            for name, value in ours.items():
                setattr(context, name, value)
            logger.setLevel(logging.CRITICAL)
            for row in self._dataset(parts, Worker).iter_rows():
                left.discard(row["record"]["part"])
                yield row["record"]
        finally:
            for name, value in theirs.items():
                setattr(context, name, value)
            logger.setLevel(level)
        yield from _lost(left)

    def _dataset(self, parts: list[Part], worker: type) -> Any:
        import ray.data

        dataset = ray.data.from_items(parts, override_num_blocks=min(len(parts), _BLOCKS))
        return dataset.map_batches(
            worker,
            batch_size=1,
            compute=ray.data.ActorPoolStrategy(
                size=min(self.n_jobs, len(parts)), max_tasks_in_flight_per_actor=1
            ),
            num_cpus=1,
        )


@dataclass(frozen=True)
class DaskEngine(Engine):
    """Tasks of a Dask cluster.

    Examples
    --------
    >>> import forewise as fw
    >>> fw.bulk.DaskEngine(16, "tcp://scheduler:8786").n_jobs
    16
    """

    def records(self, job: Job, parts: list[Part]) -> Iterator[dict[str, Any]]:
        try:
            import dask
            from distributed import as_completed
            from distributed.scheduler import KilledWorker
        except ImportError as error:
            raise MissingDependencyError(
                "this needs Dask, which is not installed: pip install 'forewise[dask]'"
            ) from error
        # Of deaths `Job.decide` keeps count.
        settings = {"distributed.scheduler.allowed-failures": 2 * ATTEMPTS}
        with dask.config.set(settings), self._client() as client:
            futures = client.map(_in_dask, [job] * len(parts), parts, pure=False)
            names = {f.key: part.name for f, part in zip(futures, parts, strict=True)}
            for future in as_completed(futures):
                raised = future.exception()
                if raised is None:
                    yield future.result()
                elif isinstance(raised, KilledWorker):
                    yield from _lost({names[future.key]})
                else:
                    raise raised

    @contextlib.contextmanager
    def _client(self) -> Iterator[Any]:
        from distributed import Client, LocalCluster

        if self.address is None:
            logging.getLogger("distributed").setLevel(logging.CRITICAL)
            with (
                LocalCluster(
                    n_workers=self.n_jobs, threads_per_worker=1, host="127.0.0.1",
                    dashboard_address="127.0.0.1:0", silence_logs=logging.CRITICAL,
                    scheduler_kwargs={"dashboard": False}, worker_dashboard_address=None,
                ) as cluster,
                Client(cluster) as client,
            ):  # fmt: skip
                yield client
            return
        try:
            client = Client(self.address, timeout=20)
        except (OSError, TimeoutError, ValueError) as error:
            raise ForewiseError(
                f"no Dask cluster answers at {self.address!r}: {error}. `dask scheduler` and `dask "
                "worker` start one; without an address workers of this computer are used"
            ) from error
        with client:
            try:
                client.get_versions(check=True)
            except ValueError as error:
                raise ForewiseError(
                    f"the Dask cluster at {self.address!r} has other versions than this program: "
                    f"{error}"
                ) from error
            yield client


def _in_dask(job: Job, part: Part) -> dict[str, Any]:
    import torch

    torch.set_num_threads(1)
    return job.decide(part)


def _lost(names: set[str]) -> Iterator[dict[str, Any]]:
    for name in sorted(names):
        yield {"part": name, "error": f"{name}: {LOST}"}


#: By the name that the command line has for them.
ENGINES: dict[str, type[Engine]] = {"local": LocalEngine, "ray": RayEngine, "dask": DaskEngine}
