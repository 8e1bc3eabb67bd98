"""Objects to trees of plain values and arrays, and back: what may be stored, and how.

An object is stored as the name of its class, the arguments it was made with and, if it is a
predictor, what it was fitted to. A problem that was written in CVXPY is stored as what was read
from it. Reading makes objects of registered classes only, through their own checked constructors.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from typing import Any, TypeVar, overload

import numpy as np
import torch

from forewise.exceptions import ForewiseError, InputTypeError, InvalidInputError, StorageError
from forewise.predictors.base import Predictor
from forewise.problems.cvxpy.problem import CvxpyProblem

KIND, VERSION = "policy", 3

_CONTAINERS = ("dict", "list", "text", "tuple")
_CLASSES: dict[str, type] = {}
_NAMES: dict[type, str] = {}

_Class = TypeVar("_Class", bound=type)


@overload
def register(cls: _Class, name: str | None = None) -> _Class: ...
@overload
def register(cls: None = None, name: str | None = None) -> Callable[[_Class], _Class]: ...
def register(cls: Any = None, name: str | None = None) -> Any:
    """Let policies with objects of a class be stored, and made again when they are loaded.

    The class is that of a problem, predictor, solver or policy, or of one of their arguments. Its
    objects must keep the arguments they were made with as attributes of the same names; what a
    predictor was fitted to are its attributes that end in an underscore. A file names classes and
    never causes an import, so register before loading, where the class is defined.

    Parameters
    ----------
    cls : type
        Without it, `register` returns a decorator.
    name : str, optional
        What the class is called in files, by default as in Python. A name that another class has
        is refused; a class of the same module and qualified name, defined anew, takes its place.

    Examples
    --------
    >>> import forewise as fw
    >>> @fw.policy.register(name="acme.Season")
    ... class Season:
    ...     def __init__(self, length=7):
    ...         self.length = length
    """
    if cls is None:
        return lambda made: register(made, name)
    if not isinstance(cls, type):
        raise InputTypeError(f"cls must be a class, but is a {type(cls).__name__}")
    name = cls.__name__ if name is None else name
    if not isinstance(name, str) or not name or name in _CONTAINERS:
        raise InvalidInputError(
            f"name must be a name other than {', '.join(_CONTAINERS)}, but is {name!r}"
        )
    other = _CLASSES.get(name, cls)
    if (other.__module__, other.__qualname__) != (cls.__module__, cls.__qualname__):
        raise InvalidInputError(
            f"name must not be taken, but {name!r} is {other.__module__}.{other.__qualname__}: "
            f"pass another, as register(..., name='yours.{name}')"
        )
    _CLASSES[name], _NAMES[cls] = cls, name
    return cls


def pack(value: Any, path: str) -> Any:
    """The tree of an object; `path` is where it stands, for the message if it cannot be stored."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray) and value.dtype.kind in "OU":
        return {"class": "text", "items": [str(item) for item in value]}
    if isinstance(value, np.ndarray | torch.Tensor):
        return value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, list | tuple):
        items = [pack(item, f"{path}[{i}]") for i, item in enumerate(value)]
        return {"class": type(value).__name__, "items": items}
    if isinstance(value, dict):
        return {"class": "dict", "items": _packed({str(k): v for k, v in value.items()}, path)}
    name = _NAMES.get(type(value))
    if name is None:
        raise StorageError(
            f"{path} is a {type(value).__name__}, which cannot be stored: it is not registered. A "
            f"class of your own can be, with forewise.policy.register({type(value).__name__}); "
            f"known are {', '.join(sorted(_CLASSES))}"
        )
    if isinstance(value, CvxpyProblem):
        return {"class": name, "state": pack(value.state(), path)}
    if not isinstance(value, Predictor):
        arguments = {key: getattr(value, key) for key in inspect.signature(type(value)).parameters}
        return {"class": name, "settings": _packed(arguments, path)}
    packed = {"class": name, "settings": _packed(value.settings(), path)}
    return packed | ({"fitted": _packed(value.state(), path)} if value.is_fitted else {})


def _packed(values: dict[str, Any], path: str) -> dict[str, Any]:
    return {key: pack(value, f"{path}.{key}") for key, value in values.items()}


def unpack(tree: Any) -> Any:
    """The object of a tree."""
    if not isinstance(tree, dict):
        return tree
    try:
        return _object_from(tree)
    except StorageError:
        raise
    except (ForewiseError, ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError,
            ValueError) as error:  # fmt: skip
        raise StorageError(
            f"the stored {tree.get('class', 'object')} is not valid: {error}"
        ) from error


def _object_from(tree: dict[str, Any]) -> Any:
    name = tree["class"]
    if name in ("list", "tuple"):
        items = [unpack(item) for item in tree["items"]]
        return items if name == "list" else tuple(items)
    if name == "text":
        return np.array(tree["items"], dtype=object)
    if name == "dict":
        return _unpacked(tree["items"])
    if name not in _CLASSES:
        raise StorageError(
            f"a {name} is stored here, which is not registered: import the module that registers "
            "it (forewise.policy.register), or use the version of forewise that wrote it"
        )
    if "state" in tree:
        return CvxpyProblem.from_state(unpack(tree["state"]))
    made = _CLASSES[name](**_unpacked(tree["settings"]))
    if "fitted" in tree:
        made.restore(_unpacked(tree["fitted"]))
    return made


def _unpacked(trees: dict[str, Any]) -> dict[str, Any]:
    return {key: unpack(tree) for key, tree in trees.items()}
