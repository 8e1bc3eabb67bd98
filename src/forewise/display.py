"""How objects show themselves: the call that makes them, and a small table in a notebook."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import MISSING, fields, is_dataclass
from html import escape
from typing import Any

import numpy as np
import torch

_LONGEST_VECTOR = 8  # entries of a vector that are written out
_ENDS = 3  # entries at the beginning of a longer one
_EXACT_INTEGERS = 1e15
_LINE_BREAK = re.compile(r"\n\s*")  # in the representation of an estimator
ROWS, COLUMNS = 10, 8  # of a table in a notebook


def described(made: Any) -> str:
    """The call that makes an object, as ``Newsvendor(shortage=3, excess=1)``.

    Arguments that have their default values are left out.
    """
    arguments = [
        f"{name}={shown(value)}"
        for name, value, default in _arguments(made)
        if not _is_default(value, default)
    ]
    return f"{type(made).__name__}({', '.join(arguments)})"


def with_shapes(made: Any) -> str:
    """A dataclass of tensors by their shapes, as ``Duals(inequality (4, 1), equality (4, 0))``."""
    parts = []
    for field in fields(made):
        value = getattr(made, field.name)
        if isinstance(value, torch.Tensor):
            parts.append(f"{field.name} {tuple(value.shape)}")
        elif value is not None:
            parts.append(f"{field.name}={shown(value)}")
    return f"{type(made).__name__}({', '.join(parts)})"


def shown(value: Any) -> str:
    """A value in one line: short arrays as numbers, long ones by what is in them."""
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu().numpy()
    if isinstance(value, np.ndarray | np.generic):
        return _shown_array(np.asarray(value))
    if isinstance(value, float):
        return _number(value)
    return _LINE_BREAK.sub(" ", repr(value))


def counted(count: int, noun: str) -> str:
    """A number with its noun, as ``2 decisions``."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def rounded(value: float) -> str:
    """A number for sentences: three digits, or as many as it has before the point."""
    if not math.isfinite(value):
        return "unknown" if math.isnan(value) else f"{value:g}".replace("inf", "infinite")
    size = abs(value)
    if size != 0 and not 1e-4 <= size < 1e12:
        return f"{value:.2e}".replace("-", "−")
    digits = 0 if size == 0 else max(0, 2 - math.floor(math.log10(size)))
    shown = f"{value:,.{digits}f}"
    shown = shown.rstrip("0").rstrip(".") if "." in shown else shown
    return "0" if shown == "-0" else shown.replace("-", "−")


def html_parts(made: Any, **more: str) -> str:
    """An object's arguments as a table for notebooks, one in each row."""
    rows = [(name, shown(value)) for name, value, _ in _arguments(made)]
    return html_table(type(made).__name__, ["part", "what it is"], [*rows, *more.items()])


def html_table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], note: str = ""
) -> str:
    """A table for notebooks; every text is escaped."""
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = "".join(
        "<tr>"
        + "".join(f"<td>{escape(c if isinstance(c, str) else shown(c))}</td>" for c in row)
        + "</tr>"
        for row in rows
    )
    below = f"<p>{escape(note)}</p>" if note else ""
    return (
        f"<div><p><strong>{escape(title)}</strong></p><table><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table>{below}</div>"
    )


def _arguments(made: Any) -> Iterator[tuple[str, Any, Any]]:
    """Name, value and default of each argument that an object keeps as an attribute."""
    factories = {}
    if is_dataclass(made):  # where it makes a new default each time
        factories = {f.name: f.default_factory for f in fields(made)}
    for name, parameter in inspect.signature(type(made)).parameters.items():
        if hasattr(made, name):
            factory = factories.get(name, MISSING)
            default = parameter.default if factory is MISSING else factory()
            yield name, getattr(made, name), default


def _is_default(value: Any, default: Any) -> bool:
    if isinstance(value, torch.Tensor | np.ndarray):
        scalar = isinstance(default, int | float)
        return scalar and bool((value == default).all())
    return value is default or (type(value) is type(default) and bool(value == default))


def _shown_array(array: np.ndarray) -> str:
    if array.ndim == 0:
        return _number(array.item())
    if array.ndim > 1:
        return f"array({' × '.join(map(str, array.shape))})"
    numbers = [_number(entry) for entry in array.tolist()]
    if len(numbers) == 1:  # one for all
        return numbers[0]
    if len(set(numbers)) == 1 and len(numbers) > _LONGEST_VECTOR:
        return f"[{numbers[0]}] * {len(numbers)}"
    if len(numbers) > _LONGEST_VECTOR:
        return f"[{', '.join(numbers[:_ENDS])}, ..., {numbers[-1]}; {len(numbers)} entries]"
    return f"[{', '.join(numbers)}]"


def _number(value: Any) -> str:
    if not isinstance(value, float):
        return str(value)
    if value.is_integer() and abs(value) < _EXACT_INTEGERS:
        return str(int(value))
    return f"{value:.6g}"
