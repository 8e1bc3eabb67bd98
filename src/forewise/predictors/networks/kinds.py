"""The kinds of network predictors: point, Gaussian, Bayesian, mixture, and ensembles of them.

A kind is a pair of weights and a head. To add one: a dataclass that derives from
`NetworkPredictor` and says which head and, unless they are fixed, which weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Generator, Tensor

from forewise.exceptions import InvalidInputError
from forewise.predictors.networks.base import NetworkPredictor
from forewise.predictors.networks.contexts import Encoding, OffSupportFallback
from forewise.predictors.networks.heads import (
    NOISE_BOUNDS,
    Head,
    MixtureHead,
    PointHead,
    gaussian_head,
)
from forewise.predictors.networks.network import GaussianWeights, Layout, Network, Weights
from forewise.predictors.networks.rows import Pair
from forewise.predictors.networks.settings import Training, require_nonnegative
from forewise.predictors.networks.training import Objective
from forewise.validation.parameters import came_as, require_bounds, require_count, require_positive


@dataclass(eq=False, repr=False)
class PointPredictor(NetworkPredictor):
    """A network that predicts one value per outcome: a single scenario, no uncertainty.

    The paper's ANN. Parameters are those of `MeanFieldPredictor` with the same names.

    When to use: as the baseline "predict, then optimise", where uncertainty cannot matter
    (`certainty_equivalent` says when), or in a combined learner.

    Examples
    --------
    A single scenario: decisions from it hedge against nothing.

    >>> import numpy as np
    >>> import forewise as fw
    >>> X = np.linspace(0.0, 1.0, 64)[:, None]
    >>> network = fw.PointPredictor((8,), training=fw.Training(epochs=2), random_state=0)
    >>> network.fit(X, 5.0 + X).sample(X[:3], n_scenarios=1).values.shape
    torch.Size([3, 1, 1])
    """

    hidden_sizes: tuple[int, ...] = (128, 64, 64)
    extrapolate: bool = True
    encoding: Encoding | None = None
    training: Training | None = None
    random_state: Any = None

    def _head(self, n_outcomes: int) -> Head:
        return PointHead(n_outcomes)


@dataclass(eq=False, repr=False)
class GaussianPredictor(NetworkPredictor):
    """A plain network with a mean and a variance per outcome: noise, but no epistemic uncertainty.

    Parameters are those of `MeanFieldPredictor` with the same names.

    When to use: data are plenty and noise changes with the context.

    Examples
    --------
    Two products whose sales rise and fall together get a factor that they share:

    >>> import numpy as np
    >>> import forewise as fw
    >>> random = np.random.default_rng(0)
    >>> weather = random.normal(size=(200, 1))
    >>> X, y = random.normal(size=(200, 3)), 10 + weather + 0.1 * random.normal(size=(200, 2))
    >>> training = fw.Training(epochs=20, learning_rate=0.03, batch_size=32)
    >>> network = fw.GaussianPredictor((8,), n_factors=1, training=training, random_state=0)
    >>> network = network.fit(X, y)
    >>> drawn = network.sample(X[:1], 500, random_state=0).values[0]
    >>> bool(np.corrcoef(drawn.T)[0, 1] > 0.5)
    True
    """

    hidden_sizes: tuple[int, ...] = (128, 64, 64)
    n_factors: int = 0
    extrapolate: bool = True
    encoding: Encoding | None = None
    off_support: OffSupportFallback | None = None
    training: Training | None = None
    random_state: Any = None

    def _head(self, n_outcomes: int) -> Head:
        return gaussian_head(n_outcomes, self.n_factors)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_count("n_factors", self.n_factors, at_least=0)


class _GaussianWeightsPredictor(NetworkPredictor):
    """Mean-field variational inference, whatever the head."""

    @property
    def n_training_draws(self) -> int:
        return self.n_scenarios

    def _weights(self, layout: Layout, generator: Generator) -> Weights:
        return GaussianWeights(layout, self.prior_std, self.initial_std, generator)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_count("n_scenarios", self.n_scenarios, at_least=1)
        require_nonnegative("kl_weight", self.kl_weight)
        require_positive("prior_std", self.prior_std)
        require_positive("initial_std", self.initial_std)


@dataclass(eq=False, repr=False)
class MeanFieldPredictor(_GaussianWeightsPredictor):
    """The paper's Bayesian network: a Gaussian on every weight, a mean and a log-variance head.

        y_j = mean_w(x) + ε_j · exp(½ logvar_w(x)),    w = w_j ~ Q,  ε_j ~ N(0, 1)

    Mean and variance of a scenario come from the same draw of the weights, so that scenarios
    carry epistemic and aleatoric uncertainty.

    When to use: to reproduce the paper. `BayesianPredictor` suits tables better.

    Parameters
    ----------
    hidden_sizes : tuple of int
        Widths of the hidden ReLU layers.
    n_scenarios : int
        Draws of the weights in a step of training.
    kl_weight : float
        Weight of the divergence from the prior; 1 is the evidence lower bound, less tempers the
        posterior towards the data.
    prior_std, initial_std : float
        Standard deviations of every weight: of its prior, N(0, prior_std²), and where training
        starts; the paper's is 0.011.
    noise_bounds : tuple of two floats
        Smallest and largest standard deviation of the noise, in units of the outcome's own.
    n_factors : int
        Factors that all outcomes share, such as a market or the weather, and that correlate their
        noises; 0 leaves them independent, given the context and the weights.
    extrapolate : bool
        False clips each input to the range seen in training, for inputs that drift, as prices do.
    encoding : Encoding, optional
        Inputs made of each column, such as `FourierFeatures()`.
    off_support : OffSupportFallback, optional
        Past outcomes in place of scenarios, for contexts off the support of the training data.

    Examples
    --------
    The paper's D-BNN, but for its number of epochs:

    >>> import forewise as fw
    >>> data = fw.datasets.nv1(100, random_state=0)
    >>> schedule = fw.predictors.ExponentialSchedule(0.99)
    >>> training = fw.Training(epochs=2, schedule=schedule)
    >>> network = fw.predictors.MeanFieldPredictor((16,), training=training, random_state=0)
    >>> learner = fw.DecoupledLearner(fw.datasets.nv_problem(), network).fit(data.X, data.y)
    >>> learner.decide(data.X[:2], n_scenarios=16).shape
    (2, 1)
    """

    hidden_sizes: tuple[int, ...] = (128, 64, 64)
    n_scenarios: int = 16
    kl_weight: float = 0.01
    prior_std: float = 1.0
    initial_std: float = 1e-3
    noise_bounds: tuple[float, float] = NOISE_BOUNDS
    n_factors: int = 0
    extrapolate: bool = True
    encoding: Encoding | None = None
    off_support: OffSupportFallback | None = None
    training: Training | None = None
    random_state: Any = None

    def _head(self, n_outcomes: int) -> Head:
        return gaussian_head(n_outcomes, self.n_factors, self.noise_bounds)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_count("n_factors", self.n_factors, at_least=0)
        low, high = require_bounds("noise_bounds", self.noise_bounds)
        if low == high:
            raise InvalidInputError(f"noise_bounds must differ, but is {self.noise_bounds!r}")


@dataclass(eq=False, repr=False)
class MixturePredictor(_GaussianWeightsPredictor):
    """A Bayesian network with a mixture of Gaussians as its head.

        y ~ Σ_k π_k(x, w) N(mean_k(x, w), variance_k(x, w)),    w ~ Q

    Components are shared by all outcomes, so that outcomes can depend on each other through them.
    Combined training should have at least as many scenarios as components. Parameters are
    `n_components` and those of `MeanFieldPredictor` with the same names.

    When to use: the outcome has several modes, or is skewed, as demand often is.

    Examples
    --------
    Either few or many come, seldom some:

    >>> import numpy as np
    >>> import forewise as fw
    >>> random = np.random.default_rng(0)
    >>> X = random.normal(size=(300, 1))
    >>> y = np.where(random.random((300, 1)) < 0.5, 10.0, 30.0) + random.normal(size=(300, 1))
    >>> training = fw.Training(epochs=20, learning_rate=0.03, batch_size=32)
    >>> network = fw.MixturePredictor(2, (8,), training=training, random_state=0).fit(X, y)
    >>> drawn = network.sample([[0.0]], 500, random_state=0).values
    >>> bool(((drawn > 15) & (drawn < 25)).double().mean() < 0.2)
    True
    """

    n_components: int = 4
    hidden_sizes: tuple[int, ...] = (128, 64, 64)
    n_scenarios: int = 16
    kl_weight: float = 0.01
    prior_std: float = 1.0
    initial_std: float = 1e-3
    extrapolate: bool = True
    encoding: Encoding | None = None
    off_support: OffSupportFallback | None = None
    training: Training | None = None
    random_state: Any = None

    def _head(self, n_outcomes: int) -> Head:
        return MixtureHead(n_outcomes, self.n_components)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_count("n_components", self.n_components, at_least=1)


def _of_member(name: str) -> Any:
    return property(lambda self: getattr(self._member, name), doc=f"The members' {name}.")


@dataclass(eq=False, repr=False)
class EnsemblePredictor(NetworkPredictor):
    """Several networks of one kind; their disagreement is the epistemic uncertainty.

    Of plain members it is a deep ensemble, of Bayesian members a posterior with several modes.
    Members share the batches, and each member has as many scenarios.

    Parameters
    ----------
    member : NetworkPredictor, optional
        The kind of network and its training; `GaussianPredictor()` by default. Its own random state
        does not matter.

    Examples
    --------
    Three small networks; where they disagree, little is known:

    >>> import numpy as np
    >>> import forewise as fw
    >>> X = np.linspace(0.0, 1.0, 64)[:, None]
    >>> member = fw.GaussianPredictor((8,), training=fw.Training(epochs=2))
    >>> ensemble = fw.EnsemblePredictor(member, n_members=3, random_state=0).fit(X, 5.0 + X)
    >>> ensemble.sample(X[:2], n_scenarios=4).values.shape
    torch.Size([2, 4, 1])
    """

    member: NetworkPredictor | None = None
    n_members: int = 5
    random_state: Any = None

    hidden_sizes = _of_member("hidden_sizes")
    extrapolate = _of_member("extrapolate")
    encoding = _of_member("encoding")
    off_support = _of_member("off_support")
    training = _of_member("training")
    kl_weight = _of_member("kl_weight")
    defaults = _of_member("defaults")
    combined_defaults = _of_member("combined_defaults")
    has_folds = _of_member("has_folds")

    @property
    def _member(self) -> NetworkPredictor:
        return GaussianPredictor() if self.member is None else self.member

    @property
    def n_training_draws(self) -> int:
        """As many for each member as it would have alone."""
        return self.n_members * self._member.n_training_draws

    def _measured(self, X: np.ndarray, y: np.ndarray) -> dict[str, np.ndarray]:
        return self._member._measured(X, y)

    def _network(
        self, fitted: Mapping[str, Any], n_members: int | None, generator: Generator
    ) -> Network:
        return self._member._network(fitted, self.n_members, generator)

    def _require_censored_head(self, n_outcomes: int) -> None:
        self._member._require_censored_head(n_outcomes)

    def _inputs(self, X: np.ndarray, fitted: Mapping[str, Any]) -> Tensor:
        return self._member._inputs(X, fitted)

    def _reach(self, fitted: Mapping[str, Any]) -> tuple[Tensor, Tensor]:
        return self._member._reach(fitted)

    def _likelihood(
        self, rows: Pair, validation: Pair | None, network: Any, seed: int
    ) -> Objective:
        if self.has_folds:
            return self._member._likelihood(rows, validation, network, seed)
        return super()._likelihood(rows, validation, network, seed)

    def _check_parameters(self) -> None:
        member = self._member
        if not isinstance(member, NetworkPredictor) or isinstance(member, EnsemblePredictor):
            raise InvalidInputError(
                "member must be one network, such as GaussianPredictor() or BayesianPredictor(), "
                f"but is {came_as(member)}"
            )
        require_count("n_members", self.n_members, at_least=1)
        member._check_parameters()
