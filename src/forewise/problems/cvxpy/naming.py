"""Names, shapes and order of a CVXPY problem's variables and parameters.

Decisions, outcomes and given data are flattened row by row (C order), as NumPy does and CVXPY does
not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch

from forewise.exceptions import InvalidInputError, StorageError
from forewise.problems.cvxpy.check import CheckedModel
from forewise.validation.arguments import WORKING_DTYPE, as_plain, as_tensor
from forewise.validation.given import Given

Shapes = dict[str, tuple[int, ...]]
_ROLES = ("decision", "outcome", "given")
_ORDER = "C"  # stored problems say how their decisions were flattened


@dataclass(frozen=True, eq=False)
class VariableLayout:
    """Shapes by name, in the user's order."""

    decision: Shapes
    outcome: Shapes
    given: Shapes

    @classmethod
    def from_model(cls, model: CheckedModel) -> VariableLayout:
        """The layout of CVXPY's variables and parameters."""
        leaves = (getattr(model, role) for role in _ROLES)
        return cls(*({leaf.name(): tuple(leaf.shape) for leaf in part} for part in leaves))

    def decision_names(self) -> list[str]:
        """Name and place of each entry of the decision variables, as ``order[3]``."""
        return _entry_names(self.decision)

    def given_names(self) -> list[str]:
        """Name and place of each entry of the given parameters."""
        return _entry_names(self.given)

    def split_decision(self, decision: Any) -> dict[str, Any]:
        """Parts of ``(..., n_decisions)`` by name, each ``(..., *shape)``."""
        joint = as_plain("decision", decision)
        width = _width(self.decision)
        if joint.ndim not in (1, 2) or joint.shape[-1] != width:
            raise InvalidInputError(
                f"decision must have shape (n_contexts, n_decisions) with {width} decisions, but "
                f"has shape {tuple(joint.shape)}"
            )
        parts, start = {}, 0
        for name, shape in self.decision.items():
            size = math.prod(shape)
            parts[name] = joint[..., start : start + size].reshape((*joint.shape[:-1], *shape))
            start += size
        return parts

    def join_decision(self, parts: dict[str, Any]) -> torch.Tensor:
        """The inverse of `split_decision`."""
        return _joined("decision", parts, self.decision)

    def join_given(self, given: Any) -> torch.Tensor:
        """Values by name, or side by side, to ``(n_contexts, n_given)``."""
        if isinstance(given, Given):
            given = given.parts
        if isinstance(given, pd.DataFrame):
            given = self._in_order(given)
        if isinstance(given, Mapping):
            return _joined("given", given, self.given)
        values = as_tensor("given", given).to(WORKING_DTYPE)
        if len(self.given) == 1:
            (shape,) = self.given.values()
            if tuple(values.shape[1:]) == shape:
                return values.flatten(1) if shape else values.reshape(-1, 1)
        width = _width(self.given)
        if values.ndim == width == 1:  # a series
            return values.reshape(-1, 1)
        if values.ndim != 2 or values.shape[1] != width:
            wanted = ", ".join(f"{name} {_written(shape)}" for name, shape in self.given.items())
            raise InvalidInputError(
                f"given must have shape (n_contexts, {width}), or come by name ({wanted}), "
                f"but has shape {tuple(values.shape)}"
            )
        return values

    def _in_order(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The columns by name; by place for a single parameter whose name no column has."""
        names, columns = _entry_names(self.given), [str(column) for column in frame.columns]
        if sorted(columns) == sorted(names):
            return frame.iloc[:, [columns.index(name) for name in names]]
        if len(self.given) == 1 and not set(columns) & set(names):
            return frame
        raise InvalidInputError(
            f"given must have the columns {', '.join(names)}, but has {', '.join(columns)}: name "
            "them so, and leave others out"
        )

    def state(self) -> dict[str, Any]:
        """Plain values."""
        roles = {role: {n: list(s) for n, s in getattr(self, role).items()} for role in _ROLES}
        return {"order": _ORDER, **roles}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> VariableLayout:
        """The layout that `state` was taken of, if decisions were flattened row by row in it."""
        layout = cls(
            *({name: tuple(s) for name, s in state.get(role, {}).items()} for role in _ROLES)
        )
        matrices = [n for n, s in layout.decision.items() if sum(size > 1 for size in s) > 1]
        if matrices and state.get("order") != _ORDER:
            raise StorageError(
                f"this problem was stored by an older forewise, which flattened the decision "
                f"{', '.join(matrices)} column by column, and this one flattens row by row: its "
                "columns would stand in other places. Make it again: fit the policy, and save it"
            )
        return layout

    def __str__(self) -> str:
        parts = []
        for role in _ROLES:
            shapes: Shapes = getattr(self, role)
            if shapes:
                named = ", ".join(f"{n} {s}" if s else n for n, s in shapes.items())
                parts.append(f"{role}: {named}")
        return "; ".join(parts)


def _width(shapes: Shapes) -> int:
    return sum(math.prod(shape) for shape in shapes.values())


def _written(shape: tuple[int, ...]) -> str:
    return f"({', '.join(['n_contexts', *map(str, shape)])})"


def _entry_names(shapes: Shapes) -> list[str]:
    """``order[3]`` for the entries of arrays, the name alone for scalars."""
    return [f"{name}[{','.join(map(str, place))}]" if shape else name
            for name, shape in shapes.items() for place in np.ndindex(*shape)]  # fmt: skip


def _joined(role: str, parts: Mapping[str, Any], shapes: Shapes) -> torch.Tensor:
    """Values by name, each ``(n_contexts, *shape)``, side by side in the layout's order."""
    if set(parts) != set(shapes):
        raise InvalidInputError(
            f"{role} must have values for {', '.join(shapes)}, but has them for "
            f"{', '.join(map(str, parts)) or 'none'}"
        )
    tensors = []
    for name, shape in shapes.items():
        tensor = as_tensor(f"{role}[{name!r}]", parts[name]).to(WORKING_DTYPE)
        if not shape and tensor.ndim == 2 and tensor.shape[1] == 1:
            tensor = tensor.squeeze(1)  # a table with one column
        elif tensor.ndim == 1 and shape and math.prod(shape) == 1:
            tensor = tensor.reshape(-1, *shape)  # a series
        if tuple(tensor.shape[1:]) != shape or tensor.ndim == 0:
            raise InvalidInputError(
                f"{role}[{name!r}] must have shape {_written(shape)}, but has shape "
                f"{tuple(tensor.shape)}"
            )
        tensors.append(tensor.flatten(1) if shape else tensor.reshape(-1, 1))
    lengths = {len(tensor) for tensor in tensors}
    if len(lengths) > 1:
        raise InvalidInputError(
            f"{role} must have the same number of rows in every part, but has {sorted(lengths)}"
        )
    return torch.cat(tensors, dim=1)
