"""Names, shapes and order of a CVXPY problem's variables and parameters.

Decisions, outcomes and what is given are all flattened row by row (C order), as NumPy does and
CVXPY does not. May import: exceptions, arguments.
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
from forewise.validation.arguments import WORKING_DTYPE, as_plain, as_tensor
from forewise.validation.given import Given

Shapes = dict[str, tuple[int, ...]]
_ORDER = "C"  # what is stored says how its decisions were flattened


@dataclass(frozen=True, eq=False)
class Layout:
    """Shapes by name, in the user's order."""

    decision: Shapes
    outcome: Shapes
    given: Shapes

    @classmethod
    def of(cls, decision: list[Any], outcome: list[Any], given: list[Any]) -> Layout:
        """The layout of CVXPY's variables and parameters."""
        roles = (decision, outcome, given)
        return cls(*({leaf.name(): tuple(leaf.shape) for leaf in leaves} for leaves in roles))

    def split_decision(self, decision: Any) -> dict[str, Any]:
        """Parts of ``(..., n_decisions)`` by name, each ``(..., *shape)``."""
        whole = as_plain("decision", decision)
        width = _width(self.decision)
        if whole.ndim not in (1, 2) or whole.shape[-1] != width:
            raise InvalidInputError(
                f"decision must have shape (n_contexts, n_decisions) with {width} decisions, but "
                f"has shape {tuple(whole.shape)}"
            )
        parts, start = {}, 0
        for name, shape in self.decision.items():
            size = math.prod(shape)
            part = whole[..., start : start + size]
            start += size
            parts[name] = part.reshape((*whole.shape[:-1], *shape))
        return parts

    def join_decision(self, parts: dict[str, Any]) -> torch.Tensor:
        """The inverse of `split_decision`."""
        tensors = _checked("decision", parts, self.decision)
        flat = [tensor.flatten(1) for tensor in tensors.values()]
        return torch.cat(_of_equal_length("decision", flat), dim=1)

    def decision_names(self) -> list[str]:
        """Name of every decision, and its place where its variable has several."""
        names = []
        for name, shape in self.decision.items():
            places = np.ndindex(shape)
            names += [f"{name}[{','.join(map(str, p))}]" if shape else name for p in places]
        return names

    def given_names(self) -> list[str]:
        """Name of every given number, and its place where its parameter has several."""
        return [f"{name}[{','.join(map(str, place))}]" if shape else name
                for name, shape in self.given.items() for place in np.ndindex(*shape)]  # fmt: skip

    def join_given(self, given: Any) -> torch.Tensor:
        """Values by name, or side by side, to ``(n_contexts, n_given)``."""
        if isinstance(given, Given):
            given = given.parts
        if isinstance(given, pd.DataFrame):
            given = self._in_order(given)
        if not isinstance(given, Mapping):
            values = as_tensor("given", given).to(WORKING_DTYPE)
            if len(self.given) == 1:
                (shape,) = self.given.values()
                if tuple(values.shape[1:]) == shape:
                    return values.flatten(1) if shape else values.reshape(-1, 1)
            width = _width(self.given)
            if values.ndim != 2 or values.shape[1] != width:
                wanted = ", ".join(f"{name} {('n_contexts', *s)}" for name, s in self.given.items())
                raise InvalidInputError(
                    f"given must have shape (n_contexts, {width}), or come by name ({wanted}), "
                    f"but has shape {tuple(values.shape)}"
                )
            return values
        tensors = _checked("given", given, self.given)
        return torch.cat(_of_equal_length("given", [t.flatten(1) for t in tensors.values()]), dim=1)

    def _in_order(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The columns by name; by place for a single parameter whose name no column has."""
        names, columns = self.given_names(), [str(column) for column in frame.columns]
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
        roles = {"decision": self.decision, "outcome": self.outcome, "given": self.given}
        shapes = {
            role: {name: list(s) for name, s in shapes.items()} for role, shapes in roles.items()
        }
        return {"order": _ORDER, **shapes}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Layout:
        """The layout that `state` was taken of.

        Raises
        ------
        StorageError
            If it is of a time when decisions were flattened column by column, and that matters.
        """
        shapes = {role: state[role] for role in state if role != "order"}
        made = cls(**{r: {name: tuple(s) for name, s in shapes[r].items()} for r in shapes})
        matrices = [n for n, s in made.decision.items() if sum(size > 1 for size in s) > 1]
        if matrices and state.get("order") != _ORDER:
            raise StorageError(
                f"this problem was stored by an older forewise, which flattened the decision "
                f"{', '.join(matrices)} column by column, and this one flattens row by row: its "
                "columns would stand in other places. Make it again: fit the policy, and save it"
            )
        return made

    def __str__(self) -> str:
        told = []
        for role in ("decision", "outcome", "given"):
            shapes: Shapes = getattr(self, role)
            if shapes:
                listed = ", ".join(f"{n} {s}" if s else n for n, s in shapes.items())
                told.append(f"{role}: {listed}")
        return "; ".join(told)


def _width(shapes: Shapes) -> int:
    return sum(math.prod(shape) for shape in shapes.values())


def _checked(role: str, parts: Mapping[str, Any], shapes: Shapes) -> dict[str, torch.Tensor]:
    """Values by name as tensors ``(n_contexts, *shape)``, in the layout's order."""
    if set(parts) != set(shapes):
        raise InvalidInputError(
            f"{role} must have values for {', '.join(shapes)}, but has them for "
            f"{', '.join(map(str, parts)) or 'none'}"
        )
    tensors = {}
    for name, shape in shapes.items():
        tensor = as_tensor(f"{role}[{name!r}]", parts[name]).to(WORKING_DTYPE)
        if not shape and tensor.ndim == 2 and tensor.shape[1] == 1:
            tensor = tensor.squeeze(1)  # a table with one column
        if tuple(tensor.shape[1:]) != shape or tensor.ndim == 0:
            raise InvalidInputError(
                f"{role}[{name!r}] must have shape {('n_contexts', *shape)}, but has shape "
                f"{tuple(tensor.shape)}"
            )
        tensors[name] = tensor if shape else tensor.reshape(-1, 1)
    return tensors


def _of_equal_length(role: str, parts: list[torch.Tensor]) -> list[torch.Tensor]:
    lengths = {len(part) for part in parts}
    if len(lengths) > 1:
        raise InvalidInputError(
            f"{role} must have the same number of rows in every part, but has {sorted(lengths)}"
        )
    return parts
