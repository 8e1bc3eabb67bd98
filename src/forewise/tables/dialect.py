"""How a text file of rows and columns is written: its encoding and its separator."""

from __future__ import annotations

import codecs
import csv
import re
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

_SNIFFED = 2**16  # bytes that tell encodings apart
_RECORDS = 200  # rows that tell separators apart
_PIECE = 2**20
# Where two fit alike the first is taken: commas stand in numbers and in text, too.
_SEPARATORS = ("\t", ";", "|", ",")
_BOMS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_EXCEL_LINE = re.compile(r'"?sep=(.)"?\s*', re.IGNORECASE)  # Excel's own first line


@dataclass(frozen=True)
class Dialect:
    """Encoding, separator, and the rows before the header."""

    encoding: str
    separator: str
    skipped: int = 0


def sniff(path: Path) -> Dialect:
    """The dialect of a file, by its bytes: nothing has to be said about it."""
    encoding = _encoding(path)
    with path.open(encoding=encoding, newline="") as file:
        first = file.readline(_SNIFFED)
        if match := _EXCEL_LINE.fullmatch(first):
            return Dialect(encoding, match[1], 1)
        lines = [first, *islice(file, _RECORDS)]
    best = max(_SEPARATORS, key=lambda separator: _fit(lines, separator))
    return Dialect(encoding, best if _fit(lines, best) > (0.0, 0) else ",")


def _encoding(path: Path) -> str:
    """UTF-8 where the whole file is; UTF-16 by its mark or its zeros; Windows' or Latin-1 else."""
    with path.open("rb") as file:
        head = file.read(_SNIFFED)
    for mark, name in _BOMS.items():
        if head.startswith(mark):
            return name
    for place, name in ((1, "utf-16-le"), (0, "utf-16-be")):
        zeros = head[place::2].count(0)
        if zeros > 0.3 * len(head) / 2:
            return name
    return next((n for n in ("utf-8", "cp1252") if _decodes(path, n)), "latin-1")


def _decodes(path: Path, encoding: str) -> bool:
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        with path.open("rb") as file:
            while piece := file.read(_PIECE):
                decoder.decode(piece)
            decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _fit(lines: list[str], separator: str) -> tuple[float, int]:
    """The share of rows that have as many fields as the header, and how many these are."""
    try:
        counts = [len(record) for record in csv.reader(lines, delimiter=separator) if record]
    except csv.Error:
        return (0.0, 0)
    if not counts or counts[0] < 2:
        return (0.0, 0)
    return (sum(count == counts[0] for count in counts) / len(counts), counts[0])
