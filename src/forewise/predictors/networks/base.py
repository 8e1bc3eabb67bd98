"""What all network predictors share: scaling, building, training, drawing.

May import: exceptions, arguments, scenarios, tables, and its siblings below. Learners train
predictors through `prepare` and `train`, with an objective of their own.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch

from forewise.exceptions import InvalidInputError
from forewise.predictors.base import Predictor
from forewise.predictors.networks.blocks import blocks
from forewise.predictors.networks.encodings import Encoding
from forewise.predictors.networks.heads import Head
from forewise.predictors.networks.identity import parameters_of
from forewise.predictors.networks.network import Network
from forewise.predictors.networks.noise import normal_draws, torch_generator
from forewise.predictors.networks.off_support import (
    OffSupportFallback,
    nearest_distances,
    with_past_outcomes,
)
from forewise.predictors.networks.standardise import mean_and_std, standardise
from forewise.predictors.networks.training import Job, Objective, Training, split_rows, train
from forewise.predictors.networks.weights import Layout, Weights
from forewise.predictors.weighted_support import outcome_order
from forewise.scenarios import Scenarios
from forewise.validation.arguments import as_random_state, came_as
from forewise.validation.tables import check_training_data, check_validation_data


@dataclass(frozen=True)
class Rows:
    """Contexts and outcomes of some rows, and the contexts as the network sees them."""

    X: np.ndarray  # (n_contexts, n_features)
    y: np.ndarray  # (n_contexts, n_outcomes)
    x_scaled: torch.Tensor
    places: torch.Tensor  # of the rows in the table that was passed

    def __len__(self) -> int:
        return len(self.X)


class NetworkPredictor(Predictor):
    """A predictor whose scenarios can be differentiated in its weights.

    Subclasses have the parameters `hidden_sizes`, `extrapolate`, `encoding`, `training` and
    `random_state`, those with a distribution `off_support`, and say what the network's outputs mean
    and what its weights are.
    """

    hidden_sizes: tuple[int, ...]
    extrapolate: bool
    encoding: Encoding | None
    off_support: OffSupportFallback | None = None
    training: Training | None
    random_state: Any

    @abstractmethod
    def _head(self, n_outcomes: int) -> Head:
        """What the outputs mean; called when the network is built."""

    @abstractmethod
    def _weights(self, layout: Layout, generator: torch.Generator) -> Weights:
        """Where training starts; called when the network is built."""

    @property
    def divergence_share(self) -> float:
        """What the divergence from the prior counts in the loss; 0 where there is no prior."""
        return 0.0

    @property
    def n_training_draws(self) -> int:
        """Draws of the weights in one step of decoupled training."""
        return 1

    def fit(self, X: Any, y: Any, X_val: Any = None, y_val: Any = None) -> Self:
        """Fit the distribution of the outcome: minimise the negative log-likelihood.

        Parameters
        ----------
        X : table (n_contexts, n_features)
        y : table (n_contexts, n_outcomes) or (n_contexts,)
        X_val, y_val : tables, optional
            Rows that decide which epoch's weights are kept; a share of the training rows is
            split off for it by default.

        Returns
        -------
        self
        """
        rows, validation = self.prepare(X, y, X_val, y_val)
        self.train(self.likelihood(rows, validation), rows, self.training or Training())
        return self

    def prepare(
        self,
        X: Any,
        y: Any,
        X_val: Any = None,
        y_val: Any = None,
        predicted: np.ndarray | None = None,
    ) -> tuple[Rows, Rows | None]:
        """Check the data, set the scales, and build the network; called before `train`.

        `predicted` (any number, n) are values such as the network is to predict, for a learner
        that does not predict the outcomes themselves; they set the scale of its outputs.
        """
        self._check_parameters()
        X, y = check_training_data(self, X, y)
        passed = check_validation_data(self, X_val, y_val)
        self.seed_ = int(as_random_state(self.random_state).randint(2**31))
        kept, held = np.arange(len(X)), np.arange(0 if passed is None else len(passed[0]))
        validation = passed
        if passed is None:
            share = (self.training or Training()).validation_share
            kept, held = split_rows(len(X), share, self.seed_)
            validation = (X[held], y[held]) if len(held) else None
            X, y = X[kept], y[kept]
        self.context_mean_, self.context_std_ = mean_and_std(X)
        self.context_low_, self.context_high_ = X.min(axis=0), X.max(axis=0)
        like = y if predicted is None else predicted
        self.outcome_mean_, self.outcome_std_ = mean_and_std(like)
        self.n_outcomes_ = like.shape[1]
        if self.off_support is not None:
            self.seen_ = standardise(X, self.context_mean_, self.context_std_)
            self.past_ = y[outcome_order(y)]
            self.typical_distance_ = self.off_support.typical_distance(self.seen_)
        generator = torch.Generator().manual_seed(self.seed_)
        self.network_ = self._build(X.shape[1], generator)
        self.history_: list[dict[str, float]] = []
        rows = self._rows(X, y, kept)
        return rows, None if validation is None else self._rows(*validation, held)

    def likelihood(self, rows: Rows, validation: Rows | None) -> Likelihood:
        """The objective of decoupled training."""
        return Likelihood(
            x=rows.x_scaled,
            y=self._scaled_outcomes(rows),
            x_val=None if validation is None else validation.x_scaled,
            y_val=None if validation is None else self._scaled_outcomes(validation),
            n_draws=self.n_training_draws,
        )

    def train(self, objective: Objective, rows: Rows, settings: Training) -> None:
        """Train the network for an objective; `history_` gets one record per epoch."""
        self.history_ = [*self.history_, *train(self.job(objective, rows), settings)]

    def job(self, objective: Objective, rows: Rows) -> Job:
        """What the training loop needs to know."""
        return Job(
            network=self.network_,
            objective=objective,
            n_rows=len(rows),
            divergence_weight=self.divergence_share / (len(rows) * rows.y.shape[1]),
            seed=self.seed_,
            title=objective.title,
            identity=self._identity(rows) | objective.identity,
        )

    def _identity(self, rows: Rows) -> dict[str, Any]:
        """What a checkpoint must have been made with, but for the loop and the objective."""
        seed = "random_state"
        if self.random_state is None:
            seed += " (it is None: a fit can resume with a number only)"
        return {
            "the training rows": (rows.X, rows.y),
            "the kind of predictor": type(self),
            **{f"predictor.{name}": value for name, value in parameters_of(self).items()},
            seed: self.seed_,
            "the weights that training starts from": self.network_.state_dict(),
        }

    def scenarios_with_gradients(
        self, x_scaled: torch.Tensor, n_scenarios: int, generator: torch.Generator
    ) -> Scenarios:
        """Scenarios in the user's units, differentiable in the network's weights."""
        values, weights = self.network_.scenarios(x_scaled, n_scenarios, generator)
        return Scenarios(self._in_units(values), weights)

    def _scenarios(self, X: np.ndarray, n_scenarios: int, random: np.random.Generator) -> Scenarios:
        noise = normal_draws(n_scenarios, self.network_.head.n_noises, random)
        common = torch.from_numpy(noise).float()[:, None]
        weights = self.network_.weights.draw(n_scenarios, torch_generator(random))
        drawn = []
        for part, block in blocks(X):
            values = self.network_.common_scenarios(self._scaled(block), common, weights)
            drawn.append(self._in_units(values.double())[: part.stop - part.start])
        values = torch.cat(drawn)
        if self.off_support is None:
            return Scenarios(values)
        shares = self._fallback_shares(X, self.off_support)
        return Scenarios(with_past_outcomes(values.numpy(), shares, self.past_, random.random()))

    def _fallback_shares(self, X: np.ndarray, off_support: OffSupportFallback) -> np.ndarray:
        contexts = standardise(X, self.context_mean_, self.context_std_)
        return off_support.shares(nearest_distances(contexts, self.seen_), self.typical_distance_)

    def fallback_share(self, X: Any) -> np.ndarray:
        """Share of each context's scenarios that are past outcomes, out of `off_support`.

        Parameters
        ----------
        X : table (n_contexts, n_features)

        Returns
        -------
        array (n_contexts,)
            0 for a context like those of training, 1 for one that no forecast is made for.
        """
        contexts = self.check_contexts(X)
        if self.off_support is None:
            return np.zeros(len(contexts))
        return self._fallback_shares(contexts, self.off_support)

    def extrapolates(self, X: np.ndarray) -> np.ndarray:
        """Contexts beyond the range of a column by more than half of its width.

        None where inputs are held at what was seen, or answered with past outcomes.
        """
        if self.off_support is not None or not self.extrapolate:
            return np.zeros(len(X), dtype=bool)
        width = self.context_high_ - self.context_low_
        # A column that never changed is not looked at by the network either.
        room = np.where(width > 0, width / 2, np.inf)
        below, above = self.context_low_ - X, X - self.context_high_
        return (np.maximum(below, above) > room).any(axis=1)

    def _build(self, n_features: int, generator: torch.Generator) -> Network:
        head = self._head(self.n_outcomes_)
        n_inputs = n_features if self.encoding is None else self.encoding.width(n_features)
        layout = Layout((n_inputs, *self.hidden_sizes, head.width))
        return Network(layout, self._weights(layout, generator), head)

    def _moments(self, X: Any, n_draws: int) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of each draw's distribution, in the user's units."""
        X = self.check_contexts(X)
        with torch.no_grad():
            weights = self.network_.weights.draw(n_draws, torch.Generator().manual_seed(0))
        parts = []
        for part, block in blocks(X):
            found = torch.stack(self.network_.moments(self._scaled(block), weights))
            parts.append(found[:, :, : part.stop - part.start])
        means, variances = torch.cat(parts, dim=2).double().numpy()
        return (
            means * self.outcome_std_ + self.outcome_mean_,
            variances * self.outcome_std_**2,
        )

    def _scaled(self, X: np.ndarray) -> torch.Tensor:
        if not self.extrapolate:
            X = X.clip(self.context_low_, self.context_high_)
        x = torch.from_numpy(standardise(X, self.context_mean_, self.context_std_)).float()
        return x if self.encoding is None else self.encoding.inputs(x)

    def _rows(self, X: np.ndarray, y: np.ndarray, places: np.ndarray) -> Rows:
        return Rows(X, y, self._scaled(X), torch.from_numpy(np.asarray(places)))

    def _scaled_outcomes(self, rows: Rows) -> torch.Tensor:
        return torch.from_numpy(standardise(rows.y, self.outcome_mean_, self.outcome_std_)).float()

    def _in_units(self, values: torch.Tensor) -> torch.Tensor:
        std = torch.from_numpy(self.outcome_std_).to(values.dtype)
        mean = torch.from_numpy(self.outcome_mean_).to(values.dtype)
        return torch.addcmul(mean, values, std)

    def _check_parameters(self) -> None:
        sizes = self.hidden_sizes
        if not isinstance(sizes, tuple | list) or not all(
            isinstance(size, int | np.integer) and size > 0 for size in sizes
        ):
            raise InvalidInputError(
                f"hidden_sizes must be a tuple of positive whole numbers, but is {sizes!r}"
            )
        if not isinstance(self.extrapolate, bool | np.bool_):
            raise InvalidInputError(
                f"extrapolate must be True or False, but is {self.extrapolate!r}"
            )
        if self.encoding is not None and not isinstance(self.encoding, Encoding):
            raise InvalidInputError(
                "encoding must be an Encoding such as FourierFeatures() or None, but is "
                f"{came_as(self.encoding)}"
            )
        if self.off_support is not None and not isinstance(self.off_support, OffSupportFallback):
            raise InvalidInputError(
                "off_support must be a forewise.predictors.OffSupportFallback or None, but is "
                f"{came_as(self.off_support)}"
            )
        if self.training is not None and not isinstance(self.training, Training):
            raise InvalidInputError(
                f"training must be a forewise.Training or None, but is {came_as(self.training)}"
            )

    def state(self) -> dict[str, Any]:
        """The attributes, with the network as its arrays."""
        return super().state() | {"network_": dict(self.network_.state_dict())}

    def restore(self, state: dict[str, Any]) -> None:
        """Build the network anew and fill it."""
        super().restore({name: value for name, value in state.items() if name != "network_"})
        self.network_ = self._build(self.n_features_in_, torch.Generator())
        weights = {name: torch.tensor(value) for name, value in state["network_"].items()}
        self.network_.load_state_dict(weights)


@dataclass(frozen=True)
class Likelihood(Objective):
    """The evidence lower bound: negative log-likelihood, averaged over draws of the weights."""

    x: torch.Tensor  # all standardised
    y: torch.Tensor
    x_val: torch.Tensor | None
    y_val: torch.Tensor | None
    n_draws: int
    title: str = "likelihood"

    @property
    def identity(self) -> dict[str, Any]:
        """The likelihood is the predictor's own."""
        return {"the objective": "likelihood", "the validation rows": (self.x_val, self.y_val)}

    def loss(
        self, network: Network, rows: torch.Tensor, generator: torch.Generator
    ) -> torch.Tensor:
        """Mean over the rows, draws and outcomes."""
        # Much faster than x[rows], on tables with many rows.
        x, y = self.x.index_select(0, rows), self.y.index_select(0, rows)
        return network.loss(x, y, self.n_draws, generator)

    def validate(
        self, network: Network, epoch: int, generator: torch.Generator
    ) -> dict[str, float]:
        """The same of the validation rows."""
        if self.x_val is None or self.y_val is None:
            return {}
        return {"validation": network.loss(self.x_val, self.y_val, self.n_draws, generator).item()}
