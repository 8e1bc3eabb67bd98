"""The progress bar of training: both losses and the validation regret.

May import: nothing of forewise.
"""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

_FIGURES = ("loss", "validation", "regret")


class TrainingBar:
    """A line on the terminal, or nothing where there is no terminal or none is wanted."""

    def __init__(self, title: str, epochs: int, *, shown: bool) -> None:
        console = Console(stderr=True)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            TextColumn("{task.completed:.0f}/{task.total:.0f}"),
            TextColumn("{task.fields[figures]}"),
            TimeRemainingColumn(),
            console=console,
            disable=not (shown and console.is_terminal),
        )
        self._task = self._bar.add_task(title, total=epochs, figures="")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def show(self, history: list[dict[str, float]]) -> None:
        """Show the figures of the last epoch; a figure that is not taken every epoch stays."""
        latest = {name: record[name] for record in history for name in _FIGURES if name in record}
        told = "  ".join(f"{name} {value:.4g}" for name, value in latest.items())
        self._bar.update(self._task, completed=len(history), figures=told)
