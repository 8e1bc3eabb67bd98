"""Certificates of decisions: expected cost, its calibrated interval, and lower bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import torch

from forewise.policy.base import collapsed
from forewise.problems.base import Problem
from forewise.scenarios import Scenarios
from forewise.solvers.auto import solve
from forewise.solvers.base import Solver
from forewise.solvers.solution import Solution

LEVEL = 0.9  # of the intervals of realised costs
_INFORMED = 16  # scenarios of which it is asked what knowing them would save
_BATCHES = 8  # of a decision's scenarios, for its Monte-Carlo error


@dataclass(frozen=True)
class Calibration:
    """The interval of a realised cost, calibrated on decisions out of fold (split conformal).

        score_i = max(lower_i − cost_i, cost_i − upper_i) / spread_i
        interval = [lower − score · spread, upper + score · spread]

    `lower` and `upper` are quantiles of the decision's cost over its scenarios, the spread is its
    standard deviation there, and `score` is the quantile of past scores at the wanted level. Past
    decisions are those of rows that the predictor was not fitted to.

    Parameters
    ----------
    score : float
        Infinite where there are too few past decisions for the level.
    n_rows : int
        Past decisions.
    nonnegative : bool
        No past decision had a negative cost, nor had one in any scenario.
    level : float
    """

    score: float
    n_rows: int
    nonnegative: bool
    level: float = LEVEL

    @classmethod
    def from_scores(cls, scores: np.ndarray, nonnegative: bool, level: float = LEVEL) -> Self:
        """From the scores of past decisions (n_rows,); those that are NaN do not count."""
        ranked = np.sort(scores[np.isfinite(scores)])
        place = int(np.ceil((len(ranked) + 1) * level))
        score = float(ranked[place - 1]) if 0 < place <= len(ranked) else np.inf
        return cls(score, len(ranked), nonnegative, level)

    @staticmethod
    def scores(realised: np.ndarray, costs: ScenarioCosts, level: float = LEVEL) -> np.ndarray:
        """How far each realised cost lies outside of its interval, in spreads (n_rows,)."""
        lower, upper = costs.quantiles(level)
        return np.maximum(lower - realised, realised - upper) / costs.spread

    def interval(self, costs: ScenarioCosts) -> tuple[np.ndarray, np.ndarray]:
        """Both ends (n_contexts,); NaN where nothing is known of past decisions."""
        lower, upper = costs.quantiles(self.level)
        margin = (self.score if np.isfinite(self.score) else np.nan) * costs.spread
        lower, upper = lower - margin, upper + margin
        # Negative scores narrow the interval; its ends must not cross.
        middle = (lower + upper) / 2
        lower, upper = np.minimum(lower, middle), np.maximum(upper, middle)
        return (
            (np.maximum(lower, 0.0), np.maximum(upper, 0.0)) if self.nonnegative else (lower, upper)
        )


@dataclass(frozen=True, eq=False)
class ScenarioCosts:
    """Costs of each decision under its scenarios (n_contexts, n_scenarios), and their weights."""

    values: np.ndarray
    weights: np.ndarray

    @classmethod
    def of(cls, problem: Problem, decision: torch.Tensor, scenarios: Scenarios) -> Self:
        """Costs of decisions (n_contexts, n_decisions)."""
        rows = torch.arange(len(decision)).repeat_interleave(scenarios.n_scenarios)
        outcome = scenarios.values.detach().double().flatten(0, 1)
        with torch.no_grad():
            costs = problem.for_contexts(rows).unchecked_cost(decision.double()[rows], outcome)
        values = costs.reshape(len(decision), -1).numpy()
        return cls(values, scenarios.weights.expand(values.shape).numpy())

    @property
    def mean(self) -> np.ndarray:
        """Expected cost (n_contexts,)."""
        return (self.weights * self.values).sum(1)

    @property
    def spread(self) -> np.ndarray:
        """Standard deviation (n_contexts,); a little of the cost's size keeps it above 0."""
        mean = self.mean[:, None]
        std = np.sqrt((self.weights * (self.values - mean) ** 2).sum(1))
        return std + 1e-6 * np.abs(mean[:, 0]) + 1e-300

    def quantiles(self, level: float) -> tuple[np.ndarray, np.ndarray]:
        """The quantiles that leave out half of 1 − level on each side (n_contexts,)."""
        ends = self.ranks(np.array([(1 - level) / 2, (1 + level) / 2]))
        lower, upper = np.take_along_axis(self.values, ends, axis=1).T
        return lower, upper

    def ranks(self, shares: np.ndarray) -> np.ndarray:
        """Numbers of the scenarios at some levels of the cost (n_contexts, n_shares)."""
        order = np.argsort(self.values, axis=1, kind="stable")
        reached = np.cumsum(np.take_along_axis(self.weights, order, axis=1), axis=1)
        last = self.values.shape[1] - 1
        places = [np.minimum((reached < share - 1e-9).sum(1), last) for share in shares]
        return np.take_along_axis(order, np.stack(places, axis=1), axis=1)


