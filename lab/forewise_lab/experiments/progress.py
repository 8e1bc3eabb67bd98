"""What a person sees while a grid is computed: how much is done, and how long it will take.

May import: its sibling `work`.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from forewise_lab.experiments.work import FitResult, Work

_SHOWN = 2  # figures of a fit that a line has


class Forecast:
    """How long the fits that are left will take, learned from those that are done.

    A fit like one that has finished (same experiment, method and sizes) takes as long as that
    did; others take what was guessed, times how wrong the guesses have been so far.
    """

    def __init__(self, fits: Iterable[Work], jobs: int) -> None:
        self._left = {fit.identifier: fit for fit in fits}
        self._jobs = jobs
        self._like: dict[tuple[object, ...], list[float]] = {}
        self._took = self._guessed = 0.0

    def done(self, fit: Work, seconds: float | None) -> None:
        """Take notice of a fit that is done; `seconds` is None if somebody else has done it."""
        self._left.pop(fit.identifier, None)
        if seconds is not None:
            self._like.setdefault(fit.alike, []).append(seconds)
            self._took += seconds
            self._guessed += fit.rough_seconds

    def seconds_left(self) -> float | None:
        """Seconds until all are done; None before the first is."""
        if not self._guessed:
            return None
        total = 0.0
        for fit in self._left.values():
            like = self._like.get(fit.alike)
            guess = fit.rough_seconds * self._took / self._guessed
            total += sum(like) / len(like) if like else guess
        return total / max(1, min(self._jobs, len(self._left)))


class GridProgress:
    """A bar and a line per fit on a terminal, the lines alone elsewhere, or nothing at all."""

    def __init__(self, fits: list[Work], n_done: int, jobs: int, *, shown: bool) -> None:
        self._console = Console(stderr=True, quiet=not shown)
        self._forecast = Forecast(fits, jobs)
        self._n_done, self._total = n_done, n_done + len(fits)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            console=self._console,
            disable=not (shown and self._console.is_terminal),
        )
        self._task = self._bar.add_task("fits", total=self._total, completed=n_done, left="")

    def __enter__(self) -> Self:
        if self._n_done:
            self.say(f"{self._n_done} of {self._total} fits were finished before")
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def say(self, message: str) -> None:
        """Print a line."""
        self._console.print(message, highlight=False, markup=False, soft_wrap=True)

    def finished(self, result: FitResult) -> None:
        """Show a fit that has finished here."""
        self._count(result.fit, result.seconds)
        told = result.error or _figures(result)
        left = self._left()
        self.say(
            f"{self._n_done}/{self._total} {result.fit.name}: {told}; {result.seconds:.1f} s"
            + (f"; {left}" if left else "")
        )

    def finished_elsewhere(self, fit: Work) -> None:
        """Count a fit that another run has finished."""
        self._count(fit, None)

    def _count(self, fit: Work, seconds: float | None) -> None:
        self._n_done += 1
        self._forecast.done(fit, seconds)
        self._bar.update(self._task, completed=self._n_done, left=self._left())

    def _left(self) -> str:
        seconds = self._forecast.seconds_left()
        if seconds is None or self._n_done == self._total:
            return ""
        return f"about {_duration(seconds)} left"


def _figures(result: FitResult) -> str:
    """The first figures of the last M."""
    last = result.rows[-1]["m"]
    of_last = [row for row in result.rows if row["m"] == last]
    return ", ".join(f"{row['metric']} {row['value']:.4g}" for row in of_last[:_SHOWN])


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
