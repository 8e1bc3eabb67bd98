"""The rows that a network is trained and validated on, and their likelihood."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Generator, Tensor

from forewise.predictors.networks.training import Figures, Objective


class Pair(NamedTuple):
    """Scaled contexts and standardised outcomes of some rows, to train on or to validate on."""

    x: Tensor
    y: Tensor  # completed, where some are censored
    bounds: Tensor | None = None  # what was seen, where some are censored
    censored: Tensor | None = None

    def of(self, rows: Tensor) -> Pair:
        """Those of some rows."""
        # Much faster than x[rows], on tables with many rows.
        take = torch.Tensor.__getitem__ if rows.dim() > 1 else _selected
        if self.bounds is None or self.censored is None:
            return Pair(take(self.x, rows), take(self.y, rows))
        return Pair(*(take(part, rows) for part in (self.x, self.y, self.bounds, self.censored)))

    def to(self, device: str) -> Pair:
        """The same, on a device."""
        bounds = None if self.bounds is None else self.bounds.to(device)
        censored = None if self.censored is None else self.censored.to(device)
        return Pair(self.x.to(device), self.y.to(device), bounds, censored)

    @property
    def seen(self) -> tuple[Tensor, Tensor, Tensor | None]:
        """Contexts, what was seen of the outcomes, and which of these are lower bounds."""
        return self.x, self.y if self.bounds is None else self.bounds, self.censored


def _selected(part: Tensor, rows: Tensor) -> Tensor:
    return part.index_select(0, rows.to(part.device))


@dataclass(frozen=True)
class Rows:
    """Contexts and outcomes of some rows, and the contexts as the network sees them."""

    X: np.ndarray  # (n_contexts, n_features)
    y: np.ndarray  # (n_contexts, n_outcomes), completed where some are censored
    x_scaled: Tensor
    places: Tensor  # of the rows in the table that was passed
    bounds: np.ndarray | None = None  # what was seen, where some are censored
    censored: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.X)


@dataclass(frozen=True)
class Likelihood(Objective):
    """Negative log-likelihood, averaged over draws of the weights."""

    rows: Pair
    validation: Pair | None
    n_draws: int
    title: str = "likelihood"

    @property
    def n_rows(self) -> int:
        return len(self.rows.x)

    @property
    def identity(self) -> dict[str, Any]:
        return {"the objective": "likelihood", "the validation rows": self.validation}

    def on(self, device: str) -> Likelihood:
        held = self.validation
        return replace(
            self, rows=self.rows.to(device), validation=None if held is None else held.to(device)
        )

    def loss(self, network: Any, rows: Tensor, generator: Generator) -> Tensor:
        x, y, censored = self.rows.of(rows).seen
        return network.loss(x, y, self.n_draws, generator, censored)

    def validate(self, network: Any, epoch: int, generator: Generator) -> Figures:
        if self.validation is None:
            return {}
        return {"validation": network.loss(*self.validation[:2], self.n_draws, generator).item()}
