"""The default Bayesian network: a posterior with several modes, each with a Gaussian around it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Generator, Tensor

from forewise.exceptions import InvalidInputError
from forewise.predictors.networks.base import NetworkPredictor
from forewise.predictors.networks.contexts import OffSupportFallback
from forewise.predictors.networks.embeddings import (
    Embedding,
    PeriodicEmbedding,
    centre_and_scale,
)
from forewise.predictors.networks.inference import LastLayer
from forewise.predictors.networks.member_heads import MemberHead, QuantileHead
from forewise.predictors.networks.members import Inference, MemberNetwork
from forewise.predictors.networks.network import Network
from forewise.predictors.networks.rows import Pair
from forewise.predictors.networks.settings import (
    BatchShare,
    CosineSchedule,
    CosLogSchedule,
    Training,
    TrainingDefaults,
)
from forewise.predictors.networks.training import Figures, Objective
from forewise.validation.parameters import came_as, require_count, require_number

_OUTCOME_ROOM = 0.5  # share of the outcome's range in training by which scenarios may exceed it
_ROWS_AT_A_TIME = 8192  # when members are validated


@dataclass(eq=False, repr=False)
class BayesianPredictor(NetworkPredictor):
    """A Bayesian network for tables: members with quantiles, and a posterior of the last layer.

        y = q_k(x, ε) + φ_k(x)'δ,    k uniform over members,  δ ~ N(0, Σ_k),  ε ~ N(0, 1)

    q_k(x, ·) is member k's quantile function, φ_k its last hidden layer, Σ_k the closed-form
    posterior of its last layer. Members start from different draws of the prior and hold out
    different rows, on which each chooses its best epoch. Their disagreement and δ are the epistemic
    uncertainty, ε the aleatoric one. Scenarios of nonnegative outcomes can be negative. For a
    censored outcome the quantiles learn of a draw from beyond its bound, a `NormalHead` of the
    likelihood of the bound; Σ_k counts it as if it were known.

    When to use: first, on any table. More members make an ensemble: `n_members=32`, or
    ``EnsemblePredictor(BayesianPredictor())``.

    Parameters
    ----------
    hidden_sizes : tuple of int
        Widths of the hidden layers.
    n_members : int
        Modes of the posterior.
    inference : Inference, optional
        `LastLayer()` by default, or `MeanField()`, a Gaussian on every weight.
    head : MemberHead, optional
        `QuantileHead()` by default, or `NormalHead()`.
    embedding : Embedding, optional
        How columns are scaled and embedded: `PeriodicEmbedding()` by default, or
        `LinearEmbedding()` for the scaled columns alone.
    extrapolate : float
        Inputs are clipped at this share of their column's range beyond it: 0 clips to the range
        itself, `math.inf` not at all. Scenarios are clipped at half of the outcome's range
        beyond it.
    off_support : OffSupportFallback, optional
        Past outcomes in place of scenarios, for contexts off the support of the training data.
    training : Training, optional

    Examples
    --------
    >>> import numpy as np
    >>> import forewise as fw
    >>> random = np.random.default_rng(0)
    >>> X = random.uniform(0.0, 10.0, size=(200, 1))
    >>> y = X + random.normal(size=X.shape)
    >>> network = fw.BayesianPredictor((16,), training=fw.Training(epochs=8), random_state=0)
    >>> scenarios = network.fit(X, y).sample([[2.0], [8.0]], n_scenarios=64, random_state=0)
    >>> scenarios.values.shape
    torch.Size([2, 64, 1])
    >>> low, high = scenarios.values.mean(1).flatten()
    >>> bool(low < 5 < high)
    True
    """

    hidden_sizes: tuple[int, ...] = (128, 128)
    n_members: int = 8
    inference: Inference | None = None
    head: MemberHead | None = None
    embedding: Embedding | None = None
    extrapolate: float = 0.1
    off_support: OffSupportFallback | None = None
    training: Training | None = None
    random_state: Any = None

    defaults: ClassVar[TrainingDefaults] = TrainingDefaults(
        epochs=256,
        max_steps=2600,
        batch_size=BatchShare(1 / 8, 32, 256),
        learning_rate=0.1,
        schedule=CosLogSchedule(),
        validation_share=0.125,
    )
    combined_defaults: ClassVar[TrainingDefaults] = TrainingDefaults(
        epochs=20, learning_rate=0.01, schedule=CosineSchedule()
    )
    has_folds: ClassVar[bool] = True

    @property
    def _inference(self) -> Inference:
        return LastLayer() if self.inference is None else self.inference

    @property
    def kl_weight(self) -> float:  # type: ignore[override]
        """That of the inference."""
        return self._inference.kl_weight

    @property
    def _embedding(self) -> Embedding:
        return PeriodicEmbedding() if self.embedding is None else self.embedding

    def _require_censored_head(self, n_outcomes: int) -> None:
        """Every head takes lower bounds."""

    def _measured(self, X: np.ndarray, y: np.ndarray) -> dict[str, np.ndarray]:
        centre, scale = centre_and_scale(X)
        return super()._measured(X, y) | {
            "context_centre_": centre,
            "context_scale_": scale,
            "outcome_low_": y.min(axis=0),
            "outcome_high_": y.max(axis=0),
        }

    def _inputs(self, X: np.ndarray, fitted: Mapping[str, Any]) -> Tensor:
        low, high = fitted["context_low_"], fitted["context_high_"]
        if self.extrapolate < np.inf:
            room = self.extrapolate * (high - low)
            X = X.clip(low - room, high + room)
        return self._embedding.columns(X, fitted["context_centre_"], fitted["context_scale_"])

    def _reach(self, fitted: Mapping[str, Any]) -> tuple[Tensor, Tensor]:
        if self.extrapolate == np.inf:
            return super()._reach(fitted)
        low, high = (torch.from_numpy(fitted[f"outcome_{end}_"]) for end in ("low", "high"))
        room = _OUTCOME_ROOM * (high - low)
        return low - room, high + room

    def _network(
        self, fitted: Mapping[str, Any], n_members: int | None, generator: Generator
    ) -> Network:
        return MemberNetwork(
            self.n_members * (n_members or 1),
            max(1, int((fitted["context_scale_"] > 0).sum())),
            fitted["n_outcomes_"],
            tuple(self.hidden_sizes),
            self._embedding,
            QuantileHead() if self.head is None else self.head,
            self._inference,
            generator,
        )

    def _likelihood(
        self, rows: Pair, validation: Pair | None, network: Any, seed: int
    ) -> Objective:
        share, in_time = (self.training or Training()).held_out(self.defaults)
        if validation is not None:
            share = 0.0
        n_rows = len(rows.x)
        folds = Folds.make(n_rows, network.n_members, share, in_time, np.random.default_rng(seed))
        return MemberLikelihood(rows, validation, folds)

    def _check_parameters(self) -> None:
        self._check_network_parameters()
        require_count("n_members", self.n_members, at_least=1)
        if self.extrapolate != np.inf:
            require_number("extrapolate", self.extrapolate, at_least=0)
        for name, kind, example in (
            ("inference", Inference, "forewise.predictors.LastLayer()"),
            ("head", MemberHead, "forewise.predictors.QuantileHead()"),
            ("embedding", Embedding, "forewise.predictors.PeriodicEmbedding()"),
        ):
            value = getattr(self, name)
            if value is not None and not isinstance(value, kind):
                raise InvalidInputError(
                    f"{name} must be None or an object such as {example}, but is {came_as(value)}"
                )


@dataclass(frozen=True)
class Folds:
    """Rows that each member trains on and is validated on, (n_members, rows)."""

    train: Tensor
    held: Tensor | None  # None: all are training rows

    @classmethod
    def make(
        cls, n_rows: int, n_members: int, share: float, in_time: bool, random: np.random.Generator
    ) -> Folds:
        """Member k holds out fold k; with more members than folds, rows are shuffled anew.

        A few rows may be left out of a fold, so that all are equally large. Rows in order of time
        are cut into windows, the same every time.
        """
        n_folds = round(1 / share) if share else 1
        if n_folds < 2 or n_rows < 2 * n_folds:
            return cls(torch.arange(n_rows).expand(n_members, -1), None)
        size, order = n_rows // n_folds, np.arange(n_rows)
        train, held = [], []
        for member in range(n_members):
            fold = member % n_folds
            if fold == 0 and not in_time:
                order = random.permutation(n_rows)
            start = n_rows - (fold + 1) * size  # the first member holds the last rows
            mine = np.zeros(n_rows, dtype=bool)
            mine[order[start : start + size]] = True
            held.append(np.flatnonzero(mine))
            train.append(np.flatnonzero(~mine))
        return cls(torch.from_numpy(np.stack(train)), torch.from_numpy(np.stack(held)))


@dataclass(frozen=True)
class MemberLikelihood(Objective):
    """The loss of each member on its own rows, and on those that it holds out."""

    rows: Pair
    validation: Pair | None
    folds: Folds
    title: str = "likelihood"

    @property
    def n_rows(self) -> int:
        return self.folds.train.shape[1]

    @property
    def identity(self) -> dict[str, Any]:
        return {"the objective": "likelihood", "the validation rows": self.validation}

    def on(self, device: str) -> MemberLikelihood:
        held = self.validation
        return replace(
            self, rows=self.rows.to(device), validation=None if held is None else held.to(device)
        )

    def batches(self, size: int, generator: Generator) -> Sequence[Tensor]:
        """Each member has an order of its own; rows that do not fill a batch are left out."""
        order = torch.rand(self.folds.train.shape, generator=generator).argsort(1)
        order = self.folds.train.gather(1, order)
        return order[:, : max(1, self.n_rows // size) * size].split(size, 1)

    def loss(self, network: Any, rows: Tensor, generator: Generator) -> Tensor:
        some = self.rows.of(rows)
        x, y, censored = some.seen if network.head.takes_bounds else (some.x, some.y, None)
        return network.inference.loss(network, x, y, generator, censored)

    def validate(self, network: Any, epoch: int, generator: Generator) -> Figures:
        """The loss of each member at the means of its weights."""
        held = self._held(network.n_members)
        if held is None:
            return {}
        total = held[0].new_zeros(network.n_members)
        parts = zip(*(part.split(_ROWS_AT_A_TIME, 1) for part in held), strict=True)
        for x, y in parts:
            total += network.head.loss(network.outputs(x), y) * x.shape[1]
        return {"validation": total / held[0].shape[1]}

    def finish(self, network: Any) -> None:
        """The posterior of the rows trained on; correlations of noises from those held out."""
        x, y = self.rows[:2]
        network.update_posterior(x[self.folds.train])
        held = self._held(network.n_members)
        network.update_correlations(*(held or (x[self.folds.train], y[self.folds.train])))

    def _held(self, n_members: int) -> tuple[Tensor, Tensor] | None:
        """Validation rows: those held out of all members, or of each."""
        if self.validation is not None:
            x, y = self.validation[:2]
            return x.expand(n_members, -1, -1), y.expand(n_members, -1, -1)
        if self.folds.held is None:
            return None
        x, y = self.rows[:2]
        return x[self.folds.held], y[self.folds.held]
