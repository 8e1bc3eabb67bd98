"""The contract of a policy, how it decides for any number of contexts, and the two kinds.

To add a kind of policy: a frozen dataclass with the methods below, registered with
`forewise.policy.register`.
"""

from __future__ import annotations

import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from forewise.display import COLUMNS, described, html_parts
from forewise.exceptions import ExtrapolationWarning, SolveError
from forewise.policy.batches import FrameDecider, decided_tables, keep_of, options_of
from forewise.policy.packing import KIND, VERSION, pack
from forewise.predictors import PointPredictor, Predictor
from forewise.problems.base import Problem
from forewise.scenarios import Scenarios
from forewise.solvers.auto import AutoSolver, solve
from forewise.solvers.base import ProgramSolver, Solver
from forewise.solvers.interior_point.solver import InteriorPointSolver
from forewise.solvers.projection import project
from forewise.solvers.solution import Solution, Status, listed_failures
from forewise.storage import write_folder
from forewise.validation.frames import like
from forewise.validation.parameters import as_random_state, require_choice, require_count
from forewise.validation.tables import check_same_rows

#: Numbers in the scenarios of one piece: what bounds the memory of `decide`.
_ENTRIES = 2**20
_SHOWN = 5  # rows that a warning lists


class StoredPolicy:
    """What `load_policy` reads; its class is registered with `forewise.policy.register`."""

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the policy to a folder: a JSON header and arrays, no pickle.

        The write is atomic: whoever reads gets the old policy or the new one, never a mixture.
        """
        write_folder(folder, {"policy": pack(self, "policy")}, kind=KIND, version=VERSION)


class Policy(StoredPolicy, ABC):
    """A fitted rule that decides: context → decision.

    Examples
    --------
    What a learner has learned; it decides, and is saved, without the learner:

    >>> import numpy as np
    >>> import forewise as fw
    >>> X, y = np.arange(20.0)[:, None], np.arange(20.0)
    >>> learner = fw.DecoupledLearner(fw.Newsvendor(3.0, 1.0), fw.NeighborPredictor(3)).fit(X, y)
    >>> learner.policy_.save("policy_of_neighbors")
    >>> fw.load_policy("policy_of_neighbors").decide([[10.0]])
    array([[11.]])
    """

    problem: Problem

    @property
    @abstractmethod
    def fitted(self) -> Predictor:
        """The fitted predictor, which knows the columns of the contexts."""

    @abstractmethod
    def _decide(self, problem: Problem, X: np.ndarray, n_scenarios: int, seed: int) -> Solution:
        """Decisions of one piece of checked contexts; failures are statuses.

        `problem` is the policy's own, as it stands in these contexts.
        """

    @property
    def n_outcomes(self) -> int:
        """Number of outcomes the policy was fitted on."""
        return self.fitted.n_outcomes_

    @property
    def outcome_names(self) -> list[str] | None:
        """Names of the outcomes, where the training table had them."""
        return self.fitted.outcome_names_

    def decide(
        self,
        X: Any,
        n_scenarios: int = 64,
        random_state: Any = 0,
        *,
        given: Any = None,
        on_failure: str = "raise",
        progress: bool = False,
    ) -> Any:
        """Decide for every context.

        The decision of a context is to the bit the same alone and in any table. Large tables are
        worked through in pieces, in bounded memory. Where a network is asked about contexts far
        outside its training rows, an `ExtrapolationWarning` says how many there are.

        Parameters
        ----------
        X : table (n_contexts, n_features)
        n_scenarios : int
            Scenarios drawn for each context.
        random_state : int, RandomState or None
            The same number, the same decisions.
        given : table, dict or `Given`, optional
            What is known in each context, where the problem has such parameters: see
            `CvxpyProblem.bound`.
        on_failure : {"raise", "return"}
            What to do if a context has no optimal decision: raise a `SolveError` whose
            `solution` holds the decisions of all others, or return NaN in its place.
        progress : bool
            Show a progress bar, where there is a terminal.

        Returns
        -------
        (n_contexts, n_decisions), in the kind of container that X came in
        """
        require_choice("on_failure", on_failure, ("raise", "return"))
        n_scenarios = require_count("n_scenarios", n_scenarios)
        random = as_random_state(random_state)
        contexts, problem = self.checked(X, given)
        _warn_of_extrapolation(self.extrapolates(contexts))
        seed = int(random.randint(2**31))
        decisions = np.empty((len(contexts), self.n_decisions))
        failed: list[tuple[int, Status]] = []
        for piece in _shown(self._cuts(len(contexts), n_scenarios), progress):
            own = problem.for_contexts(piece)
            solution = self._decide(own, contexts[piece], n_scenarios, seed)
            decisions[piece] = solution.decision.detach().numpy()
            failed += [
                (piece.start + i, status)
                for i, status in enumerate(solution.status)
                if status is not Status.OPTIMAL
            ]
        decided = like(X, decisions, self.decision_names)
        if failed and on_failure == "raise":
            raise SolveError(_failure_message(failed, len(contexts)), decided)
        return decided

    def decide_batches(
        self,
        dataset: Iterable[Any],
        n_scenarios: int = 64,
        random_state: int = 0,
        *,
        keep: Sequence[str] | None = None,
        on_failure: str = "raise",
    ) -> Iterator[Any]:
        """Decide table after table of any iterable, lazily and in bounded memory.

        Parameters
        ----------
        dataset : iterable of Arrow tables, record batches or data frames
            ``pyarrow.parquet.ParquetFile(file).iter_batches()``, say. What is given is a column
            with the name of the parameter.
        n_scenarios, random_state, on_failure : as for `decide`
            The same number for all tables.
        keep : list of str, optional
            Columns that come along; by default those that the policy does not use, as keys.

        Yields
        ------
        Arrow tables of the columns kept and the decisions, of at most 65,536 rows
        """
        return decided_tables(
            FrameDecider(self, keep_of(keep), options_of(n_scenarios, random_state, on_failure)),
            dataset,
        )

    def as_udf(
        self,
        n_scenarios: int = 64,
        random_state: int = 0,
        *,
        keep: Sequence[str] | None = None,
        on_failure: str = "raise",
    ) -> FrameDecider:
        """The policy as a plain function that engines take; it can be pickled.

        ``udf(frame)`` is a frame of the columns kept and the decisions: for Dask's
        ``map_partitions(udf)`` and Ray Data's ``map_batches(udf, batch_format="pandas")``;
        ``udf(frames)`` is an iterator, for Spark's ``mapInPandas(udf, schema)``. Arguments as for
        `decide_batches`.
        """
        options = options_of(n_scenarios, random_state, on_failure)
        return FrameDecider(self, keep_of(keep), options)

    def checked(self, X: Any, given: Any = None) -> tuple[np.ndarray, Problem]:
        """Contexts (n_contexts, n_inputs) as numbers, and the problem as it stands in them."""
        contexts = self.fitted.check_contexts(X)
        check_same_rows(X=X, given=given)
        return contexts, self.problem.bound_for(len(contexts), given)

    def extrapolates(self, contexts: np.ndarray) -> np.ndarray:
        """Which checked contexts lie far outside of the training rows (n_contexts,)."""
        return self.fitted.extrapolates(contexts)

    def pieces(
        self, problem: Problem, contexts: np.ndarray, n_scenarios: int, seed: int
    ) -> Iterator[tuple[slice, Solution]]:
        """Solutions of checked contexts, piece by piece in bounded memory; failures are statuses.

        To use instead of `decide` where statuses, objectives and residuals are wanted.
        """
        for piece in self._cuts(len(contexts), n_scenarios):
            own = problem.for_contexts(piece)
            yield piece, self._decide(own, contexts[piece], n_scenarios, seed)

    def _cuts(self, n_contexts: int, n_scenarios: int) -> list[slice]:
        """Rows that are worked through at a time, in bounded memory."""
        size = max(1, min(4096, _ENTRIES // max(1, n_scenarios * max(self.n_outcomes, 4))))
        starts = range(0, n_contexts, size)
        return [slice(start, min(start + size, n_contexts)) for start in starts]

    def decide_by_name(self, X: Any, *arguments: Any, **options: Any) -> dict[str, np.ndarray]:
        """Decide as `decide` does; return an array ``(n_contexts, *shape)`` per variable name."""
        return self.problem.split_decision(np.asarray(self.decide(X, *arguments, **options)))

    @property
    def n_decisions(self) -> int:
        """Number of decisions per context."""
        return self.problem.n_decisions(self.n_outcomes)

    @property
    def decision_names(self) -> list[str]:
        """Columns of the decisions: the outcomes' names where each outcome has a decision."""
        own = self.problem.decision_names(self.n_outcomes)
        if own is not None:
            return own
        names = self.outcome_names
        if names is not None and len(names) == self.n_decisions:
            return names
        return [f"decision_{i}" for i in range(self.n_decisions)]

    def __repr__(self) -> str:
        return described(self)

    def _repr_html_(self) -> str:
        names = ", ".join(self.decision_names[:COLUMNS])
        more = ", ..." if self.n_decisions > COLUMNS else ""
        return html_parts(self, decisions=names + more)


