"""How a network is trained: settings, schedules of the learning rate, and one loop for any loss.

The loss is an `Objective`: the negative log-likelihood, or a combined learner's cost of decisions.
All randomness follows from the seed and the epoch, so that a killed fit resumes to the same bits.
"""

from __future__ import annotations

import math
import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, Literal

import numpy as np
import torch
from torch import Generator, Tensor

from forewise.display import described
from forewise.exceptions import InvalidInputError
from forewise.predictors.networks.checkpoint import (
    CHANGES_NOTHING,
    Checkpoint,
    TrainingState,
    digest,
    settings_of,
)
from forewise.predictors.networks.network import Network
from forewise.validation.parameters import came_as, require_choice, require_count, require_positive

History = list[dict[str, float]]  # one record of figures per epoch


class Schedule(ABC):
    """What the learning rate is multiplied with, epoch by epoch."""

    @abstractmethod
    def factor(self, epoch: int, epochs: int) -> float:
        """Factor of an epoch, counted from 0; called at its start."""


@dataclass(frozen=True)
class CosineSchedule(Schedule):
    """Half a cosine from 1 down to `last`, after a linear warm-up over a share of the epochs."""

    last: float = 0.01
    warm_up: float = 0.03

    def __post_init__(self) -> None:
        require_nonnegative("last", self.last, below=1)
        require_nonnegative("warm_up", self.warm_up, below=1)

    def factor(self, epoch: int, epochs: int) -> float:
        warm = math.ceil(self.warm_up * epochs)
        if epoch < warm:
            return (epoch + 1) / (warm + 1)
        done = (epoch - warm) / max(1, epochs - 1 - warm)
        return self.last + (1 - self.last) * 0.5 * (1 + math.cos(math.pi * min(1.0, done)))


@dataclass(frozen=True)
class ExponentialSchedule(Schedule):
    """`rate` to the power of the epoch; the paper's, with 0.99. Suits training with `patience`."""

    rate: float = 0.99

    def __post_init__(self) -> None:
        if require_positive("rate", self.rate) > 1:
            raise InvalidInputError(f"rate must be at most 1, but is {self.rate!r}")

    def factor(self, epoch: int, epochs: int) -> float:
        return self.rate**epoch


@dataclass(frozen=True)
class Training:
    """Settings of the training loop.

    Parameters
    ----------
    learning_rate : float
        Where the schedule starts.
    schedule : Schedule
        `CosineSchedule()` or `ExponentialSchedule(0.99)`, the paper's.
    weight_decay : float
        Of AdamW; 0 is plain Adam.
    max_gradient_norm : float
        Longer gradients are clipped.
    patience : int, optional
        Stop after so many epochs without a better validation loss. Whatever the value, the
        weights of the best epoch are kept.
    validation_share : float
        Share of the rows split off to validate on when none are given; 0 keeps the last epoch.
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
    """

    epochs: int = 200
    batch_size: int = 128
    learning_rate: float = 2e-3
    schedule: Schedule = field(default_factory=CosineSchedule)
    weight_decay: float = 0.0
    max_gradient_norm: float = 10.0
    patience: int | None = None
    validation_share: float = 0.15
    checkpoint: str | os.PathLike[str] | None = field(default=None, metadata=CHANGES_NOTHING)
    progress: bool = field(default=False, metadata=CHANGES_NOTHING)
    on_interrupt: Literal["raise", "keep_best"] = field(default="raise", metadata=CHANGES_NOTHING)

    def __post_init__(self) -> None:
        require_count("epochs", self.epochs, at_least=1)
        require_count("batch_size", self.batch_size, at_least=1)
        if self.patience is not None:
            require_count("patience", self.patience, at_least=1)
        require_positive("learning_rate", self.learning_rate)
        require_positive("max_gradient_norm", self.max_gradient_norm)
        require_nonnegative("weight_decay", self.weight_decay)
        require_nonnegative("validation_share", self.validation_share, below=1)
        require_choice("on_interrupt", self.on_interrupt, ("raise", "keep_best"))
        if not isinstance(self.schedule, Schedule):
            raise InvalidInputError(
                "schedule must be a Schedule such as CosineSchedule(), but is "
                f"{came_as(self.schedule)}"
            )

    def __repr__(self) -> str:
        return described(self)


def require_nonnegative(name: str, value: Any, below: float = math.inf) -> None:
    """Raise unless it is a number of at least 0 and below a limit."""
    if not isinstance(value, Real) or not 0 <= float(value) < below:
        limit = "finite" if below == math.inf else f"below {below}"
        raise InvalidInputError(f"{name} must be at least 0 and {limit}, but is {value!r}")


class Objective(ABC):
    """What training minimises."""

    title: str  # for people

    @property
    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """All that decides the objective, by names for people; a checkpoint has their digests."""

    @abstractmethod
    def loss(self, network: Network, rows: Tensor, generator: Generator) -> Tensor:
        """Loss of some training rows, without the divergence; called once per step."""

    @abstractmethod
    def validate(self, network: Network, epoch: int, generator: Generator) -> dict[str, float]:
        """Figures of the validation rows, empty without any; called after each epoch.

        The epoch with the lowest ``"validation"`` is kept. A ``"penalty"`` is added to it: one
        standard error where an epoch does not beat the warm start by more than that.
        """


