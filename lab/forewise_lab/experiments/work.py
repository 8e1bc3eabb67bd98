"""One thing to compute, whatever the kind of experiment: its rows, and files beside the table.

`Work` is the contract between the runner and the kinds of experiments; `compute` is what the
runner's map applies to each. Runs in the driver or in a worker, one thread each, and writes
nothing: rows and files go back to the driver. May import: exceptions, and its sibling
`resources`. To add a kind of experiment: a frozen dataclass with the methods below.
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
from forewise_lab.experiments.resources import one_thread, versions

#: Columns that say which row it is. No two rows of a table agree in all of them.
KEY = (
    "experiment",
    "method",
    "seed",
    "n_train",
    "m_train",
    "m",
    "metric",
    "config_hash",
)
#: Metric of the row that stands for a fit that failed; its `note` says why.
ERROR = "error"

Key = tuple[Any, ...]
Row = dict[str, Any]


@dataclass(frozen=True)
class Product:
    """What was computed.

    Attributes
    ----------
    rows : list of dict
        Rows of the table.
    files : mapping of str to bytes
        Files that the rows refer to, by their place in the results folder.
    """

    rows: list[Row]
    files: Mapping[str, bytes] = field(default_factory=dict)


class Work(ABC):
    """One thing to compute; frozen and picklable."""

    experiment: str
    #: Whether the rows of an equal work of another experiment are as good as its own. Not where
    #: rows come with files, which have the experiment's name.
    borrows: ClassVar[bool] = False

    @property
    @abstractmethod
    def name(self) -> str:
        """What people call it."""

    @property
    @abstractmethod
    def alike(self) -> tuple[object, ...]:
        """What others must agree in to take about as long."""

    @property
    @abstractmethod
    def rough_seconds(self) -> float:
        """A guess of how long it takes, before anything like it has finished."""

    @abstractmethod
    def columns(self) -> Row:
        """Key columns that all its rows share: no two works of a table agree in them."""

    @abstractmethod
    def row_keys(self) -> Iterator[Key]:
        """Keys of the rows it will have; called to see whether it is finished."""

    @property
    @abstractmethod
    def source(self) -> Hashable | None:
        """What real data it reads, the same for all works that read them; None if it reads none."""

    @abstractmethod
    def require_data(self) -> None:
        """Raise if these data are not there; called for one work of each source, at the start."""

    @abstractmethod
    def produce(self) -> Product:
        """Compute; called by `compute`, which makes a row of a failure."""

    @property
    def identifier(self) -> str:
        """A name for files, no two alike."""
        told = json.dumps(self.columns(), sort_keys=True)
        return hashlib.sha256(told.encode()).hexdigest()[:20]


@dataclass(frozen=True)
class FitResult:
    """The rows and files of a fit, and what it took altogether."""

    fit: Work
    rows: list[Row]
    seconds: float
    error: str | None = None
    files: Mapping[str, bytes] = field(default_factory=dict)


def key_of(row: Row) -> Key:
    """The key of a row."""
    return tuple(row[column] for column in KEY)


def compute(fit: Work) -> FitResult:
    """Fit and judge; a failure becomes a row that says so, never a figure.

    All randomness follows from the seed, and all arithmetic is done by one thread: the values do
    not depend on where it runs.
    """
    started = time.perf_counter()
    error = None
    with one_thread(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            made = fit.produce()
        except Exception as failure:
            # Any failure at all, also of a library below: one fit must not end a night of them,
            # and what it was stands in the table, with its place where it is not ours.
            error = _told(failure)
            made = Product([fit.columns() | {"m": 0, "metric": ERROR, "value": None}])
    notes = list(dict.fromkeys(str(warning.message) for warning in caught))
    finished = datetime.now(UTC).isoformat(timespec="seconds")
    common = {
        **versions(),
        "finished_at": finished,
        "note": error or "; ".join(notes) or None,
    }
    rows = [row | common for row in made.rows]
    return FitResult(fit, rows, time.perf_counter() - started, error, made.files)


def _told(failure: Exception) -> str:
    """What happened; with the place where it is not one of forewise's own errors."""
    told = f"{type(failure).__name__}: {failure}"
    if not isinstance(failure, ForewiseError):
        place = traceback.extract_tb(failure.__traceback__)[-1]
        told += f" (in {place.name}, line {place.lineno} of {place.filename.rsplit('/', 1)[-1]})"
    return told
