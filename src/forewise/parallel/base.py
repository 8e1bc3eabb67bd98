"""The contract of a map, and what a worker does before its task."""

from __future__ import annotations

import signal
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from forewise.exceptions import ForewiseError

TaskT = TypeVar("TaskT")
ResultT = TypeVar("ResultT")

#: Deaths of workers in a row, without a result between them, before the tasks are given up.
ATTEMPTS = 5


class WorkerLostError(ForewiseError, RuntimeError):
    """Workers died again and again.

    Examples
    --------
    >>> import forewise as fw
    >>> issubclass(fw.parallel.WorkerLostError, fw.ForewiseError)
    True
    """


class Map(ABC):
    """Applies a function to tasks; both must be importable or picklable.

    Tasks should take a second or more. An error of the function, or closing an iterator, ends the
    other tasks.

    Examples
    --------
    >>> import forewise as fw
    >>> list(fw.parallel.Processes().imap(abs, [-2, -1]))
    [2, 1]
    """

    @abstractmethod
    def numbered(
        self, function: Callable[[TaskT], ResultT], tasks: Iterable[TaskT]
    ) -> Iterator[tuple[int, ResultT]]:
        """The number of each task and its result, in order of completion.

        The task of a worker that died is computed again; one that kills its worker `ATTEMPTS` times
        is left to the last and raises a `WorkerLostError`.
        """

    def imap_unordered(
        self, function: Callable[[TaskT], ResultT], tasks: Iterable[TaskT]
    ) -> Iterator[ResultT]:
        """Results in order of completion."""
        for _, result in self.numbered(function, tasks):
            yield result

    def imap(
        self, function: Callable[[TaskT], ResultT], tasks: Iterable[TaskT]
    ) -> Iterator[ResultT]:
        """Results in the order of the tasks, each as soon as those before it are there."""
        waiting: dict[int, ResultT] = {}
        due = 0
        for number, result in self.numbered(function, tasks):
            waiting[number] = result
            while due in waiting:
                yield waiting.pop(due)
                due += 1


def in_worker(
    function: Callable[[TaskT], ResultT], number: int, task: TaskT
) -> tuple[int, ResultT]:
    """Compute a task with one thread; Ctrl-C is the driver's to handle."""
    import torch

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)
    return number, function(task)


def lost(left: int, why: str = "") -> WorkerLostError:
    """What to say when workers die on the tasks that are left."""
    cause = why or "were they killed, or did memory run out"
    return WorkerLostError(
        f"{ATTEMPTS} times a worker died, with {left} tasks left: {cause}? Try fewer at a time; "
        "everything that was finished before is kept"
    )


def applied(function: Callable[..., ResultT], arguments: tuple[Any, ...]) -> ResultT:
    """The function of several arguments, which are one task: ``partial(applied, function)``."""
    return function(*arguments)
