"""Parts of a job: which files are read, what identifies them, and which are decided already.

A part's decisions carry a record with the identity of the part and of the job in the Parquet file
itself: one rename makes both visible, so that a kill at any moment leaves a part done or not done.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import Any

from forewise.exceptions import InvalidInputError, StorageError
from forewise.storage import write_file

MANIFEST = "manifest.json"
RECORD = "forewise"  # key of a part's record in the metadata of its file
_FORMAT = "forewise decisions 1"
_TAIL = 2**16  # bytes at the end of a file: of Parquet, its schema and statistics
_TEMPORARY = ".forewise-*.tmp"
_WILD = "*?["


@dataclass(frozen=True)
class Part:
    """One file to decide, and where its decisions go."""

    source: Path
    name: str  # of the decisions, below the output folder
    identity: str  # of the file as it is now


def find_parts(inputs: str | os.PathLike[str] | Sequence[Any], out: Path) -> list[Part]:
    """The files of a pattern, a folder or a list of these, in order of their names."""
    listed = [inputs] if isinstance(inputs, str | os.PathLike) else list(inputs)
    files = sorted({file for item in listed for file in _matching(os.fspath(item))})
    if not files:
        raise InvalidInputError(f"there must be files to decide, but none matches {_said(listed)}")
    inside = [file for file in files if out.resolve() in file.resolve().parents]
    if inside:
        raise InvalidInputError(
            f"the output must not be among the files to decide, but {inside[0]} is in {out}"
        )
    root = Path(os.path.commonpath([file.parent.absolute() for file in files]))
    parts: dict[str, Part] = {}
    for file in files:
        name = file.absolute().relative_to(root).with_suffix(".parquet").as_posix()
        if name in parts:
            raise InvalidInputError(
                f"every file must have a name of its own, but {parts[name].source} and {file} "
                f"would both be {name}: decide them into two folders"
            )
        parts[name] = Part(file, name, _identity(file))
    return list(parts.values())


def _matching(item: str) -> list[Path]:
    if any(sign in item for sign in _WILD) and not Path(item).exists():
        return [Path(name) for name in glob(item, recursive=True) if Path(name).is_file()]
    path = Path(item)
    if path.is_dir():
        return sorted(path.rglob("*.parquet"))
    return [path] if path.is_file() else []


def _said(items: list[Any]) -> str:
    return ", ".join(str(item) for item in items[:3]) + (", ..." if len(items) > 3 else "")


def _identity(file: Path) -> str:
    """Of its size, the time it was written, and its last bytes."""
    try:
        found = file.stat()
        with file.open("rb") as opened:
            opened.seek(max(0, found.st_size - _TAIL))
            tail = hashlib.sha256(opened.read()).hexdigest()
    except OSError as error:
        # Said when its turn comes: the others can be decided.
        return f"unreadable: {error.strerror}"
    return hashlib.sha256(f"{found.st_size} {found.st_mtime_ns} {tail}".encode()).hexdigest()


def record_of(out: Path, part: Part, job: dict[str, Any]) -> dict[str, Any] | None:
    """What a finished part's file says of itself; None unless it is of this job and input."""
    from pyarrow import ArrowException
    from pyarrow.parquet import read_metadata

    try:
        found = (read_metadata(out / part.name).metadata or {}).get(RECORD.encode())
    except (OSError, ArrowException):
        return None
    record = json.loads(found) if found else {}
    same = record.get("job") == digest(job) and record.get("source") == part.identity
    return record if same else None


def digest(value: Any) -> str:
    """SHA-256 of a plain value."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def require_same_job(out: Path, job: dict[str, Any]) -> None:
    """Raise if the folder has decisions of another job, or files of somebody else."""
    manifest = out / MANIFEST
    if not manifest.exists():
        strangers = [f for f in out.iterdir() if not f.match(_TEMPORARY)] if out.is_dir() else []
        if strangers:
            raise StorageError(
                f"the output must be an empty folder or one of the same decisions, but {out} has "
                f"{strangers[0].name} and no {MANIFEST}: choose another folder"
            )
        return
    try:
        found = json.loads(manifest.read_text())
        known, kind = found["job"], found["format"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StorageError(f"{manifest} cannot be read: {error}") from error
    if kind != _FORMAT:
        raise StorageError(f"{manifest} must have the format {_FORMAT!r}, but has {kind!r}")
    other = [key for key in {**known, **job} if known.get(key) != job.get(key)]
    if other:
        raise StorageError(
            f"{out} has decisions that were made otherwise: {', '.join(sorted(other))} differ. "
            "Parts of both must not be mixed: choose another folder, or remove this one"
        )


def write_manifest(out: Path, job: dict[str, Any], records: dict[str, dict[str, Any]]) -> None:
    """Write what the folder holds; without times, so that equal work has equal files."""
    content = {"format": _FORMAT, "job": job, "parts": records}
    write_file(out / MANIFEST, (json.dumps(content, indent=1, sort_keys=True) + "\n").encode())


def written_parts(out: Path) -> dict[str, dict[str, Any]]:
    """Parts that the manifest lists, as far as their files are there."""
    manifest = out / MANIFEST
    known = json.loads(manifest.read_text())["parts"] if manifest.exists() else {}
    return {name: record for name, record in known.items() if (out / name).exists()}


def remove_leftovers(out: Path) -> None:
    """Remove what workers that were killed had begun."""
    for file in out.rglob(_TEMPORARY):
        file.unlink(missing_ok=True)
