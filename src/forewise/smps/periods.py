"""The time file: which columns are decided in the first stage."""

from __future__ import annotations

from pathlib import Path

from forewise.exceptions import InvalidInputError
from forewise.smps.core import Core
from forewise.smps.lines import Line


def read_first_columns(lines: list[Line], core: Core, path: Path) -> tuple[str, ...]:
    """The columns of the first of two periods, in the core's order.

    Rows are not taken from here: those of the second stage are those that touch a column of the
    second period or something random.
    """
    section, explicit = "", False
    periods: dict[str, str] = {}  # and the first column of each
    of_column: dict[str, str] = {}
    for line in lines:
        if line.is_header:
            section = line.fields[0].upper()
            explicit |= section == "PERIODS" and "EXPLICIT" in map(str.upper, line.fields[1:])
            if section not in ("TIME", "PERIODS", "ROWS", "COLUMNS"):
                raise line.expected("a section TIME, PERIODS, ROWS, COLUMNS or ENDATA")
        elif section == "PERIODS":
            _put_period(line, core, periods, explicit)
        elif section == "COLUMNS":
            if len(line.fields) != 2 or line.fields[1] not in periods:
                raise line.expected("a column and one of the PERIODS")
            _require_column(line, core, line.fields[0])
            of_column[line.fields[0]] = line.fields[1]
    if len(periods) != 2:
        raise InvalidInputError(
            f"{path}: expected two periods, but found {len(periods)} ({', '.join(periods)}). "
            + (
                "The program has more than two stages; only two are read: put all later periods "
                "into the second one, which relaxes it, or take its two-stage version"
                if len(periods) > 2
                else "Name the first column of each stage under PERIODS"
            )
        )
    first, second = periods
    if not explicit:
        start = core.columns.index(periods[second])
        if not start or core.columns.index(periods[first]) >= start:
            raise InvalidInputError(
                f"{path}: the columns of {first} must stand before {periods[second]!r}, the first "
                f"column of {second}, but none does"
            )
        return core.columns[:start]
    unknown = [name for name in core.columns if name not in of_column]
    if unknown:
        raise InvalidInputError(f"{path}: the column {unknown[0]!r} has no period under COLUMNS")
    return tuple(name for name in core.columns if of_column[name] == first)


def _put_period(line: Line, core: Core, periods: dict[str, str], explicit: bool) -> None:
    fields = line.fields
    if len(fields) != 3 and not (explicit and len(fields) == 1):
        raise line.expected("a column, a row and the name of a period")
    if fields[-1] in periods:
        raise line.error(f"the period {fields[-1]!r} is here for the second time")
    if len(fields) == 3:
        _require_column(line, core, fields[0])
        if fields[1] not in (*core.rows, core.objective):
            raise line.error(f"expected a row of the core file, but found {fields[1]!r}")
    periods[fields[-1]] = fields[0]


def _require_column(line: Line, core: Core, name: str) -> None:
    if name not in core.columns:
        raise line.error(f"expected a column of the core file, but found {name!r}")
