"""A table written piece by piece: it appears under its name when it is complete, or not at all."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from pandas.api.types import is_float_dtype

from forewise.exceptions import InvalidInputError, MissingDependencyError, StorageError

_ENDINGS = (".csv", ".parquet", ".xlsx")
_SHEET = 2**20 - 1  # rows below the header of an Excel sheet


def write(table: pd.DataFrame, path: str | Path) -> None:
    """Write a table without its row labels, in place of what was there before."""
    with Writer(path) as writer:
        writer.append(table)


def require_writable(path: str | Path, *endings: str) -> Path:
    """Raise unless the path ends in one of these and its folder exists: said before any work."""
    file = Path(path)
    if file.suffix.lower() not in endings:
        raise InvalidInputError(
            f"the output must end in {', '.join(endings)}, but is {str(file)!r}"
        )
    if not file.absolute().parent.is_dir():
        raise StorageError(f"the output must be in a folder that exists, but is {str(file)!r}")
    if file.is_dir():
        raise StorageError(f"the output must be a file, but {str(file)!r} is a folder")
    return file


class Writer:
    """Rows of one table, appended in pieces with the same columns.

    Within ``with Writer(path) as writer`` rows go to a temporary file beside the path. It gets its
    name at the end; after an error it is removed, and what was there before stays as it was.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = require_writable(path, *_ENDINGS)
        self.rows = 0
        self._kind = self.path.suffix.lower()
        self._temporary = self.path.with_name(f".forewise-{secrets.token_hex(8)}.tmp")
        self._sink: Any = None
        self._sheet: list[pd.DataFrame] = []  # Excel files are written at once

    def __enter__(self) -> Self:
        if self._kind == ".csv":
            self._sink = self._temporary.open("w", encoding="utf-8", newline="")
        return self

    def append(self, table: pd.DataFrame) -> None:
        """Write the rows of a piece after those before it."""
        if self._kind == ".csv":
            header = not self.rows
            texts = {
                name: _texts(column) if is_float_dtype(column.dtype) else column
                for name, column in table.items()
            }
            pd.DataFrame(texts, index=table.index).to_csv(
                self._sink, index=False, header=header, lineterminator="\n"
            )
        elif self._kind == ".parquet":
            self._append_parquet(table)
        elif self.rows + len(table) > _SHEET:
            raise InvalidInputError(
                f"an Excel sheet has at most {_SHEET:,} rows: end the output in .csv or .parquet"
            )
        else:
            self._sheet.append(table)
        self.rows += len(table)

    def __exit__(self, kind: Any, *_: object) -> None:
        try:
            if self._sheet and kind is None:
                self._write_sheet()
            elif self._sink is not None:
                self._sink.close()
            if kind is None:
                with self._temporary.open("rb") as file:
                    os.fsync(file.fileno())
                self._temporary.replace(self.path)
        finally:
            self._temporary.unlink(missing_ok=True)

    def _write_sheet(self) -> None:
        try:
            import openpyxl  # noqa: F401
        except ImportError as error:
            raise _lacking("openpyxl") from error
        with self._temporary.open("wb") as file:
            pd.concat(self._sheet).to_excel(file, index=False, engine="openpyxl")

    def _append_parquet(self, table: pd.DataFrame) -> None:
        try:
            import pyarrow as pa
            from pyarrow.parquet import ParquetWriter
        except ImportError as error:
            raise _lacking("pyarrow") from error
        schema = None if self._sink is None else self._sink.schema
        rows = pa.Table.from_pandas(table, schema=schema, preserve_index=False)
        if self._sink is None:
            self._sink = ParquetWriter(self._temporary, rows.schema)
        self._sink.write_table(rows)


def _texts(column: pd.Series) -> list[str | None]:
    """Numbers with ten digits, formatted at once; None where missing."""
    values = column.to_numpy(dtype=float, na_value=np.nan)
    texts: list[str | None] = list(("%.10g\n" * len(values) % tuple(values.tolist())).split("\n"))
    for place in np.flatnonzero(np.isnan(values)).tolist():
        texts[place] = None
    return texts[:-1]


def _lacking(package: str) -> MissingDependencyError:
    return MissingDependencyError(
        f"this output needs {package}, which is not installed: pip install 'forewise[files]', or "
        "end its name in .csv"
    )
