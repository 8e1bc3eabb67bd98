"""One unit of work of an experiment: the rows it gives, and files beside the table.

`Work` is the contract between the runner and the kinds of experiments (`fits`, `rolling`);
`compute` is what a map applies to each. It runs in any process and writes nothing: rows and files
go back to the run. To add a kind of experiment: a frozen dataclass with the methods below.
"""

from __future__ import annotations

import hashlib
import json
import time
import traceback
import warnings
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, ClassVar

from forewise.exceptions import ForewiseError
from forewise_lab.machine import one_thread, versions

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
class FitResult:
    """Rows and files of a work, its wall time, and why it failed."""

    fit: Work
    rows: list[Row]
    seconds: float
    error: str | None = None
    files: Mapping[str, bytes] = field(default_factory=dict)


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
            error = _message(failure)
            made = Product([fit.columns() | {"m": 0, "metric": ERROR, "value": None}])
    notes = list(dict.fromkeys(str(warning.message) for warning in caught))
    finished = datetime.now(UTC).isoformat(timespec="seconds")
    note = error or "; ".join(notes) or None
    rows = [row | versions() | {"finished_at": finished, "note": note} for row in made.rows]
    return FitResult(fit, rows, time.perf_counter() - started, error, made.files)


def _message(failure: Exception) -> str:
    """The error; with its place in the code where it is not one of forewise's own."""
    message = f"{type(failure).__name__}: {failure}"
    if not isinstance(failure, ForewiseError):
        place = traceback.extract_tb(failure.__traceback__)[-1]
        message += f" (in {place.name}, line {place.lineno} of {place.filename.rsplit('/', 1)[-1]})"
    return message
