"""What all network predictors share: scaling, building, training, drawing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Generator, Tensor

from forewise.exceptions import InvalidInputError
from forewise.predictors.base import Predictor
from forewise.predictors.networks.checkpoint import parameters_of
from forewise.predictors.networks.contexts import (
    Encoding,
    OffSupportFallback,
    nearest_distances,
    with_past_outcomes,
)
from forewise.predictors.networks.heads import Head
from forewise.predictors.networks.network import (
    EnsembleWeights,
    FixedWeights,
    LayeredNetwork,
    Layout,
    Network,
    Weights,
)
from forewise.predictors.networks.rows import Likelihood, Pair, Rows
from forewise.predictors.networks.settings import (
    CompleteTraining,
    Training,
    TrainingDefaults,
    split_rows,
)
from forewise.predictors.networks.training import Job, Objective, train
from forewise.predictors.sampling import (
    fixed_blocks,
    mean_and_std,
    normal_draws,
    outcome_order,
    standardise,
)
from forewise.predictors.trees import Completer
from forewise.scenarios import Scenarios
from forewise.validation.censored import check_censored
from forewise.validation.parameters import as_random_state, came_as, require_count
from forewise.validation.tables import check_training_data, check_validation_data


@dataclass(frozen=True)
class Sampled:
    """What scenarios of all contexts have in common: noise, and draws of the weights."""

    network: Network
    n_scenarios: int
    seed: int
    weights: list[Tensor]  # of the network
    versions: list[int]
    noise: Tensor  # (n_scenarios, 1, n_noises)
    draws: Any
    start: float  # where past outcomes are picked from, off the support

    def serves(self, network: Network, n_scenarios: int, seed: int) -> bool:
        """Whether they were drawn for this: the very network, with the same weights."""
        # A weight that is changed in place has another version, a refitted network is another.
        return (
            self.network is network
            and (self.n_scenarios, self.seed) == (n_scenarios, seed)
            and [weight._version for weight in self.weights] == self.versions
        )


class NetworkPredictor(Predictor):
    """A predictor whose scenarios can be differentiated in its weights.

    Learners train it through `prepare` and `train`, with an objective of their own. Subclasses
    have the parameters below, and say how a network is made (`_network`, or `_head` and
    `_weights`). What begins with an underscore and takes its data as arguments is asked of the
    members of an ensemble, which are not fitted themselves.

    Examples
    --------
    All of these are networks, which `CombinedLearner` can train through the solver:

    >>> import forewise as fw
    >>> kinds = [fw.BayesianPredictor, fw.GaussianPredictor, fw.PointPredictor]
    >>> all(issubclass(kind, fw.predictors.NetworkPredictor) for kind in kinds)
    True
    """

    hidden_sizes: tuple[int, ...]
    extrapolate: float
    encoding: Encoding | None = None
    off_support: OffSupportFallback | None = None  # none for point forecasts
    training: Training | None
    random_state: Any
    kl_weight: float = 0.0  # without a prior there is no divergence from it
    defaults: ClassVar[TrainingDefaults] = TrainingDefaults()
    #: Settings of training through a solver, where a learner is given none.
    combined_defaults: ClassVar[TrainingDefaults] = TrainingDefaults(epochs=20, learning_rate=2e-4)
    #: Whether members hold out a fold each, unless there are rows to validate on.
    has_folds: ClassVar[bool] = False
    _sampled: Sampled | None = None

    def _head(self, n_outcomes: int) -> Head:
        """What the outputs of a layered network mean; called when it is built."""
        raise NotImplementedError

    def _require_censored_head(self, n_outcomes: int) -> None:
        """Raise where outcomes are censored and what is trained has no likelihood of bounds."""
        reason = self._head(n_outcomes).censored_unsupported_reason
        if reason is not None:
            raise InvalidInputError(
                f"censored must be left out for a {type(self).__name__}: {reason}"
            )

    def _weights(self, layout: Layout, generator: Generator) -> Weights:
        """Where training of a layered network starts; called when it is built."""
        return FixedWeights(layout, generator)

    @property
    def n_training_draws(self) -> int:
        """Draws of the weights in one step of decoupled training."""
        return 1

    def fit(
        self,
        X: Any,
        y: Any,
        X_val: Any = None,
        y_val: Any = None,
        *,
        censored: Any = None,
        censored_val: Any = None,
    ) -> Self:
        """Minimise the negative log-likelihood of X (n_contexts, n_features), y (.., n_outcomes).

        Validation rows `X_val`, `y_val` choose the epoch; by default some training rows do.
        """
        rows, validation = self.prepare(
            X, y, X_val, y_val, censored=censored, censored_val=censored_val
        )
        self.train(self.likelihood(rows, validation), rows)
        return self

    def prepare(
        self,
        X: Any,
        y: Any,
        X_val: Any = None,
        y_val: Any = None,
        predicted: np.ndarray | None = None,
        *,
        folds: bool = True,
        censored: Any = None,
        censored_val: Any = None,
    ) -> tuple[Rows, Rows | None]:
        """Check the data, set the scales, and build the network; called before `train`.

        `predicted` (any number, n) sets the scale of the outputs where these are not outcomes.
        Without `folds`, rows that no member trains on are split off to validate on.
        """
        self._check_parameters()
        passed, passed_val = y, y_val
        X, y = check_training_data(self, X, y)
        validation = check_validation_data(self, X_val, y_val)
        bounds, flags = y, check_censored(censored, passed, y)
        if flags is not None:
            self._require_censored_head(y.shape[1])
        completer = Completer.make(X, y, flags)
        y = completer.outcomes(X, y, flags)
        if validation is not None:
            names = "censored_val", "y_val"
            flags_val = check_censored(censored_val, passed_val, validation[1], *names)
            validation = validation[0], completer.outcomes(*validation, flags_val)
        self.seed_ = int(as_random_state(self.random_state).randint(2**31))
        kept, held = np.arange(len(X)), np.arange(0 if validation is None else len(validation[0]))
        if validation is None and not (folds and self.has_folds):
            share, in_time = (self.training or Training()).held_out(self.defaults)
            kept, held = split_rows(len(X), share, in_time, self.seed_)
            validation = (X[held], y[held]) if len(held) else None
            X, y, bounds = X[kept], y[kept], bounds[kept]
            flags = None if flags is None else flags[kept]
        like = y if predicted is None else predicted
        self.n_outcomes_ = like.shape[1]
        for name, measured in self._measured(X, like).items():
            setattr(self, name, measured)
        if self.off_support is not None:
            self.seen_ = standardise(X, self.context_mean_, self.context_std_)
            self.past_ = y[outcome_order(y)]
            self.typical_distance_ = self.off_support.typical_distance(self.seen_)
        self.network_ = self._network(vars(self), None, Generator().manual_seed(self.seed_))
        self.history_: list[dict[str, float]] = []
        rows = self._rows(X, y, kept)
        if flags is not None:
            rows = replace(rows, bounds=bounds, censored=flags)
        return rows, None if validation is None else self._rows(*validation, held)

    def likelihood(self, rows: Rows, validation: Rows | None) -> Objective:
        """The objective of decoupled training."""
        held = None if validation is None else self._scaled_rows(validation)
        return self._likelihood(self._scaled_rows(rows), held, self.network_, self.seed_)

    def _likelihood(
        self, rows: Pair, validation: Pair | None, network: Any, seed: int
    ) -> Objective:
        """The objective of a network on scaled rows; called by `likelihood`."""
        return Likelihood(rows, validation, self.n_training_draws)

    def train(
        self,
        objective: Objective,
        rows: Rows,
        settings: Training | None = None,
        defaults: TrainingDefaults | None = None,
    ) -> None:
        """Train the network for an objective; `history_` gets one record per epoch."""
        job = self.job(objective, rows, defaults or self.defaults)
        self.history_ = [*self.history_, *train(job, settings or self.training or Training())]

    def complete_training(self, objective: Objective) -> CompleteTraining:
        """The settings that decoupled training of an objective will have."""
        return (self.training or Training()).completed(self.defaults, objective.n_rows)

    def job(
        self, objective: Objective, rows: Rows, defaults: TrainingDefaults | None = None
    ) -> Job:
        """What the training loop needs to know."""
        seed = "random_state"
        if self.random_state is None:
            seed += " (it is None: a fit can resume with a number only)"
        identity = {
            "the training rows": (rows.X, rows.y),
            **({} if rows.censored is None else {"the bounds": (rows.bounds, rows.censored)}),
            "the kind of predictor": type(self),
            **{f"predictor.{name}": value for name, value in parameters_of(self).items()},
            seed: self.seed_,
            "the weights that training starts from": self.network_.state_dict(),
        }
        return Job(
            network=self.network_,
            objective=objective,
            divergence_weight=self.kl_weight / (objective.n_rows * rows.y.shape[1]),
            seed=self.seed_,
            identity=identity | objective.identity,
            defaults=defaults or self.defaults,
        )

    def scenarios_with_gradients(
        self, x_scaled: Tensor, n_scenarios: int, generator: Generator
    ) -> Scenarios:
        """Scenarios in the user's units, differentiable in the network's weights.

        Wherever the network is, they are on the processor, where problems are solved.
        """
        own = x_scaled.to(next(self.network_.parameters()).device)
        values, weights = self.network_.scenarios(own, n_scenarios, generator)
        return Scenarios(self._in_units(values.cpu()), None if weights is None else weights.cpu())

    def sample_checked(self, X: np.ndarray, n_scenarios: int, seed: int) -> Scenarios:
        """Scenarios of checked contexts, with draws that are kept from one call to the next."""
        sampled = self._sampled
        if sampled is None or not sampled.serves(self.network_, n_scenarios, seed):
            sampled = self._sampled = self._drawn(n_scenarios, seed)
        return self._with_draws(X, sampled)

    def _scenarios(self, X: np.ndarray, n_scenarios: int, random: np.random.Generator) -> Scenarios:
        return self.sample_checked(X, n_scenarios, int(random.integers(2**31)))

    @torch.no_grad()
    def _drawn(self, n_scenarios: int, seed: int) -> Sampled:
        network, random = self.network_, np.random.default_rng(seed)
        noise = normal_draws(n_scenarios, network.n_noises, random)
        common = torch.from_numpy(noise).float()[:, None]
        generator = Generator().manual_seed(int(random.integers(2**62)))
        weights = list(network.state_dict().values())
        versions = [weight._version for weight in weights]
        draws = network.draw(n_scenarios, generator)
        return Sampled(
            network, n_scenarios, seed, weights, versions, common, draws, random.random()
        )

    @torch.no_grad()
    def _with_draws(self, X: np.ndarray, sampled: Sampled) -> Scenarios:
        drawn = []
        for part, block in fixed_blocks(X):
            values = self.network_.common_scenarios(
                self._scaled(block), sampled.noise, sampled.draws
            )
            drawn.append(self._in_units(values.double())[: part.stop - part.start])
        values = torch.cat(drawn).clamp(*self._reach(vars(self)))
        if self.off_support is None:
            return Scenarios(values)
        shares = self._fallback_shares(X)
        return Scenarios(with_past_outcomes(values.numpy(), shares, self.past_, sampled.start))

    def __getstate__(self) -> Any:
        """Without the draws, which can be made again."""
        return {k: value for k, value in super().__getstate__().items() if k != "_sampled"}

    def fallback_share(self, X: Any) -> np.ndarray:
        """Share of past outcomes in each context's scenarios, (n_contexts,); see `off_support`."""
        return self._fallback_shares(self.check_contexts(X))

    def _fallback_shares(self, X: np.ndarray) -> np.ndarray:
        if self.off_support is None:
            return np.zeros(len(X))
        contexts = standardise(X, self.context_mean_, self.context_std_)
        distances = nearest_distances(contexts, self.seen_)
        return self.off_support.shares(distances, self.typical_distance_)

    def extrapolates(self, X: np.ndarray) -> np.ndarray:
        """Contexts beyond the range of a column by more than half of its width, if unprotected."""
        if self.off_support is not None or not self.extrapolate:
            return np.zeros(len(X), dtype=bool)
        width = self.context_high_ - self.context_low_
        # The network ignores a constant column.
        room = np.where(width > 0, width / 2, np.inf)
        below, above = self.context_low_ - X, X - self.context_high_
        return (np.maximum(below, above) > room).any(axis=1)

    def epistemic_aleatoric(self, X: Any, n_draws: int = 256) -> tuple[np.ndarray, np.ndarray]:
        """The two parts of the predictive variance, by the law of total variance.

            Var[y | x] = Var_w[ E[y | x, w] ] + E_w[ Var[y | x, w] ]

        Arrays (n_contexts, n_outcomes) in squared units of the outcome. More data would reduce the
        first, not the second. `n_draws` are draws of the weights, of all members together.
        """
        require_count("n_draws", n_draws, at_least=1)
        X = self.check_contexts(X)
        with torch.no_grad():
            draws = self.network_.draw(n_draws, Generator().manual_seed(0))
        parts = []
        for part, block in fixed_blocks(X):
            moments = torch.stack(self.network_.moments(self._scaled(block), draws))
            parts.append(moments[:, :, : part.stop - part.start])
        means, variances = torch.cat(parts, dim=2).double().numpy()
        means = torch.from_numpy(means * self.outcome_std_ + self.outcome_mean_)
        low, high = self._reach(vars(self))
        # A distribution that lies within bounds has no larger variance than this.
        most = ((high - low) / 2) ** 2
        epistemic = means.clamp(low, high).numpy().var(0)
        return epistemic, np.minimum(variances * self.outcome_std_**2, most.numpy()).mean(0)

    def _measured(self, X: np.ndarray, y: np.ndarray) -> dict[str, np.ndarray]:
        """Fitted attributes that scale contexts and outcomes; called by `prepare`."""
        mean, std = mean_and_std(X)
        outcome_mean, outcome_std = mean_and_std(y)
        return {
            "context_mean_": mean,
            "context_std_": std,
            "context_low_": X.min(axis=0),
            "context_high_": X.max(axis=0),
            "outcome_mean_": outcome_mean,
            "outcome_std_": outcome_std,
        }

    def _network(
        self, fitted: Mapping[str, Any], n_members: int | None, generator: Generator
    ) -> Network:
        """A network for contexts and outcomes that were measured; of an ensemble's members."""
        n_features, head = len(fitted["context_mean_"]), self._head(fitted["n_outcomes_"])
        n_inputs = n_features if self.encoding is None else self.encoding.width(n_features)
        layout = Layout((n_inputs, *self.hidden_sizes, head.width))
        if n_members is None:
            return LayeredNetwork(layout, self._weights(layout, generator), head)
        members = (self._weights(layout, generator) for _ in range(n_members))
        return LayeredNetwork(layout, EnsembleWeights(members), head)

    def _inputs(self, X: np.ndarray, fitted: Mapping[str, Any]) -> Tensor:
        """Contexts as the network sees them."""
        if not self.extrapolate:
            X = X.clip(fitted["context_low_"], fitted["context_high_"])
        standard = standardise(X, fitted["context_mean_"], fitted["context_std_"])
        x = torch.from_numpy(standard).float()
        return x if self.encoding is None else self.encoding.inputs(x)

    def _reach(self, fitted: Mapping[str, Any]) -> tuple[Tensor, Tensor]:
        """Bounds (n_outcomes,) that scenarios are clipped to, in the user's units."""
        end = torch.full((fitted["n_outcomes_"],), np.inf, dtype=torch.float64)
        return -end, end

    def _scaled(self, X: np.ndarray) -> Tensor:
        return self._inputs(X, vars(self))

    def _rows(self, X: np.ndarray, y: np.ndarray, places: np.ndarray) -> Rows:
        return Rows(X, y, self._scaled(X), torch.from_numpy(places))

    def _scaled_rows(self, rows: Rows) -> Pair:
        seen = [part for part in (rows.y, rows.bounds) if part is not None]
        outcomes = [
            torch.from_numpy(standardise(part, self.outcome_mean_, self.outcome_std_)).float()
            for part in seen
        ]
        flags = () if rows.censored is None else (torch.from_numpy(rows.censored),)
        return Pair(rows.x_scaled, *outcomes, *flags)

    def _in_units(self, values: Tensor) -> Tensor:
        std = torch.from_numpy(self.outcome_std_).to(values.dtype)
        mean = torch.from_numpy(self.outcome_mean_).to(values.dtype)
        return torch.addcmul(mean, values, std)

    def _check_parameters(self) -> None:
        self._check_network_parameters()
        if not isinstance(self.extrapolate, bool | np.bool_):
            raise InvalidInputError(
                f"extrapolate must be True or False, but is {self.extrapolate!r}"
            )

    def _check_network_parameters(self) -> None:
        """Those that all networks have."""
        sizes = self.hidden_sizes
        if not isinstance(sizes, tuple | list):
            raise InvalidInputError(f"hidden_sizes must be a tuple of integers, but is {sizes!r}")
        for size in sizes:
            require_count("each of hidden_sizes", size, at_least=1)
        for name, kind, example in (
            ("encoding", Encoding, "forewise.predictors.FourierFeatures()"),
            ("off_support", OffSupportFallback, "forewise.predictors.OffSupportFallback()"),
            ("training", Training, "forewise.Training(epochs=100)"),
        ):
            value = getattr(self, name)
            if value is not None and not isinstance(value, kind):
                raise InvalidInputError(
                    f"{name} must be None or an object such as {example}, but is {came_as(value)}"
                )

    def state(self) -> dict[str, Any]:
        """The attributes, with the network as its arrays."""
        weights = self.network_.state_dict().items()
        return super().state() | {"network_": {name: value.numpy() for name, value in weights}}

    def restore(self, state: dict[str, Any]) -> None:
        """Build the network anew and fill it."""
        super().restore({name: value for name, value in state.items() if name != "network_"})
        self.network_ = self._network(vars(self), None, Generator())
        weights = {name: torch.tensor(value) for name, value in state["network_"].items()}
        self.network_.load_state_dict(weights)
