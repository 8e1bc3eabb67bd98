"""Writing a folder and reading it, whoever else is at work on it.

May import: exceptions, its siblings.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np

from forewise.exceptions import InvalidInputError, StorageError
from forewise.storage.arrays import pack_arrays, read_arrays
from forewise.storage.complaints import reason, reject
from forewise.storage.files import flush_folder, place
from forewise.storage.header import make_header, read_header, require_wanted
from forewise.storage.layout import HEADER
from forewise.storage.ownership import named_in_header, remove_leftovers, require_ours
from forewise.storage.trees import Tree, decode, encode

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
    tree = encode(content, "", arrays)
    data, description = pack_arrays(arrays)
    text = make_header(kind, version, description, tree)

    target = Path(folder)
    outcome = "what was stored there before is unchanged"
    try:
        is_new = not target.exists()
        target.mkdir(parents=True, exist_ok=True)
        if is_new:
            flush_folder(target.parent)
        require_ours(target)
        obsolete = {description["file"]}
        try:
            place(target / description["file"], data)
            flush_folder(target)  # a header on the disk must find its arrays there
            obsolete |= named_in_header(target)
            place(target / HEADER, text)
            outcome = "the new content is in place, but may not survive a power failure"
            flush_folder(target)
        finally:
            remove_leftovers(target, obsolete)
    except StorageError:
        raise
    except (OSError, ValueError) as error:
        told = f"cannot write to {str(target)!r}: {reason(error)}; {outcome}"
        raise StorageError(told) from error


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
        header = read_header(target)
        require_wanted(target, header, kind, versions)
        try:
            arrays = read_arrays(target, header["arrays"])
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
