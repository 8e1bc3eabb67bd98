"""Policies and checkpoints on disk: one folder, with a readable header and one file of arrays.

    folder/
      header.json                          what is stored, as indented JSON; arrays by reference
      arrays-<16 hex digits>.safetensors   the arrays, in a file named after its own SHA-256

**Nothing that is read can run**: JSON and safetensors hold data only. The header has length and
SHA-256 of the arrays' file and a SHA-256 of itself, so a changed byte is noticed. That finds
damage, not forgery: whoever can write the folder chooses the numbers in it, but no more than
that. Sizes are checked before reading, so memory is in proportion to what lies on the disk.

**The old content or the new, never a mixture.** Both files are written under a temporary name,
flushed and renamed, the header last. A random number in each arrays' file makes its hash, and so
its name, unlike that of any other writing. Hence a writer may remove the arrays of the header it
replaced without asking who else is at work: no header to come will name them, and arrays that
another writer has renamed but not yet named in a header have a name of their own. What killed
or overtaken writers left behind is removed once it is an hour old. There is no lock to wait for
or to be left behind, and a reader whose arrays were just replaced reads the header again.

**Nothing of the user's is overwritten or deleted**: a folder is written to only if it is empty or
has a header of ours, and only files with our names are removed from it.

To store one more kind of object, choose its `kind` and a `version`, raise the version when the
meaning of its content changes, and let the reader accept the versions it understands.
May import: exceptions.
"""

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
from typing import Any, NoReturn, TypeAlias

import numpy as np
import torch
from safetensors.numpy import load, save

from forewise.exceptions import InvalidInputError, StorageError

#: What can be stored. Arrays and tensors come back as arrays, tuples as lists.
Tree: TypeAlias = (
    "bool | int | float | str | list[Tree] | dict[str, Tree] | np.ndarray | torch.Tensor | None"
)

_HEADER = "header.json"
_LAYOUT = 1  # of the two files; the version of what is in them is the caller's
_FIELDS = {"format": str, "layout": int, "kind": str, "version": int, "sha256": str}
_FIELDS |= {"arrays": dict, "content": dict}
_ARRAYS_FIELDS = {"file": str, "bytes": int, "sha256": str}
_ARRAYS_FILE = re.compile(r"arrays-[0-9a-f]{16}\.safetensors")
_TEMPORARY_FILE = re.compile(r"\.forewise-[0-9a-f]{16}\.tmp")
_OUR_HEADER = re.compile(rb'\s*\{\s*"format"\s*:\s*"forewise"')
_DTYPES = {"bool", "float16", "float32", "float64"} | {
    f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)
}
_MAX_HEADER_BYTES = 16 * 2**20  # parsed, that can be some 400 MB
_MAX_DEPTH = 100
_MAX_INT_BITS = 4096  # a random generator's state fits; Python refuses to parse far longer ones
_LEFTOVER_SECONDS = 3600.0
_READ_ATTEMPTS = 10


def write_folder(
    folder: str | os.PathLike[str], content: dict[str, Tree], *, kind: str, version: int
) -> None:
    """Store `content` in `folder`, in place of what was stored there before.

    A crash at any moment leaves the old content or the new one.

    Parameters
    ----------
    folder : path
        Made if it does not exist. If it does, it must be empty or hold something stored before.
    content : dict
        A tree of dicts with text keys, lists, numbers, text, None, arrays and tensors. Tuples
        and arrays of text or objects are stored as lists, NumPy scalars as Python's numbers.
    kind : str
        What is stored, such as ``"policy"``; a reader asks for it by this name.
    version : int
        Version of the meaning of `content`, counted by the caller for each kind.

    Raises
    ------
    InvalidInputError
        If something in `content` cannot be stored; the message has its path in the tree.
        Nothing is written then.
    StorageError
        If the folder is not one to write to, or the system refuses. The old content is intact.
    """
    if not isinstance(content, dict):
        raise InvalidInputError(f"content must be a dict, but came as {type(content).__name__}")
    arrays: dict[str, np.ndarray] = {}
    tree = _encode(content, "", arrays)
    data = save(arrays, metadata={"writing": secrets.token_hex(16)})
    digest = hashlib.sha256(data).hexdigest()
    arrays_file = f"arrays-{digest[:16]}.safetensors"
    header = {
        "format": "forewise",
        "layout": _LAYOUT,
        "kind": kind,
        "version": version,
        "sha256": "",
        "arrays": {"file": arrays_file, "bytes": len(data), "sha256": digest},
        "content": tree,
    }
    header["sha256"] = _checksum(header)
    text = json.dumps(header, indent=2, ensure_ascii=False, allow_nan=False).encode()
    if len(text) > _MAX_HEADER_BYTES:
        raise InvalidInputError(
            f"content must fit a header of {_MAX_HEADER_BYTES} bytes without its arrays, but "
            f"takes {len(text)}; store long lists of numbers as arrays"
        )

    target = Path(folder)
    outcome = "what was stored there before is unchanged"
    try:
        is_new = not target.exists()
        target.mkdir(parents=True, exist_ok=True)
        if is_new:
            _flush_folder(target.parent)
        _require_ours(target)
        obsolete = {arrays_file}
        try:
            _place(target / arrays_file, data)
            _flush_folder(target)  # a header on the disk must find its arrays there
            obsolete |= _named_in_header(target)
            _place(target / _HEADER, text)
            outcome = "the new content is in place, but may not survive a power failure"
            _flush_folder(target)
        finally:
            _remove_leftovers(target, obsolete)
    except StorageError:
        raise
    except (OSError, ValueError) as error:
        reason = f"{_reason(error)}; {outcome}"
        raise StorageError(f"cannot write to {str(target)!r}: {reason}") from error