@dataclass(frozen=True)
class Job:
    """One training run: which network, for what, on how many rows."""

    network: Network
    objective: Objective
    n_rows: int
    divergence_weight: float  # of the weights' divergence from the prior, per loss
    seed: int
    identity: dict[str, Any]  # what a checkpoint must have been made with, by a name for people

    def validated(self, epoch: int = 0) -> dict[str, float]:
        """Figures of the validation rows."""
        with torch.no_grad():
            return self.objective.validate(self.network, epoch, validation_generator(self.seed))


def train(job: Job, settings: Training) -> History:
    """Train the job's network in place, and leave it with the weights of its best epoch."""
    network, optimiser = job.network, optimiser_of(job.network, settings)
    checkpoint, state = None, None
    if settings.checkpoint is not None:
        parts = {f"training.{name}": value for name, value in settings_of(settings).items()}
        parts |= job.identity
        digests = {name: digest(value, name) for name, value in parts.items()}
        checkpoint = Checkpoint(settings.checkpoint, digests)
        state = checkpoint.resume(network, optimiser)
    state = state or TrainingState()
    patience = settings.patience or math.inf
    with _progress_bar(job.objective.title, settings) as show:
        try:
            if state.epoch == 0:
                # What came from an earlier training is kept unless this one makes it better.
                state.consider(job.validated(), network)
            while state.epoch < settings.epochs and state.epochs_since_best < patience:
                state.add(_epoch(job, settings, optimiser, state.epoch), network)
                show(state.history)
                if checkpoint:
                    checkpoint.save(network, optimiser, state)
        except KeyboardInterrupt:
            # Before the first epoch has ended there is nothing to keep.
            if settings.on_interrupt == "raise" or not state.history:
                raise
            state.history[-1]["interrupted"] = 1.0
            warnings.warn(
                f"training was interrupted after {state.epoch} of {settings.epochs} epochs; the "
                'best weights so far are kept, because of on_interrupt="keep_best"',
                stacklevel=2,
            )
        except FloatingPointError as error:
            if not state.history:
                raise InvalidInputError(
                    f"training failed in its first epoch: {error}; try a smaller learning_rate"
                ) from error
            warnings.warn(
                f"training ended after {state.epoch} of {settings.epochs} epochs: {error}; the "
                "best weights so far are kept; a smaller learning_rate may help",
                stacklevel=2,
            )
    if state.best is not None:
        network.load_state_dict(state.best)
    if checkpoint:
        checkpoint.clear()
    return state.history


def _epoch(
    job: Job, settings: Training, optimiser: torch.optim.Optimizer, epoch: int
) -> dict[str, float]:
    """One pass over the rows in random order."""
    generator = Generator().manual_seed(_mixed(job.seed, epoch + 1))
    for group in optimiser.param_groups:
        group["lr"] = settings.learning_rate * settings.schedule.factor(epoch, settings.epochs)
    total = 0.0
    for rows in torch.randperm(job.n_rows, generator=generator).split(settings.batch_size):
        total += step(job, settings, optimiser, rows, generator) * len(rows)
    return {"epoch": float(epoch + 1), "loss": total / job.n_rows, **job.validated(epoch)}


def step(
    job: Job,
    settings: Training,
    optimiser: torch.optim.Optimizer,
    rows: Tensor,
    generator: Generator,
) -> float:
    """One step down the gradient of some rows' loss; returns the loss before it."""
    optimiser.zero_grad(set_to_none=True)
    loss = job.objective.loss(job.network, rows, generator)
    value = loss.item()
    if not math.isfinite(value):
        raise FloatingPointError(f"the loss became {value}")
    if job.divergence_weight:
        loss = loss + job.divergence_weight * job.network.weights.divergence()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(job.network.parameters(), settings.max_gradient_norm)
    optimiser.step()
    return value


def optimiser_of(network: Network, settings: Training) -> torch.optim.Optimizer:
    """AdamW over the network's few long tensors."""
    rate, decay = settings.learning_rate, settings.weight_decay
    return torch.optim.AdamW(network.parameters(), lr=rate, weight_decay=decay, fused=True)


def validation_generator(seed: int) -> Generator:
    """The generator of validation: the same draws after every epoch, so that none is luckier."""
    return Generator().manual_seed(_mixed(seed, 0))


def _mixed(seed: int, epoch: int) -> int:
    state = np.random.SeedSequence([seed, epoch]).generate_state(1, np.uint64)
    return int(state[0] >> np.uint64(1))


def split_rows(n_rows: int, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows to train on and to validate on, at random; none to validate on if too few."""
    n_validation = int(share * n_rows)
    if n_validation == 0:
        return np.arange(n_rows), np.arange(0)
    order = np.random.default_rng([seed, 1]).permutation(n_rows)
    return np.sort(order[n_validation:]), np.sort(order[:n_validation])


@contextmanager
def _progress_bar(title: str, settings: Training) -> Iterator[Callable[[History], None]]:
    """A bar on the terminal, and a function that shows the latest figures in it."""
    if not settings.progress:
        yield lambda history: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TimeRemainingColumn

    console = Console(stderr=True)
    texts = ("{task.description}", "{task.completed:.0f}/{task.total:.0f}  {task.fields[figures]}")
    columns = (texts[0], BarColumn(bar_width=None), texts[1], TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(title, total=settings.epochs, figures="")

        def show(history: History) -> None:
            # A figure that is not taken every epoch stays.
            latest = {k: v for record in history for k, v in record.items()}
            names = [name for name in ("loss", "validation", "regret") if name in latest]
            figures = "  ".join(f"{name} {latest[name]:.4g}" for name in names)
            bar.update(task, completed=len(history), figures=figures)

        yield show
