"""The arrays' file: made, described and read again.

May import: exceptions, its siblings `complaints`, `files`, `layout`.
"""

from __future__ import annotations

import hashlib
import secrets
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from forewise.exceptions import StorageError
from forewise.storage.complaints import reason, reject
from forewise.storage.files import read_file
from forewise.storage.layout import arrays_file


def pack_arrays(arrays: dict[str, np.ndarray]) -> tuple[bytes, dict[str, Any]]:
    """The bytes of the arrays' file, and its description for the header."""
    # The random number makes the hash, and so the name, unlike that of any other writing.
    data = save(arrays, metadata={"writing": secrets.token_hex(16)})
    digest = hashlib.sha256(data).hexdigest()
    return data, {"file": arrays_file(digest), "bytes": len(data), "sha256": digest}


def read_arrays(folder: Path, description: dict[str, Any]) -> dict[str, np.ndarray]:
    """The arrays by name; FileNotFoundError is the caller's."""
    name, size = description["file"], description["bytes"]
    data = read_file(folder / name, size, size)
    if hashlib.sha256(data).hexdigest() != description["sha256"]:
        reject(folder, f"the checksum of {name} does not match")
    try:
        arrays = load(data)
    except (SafetensorError, KeyError, ValueError) as error:
        # KeyError: a dtype that NumPy does not have; ValueError: a shape that it does not take.
        reject(folder, f"{name} is not a safetensors file ({str(error)[:80]})", error)
    except MemoryError as error:
        raise StorageError(f"cannot read {str(folder / name)!r}: {reason(error)}") from error
    for array in arrays.values():
        # Other bytes than 0 and 1 would be truth values that NumPy does not know.
        if array.dtype == bool and array.size and array.view(np.uint8).max() > 1:
            reject(folder, f"{name} has truth values that are neither true nor false")
    return arrays
