"""Scenarios judged as a forecast, against the outcomes that came.

`crps` and `energy_score` are proper scores: a forecast cannot do better than with the true
distribution. `interval_coverage` and `calibration_curve` say where a forecast is too sure.

May import: exceptions, arguments, scenarios, and its siblings `checks`, `evaluation`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from forewise.evaluation.checks import as_level, as_outcome, as_scenarios
from forewise.evaluation.optima import constant_scenarios, parts, possible_values
from forewise.exceptions import InvalidInputError
from forewise.scenarios import Scenarios
from forewise.validation.arguments import as_vector

# A quantile is the smallest value whose cumulated weight reaches the level, up to rounding.
_ROUNDING = 1e-12
# Scenarios whose distances to all others are held at once.
_BLOCK = 128
_DEFAULT_LEVELS = tuple(k / 20 for k in range(1, 20))


@dataclass(frozen=True, eq=False)
class CalibrationCurve:
    """How often outcomes lay below the forecast's quantiles; calibrated where both agree.

    Attributes
    ----------
    levels : tensor (n_levels,)
    observed : tensor (n_levels, n_outcomes)
        Share of the contexts whose outcome was at most the forecast's quantile of the level.
    """

    levels: torch.Tensor
    observed: torch.Tensor


def crps(scenarios: Scenarios, outcome: Any) -> torch.Tensor:
    """Continuous ranked probability score of every context and outcome; less is better.

    Prefer it to judge each uncertain quantity by itself, in its own unit: it is the absolute
    error of a forecast with one scenario.

        CRPS = ∫ (F(t) − 1{y ≤ t})² dt = Σ_j w_j |y_j − y| − ½ Σ_j Σ_k w_j w_k |y_j − y_k|

    F is the weighted empirical distribution of the scenarios, for which the score is exact.
    With few draws of a continuous distribution it is larger than that distribution's own.

    Parameters
    ----------
    scenarios : Scenarios
        Values (n_contexts, n_scenarios, n_outcomes), weights (n_contexts, n_scenarios).
    outcome : table (n_contexts, n_outcomes), or (n_contexts,) where there is one outcome

    Returns
    -------
    tensor (n_contexts, n_outcomes)
    """
    scenarios = as_scenarios("scenarios", scenarios)
    outcome = as_outcome(outcome, like=scenarios)
    scores = []
    for part in parts(scenarios.n_contexts, scenarios.n_scenarios * scenarios.n_outcomes):
        values, weights = _forecast(scenarios, part)
        error, cumulated = _sorted(values - outcome[part].unsqueeze(1), weights)
        # The integral, piece by piece between sorted scenarios and split at the outcome: a sum
        # of nonnegative terms, where the double sum would be a difference of large numbers.
        zero = torch.zeros_like(error[..., :1])
        below = torch.cat([error.clamp_max(0), zero], dim=-1).diff(dim=-1)
        above = torch.cat([zero, error.clamp_min(0)], dim=-1).diff(dim=-1)
        before = torch.cat([zero, cumulated[..., :-1]], dim=-1)
        scores.append((cumulated.square() * below + (1 - before).square() * above).sum(-1))
    return torch.cat(scores)


def energy_score(scenarios: Scenarios, outcome: Any) -> torch.Tensor:
    """Energy score of every context: the CRPS of all outcomes together; less is better.

    Prefer it where the outcomes depend on each other and the forecast should say how. Its
    outcomes should have comparable units, since distances are taken over all of them.

        ES = Σ_j w_j ‖y_j − y‖ − ½ Σ_j Σ_k w_j w_k ‖y_j − y_k‖

    Work grows with the square of the number of scenarios, memory does not.

    Parameters
    ----------
    scenarios : Scenarios
        Values (n_contexts, n_scenarios, n_outcomes), weights (n_contexts, n_scenarios).
    outcome : table (n_contexts, n_outcomes), or (n_contexts,) where there is one outcome

    Returns
    -------
    tensor (n_contexts,)
    """
    scenarios = as_scenarios("scenarios", scenarios)
    outcome = as_outcome(outcome, like=scenarios)
    M = scenarios.n_scenarios
    block = min(M, _BLOCK)
    scores = torch.empty(scenarios.n_contexts, dtype=torch.float64)
    for part in parts(scenarios.n_contexts, M * (block + scenarios.n_outcomes)):
        values, weights = _forecast(scenarios, part)
        to_outcome = (values - outcome[part].unsqueeze(1)).norm(dim=-1)
        scores[part] = (weights * to_outcome).sum(1) - _half_mean_distance(values, weights, block)
    return scores


def interval_coverage(scenarios: Scenarios, outcome: Any, level: float) -> torch.Tensor:
    """Share of the contexts whose outcome lay in the forecast's central interval.

    Prefer it for a first look: below `level` the forecast is too sure, above it too cautious.

        mean_i 1{ q_i((1 − level)/2) ≤ y_i ≤ q_i((1 + level)/2) },    q_i the weighted quantile

    The quantile is the smallest scenario whose cumulated weight reaches the level. M equally
    weighted draws of the true distribution cover about level · M / (M + 1).

    Parameters
    ----------
    scenarios : Scenarios
        Values (n_contexts, n_scenarios, n_outcomes), weights (n_contexts, n_scenarios).
    outcome : table (n_contexts, n_outcomes), or (n_contexts,) where there is one outcome
    level : float
        Nominal coverage, between 0 and 1.

    Returns
    -------
    tensor (n_outcomes,)
    """
    level = as_level("level", level)
    scenarios = as_scenarios("scenarios", scenarios)
    outcome = as_outcome(outcome, like=scenarios)
    ends = torch.tensor([(1 - level) / 2, (1 + level) / 2], dtype=torch.float64)
    inside = torch.zeros(scenarios.n_outcomes, dtype=torch.float64)
    for part in parts(scenarios.n_contexts, scenarios.n_scenarios * scenarios.n_outcomes):
        low, high = _quantiles(*_forecast(scenarios, part), ends).unbind(-1)
        inside += ((low <= outcome[part]) & (outcome[part] <= high)).sum(0)
    return inside / scenarios.n_contexts


def calibration_curve(
    scenarios: Scenarios, outcome: Any, levels: Any = _DEFAULT_LEVELS
) -> CalibrationCurve:
    """How often outcomes lay below the forecast's quantiles, level by level.

    Prefer it to `interval_coverage` to see on which side, and how far out, a forecast is off.

        observed(level) = mean_i 1{ y_i ≤ q_i(level) },    q_i the weighted quantile

    The quantile is the smallest scenario whose cumulated weight reaches the level; an outcome
    that equals it is counted, so that outcomes with ties are seen more often than `level`.

    Parameters
    ----------
    scenarios : Scenarios
        Values (n_contexts, n_scenarios, n_outcomes), weights (n_contexts, n_scenarios).
    outcome : table (n_contexts, n_outcomes), or (n_contexts,) where there is one outcome
    levels : float or array (n_levels,)
        Between 0 and 1, rising; 0.05, 0.10, ..., 0.95 by default.

    Returns
    -------
    CalibrationCurve
    """
    scenarios = as_scenarios("scenarios", scenarios)
    outcome = as_outcome(outcome, like=scenarios)
    wanted = as_vector("levels", levels).detach().cpu().contiguous()
    if len(wanted) == 0 or (wanted <= 0).any() or (wanted >= 1).any() or (wanted.diff() <= 0).any():
        raise InvalidInputError(
            "levels must rise and lie strictly between 0 and 1, at least one of them, but are "
            f"{wanted.tolist()}"
        )
    below = torch.zeros(len(wanted), scenarios.n_outcomes, dtype=torch.float64)
    for part in parts(scenarios.n_contexts, scenarios.n_scenarios * scenarios.n_outcomes):
        quantiles = _quantiles(*_forecast(scenarios, part), wanted)
        below += (outcome[part].unsqueeze(-1) <= quantiles).sum(0).mT
    return CalibrationCurve(wanted, below / scenarios.n_contexts)


def _forecast(scenarios: Scenarios, part: slice) -> tuple[torch.Tensor, torch.Tensor]:
    """Values ``(B, M, n)`` and weights ``(B, M)`` of some contexts, checked."""
    chosen = constant_scenarios(scenarios[part])
    values = possible_values(chosen)
    bad = ~values.isfinite().flatten(1).all(1)
    if bad.any():
        raise InvalidInputError(
            "scenarios must be finite, but context "
            f"{part.start + int(bad.nonzero()[0])} has a NaN or infinite value: leave it out"
        )
    return values, chosen.weights


def _half_mean_distance(values: torch.Tensor, weights: torch.Tensor, block: int) -> torch.Tensor:
    """½ Σ_j Σ_k w_j w_k ‖y_j − y_k‖, ``(B,)``, some rows of the distance matrix at a time."""
    total = torch.zeros_like(weights[:, 0])
    for start in range(0, values.shape[1], block):
        rows = slice(start, start + block)
        # Distances to later blocks stand for both halves of the matrix.
        partner = weights[:, start:].clone()
        partner[:, :block] /= 2
        # The product formula for distances is faster, and wrong where they are small.
        distance = torch.cdist(
            values[:, rows], values[:, start:], compute_mode="donot_use_mm_for_euclid_dist"
        )
        total += (weights[:, rows] * (distance @ partner.unsqueeze(-1)).squeeze(-1)).sum(1)
    return total


def _sorted(values: torch.Tensor, weights: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Sorted values and their cumulated weights, both ``(B, n, M)``."""
    ordered, order = values.mT.contiguous().sort(dim=-1)
    cumulated = weights.unsqueeze(1).expand_as(ordered).gather(-1, order).cumsum(-1)
    return ordered, cumulated / cumulated[..., -1:]


def _quantiles(values: torch.Tensor, weights: torch.Tensor, levels: torch.Tensor) -> torch.Tensor:
    """Weighted quantiles ``(B, n, n_levels)``."""
    ordered, cumulated = _sorted(values, weights)
    wanted = (levels - _ROUNDING).expand(*ordered.shape[:2], -1).contiguous()
    rank = torch.searchsorted(cumulated, wanted).clamp_max(ordered.shape[-1] - 1)
    return ordered.gather(-1, rank)
