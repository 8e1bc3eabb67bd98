"""The best policy by the cost of its decisions, chosen among several predictors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from forewise.exceptions import InvalidInputError
from forewise.learners.base import Learner, TrainingProblems
from forewise.learners.out_of_fold import (
    Evaluator,
    Fold,
    HeldOut,
    Resamples,
    make_folds,
    spread_rows,
    united,
)
from forewise.learners.race import Choice, Race
from forewise.parallel import Map, Processes
from forewise.policy.base import ScenarioPolicy
from forewise.predictors import (
    BayesianPredictor,
    BoostingPredictor,
    EmpiricalPredictor,
    ForestPredictor,
    GaussianProcessPredictor,
    NeighborPredictor,
    Predictor,
    QuantileBoostingPredictor,
    ResidualPredictor,
    StackedPredictor,
    Training,
)
from forewise.predictors.trees import Completer
from forewise.problems.base import Problem
from forewise.solvers.auto import AutoSolver
from forewise.solvers.base import Solver
from forewise.validation.parameters import (
    as_random_state,
    require_count,
    require_instance,
    require_positive,
)
from forewise.validation.tables import check_training_data, check_validation_data

_EVALUATED = 1200  # rows: the error of more would hardly be smaller
_QUANTILE_OUTCOMES = 3  # of which each quantile is boosted by itself: ten times the models
_PROCESS_ROWS = 2000  # up to which a Gaussian process of one outcome uses all of them
_TREATMENT = (
    "each is judged at one draw from beyond its bound, the same for all candidates, by a forest"
)


class AutoLearner(Learner):
    """Model selection by the out-of-fold cost of decisions, among several predictors.

    Each candidate is cross-validated: fitted without a fold and evaluated by the cost of its
    decisions for that fold. The policy has the candidate of lowest cost, or a weighted union of
    several candidates' scenarios (`StackedPredictor`) where that costs less, refitted to all rows.

    When to use: first. It needs no settings; `leaderboard_` has the cost of each method, and
    `verdict_` says when a simple one is as good. It takes as long as up to six fits
    of each candidate.

    Parameters
    ----------
    problem : Problem
    candidates : dict or sequence of Predictor, optional
        Predictors by name, simple ones first. By default those that suit the number of rows and
        columns: see `default_candidates`.
    solver : Solver, optional
        `AutoSolver()` by default.
    time_limit : float, optional
        Seconds. Candidates that cannot be fitted in time are left out, and fewer folds are used; a
        fit is never interrupted. The result then depends on the machine's speed.
    ordered : bool
        Rows are in order of time: the folds are windows of the later half, each predicted from the
        rows before it, rather than rows at random.
    n_folds : int
        Folds or windows. Of large tables fewer are used: evaluation stops at 1,200 rows.
    n_scenarios : int
        Scenarios per decision in evaluation, about as many as `decide` will draw.
    n_jobs : int, optional
        Processes, as in joblib: -1 for one per core. The result does not depend on it.
    map : Map, optional
        Where candidates and folds are computed, in place of `n_jobs`: ``RayMap()``, a cluster.
    random_state : int, RandomState or None
        Assigns rows to folds, and seeds the default candidates.
    progress : bool
        Show a progress bar, where there is a terminal.

    Attributes
    ----------
    leaderboard_ : DataFrame
        A row per method, cheapest first: `method`, `cost` of its decisions on rows it was not
        fitted to, `lower` and `upper` end of a 95 % interval, `difference` to the best candidate
        with its standard `error`, `seconds` of a fit, `weight` in the policy, and a `note`. The
        row "union" is the weighted union; its cost is in-sample in the weights.
    verdict_ : str
        The choice and its margin, in a sentence or two.
    held_out_ : HeldOut
        Out-of-fold scenarios of the chosen methods for the evaluated rows.

    Examples
    --------
    Two candidates, to be quick; by default it takes those that suit the table.

    >>> import numpy as np
    >>> import forewise as fw
    >>> X = np.arange(120.0)[:, None] % 7  # weekday
    >>> y = 10.0 + 5.0 * (X[:, 0] >= 5) + np.random.default_rng(0).normal(size=120)
    >>> candidates = {"all days": fw.EmpiricalPredictor(), "weekday": fw.GroupedPredictor(by=0)}
    >>> learner = fw.AutoLearner(fw.Newsvendor(3, 1), candidates, ordered=True, random_state=0)
    >>> board = learner.fit(X, y).leaderboard_
    >>> bool(learner.decide([[6.0]])[0, 0] > learner.decide([[1.0]])[0, 0])
    True
    """

    censored_unsupported_reason = None

    def __init__(
        self,
        problem: Problem,
        candidates: Mapping[str, Predictor] | Sequence[Predictor] | None = None,
        solver: Solver | None = None,
        *,
        time_limit: float | None = None,
        ordered: bool = False,
        n_folds: int = 5,
        n_scenarios: int = 64,
        n_jobs: int | None = None,
        random_state: Any = None,
        progress: bool = False,
        map: Map | None = None,
    ) -> None:
        self.problem = problem
        self.candidates = candidates
        self.solver = solver
        self.time_limit = time_limit
        self.ordered = ordered
        self.n_folds = n_folds
        self.n_scenarios = n_scenarios
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.progress = progress
        self.map = map

    @property
    def validates(self) -> bool:
        """False: it makes folds of its own, so that no rows need to be set aside."""
        return False

    def _fit(
        self, X: Any, y: Any, X_val: Any, y_val: Any, problems: TrainingProblems
    ) -> ScenarioPolicy:
        n_folds = require_count("n_folds", self.n_folds, at_least=2)
        n_scenarios = require_count("n_scenarios", self.n_scenarios)
        require_instance("map", self.map, Map, "forewise.parallel.RayMap()", optional=True)
        where = self.map or Processes(self.n_jobs)
        limit = math.inf
        if self.time_limit is not None:
            limit = require_positive("time_limit", self.time_limit)
        contexts, outcome = check_training_data(self, X, y)
        seed = int(as_random_state(self.random_state).randint(2**31))
        table = (len(contexts), contexts.shape[1], outcome.shape[1])
        candidates = self._candidates(*table, seed)
        solver = self.solver or AutoSolver()
        completer = Completer.make(contexts, outcome, problems.censored)
        evaluator = Evaluator(
            X, y, X, torch.from_numpy(completer.outcomes(contexts, outcome, problems.censored)),
            problems.problem, solver, n_scenarios, seed, problems.censored,
        )  # fmt: skip
        all_rows = np.arange(len(outcome))
        at_most = max(1, min(_EVALUATED, 2**22 // (n_scenarios * outcome.shape[1])))
        folds = make_folds(len(outcome), n_folds, self.ordered, seed, at_most)
        judged = problems.censored
        validation = check_validation_data(self, X_val, y_val)
        if validation is not None:
            judged = problems.censored_val
            evaluator = replace(
                evaluator,
                contexts=X_val,
                outcome=torch.from_numpy(completer.outcomes(*validation, judged)),
                problem=problems.validation or problems.problem,
            )
            folds = [Fold(all_rows, spread_rows(len(validation[0]), at_most))]
        race = Race(evaluator, candidates, folds, limit, where, bool(self.progress))
        race.run(Resamples.draw(len(folds[0].held), self.ordered, seed))
        choice = Choice.make(race, Resamples.draw(len(race.evaluated_rows), self.ordered, seed))
        parts = race.refitted(choice.weights, all_rows)
        weights = {name: choice.weights[name] for name in parts}
        self.leaderboard_ = choice.leaderboard(race, weights)
        self.verdict_ = choice.verdict(race)
        self.held_out_ = HeldOut(race.evaluated_rows, united(race.records, weights, n_scenarios))
        if judged is not None:
            bounds = judged[race.evaluated_rows].any(axis=1)
            said = f"{int(bounds.sum())} of {len(bounds)} judged rows are censored: {_TREATMENT}"
            self.leaderboard_.attrs["censored"] = said
            self.verdict_ += f" {said}."
        if len(parts) == 1:
            (predictor,) = parts.values()
        else:
            predictor = StackedPredictor.from_fitted(list(parts.values()), list(weights.values()))
        self._remember(predictor)
        return ScenarioPolicy(self.problem, predictor, solver)

    def _candidates(
        self, n_rows: int, n_features: int, n_outcomes: int, seed: int
    ) -> dict[str, Predictor]:
        """The predictors by name, simple ones first."""
        given = self.candidates
        if given is None:
            return default_candidates(n_rows, n_features, n_outcomes, self.ordered, seed)
        if isinstance(given, Mapping):
            named = {str(name): predictor for name, predictor in given.items()}
        elif isinstance(given, Sequence) and not isinstance(given, str):
            named = _named(given)
        else:
            named = {}
        if not named:
            raise InvalidInputError(
                "candidates must be predictors by name, such as {'forest': ForestPredictor()}, or "
                f"a list of them, but is {given!r}"
            )
        for name, predictor in named.items():
            require_instance(f"candidate {name!r}", predictor, Predictor, "ForestPredictor()")
            if _has_checkpoint(predictor):
                raise InvalidInputError(
                    f"candidate {name!r} must have no checkpoint folder, because it is fitted to "
                    "several folds, and one fit's checkpoint is refused by the others: leave "
                    "Training(checkpoint=) out"
                )
        return named


def default_candidates(
    n_rows: int, n_features: int, n_outcomes: int, ordered: bool = False, seed: int = 0
) -> dict[str, Predictor]:
    """The predictors that `AutoLearner` tries on a table of this size, simple ones first.

    Examples
    --------
    >>> import forewise as fw
    >>> candidates = fw.learners.default_candidates(n_rows=500, n_features=8, n_outcomes=1)
    >>> "empirical" in candidates
    True
    """
    found: dict[str, Predictor] = {"empirical": EmpiricalPredictor()}
    if n_rows > 2 * n_features:
        found["linear residuals"] = ResidualPredictor(shuffle=not ordered, random_state=seed)
    found["neighbours"] = NeighborPredictor()
    found["forest"] = ForestPredictor(random_state=seed)
    if n_outcomes <= _QUANTILE_OUTCOMES:
        found["boosted quantiles"] = QuantileBoostingPredictor(random_state=seed)
    if n_outcomes > 1:  # whose scenarios have all outcomes at one level
        boosting = BoostingPredictor(random_state=seed)
        found["boosted residuals"] = ResidualPredictor(
            boosting, shuffle=not ordered, random_state=seed
        )
    if n_rows <= _PROCESS_ROWS / n_outcomes ** (1 / 3):  # each outcome has a search of its own
        found["Gaussian process"] = GaussianProcessPredictor(random_state=seed)
    found["Bayesian network"] = BayesianPredictor(random_state=seed)
    return found


def _named(predictors: Sequence[Predictor]) -> dict[str, Predictor]:
    """Predictors by the name of their class, numbered where there are several."""
    named: dict[str, Predictor] = {}
    for predictor in predictors:
        name = type(predictor).__name__
        more = sum(type(other) is type(predictor) for other in named.values())
        named[f"{name} {more + 1}" if more else name] = predictor
    return named


def _has_checkpoint(setting: Any) -> bool:
    """Whether a predictor, or any part of it, keeps checkpoints of its training."""
    if isinstance(setting, list | tuple):
        return any(map(_has_checkpoint, setting))
    if isinstance(setting, Predictor):
        return any(map(_has_checkpoint, setting.get_params(deep=False).values()))
    return isinstance(setting, Training) and setting.checkpoint is not None
