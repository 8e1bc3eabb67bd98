"""Lines of MPS and SMPS files, cut into fields, and errors that name the file and the line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from forewise.exceptions import InvalidInputError

#: A bound or right-hand side of at least this size is none.
INFINITE = 1e20
# Where the fields of the fixed layout stand, counted from 0; between them are blanks.
_FIXED = ((1, 3), (4, 12), (14, 22), (24, 36), (39, 47), (49, 61))
_GAPS = ((0, 1), (3, 4), (12, 14), (22, 24), (36, 39), (47, 49), (61, None))
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eEdD][+-]?\d+)?")
_INFINITY = re.compile(r"([+-]?)inf(inity)?", re.IGNORECASE)


@dataclass(frozen=True)
class Line:
    """A line that says something; a header starts in the first column and opens a section."""

    path: Path
    number: int
    is_header: bool
    fields: tuple[str, ...]

    def error(self, message: str) -> InvalidInputError:
        """An error that says where it was found."""
        return InvalidInputError(f"{self.path}, line {self.number}: {message}")

    def expected(self, what: str) -> InvalidInputError:
        """An error that says what should stand here instead."""
        return self.error(f"expected {what}, but found {' '.join(self.fields)!r}")

    def value(self, text: str, infinite: bool = False) -> float:
        """A number; one too large to be finite only where `infinite` ones have a meaning."""
        sign = _INFINITY.fullmatch(text)
        if sign is not None and infinite:
            return float(f"{sign[1]}inf")
        if _NUMBER.fullmatch(text) is None:
            raise self.error(f"expected a finite number, but found {text!r}")
        value = float(re.sub("[dD]", "e", text))
        if abs(value) >= INFINITE and not infinite:
            raise self.error(f"expected a number below {INFINITE:g} in size, but found {text!r}")
        return value if abs(value) < INFINITE else float("inf" if value > 0 else "-inf")

    def pairs(self, fields: tuple[str, ...], what: str) -> Iterator[tuple[str, str]]:
        """The (name, number) of a line that has one or two of them."""
        if len(fields) not in (2, 4):
            raise self.expected(what)
        return zip(fields[::2], fields[1::2], strict=True)


def read_lines(path: Path, fixed: bool) -> list[Line]:
    """The lines of a file up to ENDATA, without comments and empty ones.

    With `fixed`, fields are cut by their columns, so that names may have blanks in them; otherwise
    they stand between blanks.
    """
    content = path.read_bytes()
    try:
        text = content.decode()
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    lines: list[Line] = []
    for number, raw in enumerate(re.split("\r\n|\r|\n", text), 1):
        if not raw.strip() or raw.startswith("*"):
            continue
        is_header = not raw[0].isspace()
        fields = tuple(raw.split())
        if is_header and fields[0].upper() == "ENDATA":
            return lines
        line = Line(path, number, is_header, fields)
        if fixed and not is_header:
            if "\t" in raw or any(raw[start:end].strip() for start, end in _GAPS):
                raise line.error("expected the columns of the fixed layout")
            cut = (raw[start:end].strip() for start, end in _FIXED)
            line = Line(path, number, False, tuple(field for field in cut if field))
        lines.append(line)
    raise InvalidInputError(f"{path} ends without ENDATA: it may have been cut short")
