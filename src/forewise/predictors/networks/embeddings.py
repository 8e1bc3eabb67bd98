"""Inputs of a network with members: robust scaling, and an embedding of each column.

An `Embedding` is a value with the settings; its module holds the weights. To add one: a frozen
dataclass with `width` and `module`, exported and known to storage.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import torch
from torch import Generator, Tensor, nn

from forewise.validation.parameters import require_count, require_positive


def centre_and_scale(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Median and interquartile range of each column; the scale of a constant column is 0.

    A column whose quartiles coincide (mostly one value) is scaled by half of its range.
    """
    low, centre, high = np.quantile(X, [0.25, 0.5, 0.75], axis=0)
    smallest, largest = X.min(axis=0), X.max(axis=0)
    scale = np.where(high > low, high - low, (largest - smallest) / 2)
    # Interpolated quantiles of a constant column may differ by rounding.
    return centre, np.where(smallest < largest, scale, 0.0)


@dataclass(frozen=True)
class Embedding(ABC):
    """From columns to the inputs of the first layer.

    Columns are scaled by their median and interquartile range and clipped smoothly at ±`clip`;
    those that never change are left out. A factor for each input is learned.

    Examples
    --------
    >>> import forewise as fw
    >>> kinds = [fw.predictors.PeriodicEmbedding, fw.predictors.LinearEmbedding]
    >>> all(issubclass(kind, fw.predictors.Embedding) for kind in kinds)
    True
    """

    clip: float = 3.0

    def __post_init__(self) -> None:
        if self.clip != math.inf:
            require_positive("clip", self.clip)

    @abstractmethod
    def width(self, n_columns: int) -> int:
        """Number of inputs; called when the network is built."""

    @abstractmethod
    def module(self, n_members: int, n_columns: int, generator: Generator) -> nn.Module:
        """From (n_members or 1, n_contexts, n_columns) to (n_members, n_contexts, width)."""

    def columns(self, X: np.ndarray, centre: np.ndarray, scale: np.ndarray) -> Tensor:
        """Scaled columns (n_contexts, at least 1) of contexts (n_contexts, n_features)."""
        kept = scale > 0
        if not kept.any():
            return torch.zeros(len(X), 1)
        z = (X[:, kept] - centre[kept]) / scale[kept]
        return torch.from_numpy(z / np.sqrt(1 + (z / self.clip) ** 2)).float()


@dataclass(frozen=True)
class LinearEmbedding(Embedding):
    """The scaled columns alone.

    Parameters
    ----------
    clip : float
        Where columns are clipped, in interquartile ranges; `math.inf` for not at all.
    learn_scales : bool
        Whether each input has a factor that is learned.

    Examples
    --------
    A trend goes on beyond the data where columns are not clipped:

    >>> import math
    >>> import forewise as fw
    >>> embedding = fw.predictors.LinearEmbedding(clip=math.inf)
    >>> network = fw.BayesianPredictor(embedding=embedding, extrapolate=math.inf)
    """

    learn_scales: bool = True

    def width(self, n_columns: int) -> int:
        return n_columns

    def module(self, n_members: int, n_columns: int, generator: Generator) -> nn.Module:
        return InputScales(n_members, n_columns) if self.learn_scales else nn.Identity()


@dataclass(frozen=True)
class PeriodicEmbedding(Embedding):
    """Each column, and a few learned combinations of cosines of it, as in RealMLP.

    Parameters
    ----------
    clip : float
        Where columns are clipped, in interquartile ranges.
    n_frequencies : int
        Cosines of each column.
    frequency_scale : float
        Standard deviation of the first frequencies, in periods per interquartile range.
    size : int
        Combinations of cosines beside the column itself.

    Examples
    --------
    Columns that go up and down often want higher frequencies to start from:

    >>> import forewise as fw
    >>> embedding = fw.predictors.PeriodicEmbedding(frequency_scale=1.0)
    >>> network = fw.BayesianPredictor(embedding=embedding)
    """

    n_frequencies: int = 8
    frequency_scale: float = 0.3
    size: int = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        require_count("n_frequencies", self.n_frequencies, at_least=1)
        require_count("size", self.size, at_least=1)
        require_positive("frequency_scale", self.frequency_scale)

    def width(self, n_columns: int) -> int:
        return n_columns * (1 + self.size)

    def module(self, n_members: int, n_columns: int, generator: Generator) -> nn.Module:
        waves = Waves(n_members, n_columns, self, generator)
        return nn.Sequential(waves, InputScales(n_members, self.width(n_columns)))


class InputScales(nn.Module):
    """A factor for each input, so that uninformative columns can shrink."""

    def __init__(self, n_members: int, width: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(n_members, 1, width))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.scale


class Waves(nn.Module):
    """The weights of a `PeriodicEmbedding`."""

    def __init__(
        self, n_members: int, n_columns: int, settings: PeriodicEmbedding, generator: Generator
    ) -> None:
        super().__init__()
        frequencies = (n_members, n_columns, 1, settings.n_frequencies)
        std = 2 * math.pi * settings.frequency_scale
        limit = 1 / math.sqrt(settings.n_frequencies)
        mix = (n_members, n_columns, settings.n_frequencies, settings.size)
        self.frequency = nn.Parameter(std * torch.randn(frequencies, generator=generator))
        self.phase = nn.Parameter(math.pi * uniform(frequencies, generator))
        self.mix = nn.Parameter(limit * uniform(mix, generator))
        offset = (n_members, n_columns, 1, settings.size)
        self.offset = nn.Parameter(limit * uniform(offset, generator))

    def forward(self, x: Tensor) -> Tensor:
        columns = x.transpose(1, 2)[..., None]
        cosines = (columns * self.frequency + self.phase).cos()
        waves = product(cosines, self.mix) + self.offset
        waves = waves.permute(0, 2, 1, 3).flatten(2)
        return torch.cat([x.expand(len(waves), -1, -1), waves], -1)


_VECTOR_WIDTH = 16  # numbers that the widest vector instructions take at a time


def product(x: Tensor, weight: Tensor) -> Tensor:
    """``x @ weight``; without gradients, a row's result does not depend on where it stands.

    A product whose width is no multiple of the vector width may round the rows in its middle and
    at its end in different ways (see `fixed_blocks`). Padded with zeros, it does not.
    """
    width = weight.shape[-1]
    missing = 0 if torch.is_grad_enabled() else -width % _VECTOR_WIDTH
    if not missing:
        return x @ weight
    return (x @ nn.functional.pad(weight, (0, missing)))[..., :width]


def uniform(shape: tuple[int, ...], generator: Generator) -> Tensor:
    """Uniform on [-1, 1)."""
    return 2 * torch.rand(shape, generator=generator) - 1
