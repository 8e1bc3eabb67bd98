"""How a network sees a context: what is made of each standardised column before the first layer.

To add one: a frozen dataclass that derives from `Encoding`; export it, and add it to the classes in
`policy/packing.py`. May import: exceptions, its sibling `parameter_checks`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import torch

from forewise.exceptions import InvalidInputError
from forewise.validation.parameters import require_count, require_positive


class Encoding(ABC):
    """From standardised contexts to the inputs of a network. Nothing in it is fitted."""

    @abstractmethod
    def width(self, n_features: int) -> int:
        """Number of inputs; called when the network is built."""

    @abstractmethod
    def inputs(self, x: torch.Tensor) -> torch.Tensor:
        """Inputs (n_contexts, width) of standardised contexts (n_contexts, n_features)."""


@dataclass(frozen=True)
class FourierFeatures(Encoding):
    """Each column, and waves of it of several lengths.

        x  →  (x,  sin ω_k x,  cos ω_k x),    ω_k from `lowest` to `highest`, each a like multiple
                                              of the one before

    Networks learn slow curves long before fast ones, and may learn the noise before these. Prefer
    waves where the outcome may go up and down several times over the range of a column (hours,
    seasons, prices near thresholds). They ask for a prior or a decay that counts, because noise has
    fast waves, too. Not for columns of zeros and ones, whose waves tell nothing new.

    Parameters
    ----------
    n_frequencies : int
    lowest, highest : float
        Radians per standard deviation of the column. A wave that repeats itself every t of the
        column's units has 2π · (standard deviation) / t.

    Examples
    --------
    >>> FourierFeatures(n_frequencies=2, lowest=1.0, highest=3.0).inputs(torch.zeros(1, 1))
    tensor([[0., 0., 0., 1., 1.]])
    """

    n_frequencies: int = 8
    lowest: float = 0.5
    highest: float = 20.0

    def __post_init__(self) -> None:
        require_count("n_frequencies", self.n_frequencies, at_least=1)
        require_positive("lowest", self.lowest)
        require_positive("highest", self.highest)
        if self.lowest > self.highest:
            raise InvalidInputError(
                f"lowest must not exceed highest, but they are {self.lowest!r} and {self.highest!r}"
            )

    def width(self, n_features: int) -> int:
        """The column, and a sine and a cosine for each frequency."""
        return n_features * (1 + 2 * self.n_frequencies)

    def inputs(self, x: torch.Tensor) -> torch.Tensor:
        """The columns, the sines of all columns, the cosines of all columns."""
        waves = torch.from_numpy(np.geomspace(self.lowest, self.highest, self.n_frequencies))
        angles = (x[:, :, None] * waves.to(x)).flatten(1)
        return torch.cat([x, angles.sin(), angles.cos()], dim=1)
