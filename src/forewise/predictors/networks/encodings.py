"""Encodings: what is made of each standardised column before the first layer of a network.

To add one: a frozen dataclass that derives from `Encoding`, exported and known to storage.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from forewise.exceptions import InvalidInputError
from forewise.validation.parameters import require_count, require_positive


class Encoding(ABC):
    """From standardised contexts to the inputs of a network. Nothing in it is fitted."""

    @abstractmethod
    def width(self, n_features: int) -> int:
        """Number of inputs; called when the network is built."""

    @abstractmethod
    def inputs(self, x: Tensor) -> Tensor:
        """Inputs (n_contexts, width) of standardised contexts (n_contexts, n_features)."""


@dataclass(frozen=True)
class FourierFeatures(Encoding):
    """Each column, and sines and cosines of it at several frequencies.

        x  →  (x,  sin ω_k x,  cos ω_k x),    ω_k geometric from `lowest` to `highest`

    When to use: the outcome may rise and fall several times over the range of a column (hours,
    seasons). A network alone learns low frequencies first and may fit noise before high ones.
    Combine with a prior or a weight decay.

    Parameters
    ----------
    n_frequencies : int
    lowest, highest : float
        Radians per standard deviation of the column: 2π · (standard deviation) / period.
    """

    n_frequencies: int = 8
    lowest: float = 0.5
    highest: float = 20.0

    def __post_init__(self) -> None:
        require_count("n_frequencies", self.n_frequencies, at_least=1)
        if require_positive("lowest", self.lowest) > require_positive("highest", self.highest):
            raise InvalidInputError(
                f"lowest must not exceed highest, but they are {self.lowest!r} and {self.highest!r}"
            )

    def width(self, n_features: int) -> int:
        return n_features * (1 + 2 * self.n_frequencies)

    def inputs(self, x: Tensor) -> Tensor:
        """The columns, the sines of all columns, the cosines of all columns."""
        frequencies = torch.from_numpy(np.geomspace(self.lowest, self.highest, self.n_frequencies))
        angles = (x[:, :, None] * frequencies.to(x)).flatten(1)
        return torch.cat([x, angles.sin(), angles.cos()], dim=1)
