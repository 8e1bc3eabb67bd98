"""What can be stored, as JSON with references to arrays, and back.

A dict whose keys begin with one $ is a reference: ``{"$array": name, "dtype": ..., "shape": ...}``
stands for an array, ``{"$float": "nan"}`` for a number that JSON cannot hold.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

import numpy as np
import torch

from forewise.exceptions import InvalidInputError, StorageError

#: What can be stored. Arrays and tensors come back as arrays, tuples as lists.
Tree: TypeAlias = (
    "bool | int | float | str | list[Tree] | dict[str, Tree] | np.ndarray | torch.Tensor | None"
)

#: Names of the dtypes that arrays may have.
DTYPES = {"bool", "float16", "float32", "float64"} | {
    f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)
}
_MAX_DEPTH = 100
_MAX_INT_BITS = 4096  # a random generator's state fits; Python refuses to parse far longer ones


def encode(value: Any, path: str, arrays: dict[str, np.ndarray], depth: int = 0) -> Any:
    """`value` as JSON can hold it; its arrays go to `arrays`, and references take their place."""
    if depth > _MAX_DEPTH:
        _refuse(f"{path[:60]}...", f"nested more than {_MAX_DEPTH} deep; does it contain itself?")
    if isinstance(value, torch.Tensor):
        try:
            value = value.numpy(force=True)
        except (TypeError, RuntimeError) as error:
            layout = str(value.layout).removeprefix("torch.")
            _refuse(path, f"a {layout} tensor of {value.dtype} ({error}); convert it", error)
    match value:
        case None:
            return None
        case bool() | np.bool_():
            return bool(value)
        case str():
            return _encode_text(value, path)
        case int() | np.integer():
            if int(value).bit_length() > _MAX_INT_BITS:
                _refuse(path, f"an integer of more than {_MAX_INT_BITS} bits")
            return int(value)
        case float() | np.floating() if not isinstance(value, np.longdouble):
            number = float(value)
            return number if math.isfinite(number) else {"$float": repr(number)}
        case list() | tuple():
            return [encode(v, f"{path}[{i}]", arrays, depth + 1) for i, v in enumerate(value)]
        case dict():
            encoded = {}
            for key, entry in value.items():
                if not isinstance(key, str):
                    _refuse(f"{path}[{key!r}]", f"a key of type {type(key).__name__}; use text")
                name = _encode_text(key, path)
                # A leading $ marks a reference, so one in a user's key is doubled.
                encoded["$" + name if name.startswith("$") else name] = encode(
                    entry, f"{path}.{name}" if path else name, arrays, depth + 1
                )
            return encoded
    if not isinstance(value, np.ndarray) or isinstance(value, np.ma.MaskedArray):
        _refuse(path, f"a {type(value).__name__}")
    if value.dtype.kind in "UTO":
        return encode(value.tolist(), path, arrays, depth + 1)
    if value.dtype.name not in DTYPES:
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


def decode(node: Any, arrays: dict[str, np.ndarray], folder: Path, depth: int = 0) -> Any:
    """The tree of a parsed header; every array is taken out of `arrays` as it is referred to."""
    if depth > _MAX_DEPTH:
        reject(folder, "its content is nested too deep")
    if isinstance(node, list):
        return [decode(entry, arrays, folder, depth + 1) for entry in node]
    if not isinstance(node, dict):
        return node
    if node.keys() == {"$float"} and node["$float"] in ("nan", "inf", "-inf"):
        return float(node["$float"])
    if node.keys() == {"$array", "dtype", "shape"}:
        array = arrays.pop(node["$array"], None) if isinstance(node["$array"], str) else None
        if array is None or [array.dtype.name, [*array.shape]] != [node["dtype"], node["shape"]]:
            reject(folder, "it refers to an array that is missing, taken or not as described")
        return array
    if any(key.startswith("$") and not key.startswith("$$") for key in node):
        reject(folder, "its content has an unknown reference")
    return {k.removeprefix("$"): decode(v, arrays, folder, depth + 1) for k, v in node.items()}


def reject(folder: Path, what: str, cause: Exception | None = None) -> NoReturn:
    """Raise because what is stored in the folder cannot be what was written."""
    raise StorageError(
        f"{str(folder)!r} is damaged or was not made by forewise: {what}; "
        "restore it from a copy, or make it again"
    ) from cause
