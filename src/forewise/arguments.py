"""From what a user passed to a checked tensor: every message names the argument.

Problems, scenarios and programs all take numbers as Python scalars, lists, NumPy arrays or
torch tensors. They come through here once, at the border, so that no layer below has to ask
again. May import: exceptions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from forewise.exceptions import InvalidInputError

#: All solving is done in this precision, whatever precision the scenarios have.
WORKING_DTYPE = torch.float64


def as_tensor(name: str, value: Any) -> torch.Tensor:
    """Turn `value` into a floating-point tensor; gradients and device are kept."""
    if isinstance(value, torch.Tensor):
        tensor = value
    elif np.iscomplexobj(value):
        raise InvalidInputError(f"{name} must be real numbers, but came as complex ones")
    else:
        if isinstance(value, np.ndarray) and not value.flags.writeable:
            # A data frame's own array, say: torch would warn of sharing its memory.
            value = value.copy()
        try:
            tensor = torch.as_tensor(value, dtype=WORKING_DTYPE)
        except (TypeError, ValueError, RuntimeError) as error:
            raise InvalidInputError(
                f"{name} must be numbers (a scalar, a list, an array or a tensor), "
                f"but came as {type(value).__name__}: {error}"
            ) from error
    if tensor.is_complex():
        raise InvalidInputError(f"{name} must be real numbers, but came as {tensor.dtype}")
    return tensor if tensor.is_floating_point() else tensor.to(WORKING_DTYPE)


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
        diagonal = as_vector(name, tensor, length)
        if (diagonal < 0).any():
            raise InvalidInputError(
                f"{name} must be positive semidefinite, but its diagonal has the negative "
                f"entry {diagonal.min().item():g}"
            )
        return diagonal
    if tensor.shape != (length, length):
        raise InvalidInputError(
            f"{name} must be a scalar, a vector of length {length} or a {length} × {length} "
            f"matrix, but has shape {tuple(tensor.shape)}"
        )
    scale = tensor.detach().abs().max().clamp_min(1e-300)
    asymmetry = (tensor.detach() - tensor.detach().mT).abs().max()
    if asymmetry > 1e-10 * scale:
        raise InvalidInputError(
            f"{name} must be symmetric, but differs from its transpose by up to "
            f"{asymmetry.item():g}; use ({name} + {name}.T) / 2 for the same cost"
        )
    smallest = torch.linalg.eigvalsh(tensor.detach())[0]
    if smallest < -1e-10 * scale:
        raise InvalidInputError(
            f"{name} must be positive semidefinite, but its smallest eigenvalue is "
            f"{smallest.item():g}: the cost would not be convex"
        )
    return tensor
