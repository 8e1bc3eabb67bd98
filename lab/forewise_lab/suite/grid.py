"""The suite's work: a method on a split of a table, and the run that computes what is missing."""

from __future__ import annotations

import os
import time
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from forewise_lab.distributed import Map, SerialMap
from forewise_lab.experiments import RunSummary
from forewise_lab.experiments.rows import Key, Product, Row, RowTable, Work, hash_of, key_of
from forewise_lab.experiments.runner import compute_stage
from forewise_lab.suite.methods import AUTO, code_of, make_method
from forewise_lab.suite.tables import N_SCENARIOS, PAPER, TableSplit, real_tables

#: Behind a table's name in rows that were judged on inner folds.
INNER = " inner"


@dataclass(frozen=True)
class SuiteFit(Work):
    """A method on a split of a table; computed again when the method's code has changed."""

    method: str
    where: TableSplit

    @property
    def name(self) -> str:
        return f"{self.method} on {self.experiment}, split {self.where.split}"

    @property
    def experiment(self) -> str:
        return self.where.table + (INNER if self.where.inner else "")

    def columns(self) -> Row:
        return {
            "experiment": self.experiment,
            "method": self.method,
            "seed": self.where.split,
            "n_train": self.where.rows()[0].n_contexts,
            "m_train": 0,
            "config_hash": config_hash(self.method),
        }

    def row_keys(self) -> Iterator[Key]:
        columns = self.columns()
        for metric in self.where.metrics:
            yield key_of(columns | {"m": N_SCENARIOS, "metric": metric})

    @property
    def source(self) -> Hashable | None:
        return None if self.where.table in PAPER else (self.where.table, self.where.split)

    def require_data(self) -> None:
        self.where.rows()

    def produce(self) -> Product:
        train, held = self.where.rows()
        # Processor time: with one thread it is what a quiet machine's clock would show.
        started = time.process_time()
        predictor = self.where.fit(self.method, train)
        columns = self.columns() | {"seconds": time.process_time() - started}
        found = self.where.judge(predictor, train, held)
        rows = ({"m": N_SCENARIOS, "metric": name, "value": found[name]} for name in found)
        return Product([columns | row for row in rows])


def config_hash(method: str) -> str:
    """Of a method's settings and of the code behind it."""
    return hash_of([method, code_of(method.split(":")[0])])


def run_suite(
    methods: Iterable[str],
    tables: Sequence[str] | None,
    splits: Iterable[int],
    *,
    output: str | os.PathLike[str],
    map: Map | None = None,
    inner: bool = False,
    data_dir: Path | None = None,
    progress: bool = True,
) -> RunSummary:
    """Compute methods on splits of tables, and append the rows to the table of a folder.

    All tables by default, the paper's problems for `AutoLearner` only. Rows that are there, of the
    same settings and code, are not computed again.
    """
    chosen = list(methods)
    for method in chosen:
        if method != AUTO:
            make_method(method)  # or an error, before anything is computed
    named = list(tables) if tables is not None else [*real_tables(data_dir), *PAPER]
    fits = [
        SuiteFit(method, TableSplit(table, split, inner, data_dir))
        for table in named
        for split in splits
        for method in chosen
        if tables is not None or table not in PAPER or method == AUTO
    ]
    for fit in fits:
        fit.require_data()
    summary, started = RunSummary(), time.perf_counter()
    with RowTable(output) as table:
        compute_stage(fits, table, map or SerialMap(), progress, summary)
    summary.seconds = time.perf_counter() - started
    return summary