def read_folder(
    folder: str | os.PathLike[str], *, kind: str, versions: Collection[int]
) -> tuple[int, dict[str, Any]]:
    """Read what `write_folder` stored.

    Parameters
    ----------
    folder : path
        The folder that was written to.
    kind : str
        The kind that is wanted.
    versions : collection of int
        Versions of this kind that the caller understands.

    Returns
    -------
    version : int
        The version that was found, one of `versions`.
    content : dict
        The tree; its arrays are NumPy arrays that own their memory.

    Raises
    ------
    StorageError
        If the content cannot be read, for whatever reason: missing, damaged, cut short, of
        another kind or version.
    """
    target = Path(folder)
    for attempt in range(_READ_ATTEMPTS):
        header = _read_header(target)
        _require_wanted(target, header, kind, versions)
        try:
            arrays = _read_arrays(target, header["arrays"])
            break
        except FileNotFoundError as error:
            # A writer may have replaced header and arrays since the header was read.
            if attempt == _READ_ATTEMPTS - 1:
                missing = header["arrays"]["file"]
                _reject(target, f"{missing}, which its header names, is missing", error)
            time.sleep(0.002 * attempt)
    content = _decode(header["content"], arrays, target)
    if arrays or not isinstance(content, dict):
        _reject(target, "its content does not refer to all of its arrays, or is not a dict")
    return header["version"], content


def _encode(value: Any, path: str, arrays: dict[str, np.ndarray], depth: int = 0) -> Any:
    """`value` as JSON can hold it; its arrays go to `arrays`, and references take their place."""
    if depth > _MAX_DEPTH:
        raise InvalidInputError(
            f"{path[:60]}... cannot be stored: it is nested more than {_MAX_DEPTH} deep; "
            "does it contain itself?"
        )
    if value is None:
        return None
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, str):
        return _encode_text(value, path)
    if isinstance(value, int | np.integer):
        if int(value).bit_length() > _MAX_INT_BITS:
            _refuse(path, f"an integer of more than {_MAX_INT_BITS} bits")
        return int(value)
    if isinstance(value, float | np.float32 | np.float16):
        number = float(value)
        return number if math.isfinite(number) else {"$float": repr(number)}
    if isinstance(value, list | tuple):
        return [_encode(v, f"{path}[{i}]", arrays, depth + 1) for i, v in enumerate(value)]
    if isinstance(value, dict):
        encoded = {}
        for key, entry in value.items():
            if not isinstance(key, str):
                _refuse(f"{path}[{key!r}]", f"a key of type {type(key).__name__}; use text keys")
            name = _encode_text(key, path)
            # A leading $ marks what is ours, so one of the user's is doubled.
            encoded["$" + name if name.startswith("$") else name] = _encode(
                entry, f"{path}.{name}" if path else name, arrays, depth + 1
            )
        return encoded
    if isinstance(value, torch.Tensor):
        try:
            value = value.numpy(force=True)
        except (TypeError, RuntimeError) as error:
            layout = str(value.layout).removeprefix("torch.")
            _refuse(path, f"a {layout} tensor of {value.dtype} ({error}); convert it", error)
    if not isinstance(value, np.ndarray) or isinstance(value, np.ma.MaskedArray):
        _refuse(path, f"a {type(value).__name__}")
    if value.dtype.kind in "UTO":
        return _encode(value.tolist(), path, arrays, depth + 1)
    if value.dtype.name not in _DTYPES:
        _refuse(path, f"an array of {value.dtype}; convert it to numbers or text")
    name = str(len(arrays))
    arrays[name] = np.asarray(value, dtype=value.dtype.newbyteorder("<"), order="C")
    return {"$array": name, "dtype": value.dtype.name, "shape": list(value.shape)}


