"""Predictors compared by the cost of their decisions: `forewise-lab suite run | report`.

`methods` names the predictors and changes their settings, `fits` evaluates one on a split,
`page` reads the rows and nothing else. `forewise_lab.experiments` runs the fits and keeps the rows.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import forewise as fw
from forewise_lab.experiments.runner import RunSummary, run_works
from forewise_lab.suite.fits import PAPER, SuiteFit, real_tables
from forewise_lab.suite.methods import AUTO, METHODS, make_method


def run_suite(
    methods: Iterable[str] | None,
    tables: Sequence[str] | None,
    splits: Iterable[int],
    *,
    output: str | os.PathLike[str],
    map: fw.parallel.Map | None = None,
    inner: bool = False,
    data_dir: Path | None = None,
    progress: bool = True,
) -> RunSummary:
    """Compute methods on splits of tables, and append the rows to the table of a folder.

    All methods and tables by default, but the paper's problems with `AutoLearner` only. Rows of
    the same settings and code that are there are not computed again.
    """
    chosen = [*METHODS, AUTO] if methods is None else list(methods)
    for method in chosen:
        if method != AUTO:
            make_method(method)  # or an error, before anything is computed
    fits = [
        SuiteFit(method, table, split, inner, data_dir)
        for table in ([*real_tables(data_dir), *PAPER] if tables is None else tables)
        for split in splits
        for method in chosen
        if tables is not None or table not in PAPER or method == AUTO
    ]
    return run_works(fits, output, map, progress)
