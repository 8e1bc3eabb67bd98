"""Settings of the training loop: `Training`, schedules of the learning rate, and hold-outs."""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any, Literal

import numpy as np
import torch

from forewise.display import described
from forewise.exceptions import InvalidInputError
from forewise.predictors.networks.checkpoint import CHANGES_NOTHING
from forewise.predictors.networks.ranks import OneProcess, Ranks
from forewise.validation.parameters import (
    came_as,
    require_choice,
    require_count,
    require_instance,
    require_positive,
)


class Schedule(ABC):
    """What the learning rate is multiplied with, epoch by epoch.

    Examples
    --------
    One method is enough for a schedule of one's own:

    >>> import forewise as fw
    >>> class Halves(fw.predictors.Schedule):
    ...     def factor(self, epoch, epochs):
    ...         return 1.0 if epoch < epochs / 2 else 0.1
    >>> training = fw.Training(schedule=Halves())
    """

    @abstractmethod
    def factor(self, epoch: float, epochs: int) -> float:
        """Factor of an epoch, counted from 0; called at its start."""

    def factors(self, epoch: int, epochs: int, n_steps: int) -> list[float]:
        """Factors of an epoch's steps: by default that of the epoch."""
        return [self.factor(epoch, epochs)] * n_steps


@dataclass(frozen=True)
class CosineSchedule(Schedule):
    """Half a cosine from 1 down to `last`, after a linear warm-up over a share of the epochs.

    Examples
    --------
    >>> import forewise as fw
    >>> schedule = fw.predictors.CosineSchedule(last=0.1, warm_up=0.0)
    >>> [round(schedule.factor(epoch, epochs=5), 2) for epoch in range(5)]
    [1.0, 0.87, 0.55, 0.23, 0.1]
    """

    last: float = 0.01
    warm_up: float = 0.03

    def __post_init__(self) -> None:
        require_nonnegative("last", self.last, below=1)
        require_nonnegative("warm_up", self.warm_up, below=1)

    def factor(self, epoch: float, epochs: int) -> float:
        warm = math.ceil(self.warm_up * epochs)
        if epoch < warm:
            return (epoch + 1) / (warm + 1)
        done = (epoch - warm) / max(1, epochs - 1 - warm)
        return self.last + (1 - self.last) * 0.5 * (1 + math.cos(math.pi * min(1.0, done)))


@dataclass(frozen=True)
class ExponentialSchedule(Schedule):
    """`rate` to the power of the epoch; the paper's, with 0.99. Suits training with `patience`.

    Examples
    --------
    >>> import forewise as fw
    >>> schedule = fw.predictors.ExponentialSchedule(rate=0.5)
    >>> [schedule.factor(epoch, epochs=4) for epoch in range(4)]
    [1.0, 0.5, 0.25, 0.125]
    """

    rate: float = 0.99

    def __post_init__(self) -> None:
        if require_positive("rate", self.rate) > 1:
            raise InvalidInputError(f"rate must be at most 1, but is {self.rate!r}")

    def factor(self, epoch: float, epochs: int) -> float:
        return self.rate**epoch


@dataclass(frozen=True)
class CosLogSchedule(Schedule):
    """Cosine cycles from 0 to 1 and back, each twice as long as the one before; changes every step.

    RealMLP's. Every cycle ends with small steps, so that the best epoch may be an early one.

    Examples
    --------
    >>> import forewise as fw
    >>> schedule = fw.predictors.CosLogSchedule(n_waves=2)
    >>> [round(schedule.factor(epoch, epochs=8), 2) for epoch in range(8)]
    [0.0, 0.98, 0.32, 0.07, 0.72, 0.99, 0.65, 0.19]
    """

    n_waves: int = 4

    def __post_init__(self) -> None:
        require_count("n_waves", self.n_waves, at_least=1)

    def factor(self, epoch: float, epochs: int) -> float:
        waves = math.log2(1 + (2**self.n_waves - 1) * epoch / epochs)
        return 0.5 - 0.5 * math.cos(2 * math.pi * waves)

    def factors(self, epoch: int, epochs: int, n_steps: int) -> list[float]:
        return [self.factor(epoch + step / n_steps, epochs) for step in range(n_steps)]


