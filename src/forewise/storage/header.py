"""The header: made, read and checked.

May import: exceptions, its siblings `complaints`, `files`, `layout`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

from forewise.exceptions import InvalidInputError, StorageError
from forewise.storage.complaints import reject
from forewise.storage.files import read_file
from forewise.storage.layout import ARRAYS_FILE, HEADER, LAYOUT

_FIELDS = {"format": str, "layout": int, "kind": str, "version": int, "sha256": str}
_FIELDS |= {"arrays": dict, "content": dict}
_ARRAYS_FIELDS = {"file": str, "bytes": int, "sha256": str}
_MAX_HEADER_BYTES = 16 * 2**20  # parsed, that can be some 400 MB


def make_header(kind: str, version: int, arrays: dict[str, Any], content: Any) -> bytes:
    """The text of a header, with its checksum.

    Parameters
    ----------
    kind : str
    version : int
    arrays : dict
        The description of the arrays' file.
    content : dict
        The tree, as JSON can hold it.
    """
    header = {
        "format": "forewise",
        "layout": LAYOUT,
        "kind": kind,
        "version": version,
        "sha256": "",
        "arrays": arrays,
        "content": content,
    }
    header["sha256"] = checksum(header)
    text = json.dumps(header, indent=2, ensure_ascii=False, allow_nan=False).encode()
    if len(text) > _MAX_HEADER_BYTES:
        raise InvalidInputError(
            f"content must fit a header of {_MAX_HEADER_BYTES} bytes without its arrays, but "
            f"takes {len(text)}; store long lists of numbers as arrays"
        )
    return text


def read_header(folder: Path) -> dict[str, Any]:
    """The parsed header: a file of ours, with its own checksum and fields of the right types."""
    path = folder / HEADER
    try:
        text = read_file(path, 0, _MAX_HEADER_BYTES)
    except FileNotFoundError as error:
        missing = f"it has no {HEADER}" if folder.is_dir() else "there is no such folder"
        raise StorageError(f"nothing is stored in {str(folder)!r}: {missing}") from error
    try:
        header = json.loads(text.decode(), object_pairs_hook=_unique_keys)
        if not isinstance(header, dict) or header.get("format") != "forewise":
            reject(folder, f"{HEADER} is not one of forewise's")
        if header.get("layout") != LAYOUT:
            raise StorageError(
                f"{str(folder)!r} has the file layout {str(header.get('layout'))[:20]}, and this "
                f"forewise reads {LAYOUT}: it was made by a newer version; upgrade forewise"
            )
        if header.get("sha256") != checksum(header):
            reject(folder, f"the checksum of {HEADER} does not match")
    except StorageError:
        raise
    except (ValueError, RecursionError, MemoryError) as error:
        reject(folder, f"{HEADER} is not the JSON of a header ({str(error)[:80]})", error)
    if (
        {key: type(value) for key, value in header.items()} != _FIELDS
        or {key: type(value) for key, value in header["arrays"].items()} != _ARRAYS_FIELDS
        or not ARRAYS_FILE.fullmatch(header["arrays"]["file"])  # cannot lead out of the folder
    ):
        reject(folder, f"{HEADER} has fields that are missing, unknown or of the wrong type")
    return header


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) != len(pairs):
        raise ValueError("a key stands twice")
    return entries


def checksum(header: dict[str, Any]) -> str:
    """SHA-256 of the header's meaning, whatever its white space, without the checksum itself."""
    covered = {key: value for key, value in header.items() if key != "sha256"}
    return hashlib.sha256(
        json.dumps(covered, separators=(",", ":"), allow_nan=False).encode()
    ).hexdigest()


def require_wanted(
    folder: Path, header: dict[str, Any], kind: str, versions: Collection[int]
) -> None:
    """Raise unless the header is of this kind, and of a version that is understood."""
    if header["kind"] != kind:
        raise StorageError(f"{str(folder)!r} must hold a {kind}, but holds a {header['kind']:.50}")
    found = header["version"]
    if found not in versions:
        advice = "made by an older version of forewise; read it there, or make it again"
        if found > max(versions):
            advice = "made by a newer version of forewise; upgrade forewise to read it"
        raise StorageError(
            f"{str(folder)!r} has version {found} of the {kind} format, and this forewise reads "
            f"{', '.join(str(version) for version in sorted(versions))}: it was {advice}"
        )
