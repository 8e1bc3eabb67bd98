"""Out-of-fold costs of decisions, of each predictor and of unions of their scenarios.

`AutoLearner` composes them. A `Trial` is one predictor fitted on some rows and evaluated on others;
a `Record` is the trials of all folds; `best_union` searches for a weighted union of several
predictors that costs less than the best of them alone.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from forewise.policy.base import collapsed
from forewise.predictors import Predictor
from forewise.predictors.sampling import systematic_picks
from forewise.predictors.stacked import scenario_shares
from forewise.problems.base import Problem
from forewise.scenarios import Scenarios
from forewise.solvers.auto import solve
from forewise.solvers.base import Solver
from forewise.validation.frames import take_rows

_PIECE = 2**20  # numbers in the scenarios that are solved at once
_RESAMPLES = 200
_PARTS, _STEPS = 5, 8  # candidates that a union may have, and greedy steps
_WITHIN = 2.0  # standard errors that a part of a union may be worse than the best alone
_UNION_ENTRIES = 2**19  # numbers in the scenarios of all rows that unions are evaluated on
_UNION_ROWS = 200  # at least, however many numbers these have


@dataclass(frozen=True)
class Fold:
    """Rows to fit on, and rows held out to evaluate on."""

    train: np.ndarray
    held: np.ndarray


def make_folds(n_rows: int, n_folds: int, ordered: bool, seed: int, at_most: int) -> list[Fold]:
    """Folds with at most `at_most` held-out rows in all.

    For rows in order of time the folds are windows of the later half, each with all rows before it
    to fit on, the latest window first. Other rows are assigned to folds at random.
    """
    rows = np.arange(n_rows)
    if n_rows < 4:
        return [Fold(rows, rows)]
    if ordered:
        size = max(1, n_rows // (2 * n_folds))
        ends = [n_rows - k * size for k in range(min(n_folds, n_rows // 2))]
        found = [Fold(rows[: end - size], rows[end - size : end]) for end in ends]
    else:
        shuffled = np.random.default_rng(seed).permutation(n_rows)
        parts = [np.sort(part) for part in np.array_split(shuffled, min(n_folds, n_rows))]
        found = [Fold(np.setdiff1d(rows, part), part) for part in parts]
    folds: list[Fold] = []
    for fold in found:
        # The last rows that may be evaluated are not worth a fit where they are few.
        if at_most > len(fold.held) / 2 or not folds:
            held = fold.held[spread_rows(len(fold.held), at_most)]
            folds.append(Fold(fold.train, held))
            at_most -= len(held)
    return folds


def spread_rows(n_rows: int, at_most: int) -> np.ndarray:
    """Some of the rows, evenly spread."""
    return np.linspace(0, n_rows - 1, min(n_rows, at_most)).astype(int)


@dataclass(frozen=True)
class Trial:
    """A predictor fitted on some rows and evaluated on others, or why it could not be."""

    seconds: float
    costs: np.ndarray | None = None  # (n_held,); NaN where there was no decision
    scenarios: Scenarios | None = None  # of the held rows
    fitted: Predictor | None = None  # where it was fitted to be kept
    error: str = ""
    warning: str = ""


@dataclass(frozen=True)
class Evaluator:
    """The data and settings that all trials share; sent to every process."""

    X: Any  # contexts to fit on, with y
    y: Any
    contexts: Any  # contexts to evaluate on, with the outcome; the same rows, or others
    outcome: torch.Tensor  # (n_contexts, n_outcomes)
    problem: Problem  # of these contexts
    solver: Solver
    n_scenarios: int
    seed: int
    censored: np.ndarray | None = None  # of y

    def _fitted(self, predictor: Predictor, rows: np.ndarray) -> Predictor:
        bound = {} if self.censored is None else {"censored": self.censored[rows]}
        fitted: Predictor = predictor.fit(take_rows(self.X, rows), take_rows(self.y, rows), **bound)
        return fitted

    def fit(self, predictor: Predictor, rows: np.ndarray) -> Trial:
        """The predictor, fitted to some rows to be kept."""
        with _guarded() as fields:
            fields["fitted"] = self._fitted(predictor, rows)
        return Trial(**fields)

    def trial(self, predictor: Predictor, fold: Fold, deadline: float) -> Trial:
        """Fit on a fold's rows and decide for those it holds out; not begun after the deadline."""
        if time.time() > deadline:
            return Trial(0.0, error="not tried: the time was up")
        with _guarded() as fields:
            self._fitted(predictor, fold.train)
            contexts = predictor.check_contexts(take_rows(self.contexts, fold.held))
            drawn = predictor.sample_checked(contexts, self.n_scenarios, self.seed)
            fields["costs"] = self.costs(drawn, fold.held)
            fields["scenarios"] = drawn
        return Trial(**fields)

    def costs(self, scenarios: Scenarios, rows: np.ndarray) -> np.ndarray:
        """Costs (n_rows,) of the decisions that scenarios lead to; NaN where there are none."""
        places = torch.from_numpy(rows)
        size = max(1, _PIECE // max(1, scenarios.n_scenarios * max(4, scenarios.n_outcomes)))
        pieces = []
        with torch.no_grad():
            for start in range(0, len(rows), size):
                piece = slice(start, start + size)
                problem = self.problem.for_contexts(places[piece])
                what = collapsed(problem, scenarios[piece])
                solution = solve(problem, what, self.solver, on_failure="return")
                outcome = self.outcome[places[piece]]
                cost = problem.unchecked_cost(solution.decision, outcome)
                pieces.append(torch.where(solution.optimal, cost, torch.nan))
        return torch.cat(pieces).numpy()


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread for torch and linear algebra: the last digits depend on their number."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        torch.set_num_threads(threads)


@contextmanager
def _guarded() -> Iterator[dict[str, Any]]:
    """Fields of a trial: its time, and its error, which is recorded instead of raised.

    It has one thread, because processes share the cores.
    """
    fields: dict[str, Any] = {}
    start = time.perf_counter()
    try:
        with one_thread(), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield fields
        fields["warning"] = _first_line(caught[0].message) if caught else ""
    except Exception as error:  # whatever a user's own predictor raises
        fields.clear()
        fields["error"] = f"{type(error).__name__}: {_first_line(error)}"
    fields["seconds"] = time.perf_counter() - start


def _first_line(message: Any) -> str:
    lines = str(message).strip().splitlines()
    return lines[0] if lines else ""


@dataclass(frozen=True)
class Record:
    """Costs of one method's decisions, on rows that it was not fitted to."""

    costs: np.ndarray  # (n_evaluated,); not finite where there was no decision, or no recourse
    scenarios: Scenarios | None = None  # of the same rows

    @classmethod
    def of(cls, trials: list[Trial]) -> Record:
        """The trials of all folds, concatenated."""
        drawn = [trial.scenarios for trial in trials if trial.scenarios is not None]
        width = max(part.n_scenarios for part in drawn)
        return cls(
            np.concatenate([trial.costs for trial in trials if trial.costs is not None]),
            Scenarios(
                torch.cat([_padded(part.values.double(), width) for part in drawn]),
                torch.cat([_padded(part.weights, width, 0.0) for part in drawn]),
            ),
        )

    @property
    def failures(self) -> int:
        """Rows without a decision, or without recourse for it."""
        return int((~np.isfinite(self.costs)).sum())

    def rank(self, problem: Problem) -> tuple[int, float]:
        """The sort key of methods: failures first, then the cost of the other rows."""
        return self.failures, cost_of(problem, self.costs)


def _padded(values: torch.Tensor, width: int, filled: float | None = None) -> torch.Tensor:
    """Padded to `width` scenarios, with the last one or a value, since folds may have fewer."""
    missing = width - values.shape[1]
    if not missing:
        return values
    more = values[:, -1:].expand(-1, missing, *values.shape[2:])
    return torch.cat([values, more if filled is None else torch.full_like(more, filled)], dim=1)


def cost_of(problem: Problem, costs: np.ndarray) -> float:
    """The problem's risk of the finite ones of some costs."""
    finite = costs[np.isfinite(costs)]
    return float(problem.summary(torch.from_numpy(finite))) if len(finite) else np.inf


@dataclass(frozen=True, eq=False)
class HeldOut:
    """What a chosen method drew for rows that it was not fitted to."""

    rows: np.ndarray  # numbers of the rows (n_judged,)
    scenarios: Scenarios  # (n_judged, n_scenarios, n_outcomes)


@dataclass(frozen=True)
class Resamples:
    """Bootstrap samples of the evaluated rows, the same for all methods: (n_resamples, n_rows)."""

    rows: np.ndarray

    @classmethod
    def draw(cls, n_rows: int, ordered: bool, seed: int) -> Resamples:
        """Rows in order of time are drawn in blocks, because neighbours are correlated."""
        length = max(1, round(n_rows ** (1 / 3))) if ordered else 1
        n_runs = -(-n_rows // length)
        starts = np.random.default_rng([seed, 2]).integers(n_rows, size=(_RESAMPLES, n_runs, 1))
        runs = (starts + np.arange(length)) % n_rows
        return cls(runs.reshape(_RESAMPLES, -1)[:, :n_rows])

    def interval(self, problem: Problem, costs: np.ndarray) -> tuple[float, float]:
        """The ends of a 95 % interval of the cost."""
        drawn = [cost_of(problem, costs[rows]) for rows in self.rows]
        low, high = np.quantile(drawn, (0.025, 0.975))
        return float(low), float(high)

    def standard_error(self, problem: Problem, costs: np.ndarray, other: np.ndarray) -> float:
        """Of the difference between two methods' costs, row by row."""
        both = np.isfinite(costs) & np.isfinite(other)
        costs, other = np.where(both, costs, np.nan), np.where(both, other, np.nan)
        differences = [
            cost_of(problem, costs[rows]) - cost_of(problem, other[rows])
            for rows in self.rows
            if both[rows].any()
        ]
        return float(np.std(differences)) if differences else np.inf


def best_union(
    evaluator: Evaluator,
    records: Mapping[str, Record],
    rows: np.ndarray,
    errors: Mapping[str, float],
) -> tuple[dict[str, float], Record]:
    """Weights of the candidates whose union costs least, found greedily (Caruana et al., 2004).

    It starts from the best candidate and adds, with replacement, the one that lowers the cost most,
    until none does. Candidates that alone are worse than the best by two standard `errors` are left
    out: where a union with them seems to cost less, it is mostly by chance. The cost of a union is
    not a mean of costs, so decisions are solved anew, for a subset of the rows that bounds the
    time.
    """
    problem = evaluator.problem
    ranked = sorted(records, key=lambda name: records[name].rank(problem))[:_PARTS]
    failures, least = records[ranked[0]].rank(problem)
    ranked = [
        name
        for name in ranked
        if records[name].failures <= failures
        and cost_of(problem, records[name].costs) <= least + _WITHIN * errors[name]
    ]
    drawn = {name: records[name].scenarios for name in ranked}
    thinned = evaluator.n_scenarios * evaluator.outcome.shape[1] * len(ranked)
    some = spread_rows(len(rows), max(_UNION_ROWS, _UNION_ENTRIES // thinned))
    sorted_parts = {
        name: _in_order(scenarios[torch.from_numpy(some)])
        for name, scenarios in drawn.items()
        if scenarios is not None
    }

    def evaluated(counts: dict[str, int]) -> Record:
        union = _union(sorted_parts, counts, evaluator.n_scenarios)
        return Record(evaluator.costs(union, rows[some]))

    counts = {ranked[0]: 1}
    record = Record(records[ranked[0]].costs[some])
    for _ in range(_STEPS if len(ranked) > 1 else 0):
        trials = [counts | {name: counts.get(name, 0) + 1} for name in ranked]
        tried = [(evaluated(trial), trial) for trial in trials if len(trial) > 1]
        best, trial = min(tried, key=lambda pair: pair[0].rank(evaluator.problem))
        if best.rank(evaluator.problem) >= record.rank(evaluator.problem):
            break
        record, counts = best, trial
    total = sum(counts.values())
    return {name: count / total for name, count in counts.items()}, record


def united(
    records: Mapping[str, Record], weights: Mapping[str, float], n_scenarios: int
) -> Scenarios:
    """Scenarios of the evaluated rows (n_evaluated, ..), from several candidates by weight."""
    drawn = {name: records[name].scenarios for name in weights}
    parts = {name: part for name, part in drawn.items() if part is not None}
    if len(parts) == 1:
        return next(iter(parts.values()))
    ordered = {name: _in_order(part) for name, part in parts.items()}
    return _union(ordered, {name: weights[name] for name in parts}, n_scenarios)


def _in_order(scenarios: Scenarios) -> Scenarios:
    """Each context's scenarios sorted by the sum of its standardised outcomes."""
    values = scenarios.values
    scale = values.std(dim=(0, 1)).clamp_min(1e-300) if values[..., 0].numel() > 1 else 1.0
    order = (values / scale).sum(2).argsort(dim=1, stable=True)
    return Scenarios(
        values.gather(1, order[..., None].expand_as(values)), scenarios.weights.gather(1, order)
    )


def _union(
    parts: Mapping[str, Scenarios], counts: Mapping[str, float], n_scenarios: int
) -> Scenarios:
    """As many scenarios as a policy would draw of the union, evenly picked from those in order."""
    weights = np.array(list(counts.values()), dtype=float)
    weights /= weights.sum()
    values, shares = [], []
    for name, weight, share in zip(
        counts, weights, scenario_shares(weights, n_scenarios), strict=True
    ):
        part = parts[name]
        if part.n_scenarios > share:
            picks = torch.from_numpy(systematic_picks(part.weights.numpy(), int(share), 0.5))
            chosen = part.values.gather(1, picks[..., None].expand(-1, -1, part.n_outcomes))
            part = Scenarios(chosen)
        values.append(part.values)
        shares.append(weight * part.weights)
    return Scenarios(torch.cat(values, dim=1), torch.cat(shares, dim=1))