@dataclass(frozen=True)
class TimeOrdered:
    """Holds out runs of consecutive rows, for rows in order of time: the last ones.

    Of a network whose members hold out a fold each, every fold is a run.

    Examples
    --------
    >>> import forewise as fw
    >>> fw.Training(validation_share=fw.predictors.TimeOrdered(0.2)).validation_share
    TimeOrdered(share=0.2)
    """

    share: float = 0.25

    def __post_init__(self) -> None:
        require_nonnegative("share", self.share, below=1)


@dataclass(frozen=True)
class BatchShare:
    """Rows of a batch: a share of all rows, as a power of two within bounds."""

    share: float
    smallest: int
    largest: int

    def size(self, n_rows: int) -> int:
        """Of a table with so many rows."""
        power = 2 ** round(math.log2(max(n_rows * self.share, 1)))
        return min(n_rows, max(self.smallest, min(self.largest, power)))


@dataclass(frozen=True)
class TrainingDefaults:
    """What a network takes for settings that are None."""

    epochs: int = 200
    max_steps: int | None = None  # fewer epochs where they would take more
    batch_size: int | BatchShare = 128
    learning_rate: float = 2e-3
    schedule: Schedule = field(default_factory=CosineSchedule)
    validation_share: float = 0.15

    def steps_and_epochs(self, n_rows: int) -> tuple[int, int]:
        """Rows of a batch, and epochs."""
        given = self.batch_size
        size = given if isinstance(given, int) else given.size(n_rows)
        limit = math.inf if self.max_steps is None else self.max_steps // max(1, n_rows // size)
        return size, int(max(1, min(self.epochs, limit)))