@dataclass(frozen=True, eq=False, repr=False)
class ScenarioPolicy(Policy):
    """Draws scenarios of the outcome, and solves one stochastic program per context.

    Where uncertainty cannot matter (`certainty_equivalent`), it solves for the mean or the median
    of the scenarios alone. The predictor is a fitted one.

    Examples
    --------
    Put together by hand, from a fitted predictor and a problem:

    >>> import numpy as np
    >>> import forewise as fw
    >>> predictor = fw.NeighborPredictor(3).fit(np.arange(20.0)[:, None], np.arange(20.0))
    >>> policy = fw.policy.ScenarioPolicy(fw.Newsvendor(shortage=3.0, excess=1.0), predictor)
    >>> policy.decide([[10.0]])
    array([[11.]])
    """

    problem: Problem
    predictor: Predictor
    solver: Solver = field(default_factory=AutoSolver)

    @property
    def fitted(self) -> Predictor:
        return self.predictor

    def _decide(self, problem: Problem, X: np.ndarray, n_scenarios: int, seed: int) -> Solution:
        scenarios = self.predictor.sample_checked(X, n_scenarios, seed)
        return solve(problem, collapsed(problem, scenarios), self.solver, on_failure="return")


@dataclass(frozen=True, eq=False, repr=False)
class DirectPolicy(Policy):
    """A network from context to decision, projected onto the feasible set by the solver.

    Parameters
    ----------
    problem : Problem
    rule : PointPredictor
        Fitted; what it predicts is a decision.
    outcomes : int
        Number of outcomes it was trained on.
    names : list of str or None
        Their names.
    solver : ProgramSolver

    Examples
    --------
    >>> import forewise as fw
    >>> data = fw.datasets.nv1(128, random_state=0)
    >>> network = fw.PointPredictor((8,), training=fw.Training(epochs=2), random_state=0)
    >>> learner = fw.DirectLearner(fw.datasets.nv_problem(), network).fit(data.X, data.y)
    >>> type(learner.policy_).__name__
    'DirectPolicy'
    """

    problem: Problem
    rule: PointPredictor
    outcomes: int
    names: list[str] | None = None
    solver: ProgramSolver = field(default_factory=InteriorPointSolver)

    @property
    def fitted(self) -> Predictor:
        return self.rule

    @property
    def n_outcomes(self) -> int:
        """Number of outcomes the policy was trained on."""
        return self.outcomes

    @property
    def outcome_names(self) -> list[str] | None:
        """Names of the outcomes, where the training table had them."""
        return self.names

    def _decide(self, problem: Problem, X: np.ndarray, n_scenarios: int, seed: int) -> Solution:
        wanted = self.rule.sample_checked(X, 1, seed).values[:, 0]
        return project(problem, wanted, self.n_outcomes, self.solver)


