"""From a program to its three files, in free layout."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from forewise.exceptions import InvalidInputError
from forewise.smps.core import Core
from forewise.smps.distribution import Continuous, Discrete, Element, Group, Place
from forewise.smps.two_stage import TwoStageProgram

_CODES = {Place.LOWER: "LO", Place.UPPER: "UP", Place.FIXED: "FX"}
_BOUND_SET = "BND"


def write(program: TwoStageProgram, folder: str | os.PathLike[str]) -> Path:
    """Write a program to a folder, as .cor, .tim and .sto file; `read` gives the same program back.

    Numbers are written with all their digits. SCENARIOS become one block of BLOCKS, and a RANGES
    entry of an equality one of the inequality that it is. The files are called by the program's
    name, and those of that name replaced.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> import forewise as fw
    >>> core = fw.smps.Core(
    ...     name="shop",
    ...     objective="cost",
    ...     rows=("demand",),
    ...     columns=("order", "rush"),
    ...     matrix=sp.csr_matrix([[1.0, 1.0]]),
    ...     cost=np.array([1.0, 3.0]),
    ...     constant=0.0,
    ...     rhs=np.array([10.0]),
    ...     below=np.array([0.0]),
    ...     above=np.array([np.inf]),
    ...     lower=np.zeros(2),
    ...     upper=np.full(2, np.inf),
    ... )
    >>> demand = fw.smps.Element(fw.smps.Place.RIGHT_SIDE, row="demand")
    >>> values, probabilities = np.array([[8.0], [12.0]]), np.array([0.5, 0.5])
    >>> groups = (fw.smps.Discrete("demand", (demand,), values, probabilities),)
    >>> folder = fw.smps.write(fw.smps.TwoStageProgram(core, 1, groups), "shop_smps")
    >>> fw.smps.read(folder).n_scenarios
    2
    """
    core = program.core
    for name in (core.objective, *core.rows, *core.columns):
        if len(name.split()) != 1:
            raise InvalidInputError(
                f"names must have no blanks in them to be written, but one is {name!r}"
            )
    sides = _set_name(core)
    target = Path(folder).expanduser()
    target.mkdir(parents=True, exist_ok=True)
    stem = "".join(c if c.isalnum() or c in "-_" else "_" for c in core.name) or "program"
    lines = {
        "cor": _core_lines(core, sides),
        "tim": _time_lines(program),
        "sto": _stoch_lines(program, sides),
    }
    for ending, text in lines.items():
        (target / f"{stem}.{ending}").write_text("\n".join([*text, "ENDATA", ""]), "utf-8")
    return target


def _set_name(core: Core) -> str:
    """A name for the right-hand side that no column has."""
    name = "RHS"
    while name in core.columns:
        name += "_"
    return name


def _core_lines(core: Core, sides: str) -> Iterator[str]:
    yield f"NAME {core.name}".rstrip()
    yield "ROWS"
    yield f" N {core.objective}"
    ranges = {}
    for i, name in enumerate(core.rows):
        below, above = core.below[i], core.above[i]
        sense = "E" if below == above == 0 else "L" if above == 0 else "G" if below == 0 else "N"
        width = -below if sense == "L" else above
        if sense in "LG" and np.isfinite(width):
            ranges[name] = width
        yield f" {sense} {name}"
    yield "COLUMNS"
    columns = core.matrix.tocsc()
    for j, name in enumerate(core.columns):
        span = slice(columns.indptr[j], columns.indptr[j + 1])
        if core.cost[j] or span.start == span.stop:
            yield f" {name} {core.objective} {_text(core.cost[j])}"
        for i, value in zip(columns.indices[span], columns.data[span], strict=True):
            yield f" {name} {core.rows[i]} {_text(value)}"
    yield "RHS"
    if core.constant:
        yield f" {sides} {core.objective} {_text(-core.constant)}"
    yield from (
        f" {sides} {name} {_text(value)}"
        for name, value in zip(core.rows, core.rhs, strict=True)
        if value
    )
    if ranges:
        yield "RANGES"
        yield from (f" RNG {name} {_text(width)}" for name, width in ranges.items())
    yield "BOUNDS"
    for j, name in enumerate(core.columns):
        for code, value in _bounds(core.lower[j], core.upper[j]):
            yield f" {code} {_BOUND_SET} {name} {value}".rstrip()


def _bounds(lower: float, upper: float) -> Iterator[tuple[str, str]]:
    if lower == upper:
        yield "FX", _text(lower)
    elif lower == -np.inf and upper == np.inf:
        yield "FR", ""
    else:
        if lower:
            yield ("MI", "") if lower == -np.inf else ("LO", _text(lower))
        if upper != np.inf:
            yield "UP", _text(upper)


def _time_lines(program: TwoStageProgram) -> Iterator[str]:
    core, second = program.core, program.second_stage
    yield f"TIME {core.name}".rstrip()
    yield "PERIODS"
    row = core.rows[int(np.argmax(second))] if second.any() else core.objective
    yield f" {core.columns[0]} {core.objective} STAGE1"
    yield f" {core.columns[program.n_decisions]} {row} STAGE2"


def _stoch_lines(program: TwoStageProgram, sides: str) -> Iterator[str]:
    yield f"STOCH {program.name}".rstrip()
    section, blocks = "", 0
    for group in program.groups:
        header = _header(group)
        if header != section:
            yield header
            section = header
        if isinstance(group, Continuous):
            first, second = _text(group.first), _text(group.second)
            yield f" {_head(group.element, program, sides)} {first} {second}"
        elif header.startswith("INDEP"):
            head = _head(group.elements[0], program, sides)
            for value, probability in zip(group.values[:, 0], group.probabilities, strict=True):
                yield f" {head} {_text(value)} {_text(probability)}"
        else:
            blocks += 1
            heads = [_head(element, program, sides) for element in group.elements]
            for values, probability in zip(group.values, group.probabilities, strict=True):
                yield f" BL BLOCK{blocks} STAGE2 {_text(probability)}"
                for head, value in zip(heads, values, strict=True):
                    yield f" {head} {_text(value)}"


def _header(group: Group) -> str:
    if isinstance(group, Discrete):
        return f"{'INDEP' if group.name == str(group.elements[0]) else 'BLOCKS'} DISCRETE"
    return f"INDEP {group.family}"


def _head(element: Element, program: TwoStageProgram, sides: str) -> str:
    if element.place in _CODES:
        return f"{_CODES[element.place]} {_BOUND_SET} {element.column}"
    return f"{element.column or sides} {element.row or program.core.objective}"


def _text(value: float) -> str:
    return repr(float(value))
