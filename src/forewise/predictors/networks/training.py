"""How a network is trained: one loop for any loss.

The loss is an `Objective`: the negative log-likelihood, or a combined learner's cost of decisions.
A network with members has a loss of each, and keeps the best epoch of each. All randomness follows
from the seed and the epoch, so that a killed fit resumes to the same bits, and processes that fit
together (`ranks`) draw alike.
"""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Generator, Tensor

from forewise.exceptions import InvalidInputError
from forewise.predictors.networks.checkpoint import Checkpoint, TrainingState, digest, settings_of
from forewise.predictors.networks.network import Network
from forewise.predictors.networks.ranks import Ranks
from forewise.predictors.networks.settings import CompleteTraining, Training, TrainingDefaults
from forewise.predictors.sampling import RowGenerator

History = list[dict[str, float]]  # one record of figures per epoch
Figures = dict[str, Any]  # numbers, or tensors with one for each member


class Objective(ABC):
    """What training minimises."""

    title: str  # for people

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """Training rows, of each member if they have their own."""

    @property
    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """All that decides the objective, by names for people; a checkpoint has their digests."""

    @abstractmethod
    def loss(self, network: Network, rows: Tensor, generator: Generator) -> Tensor:
        """Loss of a batch, without the divergence, () or of each member; called once per step."""

    @abstractmethod
    def validate(self, network: Network, epoch: int, generator: Generator) -> Figures:
        """Figures of the validation rows, empty without any; called after each epoch.

        The epoch with the lowest ``"validation"`` is kept; if that has a figure of each member
        (n_members,), each member's best. A ``"penalty"`` is added to it: one standard error where
        an epoch does not beat the warm start by more than that.
        """

    def batches(self, size: int, generator: Generator) -> Sequence[Tensor]:
        """Rows of each step of an epoch, (rows,) or of each member (n_members, rows)."""
        return torch.randperm(self.n_rows, generator=generator).split(size)

    def on(self, device: str) -> Objective:
        """The same objective, with its rows where the network is; called before training."""
        return self

    def finish(self, network: Network) -> None:  # noqa: B027
        """Compute what follows from the trained weights; called once, after training."""


@dataclass(frozen=True)
class Job:
    """One training run: which network, and for what."""

    network: Network
    objective: Objective
    divergence_weight: float  # of the weights' divergence from the prior, per loss
    seed: int
    identity: dict[str, Any]  # what a checkpoint must have been made with, by a name for people
    defaults: TrainingDefaults = field(default_factory=TrainingDefaults)

    def validated(self, epoch: int = 0) -> Figures:
        """Figures of the validation rows."""
        with torch.no_grad():
            return self.objective.validate(self.network, epoch, validation_generator(self.seed))


def train(job: Job, asked: Training) -> History:
    """Train the job's network in place, and leave it with the weights of its best epoch."""
    settings = asked.completed(job.defaults, job.objective.n_rows)
    device = asked.device or "cpu"
    job = replace(job, network=job.network.to(device), objective=job.objective.on(device))
    network, optimiser, ranks = job.network, optimiser_of(job.network, settings), settings.ranks
    checkpoint, state = None, None
    if asked.checkpoint is not None or ranks.count > 1:
        parts = settings_of(asked) | settings_of(settings)
        del parts["asked"]
        parts = {f"training.{name}": value for name, value in parts.items()} | job.identity
        digests = {name: digest(value, name) for name, value in parts.items()}
        ranks.require_same(digests)
        if asked.checkpoint is not None:
            checkpoint = Checkpoint(asked.checkpoint, digests)
            state = _resumed(checkpoint, network, optimiser, ranks)
    state = state or TrainingState()
    ranks.agree(network)
    patience = asked.patience or math.inf
    with _progress_bar(job.objective.title, settings) as show:
        try:
            if state.epoch == 0:
                # What came from an earlier training is kept unless this one makes it better.
                start = job.validated()
                state.consider(ranks.of_first(lambda: start), network)
            while state.epoch < settings.epochs and state.epochs_since_best < patience:
                state.add(_epoch(job, settings, optimiser, state.epoch), network)
                show(state.history)
                if checkpoint and ranks.rank == 0:
                    checkpoint.save(network, optimiser, state)
        except KeyboardInterrupt:
            # Before the end of the first epoch there is nothing to keep.
            if asked.on_interrupt == "raise" or not state.history:
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
    job.objective.finish(network)
    network.to("cpu")
    if checkpoint and ranks.rank == 0:
        checkpoint.clear()
    return state.history