def _encode_text(value: str, path: str) -> str:
    try:
        return value.encode().decode()  # also makes plain text of a subclass
    except UnicodeEncodeError as error:
        _refuse(path, f"text that is not valid Unicode, {ascii(value)[:60]}", error)


def _refuse(path: str, what: str, cause: Exception | None = None) -> NoReturn:
    raise InvalidInputError(f"{path or 'content'} cannot be stored: it is {what}") from cause


def _decode(node: Any, arrays: dict[str, np.ndarray], folder: Path, depth: int = 0) -> Any:
    """The tree of a parsed header; every array is taken out of `arrays` as it is referred to."""
    if depth > _MAX_DEPTH:
        _reject(folder, "its content is nested too deep")
    if isinstance(node, list):
        return [_decode(entry, arrays, folder, depth + 1) for entry in node]
    if not isinstance(node, dict):
        return node
    if node.keys() == {"$float"} and node["$float"] in ("nan", "inf", "-inf"):
        return float(node["$float"])
    if node.keys() == {"$array", "dtype", "shape"}:
        array = arrays.pop(node["$array"], None) if isinstance(node["$array"], str) else None
        if array is None:
            _reject(folder, "it refers to an array that is missing or taken")
        if array.dtype.name != node["dtype"] or list(array.shape) != node["shape"]:
            _reject(folder, "an array differs from its description")
        return array
    if any(key.startswith("$") and not key.startswith("$$") for key in node):
        _reject(folder, "its content has a reference that cannot be understood")
    return {
        key.removeprefix("$"): _decode(entry, arrays, folder, depth + 1)
        for key, entry in node.items()
    }


def _read_header(folder: Path) -> dict[str, Any]:
    """The parsed header: a file of ours, with its own checksum and fields of the right types."""
    path = folder / _HEADER
    try:
        text = _read_file(path, 0, _MAX_HEADER_BYTES)
    except FileNotFoundError as error:
        missing = f"it has no {_HEADER}" if folder.is_dir() else "there is no such folder"
        raise StorageError(f"nothing is stored in {str(folder)!r}: {missing}") from error
    try:
        header = json.loads(text.decode(), object_pairs_hook=_unique_keys)
        if not isinstance(header, dict) or header.get("format") != "forewise":
            _reject(folder, f"{_HEADER} is not one of forewise's")
        if header.get("layout") != _LAYOUT:
            raise StorageError(
                f"{str(folder)!r} has the file layout {str(header.get('layout'))[:20]}, and this "
                f"forewise reads {_LAYOUT}: it was made by a newer version; upgrade forewise"
            )
        if header.get("sha256") != _checksum(header):
            _reject(folder, f"the checksum of {_HEADER} does not match")
    except StorageError:
        raise
    except (ValueError, RecursionError, MemoryError) as error:
        _reject(folder, f"{_HEADER} is not the JSON of a header ({str(error)[:80]})", error)
    if (
        {key: type(value) for key, value in header.items()} != _FIELDS
        or {key: type(value) for key, value in header["arrays"].items()} != _ARRAYS_FIELDS
        or not _ARRAYS_FILE.fullmatch(header["arrays"]["file"])  # cannot lead out of the folder
    ):
        _reject(folder, f"{_HEADER} has fields that are missing, unknown or of the wrong type")
    return header


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) != len(pairs):
        raise ValueError("a key stands twice")
    return entries


def _checksum(header: dict[str, Any]) -> str:
    """SHA-256 of the header's meaning, whatever its white space, without the checksum itself."""
    covered = {key: value for key, value in header.items() if key != "sha256"}
    return hashlib.sha256(
        json.dumps(covered, separators=(",", ":"), allow_nan=False).encode()
    ).hexdigest()


