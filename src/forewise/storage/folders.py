"""Writing a folder and reading it, with any number of other writers and readers."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import math
import os
import re
import secrets
import stat
import time
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors import numpy as safetensors

from forewise.exceptions import InvalidInputError, StorageError
from forewise.storage.trees import Tree, decode, encode, reject

_HEADER = "header.json"
_LAYOUT = 1  # of the two files; the version of what is in them is the caller's
_ARRAYS_FILE = re.compile(r"arrays-[0-9a-f]{16}\.safetensors")
_REMOVABLE = re.compile(rf"{_ARRAYS_FILE.pattern}|\.forewise-[0-9a-f]{{16}}\.tmp")
_OUR_HEADER = re.compile(rb'\s*\{\s*"format"\s*:\s*"forewise"')
_ARRAYS_FIELDS = {"file": str, "bytes": int, "sha256": str}
_FIELDS = {"format": str, "layout": int, "kind": str, "version": int, "sha256": str}
_FIELDS |= {"arrays": dict, "content": dict}
_MAX_HEADER_BYTES = 16 * 2**20  # parsed, that can be some 400 MB
_LEFTOVER_SECONDS = 3600.0
_READ_ATTEMPTS = 10


def write_folder(
    folder: str | os.PathLike[str], content: dict[str, Tree], *, kind: str, version: int
) -> None:
    """Store `content` in `folder`, in place of what was stored there before.

    A crash at any moment leaves the old content or the new one.

    The folder is made if it does not exist; if it does, it must be empty or hold something stored
    before. `content` is a tree of dicts with text keys, lists, numbers, text, None, arrays and
    tensors; tuples and arrays of text or objects are stored as lists. `kind` says what is stored,
    such as ``"policy"``; `version` counts the meanings of its content.

    Raises an `InvalidInputError` with the path of what cannot be stored, before anything is
    written, and a `StorageError` if the folder cannot be written to.
    """
    if not isinstance(content, dict):
        raise InvalidInputError(f"content must be a dict, but came as {type(content).__name__}")
    arrays: dict[str, np.ndarray] = {}
    tree = encode(content, "", arrays)
    # The random number makes the hash, and so the name, unlike that of any other writing.
    data = safetensors.save(arrays, metadata={"writing": secrets.token_hex(16)})
    digest = hashlib.sha256(data).hexdigest()
    file = f"arrays-{digest[:16]}.safetensors"
    description = {"file": file, "bytes": len(data), "sha256": digest}
    header = {"format": "forewise", "layout": _LAYOUT, "kind": kind, "version": version}
    header |= {"sha256": "", "arrays": description, "content": tree}
    header["sha256"] = checksum(header)
    text = json.dumps(header, indent=2, ensure_ascii=False, allow_nan=False).encode()
    if len(text) > _MAX_HEADER_BYTES:
        raise InvalidInputError(
            f"content must fit a header of {_MAX_HEADER_BYTES} bytes without its arrays, but "
            f"takes {len(text)}; store long lists of numbers as arrays"
        )
    target = Path(folder)
    try:
        is_new = not target.exists()
        target.mkdir(parents=True, exist_ok=True)
        if is_new:
            _flush(target.parent)
        _require_ours(target)
        obsolete = {file}
        try:
            write_file(target / file, data)  # flushed first: a header must find its arrays
            obsolete |= _named_in_header(target)
            write_file(target / _HEADER, text)
        finally:
            _remove_leftovers(target, obsolete)
    except (OSError, ValueError) as error:
        if isinstance(error, StorageError):
            raise
        outcome = "what was stored there before is unchanged"
        with contextlib.suppress(OSError, ValueError):
            if file in _named_in_header(target):
                outcome = "the new content is in place, but may not survive a power failure"
        raise StorageError(
            f"cannot write to {str(target)!r}: {_reason(error)}; {outcome}"
        ) from error


def read_folder(
    folder: str | os.PathLike[str], *, kind: str, versions: Collection[int]
) -> tuple[int, dict[str, Any]]:
    """Read what `write_folder` stored: its version, one of `versions`, and its content.

    Arrays are NumPy arrays that own their memory. Raises a `StorageError` if the content cannot
    be read, for whatever reason: missing, damaged, cut short, of another kind or version.
    """
    target = Path(folder)
    for attempt in range(_READ_ATTEMPTS):
        header = _read_header(target, kind, versions)
        try:
            arrays = _read_arrays(target, header["arrays"])
            break
        except FileNotFoundError as error:
            # A writer may have replaced header and arrays since the header was read.
            if attempt == _READ_ATTEMPTS - 1:
                missing = header["arrays"]["file"]
                reject(target, f"{missing}, which its header names, is missing", error)
            time.sleep(0.002 * attempt)
    content = decode(header["content"], arrays, target)
    if arrays or not isinstance(content, dict):
        reject(target, "its content does not refer to all of its arrays, or is not a dict")
    return header["version"], content


def checksum(header: dict[str, Any]) -> str:
    """SHA-256 of the header's meaning, whatever its white space, without the checksum itself."""
    covered = {key: value for key, value in header.items() if key != "sha256"}
    text = json.dumps(covered, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _read_header(folder: Path, kind: str, versions: Collection[int]) -> dict[str, Any]:
    """The parsed header: its checksum, the types of its fields, kind and version are checked."""
    try:
        text = _read_file(folder / _HEADER, 0, _MAX_HEADER_BYTES)
    except FileNotFoundError as error:
        missing = f"it has no {_HEADER}" if folder.is_dir() else "there is no such folder"
        raise StorageError(f"nothing is stored in {str(folder)!r}: {missing}") from error
    try:
        header = json.loads(text.decode())
        if not isinstance(header, dict) or header.get("format") != "forewise":
            reject(folder, f"{_HEADER} is not one of forewise's")
        if header.get("layout") != _LAYOUT:
            raise StorageError(
                f"{str(folder)!r} has the file layout {str(header.get('layout'))[:20]}, and this "
                f"forewise reads {_LAYOUT}: it was made by a newer version; upgrade forewise"
            )
        if header.get("sha256") != checksum(header):
            reject(folder, f"the checksum of {_HEADER} does not match")
    except StorageError:
        raise
    except (ValueError, RecursionError, MemoryError) as error:
        reject(folder, f"{_HEADER} is not the JSON of a header ({str(error)[:80]})", error)
    if (
        {key: type(value) for key, value in header.items()} != _FIELDS
        or {key: type(value) for key, value in header["arrays"].items()} != _ARRAYS_FIELDS
        or not _ARRAYS_FILE.fullmatch(header["arrays"]["file"])  # cannot lead out of the folder
    ):
        reject(folder, f"{_HEADER} has fields that are missing, unknown or of the wrong type")
    if header["kind"] != kind:
        raise StorageError(f"{str(folder)!r} must hold a {kind}, but holds a {header['kind']:.50}")
    found, known = header["version"], sorted(versions)
    if found not in known:
        age = "a newer" if found > known[-1] else "an older"
        raise StorageError(
            f"{str(folder)!r} has version {found} of the {kind} format, and this forewise reads "
            f"{', '.join(map(str, known))}: it was made by {age} one; upgrade, or make it again"
        )
    return header


def _read_arrays(folder: Path, description: dict[str, Any]) -> dict[str, np.ndarray]:
    name, size = description["file"], description["bytes"]
    data = _read_file(folder / name, size, size)
    if hashlib.sha256(data).hexdigest() != description["sha256"]:
        reject(folder, f"the checksum of {name} does not match")
    try:
        arrays = safetensors.load(data)
    except (SafetensorError, KeyError, ValueError) as error:
        # KeyError: a dtype that NumPy does not have; ValueError: a shape that it does not take.
        reject(folder, f"{name} is not a safetensors file ({str(error)[:80]})", error)
    except MemoryError as error:
        raise StorageError(f"cannot read {str(folder / name)!r}: {_reason(error)}") from error
    for array in arrays.values():
        if array.dtype == bool and array.size and array.view(np.uint8).max() > 1:
            reject(folder, f"{name} has truth values that are neither true nor false")
    return arrays


def _read_file(path: Path, smallest: int, largest: int) -> bytes:
    """All of a regular file whose size is as expected; FileNotFoundError is the caller's."""
    try:
        with open(path, "rb", opener=_open_plainly) as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                reject(path.parent, f"{path.name} is not a regular file")
            if not smallest <= found.st_size <= largest:
                wanted = f"{smallest} to {largest}" if smallest < largest else f"{largest}"
                reject(path.parent, f"{path.name} has {found.st_size} bytes, and not {wanted}")
            return file.read(found.st_size)
    except (FileNotFoundError, StorageError):
        raise
    except (OSError, ValueError, MemoryError) as error:
        raise StorageError(f"cannot read {str(path)!r}: {_reason(error)}") from error


def _open_plainly(path: str, flags: int) -> int:
    """Open without following a link out of the folder, or waiting for the end of a pipe."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))


def _reason(error: Exception) -> str:
    if isinstance(error, FileExistsError | NotADirectoryError):
        return "there is a file where a folder is expected"
    if isinstance(error, MemoryError):
        return "it does not fit into memory"
    if isinstance(error, OSError) and error.errno == errno.ELOOP:
        return "there is a symbolic link; put the file itself there"
    return str(getattr(error, "strerror", None) or error)


def write_file(path: Path, data: bytes) -> None:
    """Put a whole file in place at once, on the disk before and after it can be seen."""
    temporary = path.with_name(f".forewise-{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    _flush(path.parent)


def _flush(folder: Path) -> None:
    """Make renames in the folder survive a power failure, where the system can."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some file systems have no such call
            raise
    finally:
        os.close(descriptor)


def _require_ours(folder: Path) -> None:
    """Raise unless the folder holds something stored before, or nothing of anyone else's."""
    names = sorted(os.listdir(folder))
    if _HEADER in names:
        with open(folder / _HEADER, "rb", opener=_open_plainly) as file:
            foreign = [] if _OUR_HEADER.match(file.read(200)) else [_HEADER]
    else:  # what a killed first writing left behind is no reason to refuse
        foreign = [name for name in names if not _REMOVABLE.fullmatch(name)]
    if foreign:
        raise StorageError(
            f"cannot write to {str(folder)!r}: it holds files that are not forewise's "
            f"({', '.join(foreign[:3])}), and nothing of them was touched; choose an empty or "
            "a new folder"
        )


def _named_in_header(folder: Path) -> set[str]:
    """Names of arrays files in the header, whatever state it is in."""
    try:
        return set(_ARRAYS_FILE.findall((folder / _HEADER).read_bytes().decode("latin-1")))
    except FileNotFoundError:
        return set()


def _remove_leftovers(folder: Path, obsolete: set[str]) -> None:
    """Remove what is obsolete or old and not named in the header; failing to is no error."""
    with contextlib.suppress(OSError):
        named = _named_in_header(folder)
        # The header's time, not ours: another machine's clock may have stamped the files.
        oldest = (folder / _HEADER).stat().st_mtime - _LEFTOVER_SECONDS if named else -math.inf
        for name in os.listdir(folder):
            if not _REMOVABLE.fullmatch(name) or name in named:
                continue
            with contextlib.suppress(OSError):
                if name in obsolete or (folder / name).lstat().st_mtime < oldest:
                    os.unlink(folder / name)
