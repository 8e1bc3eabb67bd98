"""The contract of a policy, and how it decides for any number of contexts.

May import: exceptions, display, arguments, tables, problems, solvers, predictors.
"""

from __future__ import annotations

import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track

from forewise.display import COLUMNS, described, html_parts
from forewise.exceptions import ExtrapolationWarning, InvalidInputError, SolveError
from forewise.policy.packing import write_policy
from forewise.predictors.base import check_n_scenarios
from forewise.problems.base import Problem
from forewise.solvers.solution import Solution, Status
from forewise.validation.arguments import as_random_state
from forewise.validation.tables import check_same_rows, like

#: Numbers in the scenarios of one piece: what bounds the memory of `decide`.
_ENTRIES = 2**20
_SHOWN = 5  # failed contexts that an error message lists


class Policy(ABC):
    """A fitted rule that decides: context → decision."""

    problem: Problem

    @property
    @abstractmethod
    def n_outcomes(self) -> int:
        """Number of outcomes the policy was fitted on."""

    @property
    @abstractmethod
    def outcome_names(self) -> list[str] | None:
        """Names of the outcomes, where the training table had them."""

    @abstractmethod
    def _check(self, X: Any) -> np.ndarray:
        """Contexts as float64, in the columns of the fitted ones."""

    @abstractmethod
    def _decide(self, problem: Problem, X: np.ndarray, n_scenarios: int, seed: int) -> Solution:
        """Decisions of one piece of checked contexts; failures are statuses.

        `problem` is the policy's own, as it stands in these contexts.
        """

    @abstractmethod
    def _extrapolates(self, X: np.ndarray) -> np.ndarray:
        """Which checked contexts are unlike those of training, ``(n_contexts,)``."""

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
        if on_failure not in ("raise", "return"):
            raise InvalidInputError(
                f'on_failure must be "raise" or "return", but is {on_failure!r}'
            )
        check_n_scenarios(n_scenarios)
        random = as_random_state(random_state)
        contexts = self._check(X)
        check_same_rows(X=X, given=given)
        problem = self.problem.bound_for(len(contexts), given)
        _warn_of_extrapolation(self._extrapolates(contexts))
        seed = int(random.randint(2**31))
        decisions = np.empty((len(contexts), self.n_decisions))
        failed: list[tuple[int, Status]] = []
        for piece in self._pieces(len(contexts), n_scenarios, progress):
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
            raise SolveError(_told(failed, len(contexts)), decided)
        return decided

    def decide_by_name(self, X: Any, *arguments: Any, **options: Any) -> dict[str, np.ndarray]:
        """Decide as `decide` does; return an array ``(n_contexts, *shape)`` per variable name."""
        return self.problem.split_decision(np.asarray(self.decide(X, *arguments, **options)))

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the policy to a folder: a JSON header and arrays, no pickle.

        The write is atomic: whoever reads gets the old policy or the new one, never a mixture.
        """
        write_policy(folder, self)

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

    def _pieces(self, n_contexts: int, n_scenarios: int, progress: bool) -> Iterator[slice]:
        size = max(1, min(4096, _ENTRIES // max(1, n_scenarios * max(self.n_outcomes, 4))))
        console = Console(stderr=True)
        shown = progress and console.is_terminal
        starts = range(0, n_contexts, size)
        for start in track(starts, "deciding", console=console, disable=not shown):
            yield slice(start, min(start + size, n_contexts))


def _warn_of_extrapolation(rows: np.ndarray) -> None:
    """Say once how many rows lie outside what was seen."""
    if not rows.any():
        return
    first = ", ".join(str(row) for row in np.flatnonzero(rows)[:_SHOWN])
    warnings.warn(
        f"{rows.sum()} of {len(rows)} contexts lie outside the range of the training rows by more "
        f"than half of its width (the first are rows {first}). What a network predicts there "
        "may be anything. With off_support=OffSupportFallback() it draws past outcomes there; with "
        "extrapolate=False it holds every column at the range seen",
        ExtrapolationWarning,
        stacklevel=3,
    )


def _told(failed: list[tuple[int, Status]], n_contexts: int) -> str:
    listed = "; ".join(f"row {i} is {status} ({status.advice})" for i, status in failed[:_SHOWN])
    more = f"; and {len(failed) - _SHOWN} more" if len(failed) > _SHOWN else ""
    return (
        f"{len(failed)} of {n_contexts} contexts have no optimal decision: {listed}{more}. "
        'Use on_failure="return" to get the others, with NaN in these rows.'
    )
