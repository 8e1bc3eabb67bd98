"""The contract of a learner: from past contexts and outcomes to a policy.

To add a learner: an estimator with `_fit` below, whose arguments are attributes of the same names;
test it with `forewise.testing.check_learner`.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import torch
from sklearn.base import BaseEstimator, clone

from forewise.exceptions import InvalidInputError
from forewise.policy.base import Policy
from forewise.predictors import BayesianPredictor
from forewise.predictors.base import Predictor, require_fitted
from forewise.predictors.networks.rows import Rows
from forewise.problems.base import Problem
from forewise.solvers.base import Solver
from forewise.validation.censored import check_censored
from forewise.validation.parameters import require_instance
from forewise.validation.tables import check_outcomes, check_same_rows


@dataclass(frozen=True)
class TrainingProblems:
    """What else belongs to the rows of the tables passed to `fit`: the problem as it stood in each.

    And which outcomes are censored, as tables that came with y and y_val; None where none is.
    """

    problem: Problem
    validation: Problem | None = None  # None: validation rows are rows of the same table
    censored: Any = None
    censored_val: Any = None

    def for_rows(self, rows: Rows) -> Problem:
        """The problem of some training rows."""
        return self.problem.for_contexts(rows.places)

    def for_validation(self, rows: Rows) -> Problem:
        """The problem of some validation rows."""
        return (self.validation or self.problem).for_contexts(rows.places)


class Learner(BaseEstimator, ABC):
    """HOW a policy is learned from past pairs of context and outcome.

    Examples
    --------
    A learner of your own fits a predictor in `_fit`, and returns the policy that uses it:

    >>> import numpy as np
    >>> import forewise as fw
    >>> class NeighborLearner(fw.Learner):
    ...     def __init__(self, problem):
    ...         self.problem = problem
    ...
    ...     def _fit(self, X, y, X_val, y_val, problems):
    ...         return fw.policy.ScenarioPolicy(self.problem, fw.NeighborPredictor(3).fit(X, y))
    >>> X, y = np.arange(20.0)[:, None], np.arange(20.0)
    >>> NeighborLearner(fw.Newsvendor(3.0, 1.0)).fit(X, y).decide([[10.0]])
    array([[11.]])
    """

    problem: Problem
    policy_: Policy
    #: Why `fit` takes no censored outcomes, and what to do; None where it does.
    censored_unsupported_reason: ClassVar[str | None] = (
        "the cost of a decision at an outcome that is not known is not known either. Use a "
        "DecoupledLearner or an AutoLearner, or fit to forewise.predictors.completed(X, y, "
        "censored), which draws outcomes beyond their bounds"
    )

    @abstractmethod
    def _fit(self, X: Any, y: Any, X_val: Any, y_val: Any, problems: TrainingProblems) -> Policy:
        """Learn; called by `fit`, which has checked the problem and y."""

    def fit(
        self,
        X: Any,
        y: Any,
        X_val: Any = None,
        y_val: Any = None,
        *,
        given: Any = None,
        given_val: Any = None,
        censored: Any = None,
        censored_val: Any = None,
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
        censored, censored_val : truth values of the shape of y and of y_val, optional
            True where the outcome was at least y, as demand of a sold-out day is at least what was
            sold. Given the context, it must not depend on the bound beyond that.

        Returns
        -------
        self
            With `policy_`, and `history_`, one record of figures per epoch of training.
        """
        require_instance("problem", self.problem, Problem, "Newsvendor(shortage=3, excess=1)")
        solver = self.get_params(deep=False).get("solver")
        require_instance("solver", solver, Solver, "AutoSolver()", optional=True)
        n_outcomes = check_outcomes(self, y).shape[1]
        check_same_rows(X=X, y=y, given=given)
        check_same_rows(X_val=X_val, y_val=y_val, given_val=given_val)
        if self.problem.n_outcomes not in (None, n_outcomes):
            raise InvalidInputError(
                f"y must have the {self.problem.n_outcomes} outcome(s) of the "
                f"{type(self.problem).__name__}, but has {n_outcomes}"
            )
        equivalent = self.problem.certainty_equivalent()
        if equivalent is not None:
            warnings.warn(
                f"uncertainty cannot change the decisions of this problem: {equivalent.reason}; "
                f"they will be made from the {equivalent.statistic} of the scenarios, and a point "
                "forecast of it would do as well",
                stacklevel=2,
            )
        problems = TrainingProblems(self.problem.bound_for(len(y), given))
        if y_val is not None:
            bound = self.problem.bound_for(len(y_val), given_val, "given_val")
            problems = TrainingProblems(problems.problem, bound)
        elif given_val is not None or censored_val is not None:
            which = "given_val" if censored_val is None else "censored_val"
            raise InvalidInputError(f"{which} belongs to X_val and y_val, which are missing")
        problems = self._with_censored(problems, (y, censored), (y_val, censored_val))
        self.policy_ = self._fit(X, y, X_val, y_val, problems)
        return self

    def _with_censored(
        self, problems: TrainingProblems, past: tuple[Any, Any], held: tuple[Any, Any]
    ) -> TrainingProblems:
        """With the flags, if any is True; refused where the learner takes none."""
        found: dict[str, Any] = {}
        for suffix, (y, censored) in (("", past), ("_val", held)):
            if y is not None and censored is not None:
                names = f"censored{suffix}", f"y{suffix}"
                outcomes = check_outcomes(self, y, names[1])
                flags = check_censored(censored, y, outcomes, *names)
                if flags is not None and self.censored_unsupported_reason:
                    raise InvalidInputError(
                        f"{names[0]} must be left out for a {type(self).__name__}: "
                        f"{self.censored_unsupported_reason}"
                    )
                found[names[0]] = flags
        return replace(problems, **found)

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
        """What scikit-learn wants to know of the table that was fitted, and the history."""
        self.history_ = getattr(predictor, "history_", [])
        self.n_features_in_ = predictor.n_features_in_
        names = getattr(predictor, "feature_names_in_", None)
        if names is not None:
            self.feature_names_in_ = names

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags


def cloned_predictor(predictor: Predictor | None) -> Predictor:
    """A fresh copy of the predictor a learner was given, or of the default one."""
    wrapped = "NeighborPredictor(), or ResidualPredictor(regressor) around a scikit-learn one"
    require_instance("predictor", predictor, Predictor, wrapped, optional=True)
    return BayesianPredictor() if predictor is None else clone(predictor)
