"""Scores of scenarios as a forecast of the observed outcomes.

`crps` and `energy_score` are proper scores: no forecast has a lower expected score than the true
distribution. `interval_coverage` and `calibration_curve` show where a forecast is overconfident.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from forewise.evaluation.costs import as_level, as_outcome, as_scenarios, scenario_chunks
from forewise.exceptions import InvalidInputError
from forewise.scenarios import Scenarios
from forewise.validation.arguments import as_vector
from forewise.validation.censored import check_censored

# A quantile is the smallest value whose cumulated weight reaches the level, up to rounding.
_ROUNDING = 1e-12
# Scenarios whose distances to all others are in memory at once.
_BLOCK = 128
_DEFAULT_LEVELS = tuple(k / 20 for k in range(1, 20))


@dataclass(frozen=True, eq=False)
class CalibrationCurve:
    """How often outcomes lay below the forecast's quantiles; calibrated where both agree.

    Examples
    --------
    >>> import forewise as fw
    >>> forecast = fw.Scenarios([[[1.0], [2.0], [3.0], [4.0], [5.0]]] * 4)
    >>> curve = fw.metrics.calibration_curve(forecast, [0.0, 2.5, 2.5, 9.0], levels=(0.2, 0.8))
    >>> curve.levels, curve.observed.flatten()
    (tensor([0.2000, 0.8000], dtype=torch.float64), tensor([0.2500, 0.7500], dtype=torch.float64))
    """

    levels: torch.Tensor  # (n_levels,)
    observed: torch.Tensor  # share of outcomes at most the quantile (n_levels, n_outcomes)


def crps(scenarios: Scenarios, outcome: Any, censored: Any = None) -> torch.Tensor:
    """Continuous ranked probability score ``(n_contexts, n_outcomes)``; less is better.

        CRPS = ∫ (F(t) − 1{y ≤ t})² dt = Σ_j w_j |y_j − y| − ½ Σ_j Σ_k w_j w_k |y_j − y_k|

    F is the weighted empirical distribution of the scenarios, for which the score is exact: with
    few draws it is larger than that of the distribution they come from. It has the unit of the
    outcome, and is the absolute error for one scenario.

    Parameters
    ----------
    scenarios : Scenarios
        Values (n_contexts, n_scenarios, n_outcomes), weights (n_contexts, n_scenarios).
    outcome : table (n_contexts, n_outcomes), or (n_contexts,) for one outcome
    censored : truth values of the shape of outcome, optional
        True where the outcome was at least this: the integral then ends there, which makes the
        score a lower bound. To rank methods by it is only fair on the same rows.

    Examples
    --------
    The absolute error of a single scenario; a spread that knows its doubt has less:

    >>> import forewise as fw
    >>> fw.metrics.crps(fw.Scenarios([[[10.0]]]), [12.0])
    tensor([[2.]], dtype=torch.float64)
    >>> fw.metrics.crps(fw.Scenarios([[[8.0], [12.0]]]), [12.0])
    tensor([[1.]], dtype=torch.float64)
    """
    scenarios = as_scenarios("scenarios", scenarios)
    table = as_outcome(outcome, like=scenarios).numpy()
    flags = check_censored(censored, outcome, table, of="outcome")
    known = torch.from_numpy(np.ones(table.shape, bool) if flags is None else ~flags)
    scores = []
    for values, weights, seen in _forecast(scenarios, outcome):
        error, cumulated = _sorted(values - seen.unsqueeze(1), weights)
        # The integral, piece by piece between sorted scenarios and split at the outcome: a sum
        # of nonnegative terms, where the double sum would be a difference of large numbers.
        zero = torch.zeros_like(error[..., :1])
        below = torch.cat([error.clamp_max(0), zero], dim=-1).diff(dim=-1)
        above = torch.cat([zero, error.clamp_min(0)], dim=-1).diff(dim=-1)
        before = torch.cat([zero, cumulated[..., :-1]], dim=-1)
        own, known = known[: len(seen), :, None], known[len(seen) :]
        above = torch.where(own, above, 0.0)
        scores.append((cumulated.square() * below + (1 - before).square() * above).sum(-1))
    return torch.cat(scores)


def energy_score(scenarios: Scenarios, outcome: Any) -> torch.Tensor:
    """Energy score ``(n_contexts,)``, the CRPS of all outcomes together; less is better.

        ES = Σ_j w_j ‖y_j − y‖ − ½ Σ_j Σ_k w_j w_k ‖y_j − y_k‖

    Outcomes should have comparable units. Work grows with the square of the number of scenarios,
    memory does not. Parameters as for `crps`.

    *When to use*: the dependence between outcomes matters.

    Examples
    --------
    >>> import forewise as fw
    >>> fw.metrics.energy_score(fw.Scenarios([[[0.0, 0.0], [6.0, 8.0]]]), [[0.0, 0.0]])
    tensor([2.5000], dtype=torch.float64)
    """
    scenarios = as_scenarios("scenarios", scenarios)
    M = scenarios.n_scenarios
    block = min(M, _BLOCK)
    scores = []
    for values, weights, seen in _forecast(scenarios, outcome, M * (block + scenarios.n_outcomes)):
        to_outcome = (values - seen.unsqueeze(1)).norm(dim=-1)
        scores.append((weights * to_outcome).sum(1) - _half_mean_distance(values, weights, block))
    return torch.cat(scores)


def interval_coverage(scenarios: Scenarios, outcome: Any, level: float) -> torch.Tensor:
    """Share of the contexts whose outcome lay in the forecast's central interval, (n_outcomes,).

        mean_i 1{ q_i((1 − level)/2) ≤ y_i ≤ q_i((1 + level)/2) },    q_i the weighted quantile

    Below `level` the forecast is overconfident, above it too wide. M equally weighted draws of
    the true distribution cover about level · M / (M + 1).

    Examples
    --------
    >>> import numpy as np
    >>> import forewise as fw
    >>> random = np.random.default_rng(0)
    >>> forecast = fw.Scenarios(random.normal(size=(500, 200, 1)))
    >>> share = fw.metrics.interval_coverage(forecast, random.normal(size=(500, 1)), level=0.9)
    >>> share.round(decimals=1)
    tensor([0.9000], dtype=torch.float64)
    """
    level = as_level("level", level)
    scenarios = as_scenarios("scenarios", scenarios)
    ends = torch.tensor([(1 - level) / 2, (1 + level) / 2], dtype=torch.float64)
    inside = torch.zeros(scenarios.n_outcomes, dtype=torch.float64)
    for values, weights, seen in _forecast(scenarios, outcome):
        low, high = _quantiles(values, weights, ends).unbind(-1)
        inside += ((low <= seen) & (seen <= high)).sum(0)
    return inside / scenarios.n_contexts


def calibration_curve(
    scenarios: Scenarios, outcome: Any, levels: Any = _DEFAULT_LEVELS
) -> CalibrationCurve:
    """How often outcomes lay below the forecast's quantiles, level by level.

        observed(level) = mean_i 1{ y_i ≤ q_i(level) },    q_i the weighted quantile

    The quantile is the smallest scenario whose cumulated weight reaches the level. An outcome
    that equals it is counted, so that ties raise `observed` above `level`.

    Parameters
    ----------
    scenarios, outcome
        As for `crps`.
    levels : float or array (n_levels,)
        Increasing, between 0 and 1; 0.05, 0.10, ..., 0.95 by default.

    Examples
    --------
    A forecast that is always 1.28 too high has nine of ten outcomes below its median:

    >>> import numpy as np
    >>> import forewise as fw
    >>> random = np.random.default_rng(0)
    >>> y = random.normal(size=(500, 1))
    >>> forecast = fw.Scenarios(1.28 + random.normal(size=(500, 200, 1)))
    >>> curve = fw.metrics.calibration_curve(forecast, y, levels=(0.5,))
    >>> curve.observed.round(decimals=1)
    tensor([[0.9000]], dtype=torch.float64)
    """
    scenarios = as_scenarios("scenarios", scenarios)
    wanted = as_vector("levels", levels).detach().cpu().contiguous()
    if len(wanted) == 0 or (wanted <= 0).any() or (wanted >= 1).any() or (wanted.diff() <= 0).any():
        raise InvalidInputError(
            "levels must increase and lie strictly between 0 and 1, at least one of them, but are "
            f"{wanted.tolist()}"
        )
    below = torch.zeros(len(wanted), scenarios.n_outcomes, dtype=torch.float64)
    for values, weights, seen in _forecast(scenarios, outcome):
        below += (seen.unsqueeze(-1) <= _quantiles(values, weights, wanted)).sum(0).mT
    return CalibrationCurve(wanted, below / scenarios.n_contexts)


def _forecast(
    scenarios: Scenarios, outcome: Any, entries_per_context: int | None = None
) -> Iterator[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
    """Values ``(B, M, n)``, weights ``(B, M)`` and outcomes ``(B, n)`` of contexts, checked."""
    outcome = as_outcome(outcome, like=scenarios)
    for part, values, weights in scenario_chunks(scenarios, entries_per_context):
        bad = ~values.isfinite().flatten(1).all(1)
        if bad.any():
            raise InvalidInputError(
                "scenarios must be finite, but context "
                f"{part.start + int(bad.nonzero()[0])} has a NaN or infinite value: leave it out"
            )
        yield values, weights, outcome[part]


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
