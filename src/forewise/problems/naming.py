"""Names, shapes and order of a CVXPY problem's variables and parameters.

Decisions are flattened column by column, as CVXPY does; outcomes and what is given row by row, as
NumPy does. May import: exceptions, arguments.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from forewise.arguments import WORKING_DTYPE, as_tensor
from forewise.exceptions import InvalidInputError

Shapes = dict[str, tuple[int, ...]]


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
        whole = decision if isinstance(decision, torch.Tensor) else np.asarray(decision)
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
            # Column by column is row by row of the transpose.
            part = part.reshape((*whole.shape[:-1], *reversed(shape)))
            parts[name] = _transposed(part, len(shape))
        return parts

    def join_decision(self, parts: dict[str, Any]) -> torch.Tensor:
        """The inverse of `split_decision`."""
        tensors = _checked("decision", parts, self.decision)
        flat = [
            _transposed(tensor, len(self.decision[name])).flatten(1)
            for name, tensor in tensors.items()
        ]
        return torch.cat(_of_equal_length("decision", flat), dim=1)

    def decision_names(self) -> list[str]:
        """Name of every decision, and its place where its variable has several."""
        names = []
        for name, shape in self.decision.items():
            places = np.indices(shape).reshape(len(shape), math.prod(shape))
            order = np.arange(math.prod(shape)).reshape(shape).flatten(order="F")
            names += [f"{name}[{','.join(map(str, places[:, k]))}]" if shape else name
                      for k in order]  # fmt: skip
        return names

    def join_given(self, given: Any) -> torch.Tensor:
        """Values by name, or side by side, to ``(n_contexts, n_given)``."""
        if not isinstance(given, dict):
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

    def state(self) -> dict[str, dict[str, list[int]]]:
        """Plain values."""
        roles = {"decision": self.decision, "outcome": self.outcome, "given": self.given}
        return {
            role: {name: list(s) for name, s in shapes.items()} for role, shapes in roles.items()
        }

    @classmethod
    def from_state(cls, state: dict[str, dict[str, list[int]]]) -> Layout:
        """The layout that `state` was taken of."""
        return cls(**{r: {name: tuple(s) for name, s in state[r].items()} for r in state})

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


def _transposed(part: Any, n_dimensions: int) -> Any:
    """The last dimensions in reverse order."""
    lead = part.ndim - n_dimensions
    order = [*range(lead), *reversed(range(lead, part.ndim))]
    return part.permute(order) if isinstance(part, torch.Tensor) else part.transpose(order)


def _checked(role: str, parts: dict[str, Any], shapes: Shapes) -> dict[str, torch.Tensor]:
    """Values by name as tensors ``(n_contexts, *shape)``, in the layout's order."""
    if set(parts) != set(shapes):
        raise InvalidInputError(
            f"{role} must have values for {', '.join(shapes)}, but has them for "
            f"{', '.join(map(str, parts)) or 'none'}"
        )
    tensors = {}
    for name, shape in shapes.items():
        tensor = as_tensor(f"{role}[{name!r}]", parts[name]).to(WORKING_DTYPE)
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