def _require_wanted(
    folder: Path, header: dict[str, Any], kind: str, versions: Collection[int]
) -> None:
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


def _read_arrays(folder: Path, description: dict[str, Any]) -> dict[str, np.ndarray]:
    name, size = description["file"], description["bytes"]
    data = _read_file(folder / name, size, size)
    if hashlib.sha256(data).hexdigest() != description["sha256"]:
        _reject(folder, f"the checksum of {name} does not match")
    try:
        arrays = load(data)
    except Exception as error:  # whatever the parser makes of bytes that are not its own
        _reject(folder, f"{name} is not a safetensors file ({str(error)[:80]})", error)
    for array in arrays.values():
        # Other bytes than 0 and 1 would be truth values that NumPy does not know.
        if array.dtype == bool and array.size and array.view(np.uint8).max() > 1:
            _reject(folder, f"{name} has truth values that are neither true nor false")
    return arrays


def _read_file(path: Path, smallest: int, largest: int) -> bytes:
    """All of a regular file whose size is as expected; FileNotFoundError is the caller's."""
    try:
        with open(path, "rb", opener=_open_plainly) as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                _reject(path.parent, f"{path.name} is not a regular file")
            if not smallest <= found.st_size <= largest:
                _reject(
                    path.parent,
                    f"{path.name} has {found.st_size} bytes, where "
                    f"{'at most ' if smallest < largest else ''}{largest} are expected",
                )
            return file.read(found.st_size)
    except (FileNotFoundError, StorageError):
        raise
    except (OSError, ValueError, MemoryError) as error:
        raise StorageError(f"cannot read {str(path)!r}: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    if isinstance(error, FileExistsError | NotADirectoryError):
        return "there is a file where a folder is expected"
    if isinstance(error, MemoryError):
        return "it does not fit into memory"
    if isinstance(error, OSError) and error.errno == errno.ELOOP:
        return "there is a symbolic link; put the file itself there"
    return str(getattr(error, "strerror", None) or error)


def _open_plainly(path: str, flags: int) -> int:
    """Open without following a link out of the folder, or waiting for the end of a pipe."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))


def _reject(folder: Path, what: str, cause: Exception | None = None) -> NoReturn:
    raise StorageError(
        f"{str(folder)!r} is damaged or was not made by forewise: {what}; "
        "restore it from a copy, or make it again"
    ) from cause


def _require_ours(folder: Path) -> None:
    """Raise unless the folder holds something stored before, or nothing of anyone else's."""
    names = sorted(os.listdir(folder))
    if _HEADER in names:
        with open(folder / _HEADER, "rb", opener=_open_plainly) as file:
            if _OUR_HEADER.match(file.read(200)):
                return
        strangers = [_HEADER]
    else:  # what a killed first writing left behind is no reason to refuse
        strangers = [name for name in names if not _is_removable(name)]
    if strangers:
        raise StorageError(
            f"cannot write to {str(folder)!r}: it holds files that are not forewise's "
            f"({', '.join(strangers[:3])}), and nothing of them was touched; choose an empty or "
            "a new folder"
        )


def _is_removable(name: str) -> bool:
    return bool(_ARRAYS_FILE.fullmatch(name) or _TEMPORARY_FILE.fullmatch(name))


def _place(path: Path, data: bytes) -> None:
    """Put a whole file in place at once, on the disk before it can be seen."""
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


def _flush_folder(folder: Path) -> None:
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


def _named_in_header(folder: Path) -> set[str]:
    try:
        return set(_ARRAYS_FILE.findall((folder / _HEADER).read_bytes().decode("latin-1")))
    except FileNotFoundError:
        return set()


def _remove_leftovers(folder: Path, obsolete: set[str]) -> None:
    """Remove what is obsolete or old, and not named in the header that is now in place.

    Removing is no part of what was asked for, so no failure of it is reported.
    """
    with contextlib.suppress(OSError):
        named = _named_in_header(folder)
        # The header's time, not ours: another machine's clock may have stamped the files.
        oldest = (folder / _HEADER).stat().st_mtime - _LEFTOVER_SECONDS if named else -math.inf
        for name in os.listdir(folder):
            if not _is_removable(name) or name in named:
                continue
            with contextlib.suppress(OSError):
                if name in obsolete or (folder / name).lstat().st_mtime < oldest:
                    os.unlink(folder / name)
