"""The contract of a learner: from past contexts and outcomes to a policy.

May import: exceptions, policy, problems, solvers, tables. To add a learner: an estimator with the
two methods below that sets `policy_`; export it; add it to the list in the tests.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Self

import torch
from sklearn.base import BaseEstimator

from forewise.exceptions import InvalidInputError
from forewise.policy.base import Policy
from forewise.predictors.base import Predictor, require_fitted
from forewise.predictors.networks.base import Rows
from forewise.problems.base import Problem, certainty_equivalent
from forewise.solvers.base import Solver
from forewise.validation.arguments import require_instance
from forewise.validation.tables import check_outcomes, check_same_rows


@dataclass(frozen=True)
class Past:
    """The problem as it stood in each row of the tables that were passed."""

    problem: Problem
    validation: Problem | None  # None: validation rows are rows of the same table

    def of(self, rows: Rows) -> Problem:
        """The problem of some training rows."""
        return self.problem.for_contexts(rows.places)

    def of_validation(self, rows: Rows) -> Problem:
        """The problem of some validation rows."""
        return (self.validation or self.problem).for_contexts(rows.places)


class Learner(BaseEstimator, ABC):
    """HOW a policy is learned from past pairs of context and outcome."""

    problem: Problem
    policy_: Policy

    @abstractmethod
    def _fit(self, X: Any, y: Any, X_val: Any, y_val: Any, past: Past) -> Policy:
        """Learn; called by `fit`, which has looked at the problem and at y."""

    def fit(
        self,
        X: Any,
        y: Any,
        X_val: Any = None,
        y_val: Any = None,
        *,
        given: Any = None,
        given_val: Any = None,
    ) -> Self:
        """Learn a policy from past contexts and outcomes.

        Parameters
        ----------
        X : table (n_contexts, n_features)
        y : table (n_contexts, n_outcomes) or (n_contexts,)
        X_val, y_val : tables, optional
            Rows that decide which epoch's weights are kept; a share of the training rows is
            split off for it by default.
        given, given_val : tables, dicts or `Given`, optional
            What was known in each context when deciding, and in each of X_val, where the problem
            has such parameters: see `CvxpyProblem.bound`. In scikit-learn's cross-validation, ask
            for it with ``set_fit_request(given=True)`` and ``set_score_request(given=True)``.

        Returns
        -------
        self
            With `policy_`, and `history_`, one record of figures per epoch of training.
        """
        require_instance("problem", self.problem, Problem, "Newsvendor(shortage=3, excess=1)")
        solver = self.get_params(deep=False).get("solver")
        if solver is not None:
            require_instance("solver", solver, Solver, "AutoSolver()")
        n_outcomes = check_outcomes(self, y).shape[1]
        check_same_rows(X=X, y=y, given=given)
        check_same_rows(X_val=X_val, y_val=y_val, given_val=given_val)
        if self.problem.n_outcomes not in (None, n_outcomes):
            raise InvalidInputError(
                f"y must have the {self.problem.n_outcomes} outcome(s) of the "
                f"{type(self.problem).__name__}, but has {n_outcomes}"
            )
        equivalent = certainty_equivalent(self.problem)
        if equivalent is not None:
            warnings.warn(
                f"uncertainty cannot change the decisions of this problem: {equivalent.reason}; "
                f"they will be made from the {equivalent.statistic} of the scenarios, and a point "
                "forecast of it would do as well",
                stacklevel=2,
            )
        self.policy_ = self._fit(X, y, X_val, y_val, self._past(y, y_val, given, given_val))
        return self

    def _past(self, y: Any, y_val: Any, given: Any, given_val: Any) -> Past:
        problem = self.problem.bound_for(len(y), given)
        if y_val is None:
            if given_val is not None:
                raise InvalidInputError("given_val belongs to X_val and y_val, which are missing")
            return Past(problem, None)
        return Past(problem, self.problem.bound_for(len(y_val), given_val, "given_val"))

    @property
    def validates(self) -> bool:
        """Whether `fit` looks at X_val and y_val; if not, these rows are better trained on."""
        return True

    def decide(self, X: Any, n_scenarios: int = 64, random_state: Any = 0, **options: Any) -> Any:
        """Decide for every context; see `Policy.decide`."""
        require_fitted(self)
        return self.policy_.decide(X, n_scenarios, random_state, **options)

    def score(self, X: Any, y: Any, given: Any = None) -> float:
        """Minus the mean cost of the decisions on these outcomes, or minus its risk.

        Raises an `InfeasibleDecisionError` rather than score decisions that break a constraint.
        """
        require_fitted(self)
        check_same_rows(X=X, y=y, given=given)
        outcomes = torch.from_numpy(check_outcomes(self, y))
        decisions = self.decide(X, given=given)
        problem = self.problem.bound_for(len(outcomes), given)
        return -float(problem.summary(problem.cost(decisions, outcomes)))

    def _remember(self, predictor: Predictor) -> None:
        """What scikit-learn wants to know of the table that was fitted."""
        self.n_features_in_ = predictor.n_features_in_
        names = getattr(predictor, "feature_names_in_", None)
        if names is not None:
            self.feature_names_in_ = names

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags
