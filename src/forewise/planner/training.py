"""What is learned from: contexts and outcomes in the order of time, and decisions out of fold."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.base import clone

from forewise.exceptions import InvalidInputError
from forewise.learners import Learner
from forewise.learners.out_of_fold import HeldOut, make_folds
from forewise.planner.certificate import Calibration, ScenarioCosts
from forewise.planner.contexts import Recipe, Rows
from forewise.policy import ScenarioPolicy
from forewise.policy.base import collapsed
from forewise.predictors import Predictor, RelativePredictor
from forewise.scenarios import Scenarios
from forewise.solvers.auto import solve
from forewise.validation.frames import take_rows

_JUDGED, _FOLDS = 2000, 3  # rows that a calibration is made of, and windows, at most


class TrainingData:
    """Contexts and outcomes of the rows that are learned from, in the order of time."""

    def __init__(
        self, recipe: Recipe, rows: Rows, contexts: pd.DataFrame, given: pd.DataFrame | None
    ) -> None:
        self.recipe, self.rows, self.contexts, self.given = recipe, rows, contexts, given
        self.outcome = pd.DataFrame(rows.outcome, columns=recipe.roles.outcome)
        self.censored = rows.censored if rows.censored.any() else None

    @property
    def shape(self) -> tuple[int, int, int]:
        """Numbers of rows, features and outcomes."""
        return (*self.contexts.shape, self.outcome.shape[1])

    def relative(self, predictor: Predictor) -> Predictor:
        """The predictor in units of the level, where outcomes are relative."""
        if not self.recipe.relative:
            return predictor
        return RelativePredictor(predictor, self.recipe.levels)

    def fit(self, learner: Learner, rows: Any = slice(None)) -> None:
        """Fit a learner to some of the rows."""
        more = {} if self.given is None else {"given": self.given.iloc[rows].reset_index(drop=True)}
        if self.censored is not None:
            more["censored"] = self.censored[rows]
        X, y = (take_rows(part, rows) for part in (self.contexts, self.outcome))
        with warnings.catch_warnings():
            # The planner notes it once, and there may be many fits.
            warnings.filterwarnings("ignore", "uncertainty cannot change")
            learner.fit(X.reset_index(drop=True), y.reset_index(drop=True), **more)

    def drawn(self, policy: Any, rows: np.ndarray, n_scenarios: int, seed: int) -> Scenarios:
        """Scenarios of some rows, by a policy that was not fitted to them."""
        contexts = policy.predictor.check_contexts(self.contexts.iloc[rows])
        return policy.predictor.sample_checked(contexts, n_scenarios, seed)

    def held_out(self, learner: Learner, n_scenarios: int, seed: int) -> HeldOut:
        """Scenarios of rows that a learner was not fitted to, window by window."""
        ordered = self.rows.days is not None
        held, drawn = [], []
        for fold in make_folds(len(self.rows), _FOLDS, ordered, seed, _JUDGED):
            copy = clone(learner)
            self.fit(copy, fold.train)
            held.append(fold.held)
            drawn.append(self.drawn(copy.policy_, fold.held, n_scenarios, seed))
        width = min(part.n_scenarios for part in drawn)
        return HeldOut(
            np.concatenate(held),
            Scenarios(
                torch.cat([part.values[:, :width].double() for part in drawn]),
                torch.cat([part.weights[:, :width] for part in drawn]),
            ),
        )

    def evaluated(
        self, policy: ScenarioPolicy, rows: np.ndarray, scenarios: Scenarios
    ) -> EvaluatedRows:
        """The decisions that scenarios of some rows lead to, and what they cost."""
        problem = policy.problem.bound_for(len(self.rows), self.given)
        own = problem.for_contexts(torch.from_numpy(rows))
        solution = solve(own, collapsed(own, scenarios), policy.solver, on_failure="return")
        decision = solution.decision.detach().double()
        outcome = torch.from_numpy(self.outcome.to_numpy()[rows])
        with torch.no_grad():
            realised = own.unchecked_cost(decision, outcome).numpy()
        costs = ScenarioCosts.of(own, decision, scenarios)
        return EvaluatedRows(
            decision.numpy(), realised, costs, self.rows.censored[rows].any(axis=1)
        )


@dataclass(frozen=True, eq=False)
class EvaluatedRows:
    """Decisions whose outcome is known; rows without a decision are NaN."""

    decision: np.ndarray  # (n_rows, n_decisions)
    realised: np.ndarray  # (n_rows,)
    costs: ScenarioCosts
    sold_out: np.ndarray  # the outcome is a lower bound (n_rows,)

    @property
    def scores(self) -> np.ndarray:
        """Scores of the intervals of those whose cost is known; see `Calibration`."""
        return Calibration.scores(self.realised, self.costs)[~self.sold_out]

    @property
    def nonnegative(self) -> bool:
        """Whether no cost is negative, in the outcomes and in the scenarios."""
        least = np.nanmin([*self.realised, *self.costs.values.min(axis=1)], initial=0.0)
        return bool(least >= 0)


def training_rows(recipe: Recipe, rows: Rows, notes: list[str]) -> tuple[Rows, pd.DataFrame]:
    """The rows that are learned from, in the order of time, and their contexts."""
    known = ~np.isnan(rows.outcome).any(axis=1)
    past = known & recipe.past_known(rows)
    chosen = past if past.sum() >= max(2, known.sum() / 2) else known
    if not chosen.any():
        raise InvalidInputError(
            f"table must have rows with an outcome, but {recipe.roles.outcome} is empty in all "
            f"{len(rows)} rows, or all days are closed"
        )
    n_series = len(set(rows.keys))
    span = "" if rows.days is None else f" from {rows.days.min()} to {rows.days.max()}"
    series = f" of {n_series} series" if recipe.roles.series else ""
    notes.insert(0, f"{len(rows)} rows{series}{span} were read, {int(chosen.sum())} learned from")
    left_out = {
        "closed": rows.closed,
        "without an outcome": ~known & ~rows.closed,
        "without a past": known & ~chosen,
    }
    notes += [f"{int(w.sum())} rows are {why}" for why, w in left_out.items() if w.any()]
    censored = int((rows.censored.any(axis=1) & chosen).sum())
    if censored:
        notes.append(f"{censored} rows are sold out: their outcome was at least what is written")
    places = np.flatnonzero(chosen)
    if rows.days is not None:
        places = places[np.lexsort([rows.keys[places].astype(str), rows.days[places]])]
    return rows.take(places), recipe.contexts(rows, places).reset_index(drop=True)