def collapsed(problem: Problem, scenarios: Scenarios) -> Scenarios:
    """What is solved for: the scenarios, or the one that does as well (`certainty_equivalent`)."""
    equivalent = problem.certainty_equivalent()
    if equivalent is None:
        return scenarios
    return {"mean": _mean_scenario, "median": _median_scenario}[equivalent.statistic](scenarios)


def _mean_scenario(scenarios: Scenarios) -> Scenarios:
    """One scenario per context: the weighted mean."""
    return Scenarios((scenarios.weights[..., None] * scenarios.values).sum(1, keepdim=True))


def _median_scenario(scenarios: Scenarios) -> Scenarios:
    """One scenario per context: the weighted median of each outcome."""
    values, order = scenarios.values.sort(dim=1)
    weights = scenarios.weights[..., None].expand_as(values).gather(1, order)
    reached = weights.cumsum(1) >= 0.5 - 1e-12
    first = reached.to(torch.uint8).argmax(1, keepdim=True)
    return Scenarios(values.gather(1, first))


def _shown(pieces: list[slice], progress: bool) -> Iterable[slice]:
    """The pieces, with a progress bar where there is a terminal."""
    if not progress:
        return pieces
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    return track(pieces, "deciding", console=console, disable=not console.is_terminal)


def _warn_of_extrapolation(rows: np.ndarray) -> None:
    """Warn once of the number of rows outside the training range."""
    if not rows.any():
        return
    first = ", ".join(str(row) for row in np.flatnonzero(rows)[:_SHOWN])
    warnings.warn(
        f"{rows.sum()} of {len(rows)} contexts lie outside the range of the training rows by more "
        f"than half of its width (the first are rows {first}), where the predictions of a network "
        "are unreliable. With off_support=OffSupportFallback() it draws past outcomes there; with "
        "extrapolate=False it clips every column to the range seen",
        ExtrapolationWarning,
        stacklevel=3,
    )


def _failure_message(failed: list[tuple[int, Status]], n_contexts: int) -> str:
    return (
        f"{len(failed)} of {n_contexts} contexts have no optimal decision: "
        f"{listed_failures(failed, 'row')}. "
        'Use on_failure="return" to get the others, with NaN in these rows.'
    )
