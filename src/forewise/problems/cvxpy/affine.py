"""A block of a scenario program as an affine map of outcome and given, evaluated in batches.

May import: arguments.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from forewise.validation.arguments import WORKING_DTYPE

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class LinearPart:
    """entry[e] += Σ_p coefficient · θ[p], for the entries that depend on θ and no others."""

    entry: torch.Tensor
    #: Where each entry depends on one parameter: that one, and its coefficient.
    parameter: torch.Tensor | None
    coefficient: torch.Tensor | None
    #: Otherwise the whole matrix, ``(n_parameters, n_entries)``.
    matrix: torch.Tensor | None

    @classmethod
    def of(cls, entry: Array, parameter: Array, coefficient: Array, n: int) -> LinearPart | None:
        """The part with these terms, of `n` parameters; None if there are none."""
        if len(entry) == 0:
            return None
        entries, place = np.unique(entry, return_inverse=True)
        index = torch.from_numpy(entries)
        if len(entries) == len(entry):
            order = np.argsort(entry)
            of = torch.from_numpy(parameter[order])
            return cls(index, of, torch.from_numpy(coefficient[order]), None)
        matrix = np.zeros((n, len(entries)))
        np.add.at(matrix, (parameter, place), coefficient)
        return cls(index, None, None, torch.from_numpy(matrix))

    def __call__(self, theta: torch.Tensor) -> torch.Tensor:
        """Values of the entries that depend on θ: ``(..., n_entries)`` from ``(..., n_θ)``."""
        if self.matrix is not None:
            return theta @ self.matrix.to(theta.device)
        assert self.parameter is not None
        assert self.coefficient is not None
        device = theta.device
        return theta[..., self.parameter.to(device)] * self.coefficient.to(device)


@dataclass(frozen=True, eq=False)
class AffineBlock:
    """constant + linear in outcome + linear in given, as a tensor of a fixed shape."""

    constant: torch.Tensor
    outcome: LinearPart | None
    given: LinearPart | None

    @classmethod
    def of(
        cls, constant: Array, entry: Array, parameter: Array, coefficient: Array, n_outcomes: int,
        n_given: int,
    ) -> AffineBlock:  # fmt: skip
        """The block with these terms; `entry` counts through `constant` row by row."""
        known = parameter < n_outcomes
        first = (entry[known], parameter[known], coefficient[known])
        last = (entry[~known], parameter[~known] - n_outcomes, coefficient[~known])
        return cls(
            torch.from_numpy(np.ascontiguousarray(constant)).to(WORKING_DTYPE),
            LinearPart.of(*first, n_outcomes),
            LinearPart.of(*last, n_given),
        )

    @classmethod
    def of_rows(cls, maps: Array, n_outcomes: int) -> AffineBlock:
        """The vector whose entries are rows of dense affine maps, the constant last."""
        entry, parameter = np.nonzero(maps[:, :-1])
        n_given = maps.shape[1] - 1 - n_outcomes
        values = maps[entry, parameter]
        return cls.of(maps[:, -1], entry, parameter, values, n_outcomes, n_given)

    @property
    def varies(self) -> bool:
        """Whether the block depends on anything."""
        return self.outcome is not None or self.given is not None

    def __call__(self, outcome: torch.Tensor, given: torch.Tensor | None) -> torch.Tensor:
        """The block of every context and scenario.

        Parameters
        ----------
        outcome : tensor (..., n_outcomes)
        given : tensor that broadcasts with it, (..., n_given)

        Returns
        -------
        tensor (..., *shape)
            The leading dimensions are 1 where nothing depends on them.
        """
        lead = (1,) * (outcome.ndim - 1)
        value = self.constant.to(outcome.device).reshape(*lead, -1)
        for part, theta in ((self.given, given), (self.outcome, outcome)):
            if part is not None and theta is not None:
                value = _added(value, part.entry.to(outcome.device), part(theta))
        return value.reshape(*value.shape[:-1], *self.constant.shape)


def _added(value: torch.Tensor, entry: torch.Tensor, more: torch.Tensor) -> torch.Tensor:
    """The values with more in some entries."""
    if len(entry) == value.shape[-1]:
        return value + more
    lead = torch.broadcast_shapes(value.shape[:-1], more.shape[:-1])
    more = more.expand(*lead, more.shape[-1])
    return value.expand(*lead, value.shape[-1]).index_add(-1, entry, more)
