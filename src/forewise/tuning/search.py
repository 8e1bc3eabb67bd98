"""The search: Optuna proposes, decisions out of fold cost, folds are the rungs of pruning.

Trials are proposed a few at a time, evaluated wherever the map says, and told in their order: what
is found does not depend on the map. A proposal's draws follow from the seed and its number, and
everything that is known of a trial is in the storage, so that a killed search goes on as if it had
not been killed.
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.base import clone

from forewise.exceptions import ForewiseError, MissingDependencyError, StorageError
from forewise.learners.base import Learner, TrainingProblems, cloned_predictor
from forewise.learners.decoupled import DecoupledLearner
from forewise.learners.out_of_fold import Evaluator, Fold, HeldOut, Record, cost_of, make_folds
from forewise.learners.out_of_fold import Trial as Evaluated
from forewise.parallel import Map, Processes
from forewise.parallel.base import applied
from forewise.policy.base import ScenarioPolicy
from forewise.predictors import Predictor
from forewise.predictors.networks.checkpoint import digest
from forewise.predictors.trees import Completer
from forewise.problems.base import Problem
from forewise.solvers.auto import AutoSolver
from forewise.solvers.base import Solver
from forewise.tuning.result import Tuning
from forewise.tuning.space import Between, OneOf, Space, check_space, with_settings
from forewise.validation.parameters import require_count, require_instance
from forewise.validation.tables import check_training_data

_JUDGED = 2000  # rows: the error of more would hardly be smaller
_STARTUP = 8  # trials at random, before Optuna's model has a say
_COMPLETE_FIRST = 5  # trials that must be complete before any is pruned
_NAME = "forewise"


@dataclass(frozen=True)
class Search:
    """How long and where is searched.

    Parameters
    ----------
    n_trials : int
        Of the whole search; one that goes on counts those it has.
    n_folds : int
        Folds, which are the rungs: after each, trials below the median are pruned.
    ordered : bool
        Rows are in order of time: folds are windows, predicted from the rows before.
    n_scenarios : int
        Of each decision.
    n_at_once : int
        Trials that are proposed together, before the costs of the others are known. At least as
        many as the map has workers. What is found depends on it, and not on the map.
    storage : path, optional
        File of the search (Optuna's journal). A search with the same data and settings goes on
        where it stopped; several programs may share it.
    map : Map, optional
        Where trials are evaluated; this process by default.
    random_state : int

    Examples
    --------
    >>> import forewise as fw
    >>> fw.tuning.Search(n_trials=20, ordered=True).n_folds
    5
    """

    n_trials: int = 50
    n_folds: int = 5
    ordered: bool = False
    n_scenarios: int = 64
    n_at_once: int = 4
    storage: str | os.PathLike[str] | None = None
    map: Map | None = None
    random_state: int = 0

    def __post_init__(self) -> None:
        for name in ("n_trials", "n_scenarios", "n_at_once"):
            require_count(name, getattr(self, name), at_least=1)
        require_count("n_folds", self.n_folds, at_least=2)
        require_count("random_state", self.random_state, at_least=0)
        require_instance("map", self.map, Map, "forewise.parallel.Processes(2)", optional=True)


class TunedLearner(Learner):
    """A decoupled learner whose predictor has the settings of lowest decision cost out of fold.

    When to use: one predictor is known to suit, there is time for dozens of fits, and a percent
    matters. `AutoLearner` compares kinds of predictors, which usually matters more.

    Parameters
    ----------
    problem : Problem
    predictor : Predictor, optional
        `BayesianPredictor()` by default. Its own settings are the first trial.
    space : dict, optional
        What is searched, by the name of a setting: `Between` or `OneOf`. ``training__epochs`` is a
        setting of a part. By default the predictor's own: see `default_space`.
    solver : Solver, optional
    search : Search, optional

    Attributes
    ----------
    tuning_ : Tuning
    held_out_ : HeldOut
        Out-of-fold scenarios of the best settings.

    Examples
    --------
    >>> import forewise as fw, numpy as np
    >>> X = np.linspace(0.0, 1.0, 60)[:, None]
    >>> y = X + 0.1 * np.sin(50 * X)
    >>> search = fw.tuning.Search(n_trials=6, n_folds=2)
    >>> learner = fw.TunedLearner(fw.Newsvendor(3, 1), fw.NeighborPredictor(), search=search)
    >>> tuning = learner.fit(X, y).tuning_
    >>> tuning.best_cost <= tuning.default_cost
    True
    """

    censored_unsupported_reason = None

    def __init__(
        self,
        problem: Problem,
        predictor: Predictor | None = None,
        space: Space | None = None,
        solver: Solver | None = None,
        search: Search | None = None,
    ) -> None:
        self.problem = problem
        self.predictor = predictor
        self.space = space
        self.solver = solver
        self.search = search

    @property
    def validates(self) -> bool:
        """False: it makes folds of its own."""
        return False

    def _fit(
        self, X: Any, y: Any, X_val: Any, y_val: Any, problems: TrainingProblems
    ) -> ScenarioPolicy:
        require_instance("search", self.search, Search, "Search(n_trials=50)", optional=True)
        search = self.search or Search()
        predictor = cloned_predictor(self.predictor)
        if predictor.get_params(deep=False).get("random_state", 0) is None:
            predictor.set_params(random_state=search.random_state)  # equal trials are equal
        space = check_space(predictor, self.space)
        contexts, outcome = check_training_data(clone(predictor), X, y)
        completed = Completer.make(contexts, outcome, problems.censored).outcomes(
            contexts, outcome, problems.censored
        )
        solver = self.solver or AutoSolver()
        evaluator = Evaluator(
            X, y, X, torch.from_numpy(completed), problems.problem, solver,
            search.n_scenarios, search.random_state, problems.censored,
        )  # fmt: skip
        folds = make_folds(
            len(outcome), search.n_folds, search.ordered, search.random_state, _JUDGED
        )
        identity = {
            "the table": (contexts, outcome, problems.censored),
            "the problem": problems.problem,
            "the solver": solver,
            "the predictor": (predictor, predictor.get_params(deep=False).get("training")),
            "the space": dict(space),
            "the search": (search.n_folds, search.ordered, search.n_scenarios, search.n_at_once,
                           search.random_state),
        }  # fmt: skip
        run = _Run(evaluator, folds, predictor, space, search)
        with run.storage({name: digest(value, name) for name, value in identity.items()}):
            run.search()
        best = run.best()
        learner = DecoupledLearner(self.problem, best.predictor(predictor, space), solver)
        refit = evaluator.fit(best.predictor(predictor, space), np.arange(len(outcome)))
        if refit.fitted is None:
            raise ForewiseError(f"the best settings cannot be fitted to all rows: {refit.error}")
        policy = ScenarioPolicy(self.problem, refit.fitted, solver)
        learner.policy_ = policy
        learner._remember(refit.fitted)
        self._remember(refit.fitted)
        self.held_out_ = run.held_out(best)
        self.tuning_ = Tuning(
            run.study, run.table(), clone(best.predictor(predictor, space)),
            best.settings(space), learner,
        )  # fmt: skip
        return policy


def tune(
    problem: Problem,
    X: Any,
    y: Any,
    predictor: Predictor | None = None,
    space: Space | None = None,
    *,
    solver: Solver | None = None,
    given: Any = None,
    censored: Any = None,
    **search: Any,
) -> Tuning:
    """Search the settings of a predictor by the cost of its decisions on rows it was not fitted to.

    Parameters
    ----------
    problem : Problem
    X, y, given, censored : as for `Learner.fit`
    predictor, space, solver : as for `TunedLearner`
    **search
        Settings of the `Search`: ``n_trials=50``, ``storage="search.journal"``,
        ``map=Processes(4)``, ``ordered=True``.

    Examples
    --------
    >>> import forewise as fw, numpy as np
    >>> X = np.linspace(0.0, 1.0, 60)[:, None]
    >>> y = X + 0.1 * np.sin(50 * X)
    >>> found = fw.tune(
    ...     fw.Newsvendor(3, 1), X, y, fw.NeighborPredictor(), n_trials=6, n_folds=2
    ... )
    >>> len(found.trials), found.best_cost <= found.default_cost
    (6, True)
    >>> found.policy.save("policy")
    """
    learner = TunedLearner(problem, predictor, space, solver, Search(**search))
    return learner.fit(X, y, given=given, censored=censored).tuning_


@dataclass(frozen=True)
class _Known:
    """What the storage knows of a trial."""

    frozen: Any

    @property
    def attributes(self) -> dict[str, Any]:
        return dict(self.frozen.user_attrs)

    @property
    def origin(self) -> int:
        """Number of the trial that was queued again, or its own."""
        return int(self.frozen.user_attrs.get("origin", self.frozen.number))

    @property
    def rungs(self) -> list[list[float]]:
        """Cost, rows, rows without a decision and seconds of each fold so far."""
        return list(self.frozen.user_attrs.get("rungs", []))

    @property
    def cost(self) -> float:
        return _cost(self.rungs)

    def settings(self, space: Space) -> dict[str, Any]:
        """The settings, by name."""
        found = {}
        for name, value in self.frozen.params.items():
            values = space[name]
            found[name] = value if isinstance(values, Between) else values.of(value)
        return found

    def predictor(self, predictor: Predictor, space: Space) -> Predictor:
        """A clone of the predictor with them."""
        return with_settings(predictor, self.settings(space))


def _cost(rungs: list[list[float]]) -> float:
    """Mean over the rows of all folds so far; of a risk, the mean of the folds' risks."""
    rows = sum(rung[1] for rung in rungs)
    return sum(rung[0] * rung[1] for rung in rungs) / rows if rows else math.inf


@dataclass
class _Run:
    """One program's part in a search."""

    evaluator: Evaluator
    folds: list[Fold]
    predictor: Predictor
    space: Space
    settings: Search
    study: Any = None
    owner: str = field(default_factory=lambda: uuid.uuid4().hex)

    @contextlib.contextmanager
    def storage(self, identity: dict[str, str]) -> Iterator[None]:
        """Open the study; what a killed program left unfinished is queued again."""
        optuna = _optuna()
        path = self.settings.storage
        self.pruner = optuna.pruners.MedianPruner(n_startup_trials=_COMPLETE_FIRST)
        with contextlib.ExitStack() as held:
            backend = None
            if path is not None:
                file = Path(path)
                if not file.absolute().parent.is_dir():
                    raise StorageError(f"storage must be in a folder that exists, but is {file}")
                held.enter_context(_marked(file, self.owner))
                journal = optuna.storages.journal.JournalFileBackend(str(file))
                backend = optuna.storages.JournalStorage(journal)
            self.study = optuna.create_study(
                storage=backend, study_name=_NAME, load_if_exists=True, pruner=self.pruner
            )
            known = self.study.user_attrs
            other = [name for name, value in identity.items() if known.get(name, value) != value]
            if other:
                raise StorageError(
                    f"the search in {path} is another one, which differs in {', '.join(other)}: "
                    "delete the file to start anew, or give this search one of its own"
                )
            for name, value in identity.items():
                if name not in known:
                    self.study.set_user_attr(name, value)
            if path is not None:
                self._queue_abandoned(Path(path))
            yield

    def _queue_abandoned(self, path: Path) -> None:
        optuna = _optuna()
        latest = {known.origin: known.frozen.number for known in self._trials()}
        for frozen in self.study.get_trials(deepcopy=False):
            attributes, origin = dict(frozen.user_attrs), _Known(frozen).origin
            if frozen.state.name != "RUNNING" or _is_alive(path, attributes.pop("owner", "")):
                continue
            if latest[origin] == frozen.number:  # else it was queued, and then came another kill
                self.study.add_trial(
                    optuna.trial.create_trial(
                        state=optuna.trial.TrialState.WAITING,
                        params=frozen.params,
                        distributions=frozen.distributions,
                        user_attrs=attributes | {"origin": origin},
                    )
                )
            self.study.tell(frozen.number, state=optuna.trial.TrialState.FAIL)

    def search(self) -> None:
        """Propose, evaluate and tell, until there are enough trials."""
        size, wanted = self.settings.n_at_once, self.settings.n_trials
        while True:
            states = [known.frozen.state.name for known in self._trials()]
            waiting, started = states.count("WAITING"), len(states)
            # Trials that were queued again are told before others are proposed, as if they had
            # not been interrupted.
            new = -started % size or (0 if waiting else size)
            batch = waiting + max(0, min(new, wanted - started))
            if not batch:
                return
            self._evaluate([self._ask() for _ in range(batch)])

    def _trials(self) -> list[_Known]:
        """All trials in the order of their proposal; of those queued again, the last."""
        found = {}
        for frozen in self.study.get_trials(deepcopy=False):
            known = _Known(frozen)
            found[known.origin] = known
        return [found[origin] for origin in sorted(found)]

    def _ask(self) -> Any:
        """The next trial: one that was queued, or a new proposal."""
        optuna = _optuna()
        trial = self.study.ask()
        trial.set_user_attr("owner", self.owner)
        origin = trial.user_attrs.get("origin", trial.number)
        place = sum(known.origin < origin for known in self._trials())
        trial.set_user_attr("place", place)
        if place:
            seed = np.random.SeedSequence([self.settings.random_state, place]).generate_state(1)
            self.study.sampler = optuna.samplers.TPESampler(
                n_startup_trials=_STARTUP, seed=int(seed[0]), constant_liar=True
            )
            for name, values in self.space.items():
                _suggest(trial, name, values)
        return trial

    def _evaluate(self, batch: list[Any]) -> None:
        """Fold after fold; those that are pruned have no more of them."""
        where = self.settings.map or Processes()
        for step, fold in enumerate(self.folds):
            alive = [trial for trial in batch if not _ended(trial)]
            todo = [trial for trial in alive if len(trial.user_attrs.get("rungs", [])) <= step]
            tasks = [
                (_Known(trial).predictor(self.predictor, self.space), fold, math.inf)
                for trial in map(_frozen, todo)
            ]
            found = where.imap(partial(applied, self.evaluator.trial), tasks)
            for trial, evaluated in zip(todo, found, strict=True):
                self._remember(trial, evaluated)
            for trial in alive:
                self._judge(trial, step)
        states = _optuna().trial.TrialState
        for trial in batch:
            attributes = trial.user_attrs
            if "error" in attributes:
                self.study.tell(trial, state=states.FAIL)
            elif "pruned" in attributes:
                self.study.tell(trial, state=states.PRUNED)
            else:
                self.study.tell(trial, _cost(attributes["rungs"]))

    def _remember(self, trial: Any, evaluated: Evaluated) -> None:
        """Write down what a fold came to."""
        if evaluated.costs is None:
            trial.set_user_attr("error", evaluated.error)
            return
        failures = int((~np.isfinite(evaluated.costs)).sum())
        cost = cost_of(self.evaluator.problem, evaluated.costs)
        rows = len(evaluated.costs) - failures
        rungs = [*trial.user_attrs.get("rungs", [])]
        if not rows:
            trial.set_user_attr("error", "no row has a decision of finite cost")
            return
        rungs.append([cost, rows, failures, evaluated.seconds])
        trial.set_user_attr("rungs", rungs)

    def _judge(self, trial: Any, step: int) -> None:
        """Report a fold, and prune, unless that was done before a kill."""
        attributes = trial.user_attrs
        if "error" in attributes:
            return
        rungs = attributes["rungs"][: step + 1]
        trial.report(_cost(rungs), step)
        if attributes.get("judged", 0) > step:
            return
        failures = sum(rung[2] for rung in rungs)
        if attributes["place"] > 0 and failures > self._default_failures(step):
            trial.set_user_attr("error", f"{failures} rows have no decision, more than by default")
        elif attributes["place"] > 0 and step + 1 < len(self.folds) and trial.should_prune():
            trial.set_user_attr("pruned", step + 1)
        trial.set_user_attr("judged", step + 1)

    def _default_failures(self, step: int) -> float:
        """Rows without a decision of the first trial, in the folds so far."""
        rungs = self._trials()[0].rungs[: step + 1]
        return sum(rung[2] for rung in rungs) if len(rungs) > step else math.inf

    def best(self) -> _Known:
        """The trial of lowest cost; of several the first."""
        complete = [known for known in self._trials() if known.frozen.state.name == "COMPLETE"]
        if not complete:
            first = self._trials()[0].attributes.get("error", "it was interrupted")
            raise ForewiseError(f"no trial could be evaluated, the first one because: {first}")
        return min(complete, key=lambda known: known.cost)

    def held_out(self, best: _Known) -> HeldOut:
        """What the best settings say of the rows of every fold."""
        predictor = best.predictor(self.predictor, self.space)
        tasks = [(clone(predictor), fold, math.inf) for fold in self.folds]
        where = self.settings.map or Processes()
        record = Record.of(list(where.imap(partial(applied, self.evaluator.trial), tasks)))
        assert record.scenarios is not None
        return HeldOut(np.concatenate([fold.held for fold in self.folds]), record.scenarios)

    def table(self) -> Any:
        """A row per trial."""
        import pandas as pd

        states = {"COMPLETE": "complete", "PRUNED": "pruned", "FAIL": "failed"}
        first = self._trials()[0].rungs
        rows = [
            {
                "cost": known.cost if known.rungs else math.nan,
                "difference": known.cost - _cost(first[: len(known.rungs)])
                if known.rungs
                else math.nan,
                "folds": len(known.rungs),
                "state": states.get(known.frozen.state.name, "running"),
                "seconds": sum(rung[3] for rung in known.rungs),
                "note": known.attributes.get("error", ""),
                **known.settings(self.space),
            }
            for known in self._trials()
        ]
        columns = ["cost", "difference", "folds", "state", "seconds", "note", *self.space]
        return pd.DataFrame(rows, columns=columns).rename_axis("trial")


def _frozen(trial: Any) -> Any:
    return trial.study.get_trials(deepcopy=False)[trial.number]


def _ended(trial: Any) -> bool:
    return "error" in trial.user_attrs or "pruned" in trial.user_attrs


def _suggest(trial: Any, name: str, values: Between | OneOf) -> None:
    """A proposal for a setting; one that was made already stays."""
    if isinstance(values, OneOf):
        trial.suggest_categorical(name, [repr(value) for value in values.values])
    elif values.is_integer:
        trial.suggest_int(name, values.low, values.high, log=values.log)
    else:
        trial.suggest_float(name, values.low, values.high, log=values.log)


def _optuna() -> Any:
    try:
        import optuna
    except ImportError as error:
        raise MissingDependencyError(
            "tuning needs Optuna, which is not installed: pip install 'forewise[tune]'"
        ) from error
    logger = logging.getLogger("optuna")
    if logger.level < logging.WARNING:
        logger.setLevel(logging.WARNING)
    return optuna


def _mark(file: Path, owner: str) -> Path:
    return file.with_name(f"{file.name}.{owner}.owner")


@contextlib.contextmanager
def _marked(file: Path, owner: str) -> Iterator[None]:
    """Hold a lock as long as this program lives: what it left running is then abandoned."""
    mark = _mark(file, owner)
    descriptor = os.open(mark, os.O_CREAT | os.O_RDWR)
    try:
        if sys.platform != "win32":
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
        mark.unlink(missing_ok=True)


def _is_alive(file: Path, owner: str) -> bool:
    """Whether the program with this mark still runs; marks of others are removed."""
    mark = _mark(file, owner)
    if not owner or not mark.exists():
        return False
    if sys.platform == "win32":
        return True
    import fcntl

    descriptor = os.open(mark, os.O_RDWR)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    mark.unlink(missing_ok=True)
    return False
