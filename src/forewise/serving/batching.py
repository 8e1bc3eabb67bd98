"""Small requests are answered as one batch: a thread that gathers what waits."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

Q = TypeVar("Q")


class BusyError(Exception):
    """The queue is full, or the worker ends."""


@dataclass(frozen=True, eq=False)
class _Waiting(Generic[Q]):
    question: Q
    weight: int
    answer: Future[Any] = field(default_factory=Future)


class Worker(Generic[Q]):
    """One thread that answers questions in batches, in the order they came.

    Parameters
    ----------
    handle : callable
        From a list of questions to a list of answers; an answer may be an exception, which is
        raised to who asked. If `handle` itself raises, each question is asked again alone, so
        that one cannot make the others fail.
    capacity : int
        Questions that may wait.
    window : float
        Seconds to wait for others behind the first, while questions come in numbers: who asks
        alone is answered at once.
    most : int
        Weight at which a batch is full; one question may be heavier.
    """

    def __init__(
        self,
        handle: Callable[[list[Q]], Sequence[Any]],
        *,
        name: str,
        capacity: int,
        window: float,
        most: int,
    ) -> None:
        self._handle = handle
        self._window, self._most = window, most
        self._queue: queue.Queue[_Waiting[Q] | None] = queue.Queue(capacity)
        self._closed = threading.Event()
        self._crowded = False  # the last batch had several questions
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Questions in the queue."""
        return self._queue.qsize()

    @property
    def full(self) -> bool:
        """Whether the next question is refused, unless another is answered before."""
        return self._queue.full()

    @property
    def alive(self) -> bool:
        """Whether it takes questions."""
        return self._thread.is_alive() and not self._closed.is_set()

    def ask(self, question: Q, weight: int = 1) -> Future[Any]:
        """The future answer; cancelled before its turn, it costs nothing. May raise `BusyError`."""
        waiting = _Waiting(question, weight)
        if self._closed.is_set():
            raise BusyError
        try:
            self._queue.put_nowait(waiting)
        except queue.Full:
            raise BusyError from None
        return waiting.answer

    def close(self) -> None:
        """Answer what waits, and end."""
        self._closed.set()
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        ended = False
        while not ended:
            batch, ended = self._gather()
            batch = [w for w in batch if w.answer.set_running_or_notify_cancel()]
            if batch:
                self._answer(batch)

    def _gather(self) -> tuple[list[_Waiting[Q]], bool]:
        """The next batch, and whether it is the last."""
        batch: list[_Waiting[Q]] = []
        weight, until = 0, None
        window = self._window if self._crowded else 0.0
        while weight < self._most:
            left = None if until is None else until - time.monotonic()
            try:
                # What waits already is taken even if the window has passed.
                late = left is not None and left <= 0
                item = self._queue.get_nowait() if late else self._queue.get(timeout=left)
            except queue.Empty:
                break
            if item is None:
                return batch, True
            batch.append(item)
            weight += item.weight
            until = until or time.monotonic() + window
        self._crowded = len(batch) > 1
        return batch, False

    def _answer(self, batch: list[_Waiting[Q]]) -> None:
        try:
            answers = self._handle([w.question for w in batch])
        except Exception as error:
            if len(batch) == 1:
                batch[0].answer.set_exception(error)
            else:
                for waiting in batch:
                    self._answer([waiting])
            return
        for waiting, answer in zip(batch, answers, strict=True):
            if isinstance(answer, Exception):
                waiting.answer.set_exception(answer)
            else:
                waiting.answer.set_result(answer)
