"""How networks treat contexts: encodings before the first layer, and a fallback off the support.

To add an encoding: a frozen dataclass that derives from `Encoding`, exported and known to storage.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import torch
from scipy.spatial.distance import cdist
from torch import Tensor

from forewise.exceptions import InvalidInputError
from forewise.predictors.sampling import context_slices, systematic_picks
from forewise.validation.parameters import require_count, require_positive

_MAX_SAMPLED = 2000  # training rows that the typical distance is estimated from


class Encoding(ABC):
    """From standardised contexts to the inputs of a network. Nothing in it is fitted.

    Examples
    --------
    Columns as a network gets them; `FourierFeatures` makes more of each:

    >>> import forewise as fw
    >>> isinstance(fw.predictors.FourierFeatures(), fw.predictors.Encoding)
    True
    """

    @abstractmethod
    def width(self, n_features: int) -> int:
        """Number of inputs; called when the network is built."""

    @abstractmethod
    def inputs(self, x: Tensor) -> Tensor:
        """Inputs (n_contexts, width) of standardised contexts (n_contexts, n_features)."""


@dataclass(frozen=True)
class FourierFeatures(Encoding):
    """Each column, and sines and cosines of it at several frequencies.

        x  →  (x,  sin ω_k x,  cos ω_k x),    ω_k geometric from `lowest` to `highest`

    When to use: the outcome may rise and fall several times over the range of a column (hours,
    seasons); a network alone learns low frequencies first. Combine with a prior or weight decay.

    Parameters
    ----------
    lowest, highest : float
        Radians per standard deviation of the column: 2π · (standard deviation) / period.

    Examples
    --------
    Hours of a day, with the periods of a day and of six hours within reach:

    >>> import forewise as fw
    >>> encoding = fw.predictors.FourierFeatures(n_frequencies=4, lowest=1.8, highest=8.0)
    >>> network = fw.GaussianPredictor(encoding=encoding)
    """

    n_frequencies: int = 8
    lowest: float = 0.5
    highest: float = 20.0

    def __post_init__(self) -> None:
        require_count("n_frequencies", self.n_frequencies, at_least=1)
        if require_positive("lowest", self.lowest) > require_positive("highest", self.highest):
            raise InvalidInputError(
                f"lowest must not exceed highest, but they are {self.lowest!r} and {self.highest!r}"
            )

    def width(self, n_features: int) -> int:
        return n_features * (1 + 2 * self.n_frequencies)

    def inputs(self, x: Tensor) -> Tensor:
        """The columns, the sines of all columns, the cosines of all columns."""
        frequencies = torch.from_numpy(np.geomspace(self.lowest, self.highest, self.n_frequencies))
        angles = (x[:, :, None] * frequencies.to(x)).flatten(1)
        return torch.cat([x, angles.sin(), angles.cos()], dim=1)


@dataclass(frozen=True)
class OffSupportFallback:
    """Contexts off the support of the training data get past outcomes in place of a forecast.

        share of past outcomes in the scenarios of x:   (d/u - 1) / (reach - 1), within 0 and 1

    d is the distance from x to the nearest training row, u the typical one between a training row
    and its nearest neighbour; distances are Euclidean between standardised contexts. Training is
    not affected. The training rows are stored with the policy.

    When to use: a wrong forecast costs more than the decision for an average day. Not where a trend
    goes on beyond the data, as electricity demand on the hottest day in ten years.

    Parameters
    ----------
    quantile : float
        Share of the training rows whose nearest neighbour is within the typical distance.
    reach : float
        Typical distances from which on a context has past outcomes only.

    Examples
    --------
    Far from all training rows, past outcomes take the place of what a network would make up:

    >>> import numpy as np
    >>> import forewise as fw
    >>> X = np.linspace(0.0, 1.0, 64)[:, None]
    >>> y = 10.0 + X
    >>> settings = dict(training=fw.Training(epochs=2), random_state=0)
    >>> fallback = fw.predictors.OffSupportFallback()
    >>> careful = fw.GaussianPredictor((8,), off_support=fallback, **settings).fit(X, y)
    >>> values = careful.sample([[100.0]], 32, random_state=0).values
    >>> bool(values.min() >= 10.0) and bool(values.max() <= 11.0)
    True
    """

    quantile: float = 0.995
    reach: float = 5.0

    def __post_init__(self) -> None:
        if require_positive("quantile", self.quantile) > 1:
            raise InvalidInputError(f"quantile must be at most 1, but is {self.quantile!r}")
        if require_positive("reach", self.reach) <= 1:
            raise InvalidInputError(f"reach must be above 1, but is {self.reach!r}")

    def typical_distance(self, seen: np.ndarray) -> float:
        """Quantile of the distances between training rows (n_rows, n_features) and neighbours."""
        if len(seen) == 1:
            return 0.0
        sampled = np.random.default_rng(0).permutation(len(seen))[:_MAX_SAMPLED]
        return float(np.quantile(nearest_distances(seen[sampled], seen, sampled), self.quantile))

    def shares(self, distance: np.ndarray, typical_distance: float) -> np.ndarray:
        """Share of past outcomes for contexts at these distances from the nearest training row."""
        beyond = distance - typical_distance
        width = (self.reach - 1) * typical_distance
        if width == 0:  # one training context, or several that repeat: any other is off the support
            return (beyond > 0).astype(float)
        return (beyond / width).clip(0, 1)


def nearest_distances(
    contexts: np.ndarray, seen: np.ndarray, own: np.ndarray | None = None
) -> np.ndarray:
    """Distance from each context to the nearest training row, but its `own`; all standardised."""
    nearest = np.empty(len(contexts))
    for part in context_slices(len(contexts), len(seen)):
        distances = cdist(contexts[part], seen)
        if own is not None:
            distances[np.arange(len(distances)), own[part]] = np.inf
        nearest[part] = distances.min(axis=1)
    return nearest


def with_past_outcomes(
    values: np.ndarray, shares: np.ndarray, past: np.ndarray, start: float
) -> np.ndarray:
    """Scenarios (n_contexts, n_scenarios, n_outcomes) of which a share are past outcomes.

    Past outcomes, in the order of `outcome_order`, are picked systematically from `start` in
    [0, 1) on, and replace scenarios at even steps.
    """
    values = values.copy()
    n_scenarios = values.shape[1]
    counts = np.rint(shares * n_scenarios).astype(int)
    for count in np.unique(counts[counts > 0]):
        places = np.arange(count) * n_scenarios // count
        picks = systematic_picks(np.ones((1, len(past))), count, start)[0]
        values[np.ix_(counts == count, places)] = past[picks]
    return values