def _resumed(
    checkpoint: Checkpoint, network: Network, optimiser: torch.optim.Optimizer, ranks: Ranks
) -> TrainingState | None:
    """Where the first process's checkpoint stopped; the others need no folder."""

    def read() -> tuple[TrainingState | None, dict[str, Any], dict[str, Any]]:
        state = checkpoint.resume(network, optimiser)
        return state, dict(network.state_dict()), optimiser.state_dict()

    state, weights, moments = ranks.of_first(read)
    if ranks.rank:
        network.load_state_dict(weights)
        optimiser.load_state_dict(moments)
    return state


def _epoch(
    job: Job, settings: CompleteTraining, optimiser: torch.optim.Optimizer, epoch: int
) -> Figures:
    """One pass over the rows in random order."""
    generator = RowGenerator()
    generator.manual_seed(_mixed(job.seed, epoch + 1))
    batches = job.objective.batches(settings.batch_size, generator)
    factors = settings.schedule.factors(epoch, settings.epochs, len(batches))
    total, count = 0.0, 0
    for rows, factor in zip(batches, factors, strict=True):
        for group in optimiser.param_groups:
            group["lr"] = settings.learning_rate * factor * group["rate"]
        size = rows.shape[-1]
        total += step(job, settings, optimiser, rows, generator) * size
        count += size
    settings.ranks.agree(job.network)
    # In all processes, because what follows from the weights is computed here; the first one's
    # figures count.
    figures = job.validated(epoch)
    agreed = settings.ranks.of_first(lambda: figures)
    return {"epoch": float(epoch + 1), "loss": total / count, **agreed}


def step(
    job: Job,
    settings: CompleteTraining,
    optimiser: torch.optim.Optimizer,
    rows: Tensor,
    generator: RowGenerator,
) -> float:
    """One step down the gradient of a batch's loss; returns the loss before it."""
    optimiser.zero_grad(set_to_none=True)
    ranks = settings.ranks
    own, weight = ranks.share(rows, generator)
    losses = weight * job.objective.loss(job.network, own, generator)
    value = ranks.total(losses.detach().mean()).item()
    if not math.isfinite(value):
        raise FloatingPointError(f"the loss became {value}")
    if job.divergence_weight:
        losses = losses + job.divergence_weight / ranks.count * job.network.divergence()
    # Members are independent: the step of each is that of its own loss.
    losses.sum().backward()
    ranks.add_gradients(job.network)
    parameters, limit = list(job.network.parameters()), settings.asked.max_gradient_norm
    gradients = [part.grad for part in parameters if part.grad is not None]
    length = torch.nn.utils.get_total_norm(gradients)
    if length > limit:  # seldom: multiplying all gradients by 1 would take a tenth of a step
        torch.nn.utils.clip_grads_with_norm_(parameters, limit, length)
    optimiser.step()
    return value


def optimiser_of(network: Network, settings: CompleteTraining) -> torch.optim.Optimizer:
    """AdamW, with the network's own steps of its parameters."""
    groups = [{"params": own, "rate": rate} for rate, own in network.rated_parameters()]
    return torch.optim.AdamW(
        groups,
        lr=settings.learning_rate,
        betas=network.betas,
        weight_decay=settings.asked.weight_decay,
        fused=True,
    )


def validation_generator(seed: int) -> Generator:
    """The generator of validation: the same draws after every epoch, so that epochs compare."""
    return Generator().manual_seed(_mixed(seed, 0))


def _mixed(seed: int, epoch: int) -> int:
    state = np.random.SeedSequence([seed, epoch]).generate_state(1, np.uint64)
    return int(state[0] >> np.uint64(1))


@contextmanager
def _progress_bar(title: str, settings: CompleteTraining) -> Iterator[Callable[[History], None]]:
    """A bar on the terminal, and a function that shows the latest figures in it."""
    if not settings.asked.progress or settings.ranks.rank:
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
