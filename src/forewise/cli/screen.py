"""What commands say: results on standard output, notes and progress on standard error."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.status import Status
from rich.table import Table
from rich.text import Text

__all__ = [
    "as_json",
    "error",
    "escape",
    "interval",
    "note",
    "notes_for_warnings",
    "result",
    "table_of",
    "work",
]


def result(what: Any) -> None:
    """Text with markup or a table, on standard output."""
    Console(highlight=False).print(what)


def note(text: str) -> None:
    """Something worth knowing, on standard error; brackets are no markup."""
    Console(stderr=True, highlight=False).print(Text.assemble(("note: ", "yellow"), text))


def error(text: str) -> None:
    """What went wrong, in one line however wide the terminal is."""
    Console(stderr=True).print(Text.assemble(("error:", "red"), f" {text}"), soft_wrap=True)


def interval(lower: float, upper: float) -> str:
    """Both ends, to three figures."""
    if not np.isfinite([lower, upper]).all():
        return "-"
    return " – ".join(f"{v:,.0f}" if abs(v) >= 1000 else f"{v:.3g}" for v in (lower, upper))


@contextmanager
def work(what: str) -> Iterator[Status]:
    """Say what is being done while it takes its time, where somebody watches."""
    with Console(stderr=True).status(escape(what)) as status:
        yield status


@contextmanager
def notes_for_warnings() -> Iterator[None]:
    """Warnings that forewise means for people become notes, each once."""
    shown: set[str] = set()

    def tell(message: Any, category: type[Warning], *_: Any, **__: Any) -> None:
        text = str(message)
        if issubclass(category, UserWarning) and text not in shown:
            shown.add(text)
            note(text)

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", FutureWarning)
        warnings.showwarning = tell
        yield


def table_of(
    columns: Sequence[str], rows: Iterable[Sequence[Any]], title: str | None = None
) -> Table:
    """A table that fits 80 columns: numbers to the right, the last column wraps."""
    table = Table(
        title=title, title_style="bold", title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False
    )
    cells = [[_cell(value) for value in row] for row in rows]
    for place, name in enumerate(columns):
        right = bool(cells) and all(_is_number(row[place]) for row in cells)
        last = place == len(columns) - 1
        # Only the last column may wrap: it is the one for sentences.
        table.add_column(
            name, justify="right" if right else "left", no_wrap=not last or right, overflow="fold"
        )
    for row in cells:
        table.add_row(*row)
    return table


def as_json(value: Any) -> None:
    """A value as indented JSON on standard output; what is not finite is null."""
    json.dump(_plain(value), sys.stdout, indent=2, ensure_ascii=False, allow_nan=False)
    sys.stdout.write("\n")


def _cell(value: Any) -> str:
    if isinstance(value, float | np.floating):
        number = float(value)
        if not np.isfinite(number):
            return "-"
        return f"{number:,.4g}" if abs(number) < 1e4 else f"{number:,.0f}"
    return value.strftime("%Y-%m-%d") if hasattr(value, "strftime") else str(value)


def _is_number(text: str) -> bool:
    return all(sign in "0123456789.,-–−+e% " for sign in text)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    if hasattr(value, "to_dict") and hasattr(value, "columns"):
        return [_plain(row) for row in value.to_dict("records")]
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    if value is None or isinstance(value, str | int | bool):
        return value
    return value.strftime("%Y-%m-%d") if hasattr(value, "strftime") else str(value)
