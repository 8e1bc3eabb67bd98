"""What a network says where it has seen nothing: past outcomes, more of them the further away.

May import: exceptions, its siblings `parameter_checks`, `weighted_support`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist

from forewise.exceptions import InvalidInputError
from forewise.predictors.weighted_support import context_slices, systematic_picks
from forewise.validation.parameters import require_positive

_ASKED = 2000  # training rows that say what distance is usual


@dataclass(frozen=True)
class OffSupportFallback:
    """Contexts unlike those of training are answered with past outcomes, not with a forecast.

        share of past outcomes in the scenarios of x:   (d/u - 1) / (reach - 1), within 0 and 1

    d is the distance from x to the nearest training row, u the usual one between a training row and
    its nearest neighbour; distances are Euclidean between standardised contexts. Beyond its data a
    network goes on as it happens to, and is as sure of itself there as elsewhere: members of an
    ensemble and draws of a posterior doubt too little. Use it where a wrong forecast costs dearly
    and what is right for an average day costs less. Not where extremes go on as they began:
    the demand for electricity on the hottest day of ten years is not that of an average day.

    Training is not affected; past outcomes come in when scenarios are drawn. The training rows are
    stored with the policy.

    Parameters
    ----------
    quantile : float
        Share of the training rows whose nearest neighbour is within the usual distance.
    reach : float
        Usual distances from which on a context has past outcomes only.

    Examples
    --------
    >>> OffSupportFallback(reach=3.0).shares(np.array([0.5, 1.0, 2.0, 7.0]), typical_distance=1.0)
    array([0. , 0. , 0.5, 1. ])
    """

    quantile: float = 0.995
    reach: float = 5.0

    def __post_init__(self) -> None:
        if require_positive("quantile", self.quantile) > 1:
            raise InvalidInputError(f"quantile must be at most 1, but is {self.quantile!r}")
        if require_positive("reach", self.reach) <= 1:
            raise InvalidInputError(f"reach must be above 1, but is {self.reach!r}")

    def typical_distance(self, seen: np.ndarray) -> float:
        """The usual distance from a training row to its nearest neighbour; some rows are asked."""
        if len(seen) == 1:
            return 0.0
        asked = np.random.default_rng(0).permutation(len(seen))[:_ASKED]
        nearest = np.empty(len(asked))
        for part in context_slices(len(asked), len(seen)):
            distances = cdist(seen[asked[part]], seen)
            distances[np.arange(len(distances)), asked[part]] = np.inf  # the row itself
            nearest[part] = distances.min(axis=1)
        return float(np.quantile(nearest, self.quantile))

    def shares(self, distance: np.ndarray, typical_distance: float) -> np.ndarray:
        """Share of past outcomes for contexts at these distances from the nearest training row."""
        beyond = distance - typical_distance
        width = (self.reach - 1) * typical_distance
        if width == 0:  # one training context, or several that repeat: any other is unlike them
            return (beyond > 0).astype(float)
        return (beyond / width).clip(0, 1)


def nearest_distances(contexts: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """Distance from each context to the nearest one that was seen; both standardised."""
    nearest = np.empty(len(contexts))
    for part in context_slices(len(contexts), len(seen)):
        nearest[part] = cdist(contexts[part], seen).min(axis=1)
    return nearest


def with_past_outcomes(
    values: np.ndarray, shares: np.ndarray, past: np.ndarray, start: float
) -> np.ndarray:
    """Scenarios (n_contexts, n_scenarios, n_outcomes) in which a share are past outcomes.

    Past outcomes, in the order of `outcome_order`, are picked at even steps from `start` in [0, 1)
    on, so that few stand for all; they take the places of scenarios at even steps, too.
    """
    values = values.copy()
    n_scenarios = values.shape[1]
    counts = np.rint(shares * n_scenarios).astype(int)
    for count in np.unique(counts[counts > 0]):
        places = np.arange(count) * n_scenarios // count
        picks = systematic_picks(np.ones((1, len(past))), count, start)[0]
        values[np.ix_(counts == count, places)] = past[picks]
    return values
