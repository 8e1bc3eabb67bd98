"""How a network is trained: one loop, whatever the loss.

A predictor's own `fit` minimises the negative log-likelihood; a combined learner hands in the
cost of decisions instead. Both are an `Objective`, and the loop does not know which.
May import: exceptions, display, arguments, its siblings `network`, `progress`, `checkpoint`,
`identity`, `schedules`.
"""

from __future__ import annotations

import math
import os
import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch

from forewise.display import described
from forewise.exceptions import InvalidInputError
from forewise.predictors.networks.checkpoint import Checkpoint, Progress
from forewise.predictors.networks.identity import CHANGES_NOTHING, marks, settings_of
from forewise.predictors.networks.network import Network
from forewise.predictors.networks.progress import TrainingBar
from forewise.predictors.networks.schedules import CosineSchedule, Schedule
from forewise.validation.arguments import came_as


@dataclass(frozen=True)
class Training:
    """Settings of the training loop.

    Parameters
    ----------
    epochs : int
        Passes over the training rows.
    batch_size : int
    learning_rate : float
        Where the schedule starts.
    schedule : Schedule
        `CosineSchedule()` or `ExponentialSchedule(0.99)`, the paper's.
    weight_decay : float
        Decoupled decay of the weights (AdamW); 0 is plain Adam.
    max_gradient_norm : float
        Gradients longer than this are shortened to it.
    patience : int, optional
        Stop after so many epochs without a better validation figure. Whatever the value, the
        weights of the best epoch are kept.
    validation_share : float
        Share of the rows that is split off to validate on when no validation rows are given; 0
        keeps the last epoch's weights.
    checkpoint : path, optional
        Folder for the state of an unfinished fit, written after every epoch. A fit that was
        interrupted or killed goes on from there, to the same bits, when it is called again with
        the same data, problem and settings; with others it is refused. The folder is emptied at
        the end.
    progress : bool
        Show a progress bar, where there is a terminal to show it.
    on_interrupt : {"raise", "keep_best"}
        What Ctrl-C does. "raise" ends the program, as everywhere; the checkpoint stays, and the
        next `fit` goes on from it. "keep_best" ends this training and keeps the best weights so
        far (the latest, without validation rows): `fit` returns with a warning, and the last
        record of `history_` has ``"interrupted"``. Not for scripts that save what they fit.
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
        for name, low in (("epochs", 1), ("batch_size", 1), ("patience", 1)):
            value = getattr(self, name)
            if not (name == "patience" and value is None) and not _whole(value, low):
                raise InvalidInputError(
                    f"{name} must be a whole number of at least {low}, but is {value!r}"
                )
        for name in ("learning_rate", "max_gradient_norm"):
            value = getattr(self, name)
            if not (_number(value) and value > 0):
                raise InvalidInputError(f"{name} must be positive, but is {value!r}")
        if not (_number(self.weight_decay) and self.weight_decay >= 0):
            raise InvalidInputError(
                f"weight_decay must be at least 0, but is {self.weight_decay!r}"
            )
        if not (_number(self.validation_share) and 0 <= self.validation_share < 1):
            raise InvalidInputError(
                f"validation_share must be at least 0 and below 1, but is {self.validation_share!r}"
            )
        if not isinstance(self.schedule, Schedule):
            raise InvalidInputError(
                "schedule must be a Schedule such as CosineSchedule(), but is "
                f"{came_as(self.schedule)}"
            )
        if self.on_interrupt not in ("raise", "keep_best"):
            raise InvalidInputError(
                f'on_interrupt must be "raise" or "keep_best", but is {self.on_interrupt!r}'
            )

    def __repr__(self) -> str:
        return described(self)


class Objective(ABC):
    """What training makes smaller.

    `title` names it to people. `identity` is all that decides what the objective is, validation
    rows included, each part under a name for people: a checkpoint of other parts is refused.
    """

    title: str

    @property
    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """Called when a training with a checkpoint starts."""

    @abstractmethod
    def loss(
        self, network: Network, rows: torch.Tensor, generator: torch.Generator
    ) -> torch.Tensor:
        """Loss of some training rows, without the divergence; called once per step."""

    @abstractmethod
    def validate(
        self, network: Network, epoch: int, generator: torch.Generator
    ) -> dict[str, float]:
        """Figures of the validation rows; called after each epoch.

        ``"validation"``, and ``"penalty"`` on top where there is some, decide which epoch is kept.
        Empty where there is nothing to validate on.
        """


@dataclass(frozen=True)
class Job:
    """One training run: which network, for what, on how many rows."""

    network: Network
    objective: Objective
    n_rows: int
    divergence_weight: float  # of the weights' divergence from the prior, per loss
    seed: int
    title: str
    identity: dict[str, Any]  # what a checkpoint must have been made with, by a name for people


def train(job: Job, settings: Training) -> list[dict[str, float]]:
    """Train the job's network in place; return one record of figures per epoch.

    The network ends with the weights of its best epoch. A loss that is no longer finite ends
    training early and keeps them, with a warning; so does Ctrl-C, if the settings say so.
    """
    network = job.network
    optimiser = optimiser_of(network, settings)
    checkpoint = _checkpoint(job, settings)
    state = (checkpoint.resume(network, optimiser) if checkpoint else None) or Progress.start()
    with TrainingBar(job.title, settings.epochs, shown=settings.progress) as bar:
        try:
            if state.epoch == 0:
                # What came from an earlier training is kept unless this one makes it better.
                state.consider(_validated(job), network)
            while state.epoch < settings.epochs and not _is_stale(state, settings.patience):
                record = _epoch(job, settings, optimiser, state.epoch)
                state.add(record, network)
                bar.show(state.history)
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


def _checkpoint(job: Job, settings: Training) -> Checkpoint | None:
    if settings.checkpoint is None:
        return None
    told = {f"training.{name}": value for name, value in settings_of(settings).items()}
    return Checkpoint(settings.checkpoint, marks(told | job.identity))


def _epoch(
    job: Job, settings: Training, optimiser: torch.optim.Optimizer, epoch: int
) -> dict[str, float]:
    """One pass over the rows in random order. All randomness follows from seed and epoch."""
    generator = torch.Generator().manual_seed(_mixed(job.seed, epoch + 1))
    for group in optimiser.param_groups:
        group["lr"] = settings.learning_rate * settings.schedule.factor(epoch, settings.epochs)
    total = 0.0
    for rows in torch.randperm(job.n_rows, generator=generator).split(settings.batch_size):
        total += step(job, settings, optimiser, rows, generator) * len(rows)
    return {"epoch": float(epoch + 1), "loss": total / job.n_rows, **_validated(job, epoch)}


def _validated(job: Job, epoch: int = 0) -> dict[str, float]:
    """Figures of the validation rows."""
    with torch.no_grad():
        return job.objective.validate(job.network, epoch, validation_generator(job.seed))


def validation_generator(seed: int) -> torch.Generator:
    """What validation draws from, after every epoch anew.

    From the same draws: the best epoch is not the one with the luckiest ones.
    """
    return torch.Generator().manual_seed(_mixed(seed, 0))


def step(
    job: Job,
    settings: Training,
    optimiser: torch.optim.Optimizer,
    rows: torch.Tensor,
    generator: torch.Generator,
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
    return torch.optim.AdamW(
        network.parameters(),
        lr=settings.learning_rate,
        weight_decay=settings.weight_decay,
        fused=True,
    )


def _mixed(seed: int, epoch: int) -> int:
    return int(
        np.random.SeedSequence([seed, epoch]).generate_state(1, np.uint64)[0] >> np.uint64(1)
    )


def _is_stale(state: Progress, patience: int | None) -> bool:
    return patience is not None and state.epochs_since_best >= patience


def split_rows(n_rows: int, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows to train on and to validate on, at random; none to validate on if too few."""
    n_validation = int(share * n_rows)
    if n_validation == 0:
        return np.arange(n_rows), np.arange(0)
    order = np.random.default_rng([seed, 1]).permutation(n_rows)
    return np.sort(order[n_validation:]), np.sort(order[:n_validation])


def _whole(value: Any, low: int) -> bool:
    return isinstance(value, int | np.integer) and value is not True and int(value) >= low


def _number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and math.isfinite(float(value))
