"""How the learning rate falls during training. May import: exceptions."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

from forewise.exceptions import InvalidInputError


class Schedule(ABC):
    """What the learning rate is multiplied with, epoch by epoch."""

    @abstractmethod
    def factor(self, epoch: int, epochs: int) -> float:
        """Factor of an epoch, counted from 0; called at its start."""


@dataclass(frozen=True)
class CosineSchedule(Schedule):
    """Half a cosine from 1 down to `last`, after a short warm-up from near 0.

    Prefer it where the number of epochs is meant to be used up.
    """

    last: float = 0.01
    warm_up: float = 0.03  # share of the epochs

    def __post_init__(self) -> None:
        for name in ("last", "warm_up"):
            if not 0 <= getattr(self, name) < 1:
                raise InvalidInputError(
                    f"{name} must be at least 0 and below 1, but is {getattr(self, name)!r}"
                )

    def factor(self, epoch: int, epochs: int) -> float:
        """A line up during the warm-up, then the cosine."""
        warm = math.ceil(self.warm_up * epochs)
        if epoch < warm:
            return (epoch + 1) / (warm + 1)
        done = (epoch - warm) / max(1, epochs - 1 - warm)
        return self.last + (1 - self.last) * 0.5 * (1 + math.cos(math.pi * min(1.0, done)))


@dataclass(frozen=True)
class ExponentialSchedule(Schedule):
    """`rate` to the power of the epoch; the paper's, with 0.99.

    Prefer it with `patience`, where nobody knows how many epochs there will be.
    """

    rate: float = 0.99

    def __post_init__(self) -> None:
        if not 0 < self.rate <= 1:
            raise InvalidInputError(f"rate must be in (0, 1], but is {self.rate!r}")

    def factor(self, epoch: int, epochs: int) -> float:
        """rate ** epoch."""
        return self.rate**epoch
