"""Units of work, and the results table on disk: ``rows.jsonl``, one row of JSON per line.

`Work` is the contract between the runner and the kinds of experiments (`fits`, `rolling`);
`compute` is what a map applies to each, in any process: rows and files go back to the run.

Rows are appended and never changed. One run at a time writes to a folder and holds a lock on the
table, which the system releases when the process ends. A row is appended with one write; what a
killed run left of its last line is removed by the next one. Reading needs no lock.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import time
import traceback
import warnings
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, Self

import pandas as pd

import forewise as fw
from forewise.learners.out_of_fold import one_thread
from forewise_lab.machine import versions

TABLE = "rows.jsonl"
#: Columns of the table, in the order that people read them.
COLUMNS = (
    *("experiment", "method", "seed", "n_train", "m_train", "m", "metric", "value"),
    *("seconds", "decide_seconds", "peak_memory_mib", "forewise", "torch", "numpy", "python"),
    *("revision", "dirty", "quick", "config_hash", "finished_at", "note"),
)
#: Columns that differ from one run of the same fit to the next.
VARYING = (
    *("seconds", "decide_seconds", "peak_memory_mib", "finished_at", "revision", "dirty", "note"),
)
#: Columns that identify a row.
KEY = ("experiment", "method", "seed", "n_train", "m_train", "m", "metric", "config_hash")
#: Metric of the row of a fit that failed; its `note` says why.
ERROR = "error"

Key = tuple[Any, ...]
Row = dict[str, Any]


@dataclass(frozen=True)
class Product:
    """Rows of the table, and files that they refer to, by their path in the results folder."""

    rows: list[Row]
    files: Mapping[str, bytes] = field(default_factory=dict)


class Work(ABC):
    """One unit of work; frozen and picklable."""

    #: Whether rows of an equal work of another experiment serve as well. Not where rows come
    #: with files, which have the experiment's name.
    borrows: ClassVar[bool] = False

    @property
    @abstractmethod
    def name(self) -> str:
        """Name in progress messages."""

    @abstractmethod
    def columns(self) -> Row:
        """Key columns that all its rows share."""

    @abstractmethod
    def row_keys(self) -> Iterator[Key]:
        """Keys of the rows it gives; called to see whether it is finished."""

    @property
    @abstractmethod
    def source(self) -> Hashable | None:
        """The real data it reads; None if it reads none."""

    @abstractmethod
    def require_data(self) -> None:
        """Raise if these data are missing; called once for each source, at the start."""

    @abstractmethod
    def produce(self) -> Product:
        """Compute; called by `compute`, which turns a failure into a row."""


@dataclass(frozen=True)
class FitResult(Product):
    """Rows and files of a work, its wall time, and why it failed."""

    fit: Work = field(kw_only=True)
    seconds: float = field(kw_only=True)
    error: str | None = None


def key_of(row: Row) -> Key:
    """The key of a row."""
    return tuple(row[column] for column in KEY)


def hash_of(identity: object) -> str:
    """Short hash of plain values: the configuration hash of a row."""
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:12]


def compute(fit: Work) -> FitResult:
    """Fit and evaluate, with one thread; a failure becomes a row with metric ``"error"``."""
    started = time.perf_counter()
    error = None
    with one_thread(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            made = fit.produce()
        except Exception as failure:  # of any library: one fit must not end a night of them
            error = f"{type(failure).__name__}: {failure}"
            if not isinstance(failure, fw.ForewiseError):
                place = traceback.extract_tb(failure.__traceback__)[-1]
                error += f" (line {place.lineno} of {Path(place.filename).name})"
            made = Product([fit.columns() | {"m": 0, "metric": ERROR, "value": None}])
    notes = dict.fromkeys(str(warning.message) for warning in caught)
    common = versions() | {
        "finished_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "note": error or "; ".join(notes) or None,
    }
    rows, seconds = [row | common for row in made.rows], time.perf_counter() - started
    return FitResult(rows, made.files, error, fit=fit, seconds=seconds)


@contextmanager
def storage_errors(action: str, folder: Path) -> Iterator[None]:
    """Turn errors of the system into a `StorageError`."""
    try:
        yield
    except OSError as error:
        raise fw.exceptions.StorageError(
            f"cannot {action} {str(folder)!r}: {error.strerror or error}; all finished rows are "
            "kept: resolve it, or choose another folder, and run the same again to go on"
        ) from error


class RowTable:
    """The rows of a folder, for the run that adds to them; a context manager.

    `quick` marks the rows to come as those of a quick run; a folder has either these or rows of
    full runs. Raises a `StorageError` if another run writes to the folder, it cannot be written to,
    or has rows of the other kind.
    """

    def __init__(self, folder: str | os.PathLike[str], *, quick: bool = False) -> None:
        self.folder = Path(folder)
        self._quick = quick
        self._rows: dict[Key, Row] = {}
        self._any_experiment: dict[Key, Row] = {}
        with storage_errors("open", self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_APPEND | os.O_CREAT
            self._file = os.open(self.folder / TABLE, flags, 0o666)
        try:
            self._lock_and_read()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __contains__(self, key: Key) -> bool:
        return key in self._rows

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows.values())

    def close(self) -> None:
        os.close(self._file)

    def borrowed(self, keys: Iterable[Key]) -> list[Row]:
        """Rows of other experiments that differ in the experiment's name only, under these keys.

        Empty unless there is one for every key.
        """
        found = [(key, self._any_experiment.get(key[1:])) for key in keys]
        if any(row is None for _, row in found):
            return []
        return [(row or {}) | dict(zip(KEY, key, strict=True)) for key, row in found]

    def append(self, rows: Iterable[Row]) -> int:
        """Add rows whose key is new, each with one write; the number of rows added.

        If the disk is full or refuses, a `StorageError`; no part of a row is left then.
        """
        before = len(self._rows)
        with storage_errors("write to", self.folder):
            for row in rows:
                if key_of(row) not in self._rows:
                    whole = dict.fromkeys(COLUMNS) | row | {"quick": self._quick}
                    self._write(json.dumps(whole).encode() + b"\n")
                    self._remember(whole)
            os.fsync(self._file)
        return len(self._rows) - before

    def _lock_and_read(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise fw.exceptions.StorageError(
                f"another run is writing to {str(self.folder)!r}: wait for it, or choose another "
                "folder as output"
            ) from error
        content = (self.folder / TABLE).read_bytes()
        end = content.rfind(b"\n") + 1
        for row in _parsed(content[:end], self.folder / TABLE):
            if bool(row.get("quick")) != self._quick:
                has, other = ("full", "quick") if self._quick else ("quick", "full")
                raise fw.exceptions.StorageError(
                    f"{str(self.folder)!r} has results of a {has} run, and those of a {other} one "
                    "must not be added: choose another folder as output"
                )
            self._remember(row)
        if end < len(content):
            os.ftruncate(self._file, end)

    def _remember(self, row: Row) -> None:
        key = key_of(row)
        self._rows.setdefault(key, row)
        self._any_experiment.setdefault(key[1:], row)

    def _write(self, line: bytes) -> None:
        """One write; if the system takes a part only, that part is removed."""
        before = os.fstat(self._file).st_size
        try:
            if os.write(self._file, line) != len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError:
            os.ftruncate(self._file, before)
            raise


def read_rows(folder: str | os.PathLike[str]) -> pd.DataFrame:
    """The results table of a folder, one row per metric; can be called while a run is writing.

    Values are raw, in the problem's own unit; `quick` marks rows of a quick run, whose numbers mean
    nothing. A line that cannot be read is left out, with a warning. Rows of a fit that failed
    (metric ``"error"``) are left out once the fit has succeeded.
    """
    path = Path(folder) / TABLE
    try:
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise fw.exceptions.StorageError(
            f"there are no results in {str(folder)!r}: {TABLE} is missing; `run` makes it"
        ) from error
    except OSError as error:
        raise fw.exceptions.StorageError(f"cannot read {str(path)!r}: {error.strerror}") from error
    table = pd.DataFrame(list(_parsed(content, path)), columns=None)
    table = table.reindex(columns=[*COLUMNS, *table.columns.difference(COLUMNS)])
    table = table.drop_duplicates(list(KEY), ignore_index=True)
    # Rows from before there was this column are of full runs.
    table["quick"] = table["quick"].eq(True)
    which = [column for column in KEY if column not in ("m", "metric")]
    failed = table["metric"] == ERROR
    succeeded = table[~failed][which].drop_duplicates()
    settled = table[which].merge(succeeded, how="left", indicator=True)["_merge"] == "both"
    return table[~(failed & settled.to_numpy())].reset_index(drop=True)


def _parsed(content: bytes, path: Path) -> Iterator[Row]:
    for number, line in enumerate(content.splitlines(keepends=True), start=1):
        try:
            row: Any = json.loads(line) if line.endswith(b"\n") else None
        except ValueError:
            row = None
        if isinstance(row, dict) and row.keys() >= set(KEY):
            yield row
        else:
            message = f"line {number} of {path} is damaged or unfinished and was left out"
            warnings.warn(message, stacklevel=3)
