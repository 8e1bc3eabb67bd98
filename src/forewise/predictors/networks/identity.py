"""Marks of values: equal for equal ones, different for all others, in every process.

A checkpoint is taken up by the very fit that wrote it. What that fit was made of, data, problem,
solver and settings, is remembered as a digest of each part, over every byte of every number.
May import: exceptions.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import struct
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator

from forewise.exceptions import StorageError

#: Metadata of a dataclass's field that has no part in the result: where files go, what is shown.
CHANGES_NOTHING: Mapping[str, Any] = MappingProxyType({"changes_nothing": True})
#: Parameters of an estimator that are marked where they act: the loop's settings, and the seed.
_ELSEWHERE = ("training", "random_state")


def marks(parts: dict[str, Any]) -> dict[str, str]:
    """A mark of each part."""
    return {name: mark(value, name) for name, value in parts.items()}


def mark(value: Any, name: str) -> str:
    """A digest of a value and of all that it holds; `name` is for the message if it has none."""
    digest = hashlib.sha256()
    for piece in _pieces(value, name):
        # With its length, so that no two sequences of pieces run together to the same bytes.
        digest.update(struct.pack("<q", len(piece)))
        digest.update(piece)
    return digest.hexdigest()


def settings_of(value: Any) -> dict[str, Any]:
    """The fields of a dataclass that have a part in the result."""
    return {
        entry.name: getattr(value, entry.name)
        for entry in dataclasses.fields(value)
        if not entry.metadata.get("changes_nothing", False)
    }


def parameters_of(estimator: BaseEstimator) -> dict[str, Any]:
    """The parameters of an estimator that have a part in the result and no mark of their own."""
    parameters = estimator.get_params(deep=False).items()
    return {name: value for name, value in parameters if name not in _ELSEWHERE}


def _pieces(value: Any, name: str) -> Iterator[bytes]:
    """The value as bytes: what kind of thing it is, and what is in it."""
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu().numpy()
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        yield f"{type(value).__name__} {value!r}".encode()
    elif isinstance(value, os.PathLike):
        yield f"path {os.fspath(value)!r}".encode()
    elif isinstance(value, np.ndarray) and value.dtype.kind in "biufcmM":
        yield f"array {value.dtype.str} {value.shape}".encode()
        yield np.ascontiguousarray(value).tobytes()
    elif isinstance(value, type):
        yield f"class {value.__module__}.{value.__qualname__}".encode()
    else:
        yield f"{type(value).__module__}.{type(value).__qualname__}".encode()
        yield from _parts(value, name)


def _parts(value: Any, name: str) -> Iterator[bytes]:
    """Pieces of what a container or an object holds."""
    kind: Any = type(value)
    if isinstance(value, np.ndarray):  # of text or objects
        yield from _pieces([value.shape, value.ravel().tolist()], name)
    elif isinstance(value, list | tuple):
        yield str(len(value)).encode()
        for item in value:
            yield from _pieces(item, name)
    elif isinstance(value, dict):
        yield str(len(value)).encode()
        for key in sorted(value, key=repr):
            yield from _pieces(key, name)
            yield from _pieces(value[key], name)
    elif isinstance(value, BaseEstimator):
        yield from _pieces(parameters_of(value), name)
    elif kind.__reduce__ is not object.__reduce__:
        # It says itself what a copy is made from, as problems do.
        yield from _pieces(list(value.__reduce__()[1:]), name)
    elif dataclasses.is_dataclass(value):
        yield from _pieces(settings_of(value), name)
    else:
        raise StorageError(
            f"a checkpoint cannot tell one {kind.__name__} from another, which is in {name}: make "
            "it a frozen dataclass, or fit without a checkpoint"
        )
