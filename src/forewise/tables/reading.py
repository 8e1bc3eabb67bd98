"""A table of a file, whole or in pieces; every message names the file and the row."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from forewise.exceptions import InvalidInputError, MissingDependencyError
from forewise.tables.dialect import sniff

# What files begin with: a name's ending may say something else.
_MAGIC = {b"PAR1": "parquet", b"PK\x03\x04": "excel"}
_FOREIGN = {
    b"\xd0\xcf\x11\xe0": "an old Excel file (.xls): save it as .xlsx or CSV",
    b"\x1f\x8b": "compressed: unpack it first",
    b"%PDF": "a PDF: export the table as CSV",
}
_WIDEST = 2**20  # characters of a cell; a longer one is a quote that nobody closed


def read(path: str | Path) -> pd.DataFrame:
    """The whole table, its rows labelled with their numbers in the file (the header is row 1).

    Cells of a CSV are text, empty ones None. Refused, with the row: rows with too few or too many
    cells, names of columns that are missing or used twice, files without rows.
    """
    return pd.concat(list(chunks(path)))


def chunks(path: str | Path, rows: int = 100_000) -> Iterator[pd.DataFrame]:
    """The table in pieces of at most so many rows, in memory for a few of them.

    CSV and Parquet are read piece by piece; an Excel sheet has a million rows at most and is read
    at once. Parameters and rows as for `read`.
    """
    file = Path(path)
    kind = _kind(file)
    pieces = {"csv": _csv_chunks, "parquet": _parquet_chunks, "excel": _excel_chunks}[kind]
    empty = True
    for piece in pieces(file, rows):
        if len(piece):
            empty = False
            yield piece
    if empty:
        raise InvalidInputError(f"{file} must have rows, but has a header and nothing below it")


def _kind(file: Path) -> str:
    if not file.is_file():
        what = "is a folder" if file.is_dir() else "does not exist"
        raise InvalidInputError(f"{file} must be a file with a table, but {what}")
    with file.open("rb") as opened:
        head = opened.read(8)
    if not head:
        raise InvalidInputError(f"{file} must have a header and rows, but is empty")
    for magic, advice in _FOREIGN.items():
        if head.startswith(magic):
            raise InvalidInputError(f"{file} must be CSV, Parquet or Excel, but is {advice}")
    return next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), "csv")


def _csv_chunks(file: Path, rows: int) -> Iterator[pd.DataFrame]:
    dialect = sniff(file)
    csv.field_size_limit(_WIDEST)
    with file.open(encoding=dialect.encoding, newline="") as opened:
        reader = csv.reader(opened, delimiter=dialect.separator, strict=True)
        above = [*_records(file, reader, dialect.skipped), *_records(file, reader, 1)]
        names = _names(file, above[-1] if len(above) > dialect.skipped else [])
        start = dialect.skipped + 2
        while block := _records(file, reader, rows):
            yield _frame(file, names, block, start)
            start += len(block)


def _records(file: Path, reader: Any, count: int) -> list[list[str]]:
    try:
        return list(islice(reader, count))
    except csv.Error as error:
        raise InvalidInputError(
            f"{file} cannot be read around line {reader.line_num}: {error}. A quote there opens or "
            'closes in the wrong place; write a quote within quotes as ""'
        ) from error
    except UnicodeDecodeError as error:
        raise InvalidInputError(
            f"{file} must be text, but after line {reader.line_num} is not ({error.reason}): save "
            "it as CSV in UTF-8"
        ) from error


def _names(file: Path, header: list[str]) -> list[str]:
    names = [name.strip() for name in header]
    while names and not names[-1]:  # a separator at the end of every row
        names.pop()
    if not names:
        raise InvalidInputError(f"{file} must have names of columns in row 1, but it is empty")
    if "" in names:
        raise InvalidInputError(
            f"{file} must have a name for every column, but column {names.index('') + 1} of the "
            "header (row 1) has none: give it one"
        )
    _refuse_repeated(file, names)
    return names


def _refuse_repeated(file: Path, names: list[str]) -> None:
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        places = "; ".join(
            f"{name!r} in columns {', '.join(str(i + 1) for i, n in enumerate(names) if n == name)}"
            for name in repeated
        )
        raise InvalidInputError(
            f"{file} must have a different name for every column, but the header (row 1) has "
            f"{places}: rename or remove all but one"
        )


def _frame(file: Path, names: list[str], block: list[list[str]], start: int) -> pd.DataFrame:
    index = np.arange(start, start + len(block))
    if set(map(len, block)) != {len(names)}:
        kept = [place for place, record in enumerate(block) if any(record)]
        block = [_fitted(file, names, block[place], start + place) for place in kept]
        index = index[kept]
    columns = zip(*block, strict=True) if block else [()] * len(names)
    cells = {
        name: np.array(_shared(column), dtype=object)
        for name, column in zip(names, columns, strict=True)
    }
    return pd.DataFrame(cells, index=pd.Index(index, name="row"))


def _shared(column: tuple[str, ...]) -> list[str | None]:
    """Cells that are alike as one text in memory, empty ones as None."""
    texts: dict[str, str | None] = {cell: cell for cell in set(column)}
    texts[""] = None
    return [texts[cell] for cell in column]


def _fitted(file: Path, names: list[str], record: list[str], row: int) -> list[str]:
    """A row with one cell per column; only empty cells may be too many."""
    if len(record) < len(names):
        raise InvalidInputError(
            f"{file}, row {row} must have {len(names)} cells, one per column, but has "
            f"{len(record)}: {names[len(record)]!r} and what follows is missing. Complete the row, "
            "or remove it"
        )
    beyond = record[len(names) :]
    if any(beyond):
        raise InvalidInputError(
            f"{file}, row {row} must have {len(names)} cells, one per column, but has "
            f"{len(record)}; after {names[-1]!r} comes {next(filter(None, beyond))!r}. Put quotes "
            "around a cell that contains the separator"
        )
    return record[: len(names)]


def _parquet_chunks(file: Path, rows: int) -> Iterator[pd.DataFrame]:
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise MissingDependencyError(_without("Parquet files", "pyarrow")) from error
    try:
        opened = ParquetFile(file)
        _refuse_repeated(file, list(opened.schema_arrow.names))
        start = 2
        for batch in opened.iter_batches(batch_size=rows):
            index = pd.RangeIndex(start, start + len(batch), name="row")
            yield batch.to_pandas(ignore_metadata=True).set_axis(index)
            start += len(batch)
    except (ArrowException, OSError) as error:
        raise InvalidInputError(f"{file} cannot be read as Parquet: {error}") from error


def _excel_chunks(file: Path, rows: int) -> Iterator[pd.DataFrame]:
    try:
        from openpyxl import load_workbook
    except ImportError as error:
        raise MissingDependencyError(_without("Excel files", "openpyxl")) from error
    try:
        sheet = load_workbook(file, read_only=True, data_only=True).worksheets[0]
    except Exception as error:  # openpyxl lets through whatever its parsers raise
        raise InvalidInputError(
            f"{file} cannot be read as Excel ({error}): save it as CSV"
        ) from error
    table = [list(row) for row in sheet.iter_rows(values_only=True)]
    names = _names(file, ["" if cell is None else str(cell) for cell in table[0]] if table else [])
    for start in range(1, len(table), rows):
        block = [[*row[: len(names)]] for row in table[start : start + rows]]
        kept = [place for place, row in enumerate(block) if any(cell is not None for cell in row)]
        columns = zip(*(block[place] for place in kept), strict=True)
        cells = dict(zip(names, map(list, columns), strict=False))
        index = pd.Index(np.array(kept, dtype=np.int64) + start + 1, name="row")
        yield pd.DataFrame(cells, index=index, columns=names)


def _without(what: str, package: str) -> str:
    return (
        f"{what} need {package}, which is not installed: pip install 'forewise[files]', or save "
        "the table as CSV"
    )
