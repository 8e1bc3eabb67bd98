"""The policies that are served: the current edition of each, and the watch for new ones."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from forewise import tables
from forewise.exceptions import InvalidInputError, StorageError
from forewise.planner.policy import PlannerPolicy, load_policy
from forewise.serving.batching import BusyError, Worker
from forewise.serving.card import example
from forewise.serving.deciding import Answer, Edition, Question, decide, explain, kind
from forewise.serving.past import Past
from forewise.serving.reading import RequestError
from forewise.serving.telemetry import LOG, Metrics
from forewise.serving.whatif import Situations, WhatIf, view

_ATTEMPTS = 5
_Q = TypeVar("_Q")


@dataclass(frozen=True)
class Limits:
    """What a request may ask for, and how many may wait.

    Parameters
    ----------
    body_bytes : int
    rows : int
        Of one request, and of its past ten times as many.
    scenarios : int
        Of each row.
    seconds : float
        For one request, waiting included.
    waiting : int
        Requests in a policy's queue.
    connections : int
        Requests that are read or answered at a time.
    window : float
        Seconds that a request waits for others to be solved with.
    batch_rows : int
        Rows at which a batch is full; 1 decides requests one by one.
    """

    body_bytes: int = 8 * 2**20
    rows: int = 2000
    scenarios: int = 4096
    seconds: float = 30.0
    waiting: int = 128
    connections: int = 512
    window: float = 0.002
    batch_rows: int = 256


class Served:
    """One policy by its name: its folder, its current edition and the threads that answer."""

    def __init__(
        self, name: str, folder: Path, table: Path | None, limits: Limits, metrics: Metrics
    ) -> None:
        self.name, self.folder, self.table = name, folder, table
        self._metrics = metrics
        self._seen = self._marks()
        self.edition = self._load()
        self.deciding = Worker[Question](
            self._decide,
            name=f"decide-{name}",
            capacity=limits.waiting,
            window=limits.window,
            most=limits.batch_rows,
        )
        # Explanations take longer: decisions must not wait for them.
        self.explaining = Worker[Question](
            self._explain, name=f"explain-{name}", capacity=limits.waiting, window=0.0, most=1
        )
        self._situations = Situations()
        self.wondering = Worker[WhatIf](
            self._wonder, name=f"whatif-{name}", capacity=limits.waiting, window=0.0, most=1
        )
        metrics.waiting.labels(name).set_function(lambda: self.deciding.waiting)

    @property
    def workers(self) -> list[Worker[Any]]:
        """All that answer."""
        return [self.deciding, self.explaining, self.wondering]

    def ask(self, worker: Worker[_Q], question: _Q, weight: int = 1) -> Future[Any]:
        """The future answer (edition, result); a `RequestError` if too many wait."""
        try:
            return worker.ask(question, weight)
        except BusyError:
            raise RequestError(
                429, f"too many requests wait for {self.name!r}: ask again later", 1
            ) from None

    def renew(self) -> bool:
        """Take over what the folder or the table has anew; whether something was."""
        marks = self._marks()
        if marks == self._seen:
            return False
        self._seen = marks
        fields = {"policy": self.name}
        try:
            edition = self._load()
        except Exception as error:
            # The old edition goes on; the next change of the folder is the next attempt.
            self._metrics.loads.labels(self.name, "refused").inc()
            LOG.error("policy refused", extra={"fields": fields | {"why": str(error)}})
            return False
        self.edition = edition
        self._metrics.loads.labels(self.name, "taken").inc()
        LOG.info("policy taken over", extra={"fields": fields | {"version": edition.version}})
        return True

    def close(self) -> None:
        """Answer what waits, and end."""
        for worker in self.workers:
            worker.close()

    def _marks(self) -> list[tuple[int, int, int] | None]:
        """What tells that a file is another than before."""
        found: list[tuple[int, int, int] | None] = []
        for file in (self.folder / "header.json", self.table):
            try:
                stat = None if file is None else file.stat()
            except OSError:
                stat = None
            found.append(None if stat is None else (stat.st_mtime_ns, stat.st_ino, stat.st_size))
        return found

    def _load(self) -> Edition:
        """The policy of the folder, loaded and tried out."""
        for _ in range(_ATTEMPTS):
            version = _version(self.folder)
            policy = load_policy(self.folder)
            if _version(self.folder) == version:
                break
        else:
            raise StorageError(f"{str(self.folder)!r} was written to while it was read: try again")
        sort = kind(policy)
        past = None
        if self.table is not None:
            if not isinstance(policy, PlannerPolicy) or policy.roles.date is None:
                raise InvalidInputError(
                    f"a table of the past is for policies of a planner with a date, but "
                    f"{self.name!r} is a {sort}: leave the table out"
                )
            past = Past(policy, tables.read(self.table))
        now = datetime.now(UTC).isoformat(timespec="seconds")
        edition = Edition(policy, version, now, past)
        first = example(edition)
        if first is not None:
            answer = decide(edition, [Question(**first)])[0]
            if isinstance(answer, Exception):
                raise answer
        return edition

    def _decide(self, questions: list[Question]) -> list[Any]:
        edition = self.edition  # the same for the whole batch
        start = time.perf_counter()
        answers = decide(edition, questions)
        self._metrics.library.labels(self.name).observe(time.perf_counter() - start)
        self._metrics.batch.labels(self.name).observe(len(questions))
        for answer in answers:
            for row in answer.rows if isinstance(answer, Answer) else ():
                self._metrics.rows.labels(self.name, row["status"]).inc()
        return [a if isinstance(a, Exception) else (edition, a) for a in answers]

    def _explain(self, questions: list[Question]) -> list[Any]:
        edition = self.edition
        return [(edition, explain(edition, question)) for question in questions]

    def _wonder(self, questions: list[WhatIf]) -> list[Any]:
        edition = self.edition
        return [(edition, view(edition, self._situations, question)) for question in questions]


class Shelf:
    """Policies by name.

    Parameters
    ----------
    folders : dict of str to path
    tables : dict of str to path, optional
        Tables of the past, by the policy's name.
    limits : Limits, optional
    watch : float
        Seconds between looks at the folders.
    """

    def __init__(
        self,
        folders: Mapping[str, Path],
        tables: Mapping[str, Path] | None = None,
        limits: Limits | None = None,
        watch: float = 1.0,
    ) -> None:
        if not folders:
            raise InvalidInputError("there must be a policy to serve, but none is named")
        self.limits, self.metrics = limits or Limits(), Metrics()
        own = dict(tables or {})
        if unknown := sorted(own.keys() - folders.keys()):
            raise InvalidInputError(f"tables must belong to policies, but {unknown[0]!r} is none")
        self.policies = {
            name: Served(name, Path(folder), own.get(name), self.limits, self.metrics)
            for name, folder in folders.items()
        }
        self._ended = threading.Event()
        self._watcher = threading.Thread(
            target=self._watch, args=(watch,), name="watch", daemon=True
        )
        self._watcher.start()

    @property
    def names(self) -> Sequence[str]:
        """Names of the policies."""
        return list(self.policies)

    @property
    def ready(self) -> bool:
        """Whether every policy takes questions."""
        return all(worker.alive for p in self.policies.values() for worker in p.workers)

    @property
    def full(self) -> bool:
        """Whether no policy can take another request for decisions."""
        return all(p.deciding.full for p in self.policies.values())

    def find(self, name: str | None) -> Served:
        """The policy of a name; without a name, the only one."""
        if name is None and len(self.policies) == 1:
            return next(iter(self.policies.values()))
        if name is None:
            raise RequestError(
                422, f"policy must be one of {', '.join(self.names)}, but is missing"
            )
        if name not in self.policies:
            raise RequestError(404, f"there is no policy {name[:80]!r}: see GET /policies")
        return self.policies[name]

    def close(self) -> None:
        """Answer what waits, and end all threads."""
        self._ended.set()
        self._watcher.join()
        for policy in self.policies.values():
            policy.close()

    def _watch(self, seconds: float) -> None:
        while not self._ended.wait(seconds):
            for policy in self.policies.values():
                policy.renew()


def _version(folder: Path) -> str:
    """The checksum in a policy's header."""
    try:
        return str(json.loads((folder / "header.json").read_bytes())["sha256"])[:16]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StorageError(f"no policy is stored in {str(folder)!r}: {error}") from error
