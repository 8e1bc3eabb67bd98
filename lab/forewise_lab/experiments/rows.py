"""The results table on disk: one row of JSON per line, appended and never changed.

    folder/
      rows.jsonl       the table
      rows.lock        locked while somebody writes; empty
      damaged.jsonl    lines that could not be read, set aside
      costs/           costs of single decisions, for experiments that roll over time

A row is appended with one write under a lock, so that rows of several writers do not mix; a
writer that was killed leaves at most one unfinished line, which the next run sets aside. The file
is opened anew for each append: whoever repairs it may replace it. May import: exceptions, and its
siblings `work` (for the key) and `disk`.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd

from forewise.exceptions import StorageError
from forewise_lab.experiments.disk import told
from forewise_lab.experiments.work import ERROR, KEY, Key, key_of

TABLE, LOCK, DAMAGED = "rows.jsonl", "rows.lock", "damaged.jsonl"
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


class RowTable:
    """The rows of a folder, for one who adds to them.

    Parameters
    ----------
    folder : path
        Made if it does not exist.
    quick : bool
        Whether the rows to come are those of a quick run, whose figures mean nothing. They are
        marked, and a folder has either these or whole ones.

    Attributes
    ----------
    set_aside : int
        Damaged lines that were found and moved to ``damaged.jsonl``.

    Raises
    ------
    StorageError
        If the folder cannot be written to, or has rows of the other kind.
    """

    def __init__(self, folder: str | os.PathLike[str], *, quick: bool = False) -> None:
        self.folder = Path(folder)
        self._quick = quick
        self.set_aside = 0
        self._keys: set[Key] = set()
        self._nameless: dict[Key, dict[str, Any]] = {}
        self._read_to = 0
        self._last_line = b""
        with told("open", self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            with self._locked():
                self._repair()
            self._refresh()

    def __contains__(self, key: Key) -> bool:
        return key in self._keys

    def __len__(self) -> int:
        return len(self._keys)

    def refresh(self) -> None:
        """Take notice of rows that others have added."""
        with told("read", self.folder):
            self._refresh()

    def borrowed(self, keys: Iterable[Key]) -> list[dict[str, Any]]:
        """Rows of other experiments that differ in the experiment's name only, under these keys.

        Empty unless there is one for every key.
        """
        found = []
        for key in keys:
            row = self._nameless.get(_nameless(key))
            if row is None:
                return []
            found.append(row | dict(zip(KEY, key, strict=True)))
        return found

    def append(self, rows: Iterable[dict[str, Any]]) -> int:
        """Add rows, each with one write, but none whose key is there already.

        Returns
        -------
        int
            Number of rows added.

        Raises
        ------
        StorageError
            If the disk is full or refuses. The rows before are kept, and no part of a row is
            left behind.
        """
        added = 0
        with told("write to", self.folder), self._locked():
            if not self._ends_well():
                self._repair()
            self._refresh()
            descriptor = os.open(self.folder / TABLE, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
            try:
                for row in rows:
                    row = row | {"quick": self._quick}
                    key = key_of(row)
                    if key not in self._keys:
                        _write_line(descriptor, _line(row))
                        self._remember(key, row)
                        added += 1
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            self._refresh()
        return added

    def _refresh(self) -> None:
        """Read from where reading stopped last; from the start if the file was repaired since."""
        try:
            with open(self.folder / TABLE, "rb") as file:
                file.seek(self._read_to - len(self._last_line))
                if file.read(len(self._last_line)) != self._last_line:
                    file.seek(0)
                    self._read_to, self._keys, self._nameless = 0, set(), {}
                content = file.read()
        except FileNotFoundError:
            return
        # The last line may be in the middle of being written.
        whole = content[: content.rfind(b"\n") + 1]
        self._read_to += len(whole)
        for line in whole.splitlines(keepends=True):
            self._last_line = line
            row = _row(line)
            if row is not None:
                self._require_own_kind(row)
                self._remember(key_of(row), row)

    def _require_own_kind(self, row: dict[str, Any]) -> None:
        if bool(row.get("quick")) == self._quick:
            return
        if self._quick:
            what = "has whole results, and those of a quick run must not stand among them"
        else:
            what = "has results of a quick run, and whole ones must not stand among them"
        raise StorageError(f"{str(self.folder)!r} {what}: choose another folder as output")

    def _remember(self, key: Key, row: dict[str, Any]) -> None:
        self._keys.add(key)
        self._nameless.setdefault(_nameless(key), row)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        descriptor = os.open(self.folder / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _repair(self) -> None:
        """Set damaged lines aside; the lock is held, so that no line is in the making.

        The good rows are written to a new file that takes the old one's place: a crash on the
        way, or a full disk, leaves the old one as it is.
        """
        path = self.folder / TABLE
        if not path.exists():
            return
        good, bad = [], []
        seen: set[Key] = set()
        content = path.read_bytes()
        for line in content.splitlines(keepends=True):
            row = _row(line) if line.endswith(b"\n") else None
            if row is None:
                bad.append(line if line.endswith(b"\n") else line + b"\n")
            elif key_of(row) not in seen:
                seen.add(key_of(row))
                good.append(line)
        if not bad:
            return
        with open(self.folder / DAMAGED, "ab") as file:
            file.write(b"".join(bad))
            file.flush()
            os.fsync(file.fileno())
        temporary = self.folder / f".{TABLE}.tmp"
        with open(temporary, "wb") as file:
            file.write(b"".join(good))
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        self.set_aside += len(bad)

    def _ends_well(self) -> bool:
        """Whether the last line is whole; the lock is held."""
        try:
            with open(self.folder / TABLE, "rb") as file:
                if file.seek(0, os.SEEK_END) == 0:
                    return True
                file.seek(-1, os.SEEK_END)
                return file.read() == b"\n"
        except FileNotFoundError:
            return True


def read_rows(folder: str | os.PathLike[str]) -> pd.DataFrame:
    """The results table of a folder.

    Changes nothing, and can be called while a run is writing. A line that cannot be read is left
    out, with a warning; the next run sets it aside. Rows of a fit that failed (metric
    ``"error"``) are left out once the fit has succeeded.

    Parameters
    ----------
    folder : path
        What was given to `run` as `output`.

    Returns
    -------
    DataFrame
        One row per figure; values are raw, in the problem's own unit. `quick` is true in rows of
        a quick run, whose figures mean nothing.
    """
    path = Path(folder) / TABLE
    try:
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise StorageError(
            f"there are no results in {str(folder)!r}: {TABLE} is missing; `run` makes it"
        ) from error
    except OSError as error:
        raise StorageError(f"cannot read {str(path)!r}: {error.strerror}") from error
    rows: dict[Key, dict[str, Any]] = {}
    for number, line in enumerate(content.splitlines(keepends=True), start=1):
        row = _row(line) if line.endswith(b"\n") else None
        if row is None:
            warnings.warn(
                f"line {number} of {path} is damaged or unfinished and was left out", stacklevel=2
            )
        else:
            rows.setdefault(key_of(row), row)
    table = pd.DataFrame(list(rows.values()))
    table = table.reindex(columns=[*COLUMNS, *table.columns.difference(COLUMNS)])
    # Rows of before there was this column are whole.
    return table.assign(quick=table["quick"].eq(True)).pipe(_settled)


def write_csv(folder: str | os.PathLike[str]) -> Path:
    """Write the results table beside itself as ``rows.csv``; return its path."""
    path = Path(folder) / "rows.csv"
    table = read_rows(folder)
    with told("write to", Path(folder)):
        temporary = path.with_suffix(".csv.tmp")
        table.to_csv(temporary, index=False)
        os.replace(temporary, path)
    return path


def _settled(table: pd.DataFrame) -> pd.DataFrame:
    """Without the failures of fits that have figures now."""
    which = [column for column in KEY if column not in ("m", "metric")]
    failed = table["metric"] == ERROR
    succeeded = table[~failed][which].drop_duplicates()
    settled = table[which].merge(succeeded, how="left", indicator=True)["_merge"] == "both"
    return table[~(failed & settled.to_numpy())].reset_index(drop=True)


def _nameless(key: Key) -> Key:
    """The key without the experiment."""
    return key[1:]


def _line(row: dict[str, Any]) -> bytes:
    ordered = {column: row.get(column) for column in COLUMNS} | row
    return json.dumps(ordered, ensure_ascii=True, allow_nan=True).encode() + b"\n"


def _row(line: bytes) -> dict[str, Any] | None:
    """The row of a line; None if it is none."""
    try:
        row = json.loads(line)
    except ValueError:
        return None
    return row if isinstance(row, dict) and all(column in row for column in KEY) else None


def _write_line(descriptor: int, line: bytes) -> None:
    """One write; if the system takes a part only, that part is taken back."""
    before = os.fstat(descriptor).st_size
    try:
        written = os.write(descriptor, line)
    except OSError:
        os.ftruncate(descriptor, before)
        raise
    if written != len(line):
        os.ftruncate(descriptor, before)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
