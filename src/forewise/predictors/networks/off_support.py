"""The fallback off the support: past outcomes for contexts far from all training rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist

from forewise.exceptions import InvalidInputError
from forewise.predictors.sampling import context_slices, systematic_picks
from forewise.validation.parameters import require_positive

_MAX_SAMPLED = 2000  # training rows that the typical distance is estimated from


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
