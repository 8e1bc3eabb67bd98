"""From what a user passed to a checked tensor.

Numbers come as Python scalars, lists, NumPy arrays, pandas objects or torch tensors. What has no
plain numbers (masked, sparse, dates, text) is refused, and never read as something else.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from forewise.exceptions import InputTypeError, InvalidInputError
from forewise.validation.frames import (
    is_column,
    is_frame,
    is_missing,
    is_real,
    require_number_columns,
)

#: All solving is done in this precision, whatever precision the scenarios have.
WORKING_DTYPE = torch.float64

_TO_NUMBERS = "convert it with pandas.to_numeric (after .str.replace(',', '.') for decimal commas)"


def as_tensor(name: str, value: Any) -> torch.Tensor:
    """Turn `value` into a floating-point tensor; gradients and device are kept."""
    plain = as_plain(name, value)
    if isinstance(plain, np.ndarray):
        # Torch takes no array that is read-only (a data frame's own, say) or runs backwards.
        return torch.from_numpy(np.require(plain, np.float64, ["C", "W"]))
    return plain if plain.is_floating_point() else plain.to(WORKING_DTYPE)


def as_plain(name: str, value: Any) -> np.ndarray | torch.Tensor:
    """Turn `value` into a dense array or tensor of real numbers, NaN where pandas has none."""
    if isinstance(value, torch.Tensor):
        return _dense(name, value)
    if is_frame(value):
        require_number_columns(name, value, f"drop it, or {_TO_NUMBERS}")
        return value.to_numpy(dtype=np.float64, na_value=np.nan)
    if is_column(value):
        return _from_column(name, value)
    sparse = sys.modules.get("scipy.sparse")
    if sparse is not None and sparse.issparse(value):
        raise InputTypeError(
            f"{name} must be dense, but is a sparse {type(value).__name__}: pass {name}.toarray()"
        )
    if isinstance(value, list | tuple):
        leaves = list(_leaves(value))
        for leaf in leaves:
            if isinstance(leaf, np.ma.MaskedArray):
                _unmasked(name, leaf)
        if any(isinstance(leaf, torch.Tensor) for leaf in leaves):
            return _stacked(name, value)
    try:
        array = np.asanyarray(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InvalidInputError(
            f"{name} must be numbers (a scalar, a list, an array or a tensor), but came as "
            f"{type(value).__name__}: {error}"
        ) from error
    return _real(name, _unmasked(name, array), value)


def _dense(name: str, tensor: torch.Tensor) -> torch.Tensor:
    if tensor.layout is not torch.strided or tensor.is_nested or tensor.is_quantized:
        raise InputTypeError(
            f"{name} must be a dense tensor, but has layout {tensor.layout} and dtype "
            f"{tensor.dtype}: pass {name}.to_dense(), {name}.to_padded_tensor(...) if it is nested "
            f"or {name}.dequantize() if it is quantized"
        )
    if tensor.is_complex():
        raise _complex(name, tensor.dtype)
    return tensor


def _leaves(values: list[Any] | tuple[Any, ...]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, list | tuple):
            yield from _leaves(value)
        else:
            yield value


def _stacked(name: str, values: list[Any] | tuple[Any, ...]) -> torch.Tensor:
    """A list with tensors in it as one; NumPy would take them without their gradients."""
    parts = [as_tensor(name, value) for value in values]
    shapes = sorted({tuple(part.shape) for part in parts})
    if len(shapes) > 1:
        raise InvalidInputError(
            f"{name} must be tensors of one shape, but has shapes {', '.join(map(str, shapes))}"
        )
    return torch.stack(parts)


def _unmasked(name: str, array: np.ndarray) -> np.ndarray:
    """The array itself, without a mask that masks nothing."""
    if not isinstance(array, np.ma.MaskedArray):
        return np.asarray(array)
    n_masked = int(np.ma.getmaskarray(array).sum())
    if n_masked:
        raise InvalidInputError(
            f"{name} must have no masked entries, but {n_masked} of {array.size} are masked, and "
            f"what lies under a mask is not data: drop their rows, or fill them with "
            f"{name}.filled(value)"
        )
    return np.asarray(array.data)


def _from_column(name: str, column: Any) -> np.ndarray:
    if is_real(column.dtype):
        array = getattr(column, "array", column)  # a series and an index hold one
        return array.to_numpy(dtype=np.float64, na_value=np.nan)
    if str(column.dtype) == "category":
        raise InputTypeError(
            f"{name} must be numbers, but is a category: use its values, {name}.astype(float), or "
            "encode it (pandas.get_dummies)"
        )
    return _real(name, column.to_numpy(), column)


def _real(name: str, array: np.ndarray, value: Any) -> np.ndarray:
    """An array of real numbers; `value` is what came."""
    match array.dtype.kind:
        case "b" | "i" | "u" | "f":
            return array
        case "O":
            return _from_objects(name, array, value)
        case "c":
            raise _complex(name, array.dtype)
        case "M" | "m":
            raise InputTypeError(
                f"{name} must be numbers, but are dates or times ({array.dtype}): turn them into "
                f"numbers, as ({name} - start) / numpy.timedelta64(1, 'D') for days"
            )
        case "V":
            raise InputTypeError(
                f"{name} must be a plain array, but is a structured one ({array.dtype}): put its "
                "columns side by side, with numpy.lib.recfunctions.structured_to_unstructured"
            )
    scalar = f"is the text {value!r}: drop the quotes"
    found = f"has text: {_TO_NUMBERS}" if array.ndim else scalar
    raise InvalidInputError(f"{name} must be numbers, but {found}")


def _from_objects(name: str, array: np.ndarray, value: Any) -> np.ndarray:
    """Numbers in an array of Python objects, one by one."""
    numbers = np.empty(array.shape)
    for place, item in enumerate(array.flat):
        if isinstance(item, np.ma.MaskedArray):
            _unmasked(name, item)
        if isinstance(item, complex | np.complexfloating):
            raise _complex(name, type(item).__name__)
        found = f"{name} must be numbers, but has {str(item)[:60]!r} in a {type(value).__name__}"
        if is_missing(item) and array.ndim:
            raise InvalidInputError(f"{found}, where a number is missing: fill it, or drop its row")
        if isinstance(item, str | bytes):
            raise InvalidInputError(f"{found}: {_TO_NUMBERS}")
        if isinstance(item, np.datetime64 | np.timedelta64):
            raise InputTypeError(f"{found}, a date or time")
        try:
            numbers.flat[place] = float(item)
        except (TypeError, ValueError) as error:
            raise InputTypeError(f"{found}: {error}") from error
    return numbers


def _complex(name: str, kind: Any) -> InvalidInputError:
    # The first words are those that scikit-learn's own estimators use.
    return InvalidInputError(
        f"Complex data not supported: {name} must be real numbers, but came as {kind}"
    )


def as_table(name: str, value: Any) -> torch.Tensor:
    """Turn a table into a tensor ``(n_rows, n_columns)``; a vector is one column, never one row."""
    tensor = as_tensor(name, value)
    if tensor.ndim == 1:
        return tensor.unsqueeze(-1)
    if tensor.ndim != 2:
        raise InvalidInputError(
            f"{name} must have one row for each context, shape (n_contexts, n_columns) or "
            f"(n_contexts,), but has shape {tuple(tensor.shape)}"
        )
    return tensor


def as_finite(name: str, value: Any) -> torch.Tensor:
    """Turn `value` into a working-precision tensor without NaN or infinity."""
    tensor = as_tensor(name, value).to(WORKING_DTYPE)
    bad = ~torch.isfinite(tensor)
    if bad.any():
        raise InvalidInputError(
            f"{name} must be finite, but {int(bad.sum())} of its {tensor.numel()} entries "
            f"are NaN or infinite (the first is {tensor[bad].reshape(-1)[0].item()})"
        )
    return tensor


def as_vector(name: str, value: Any, length: int | None = None) -> torch.Tensor:
    """Turn `value` into a finite vector ``(length,)``; a scalar is repeated."""
    tensor = as_finite(name, value)
    if tensor.ndim == 0:
        tensor = tensor.expand(1 if length is None else length)
    if tensor.ndim != 1 or (length is not None and tensor.shape[0] != length):
        wanted = "a vector" if length is None else f"a scalar or a vector of length {length}"
        raise InvalidInputError(f"{name} must be {wanted}, but has shape {tuple(tensor.shape)}")
    return tensor


def as_scalar(name: str, value: Any) -> torch.Tensor:
    """Turn `value` into one finite number, a tensor of shape ``()``."""
    tensor = as_finite(name, value)
    if tensor.numel() != 1:
        raise InvalidInputError(f"{name} must be one number, but has shape {tuple(tensor.shape)}")
    return tensor.reshape(())


def require_nonnegative(name: str, tensor: torch.Tensor) -> torch.Tensor:
    """Return `tensor` if no entry is negative."""
    if (tensor < 0).any():
        raise InvalidInputError(
            f"{name} must be at least 0, but its smallest entry is {tensor.min().item():g}"
        )
    return tensor


def as_quadratic(name: str, value: Any, length: int) -> torch.Tensor:
    """Turn `value` into a convex quadratic term.

    A scalar or a vector ``(length,)`` is a diagonal and stays a vector, so that solvers can
    see it; a matrix ``(length, length)`` must be symmetric and positive semidefinite.
    """
    tensor = as_finite(name, value)
    if tensor.ndim < 2:
        tensor = as_vector(name, tensor, length)
        if (tensor < 0).any():
            raise InvalidInputError(
                f"{name} must be positive semidefinite, but its diagonal has the negative "
                f"entry {tensor.min().item():g}"
            )
        return tensor
    if tensor.shape != (length, length):
        raise InvalidInputError(
            f"{name} must be a scalar, a vector of length {length} or a {length} × {length} "
            f"matrix, but has shape {tuple(tensor.shape)}"
        )
    matrix = tensor.detach()
    tolerance = 1e-10 * matrix.abs().max().clamp_min(1e-300)
    asymmetry = (matrix - matrix.mT).abs().max()
    if asymmetry > tolerance:
        raise InvalidInputError(
            f"{name} must be symmetric, but differs from its transpose by up to "
            f"{asymmetry.item():g}; use ({name} + {name}.T) / 2 for the same cost"
        )
    smallest = torch.linalg.eigvalsh(matrix)[0]
    if smallest < -tolerance:
        raise InvalidInputError(
            f"{name} must be positive semidefinite, but its smallest eigenvalue is "
            f"{smallest.item():g}: the cost would not be convex"
        )
    return tensor