@dataclass(frozen=True, eq=False)
class Certificate:
    """Of a batch of decisions, all (n_contexts,) but the last; NaN where there is no decision."""

    expected_cost: np.ndarray
    cost_lower: np.ndarray  # the calibrated interval of the realised cost
    cost_upper: np.ndarray
    perfect_information: np.ndarray  # what knowing the outcome before would save
    mean_based: np.ndarray  # cost of deciding for the mean outcome
    monte_carlo_error: np.ndarray  # standard error of the decision (n_contexts, n_decisions)

    @classmethod
    def make(
        cls,
        problem: Problem,
        solution: Solution,
        scenarios: Scenarios,
        solver: Solver,
        calibration: Calibration,
    ) -> Self:
        """The certificate of decisions that were made for these scenarios.

        The Monte-Carlo error is the standard error of the mean decision of batches of the
        scenarios. Where draws are stratified it is an upper estimate: other draws move the decision
        less than that.
        """
        decision = solution.decision.detach().double()
        costs = ScenarioCosts.of(problem, decision, scenarios)
        expected = costs.mean
        lower, upper = calibration.interval(costs)
        middle = (scenarios.weights[..., None] * scenarios.values.double()).sum(1, keepdim=True)
        for_mean = solve(problem, Scenarios(middle), solver, on_failure="return").decision
        informed = _informed_costs(problem, scenarios, costs, solver)
        return cls(
            expected,
            lower,
            upper,
            np.maximum(expected - informed, 0.0),
            ScenarioCosts.of(problem, for_mean.detach(), scenarios).mean,
            _monte_carlo_error(problem, scenarios, solver, decision.shape[1]),
        )


def _informed_costs(
    problem: Problem, scenarios: Scenarios, costs: ScenarioCosts, solver: Solver
) -> np.ndarray:
    """Mean cost of the decisions that know the scenario (n_contexts,).

    Of many scenarios some are enough: those that are evenly spread in what the decision costs.
    """
    count = scenarios.n_scenarios
    weights = torch.from_numpy(costs.weights)
    values = scenarios.values.detach().double()
    if count > _INFORMED:
        shares = (np.arange(_INFORMED) + 0.5) / _INFORMED
        picks = torch.from_numpy(costs.ranks(shares))
        values = values.gather(1, picks[..., None].expand(-1, -1, values.shape[2]))
        weights, count = torch.full(picks.shape, 1 / _INFORMED, dtype=torch.float64), _INFORMED
    outcome = values.flatten(0, 1)
    own = problem.for_contexts(torch.arange(scenarios.n_contexts).repeat_interleave(count))
    with torch.no_grad():
        decision = solve(own, Scenarios(outcome[:, None]), solver, on_failure="return").decision
        informed = own.unchecked_cost(decision.double(), outcome)
    return (weights * informed.reshape(-1, count)).sum(1).numpy()


def _monte_carlo_error(
    problem: Problem, scenarios: Scenarios, solver: Solver, n_decisions: int
) -> np.ndarray:
    """Standard error of the decision, from batches of scenarios (n_contexts, n_decisions)."""
    n_batches = min(_BATCHES, scenarios.n_scenarios // 2)
    if n_batches < 2:
        return np.full((scenarios.n_contexts, n_decisions), np.nan)
    order = torch.from_numpy(np.random.default_rng(0).permutation(scenarios.n_scenarios))
    decided = []
    for k in range(n_batches):
        part = order[k::n_batches]
        weights = scenarios.weights[:, part]
        # Batches without weight are left out: a stacked predictor may pad with such scenarios.
        weights = torch.where(weights.sum(1, keepdim=True) > 0, weights, 1.0)
        batch = Scenarios(
            scenarios.values[:, part].double(), None if scenarios.equally_weighted else weights
        )
        what = collapsed(problem, batch)
        decided.append(solve(problem, what, solver, on_failure="return").decision.detach())
    return (torch.stack(decided).double().std(0) / n_batches**0.5).numpy()
