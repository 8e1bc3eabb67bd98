"""Deciding folders of files: what is done stays, what is missing is decided."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from forewise.bulk.engines import Engine, LocalEngine
from forewise.bulk.job import Job
from forewise.bulk.parts import (
    find_parts,
    record_of,
    remove_leftovers,
    require_same_job,
    write_manifest,
    written_parts,
)
from forewise.exceptions import StorageError
from forewise.policy.batches import arrow, keep_of


@dataclass
class Summary:
    """What became of the parts.

    Attributes
    ----------
    done, skipped : int
        Parts decided now, and before.
    rows, failed : int
        Rows of all parts, and those of them without a decision.
    errors : dict
        What went wrong, by part; the others are done.
    notes : list of str
        Warnings, the first of each kind.

    Examples
    --------
    >>> import forewise as fw
    >>> fw.bulk.Summary(done=2, rows=400).errors
    {}
    """

    done: int = 0
    skipped: int = 0
    rows: int = 0
    failed: int = 0
    errors: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def decide_files(
    policy: str | os.PathLike[str],
    inputs: str | os.PathLike[str] | Sequence[Any],
    out: str | os.PathLike[str],
    *,
    past: str | os.PathLike[str] | None = None,
    engine: Engine | None = None,
    n_scenarios: int | None = None,
    random_state: int = 0,
    keep: Sequence[str] | None = None,
    watch: Callable[[Summary], object] | None = None,
) -> Summary:
    """Decide every file of a pattern into a Parquet file of its own.

    Files appear as a whole or not at all. Called again, it decides what is missing or has changed,
    so that it may be killed at any moment. A folder is for one policy and one set of options; it
    has a `manifest.json`. What cannot be read is reported, and the others are done. Workers on
    other computers need the same folders.

    Parameters
    ----------
    policy : path
        Folder of a stored `Policy` or `PlannerPolicy`.
    inputs : pattern, folder or list of them
        ``"data/*.parquet"``; CSV and Excel too. A part of a planner is decided by the past and its
        own rows.
    out : path
        Folder of the decisions.
    past : path, optional
        File of the past, for a planner's policy with dates.
    engine : Engine, optional
        `LocalEngine()` by default, `RayEngine(2)` or `DaskEngine(2)`.
    n_scenarios, random_state, keep : as for `Policy.decide_batches`
    watch : callable, optional
        Is called with the `Summary` after every part.

    Examples
    --------
    >>> import forewise as fw, pandas as pd
    >>> past = pd.DataFrame({"x": [0.0, 1.0, 2.0, 3.0], "demand": [1.0, 2.0, 3.0, 4.0]})
    >>> learner = fw.DecoupledLearner(fw.Newsvendor(3, 1), fw.EmpiricalPredictor())
    >>> learner.fit(past[["x"]], past[["demand"]]).policy_.save("policy")
    >>> past[["x"]].to_parquet("days.parquet")
    >>> fw.bulk.decide_files("policy", "*.parquet", "out").done
    1
    >>> fw.bulk.decide_files("policy", "*.parquet", "out").skipped
    1
    >>> pd.read_parquet("out/days.parquet").demand.tolist()
    [3.0, 3.0, 3.0, 3.0]
    """
    arrow()
    folder = Path(out)
    job = Job.make(policy, folder, past, n_scenarios, random_state, keep_of(keep))
    parts = find_parts(inputs, folder)
    require_same_job(folder, job.identity)
    folder.mkdir(parents=True, exist_ok=True)
    with _alone(folder):
        remove_leftovers(folder)
        records = written_parts(folder)
        write_manifest(folder, job.identity, records)
        summary, left = Summary(), []
        for part in parts:
            known = record_of(folder, part, job.identity)
            if known is None:
                records.pop(part.name, None)
                left.append(part)
            else:
                summary.skipped += 1
                records[part.name] = known
        try:
            for said in (engine or LocalEngine()).records(job, left) if left else ():
                if "error" in said:
                    summary.errors[said["part"]] = said["error"]
                else:
                    records[said["part"]] = said["record"]
                    summary.done += 1
                    summary.notes += [n for n in said["notes"] if n not in summary.notes][:3]
                if watch is not None:
                    watch(summary)
        finally:
            remove_leftovers(folder)
            write_manifest(folder, job.identity, records)
    chosen = [records[part.name] for part in parts if part.name in records]
    summary.rows = sum(record["rows"] for record in chosen)
    summary.failed = sum(record["failed"] for record in chosen)
    return summary


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Raise while another program decides into the folder; a killed one holds nothing."""
    if sys.platform == "win32":  # which has no such lock
        yield
        return
    import fcntl

    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(descriptor)
        raise StorageError(f"another program decides into {folder} right now") from error
    try:
        yield
    finally:
        os.close(descriptor)