@dataclass(frozen=True)
class Training:
    """Settings of the training loop; None stands for the network's own default.

    Parameters
    ----------
    epochs : int, optional
        200; for a `BayesianPredictor` 256, or fewer where these take more than 2,600 steps.
    batch_size : int, optional
        128; for a `BayesianPredictor` an eighth of the rows, as a power of two from 32 to 256.
    learning_rate : float, optional
        Where the schedule starts; 0.002. A `BayesianPredictor` has weights of size 1 in every
        layer, and 0.1.
    schedule : Schedule, optional
        `CosineSchedule()`, `ExponentialSchedule(0.99)`, the paper's, or `CosLogSchedule()`, the
        default of a `BayesianPredictor`.
    weight_decay : float
        Of AdamW; 0 is plain Adam.
    max_gradient_norm : float
        Longer gradients are clipped.
    patience : int, optional
        Stop after so many epochs without a better validation loss. Whatever the value, the
        weights of the best epoch are kept.
    validation_share : float or TimeOrdered, optional
        Share of the rows split off at random to validate on when none are given, 0.15; 0 keeps the
        last epoch. Every member of a `BayesianPredictor` holds out another eighth.
        `TimeOrdered(0.15)` is for rows in order of time.
    checkpoint : path, optional
        Folder for the state of an unfinished fit, written after every epoch and emptied at the
        end. A killed fit resumes from it, to the same bits, when it is called again with the same
        data, problem and settings; with others it is refused.
    progress : bool
        Show a progress bar, if there is a terminal.
    on_interrupt : {"raise", "keep_best"}
        What Ctrl-C does. "raise" ends the program; the checkpoint stays. "keep_best" keeps the best
        weights so far (the latest, without validation rows): `fit` returns with a warning, and the
        last record of `history_` has ``"interrupted"``. Not for scripts that save what they fit.
    ranks : Ranks, optional
        ``AllProcesses()`` lets all processes that ``torchrun`` started fit one network together.
    device : str, optional
        Where the network is trained, "cuda" say; then it is on the processor again, where problems
        are solved. Draws are the processor's on every device.

    Examples
    --------
    Ten epochs at most, fewer if the last days are not predicted better for three of them:

    >>> import numpy as np
    >>> import forewise as fw
    >>> share = fw.predictors.TimeOrdered(0.25)
    >>> training = fw.Training(epochs=10, patience=3, validation_share=share)
    >>> X = np.linspace(0.0, 1.0, 64)[:, None]
    >>> network = fw.GaussianPredictor((8,), training=training, random_state=0).fit(X, 5.0 + X)
    >>> len(network.history_) <= 10
    True
    """

    epochs: int | None = None
    batch_size: int | None = None
    learning_rate: float | None = None
    schedule: Schedule | None = None
    weight_decay: float = 0.0
    max_gradient_norm: float = 10.0
    patience: int | None = None
    validation_share: float | TimeOrdered | None = None
    checkpoint: str | os.PathLike[str] | None = field(default=None, metadata=CHANGES_NOTHING)
    progress: bool = field(default=False, metadata=CHANGES_NOTHING)
    on_interrupt: Literal["raise", "keep_best"] = field(default="raise", metadata=CHANGES_NOTHING)
    ranks: Ranks | None = field(default=None, metadata=CHANGES_NOTHING)
    device: str | None = None

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "patience"):
            if getattr(self, name) is not None:
                require_count(name, getattr(self, name), at_least=1)
        if self.learning_rate is not None:
            require_positive("learning_rate", self.learning_rate)
        require_positive("max_gradient_norm", self.max_gradient_norm)
        require_nonnegative("weight_decay", self.weight_decay)
        share = self.validation_share
        if share is not None and not isinstance(share, TimeOrdered):
            require_nonnegative("validation_share", share, below=1)
        require_choice("on_interrupt", self.on_interrupt, ("raise", "keep_best"))
        require_instance("ranks", self.ranks, Ranks, "AllProcesses()", optional=True)
        if self.device is not None:
            _require_device(self.device)
        if self.ranks is not None and self.on_interrupt == "keep_best":
            raise InvalidInputError(
                'on_interrupt must be "raise" with ranks: one would go on without the others'
            )
        if self.schedule is not None and not isinstance(self.schedule, Schedule):
            raise InvalidInputError(
                "schedule must be a Schedule such as CosineSchedule(), but is "
                f"{came_as(self.schedule)}"
            )

    def __repr__(self) -> str:
        return described(self)

    def held_out(self, defaults: TrainingDefaults) -> tuple[float, bool]:
        """Share of the rows to validate on, and whether they are to be consecutive."""
        share = self.validation_share
        if isinstance(share, TimeOrdered):
            return share.share, True
        return (defaults.validation_share if share is None else share), False

    def completed(self, defaults: TrainingDefaults, n_rows: int) -> CompleteTraining:
        """With the network's own defaults, for a table with so many rows to train on."""
        size, epochs = replace(
            defaults, batch_size=self.batch_size or defaults.batch_size
        ).steps_and_epochs(n_rows)
        return CompleteTraining(
            self,
            epochs=self.epochs or epochs,
            batch_size=size,
            learning_rate=self.learning_rate or defaults.learning_rate,
            schedule=self.schedule or defaults.schedule,
        )


@dataclass(frozen=True)
class CompleteTraining:
    """Settings as the loop has them, and those that were asked for."""

    asked: Training
    epochs: int
    batch_size: int
    learning_rate: float
    schedule: Schedule

    @property
    def ranks(self) -> Ranks:
        """The processes that train together."""
        return self.asked.ranks or OneProcess()


def _require_device(device: Any) -> None:
    """Raise unless it names a kind of device that torch knows and that is there."""
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, TypeError, NotImplementedError) as error:
        raise InvalidInputError(
            f"device must be one that is there, such as 'cpu', but {device!r} is not: "
            f"{str(error).splitlines()[0]}"
        ) from error


def require_nonnegative(name: str, value: Any, below: float = math.inf) -> None:
    """Raise unless it is a number of at least 0 and below a limit."""
    if not isinstance(value, Real) or not 0 <= float(value) < below:
        limit = "finite" if below == math.inf else f"below {below}"
        raise InvalidInputError(f"{name} must be at least 0 and {limit}, but is {value!r}")


def split_rows(
    n_rows: int, share: float, in_time: bool, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Rows to train on and, at random or the last, to validate on; none of these if too few."""
    n_validation = int(share * n_rows)
    if n_validation == 0:
        return np.arange(n_rows), np.arange(0)
    if in_time:
        return np.arange(n_rows - n_validation), np.arange(n_rows - n_validation, n_rows)
    order = np.random.default_rng([seed, 1]).permutation(n_rows)
    return np.sort(order[n_validation:]), np.sort(order[:n_validation])
