"""The contract of a predictor: from contexts to scenarios of the outcome.

May import: exceptions, arguments, scenarios, tables. A predictor knows no problem and no solver,
so that every predictor works with every problem. To add one: a scikit-learn estimator with the
two methods below whose fitted attributes end in an underscore and are arrays, numbers, text or
lists of them (that is how policies are stored); export it; add it to the list in the tests.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from forewise.exceptions import InvalidInputError, UnfittedError
from forewise.scenarios import Scenarios
from forewise.validation.arguments import as_random_state
from forewise.validation.tables import check_contexts


class Predictor(BaseEstimator, ABC):
    """WHAT may happen: a distribution of the outcome, given the context.

    Contexts and outcomes come in the user's own units: whatever a predictor needs scaled, it
    scales inside.
    """

    @abstractmethod
    def fit(self, X: Any, y: Any) -> Self:
        """Learn from past contexts (n_contexts, n_features), outcomes (n_contexts, n_outcomes)."""

    @abstractmethod
    def _scenarios(self, X: np.ndarray, n_scenarios: int, random: np.random.Generator) -> Scenarios:
        """Scenarios of checked contexts; called by `sample`."""

    def sample(self, X: Any, n_scenarios: int = 64, random_state: Any = None) -> Scenarios:
        """Draw scenarios of the outcome for each context.

        With the same `random_state` a context gets the same scenarios whatever other contexts
        are asked for with it: large tables can be cut into pieces, and a decision does not
        depend on the neighbours' rows.

        Parameters
        ----------
        X : table (n_contexts, n_features)
        n_scenarios : int
            The most that come. Fewer come where fewer say the same: one from a point forecast,
            and all that exist, weighted, where there are no more than that.
        random_state : int, RandomState or None

        Returns
        -------
        Scenarios (n_contexts, at most n_scenarios, n_outcomes)
        """
        check_n_scenarios(n_scenarios)
        seed = int(as_random_state(random_state).randint(2**31))
        contexts = self.check_contexts(X)
        return self.sample_checked(contexts, int(n_scenarios), seed)

    def sample_checked(self, X: np.ndarray, n_scenarios: int, seed: int) -> Scenarios:
        """Scenarios of contexts that `check_contexts` returned; called by policies."""
        with torch.no_grad():
            return self._scenarios(X, n_scenarios, np.random.default_rng(seed))

    def extrapolates(self, X: np.ndarray) -> np.ndarray:
        """Which checked contexts lie so far from the fitted ones that it may say anything.

        ``(n_contexts,)``, True or False; called by policies, which warn. Predictors that can only
        repeat what was seen, such as neighbours and trees, need not answer.
        """
        return np.zeros(len(X), dtype=bool)

    @property
    def is_fitted(self) -> bool:
        """Whether `fit` was called."""
        return "n_features_in_" in vars(self)

    def settings(self) -> dict[str, Any]:
        """The arguments to make an unfitted one like it, as far as they can be stored."""
        return {
            name: None if isinstance(value, np.random.RandomState) else value
            for name, value in self.get_params(deep=False).items()
        }

    def state(self) -> dict[str, Any]:
        """What it was fitted to, as plain values and arrays: its attributes that end in "_"."""
        return {
            name: value
            for name, value in vars(self).items()
            if name.endswith("_") and not name.startswith("_")
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Become the predictor that `state` was taken from; called on an unfitted one."""
        for name, value in state.items():
            setattr(self, name, value)

    def check_contexts(self, X: Any) -> np.ndarray:
        """Contexts as float64, in the columns of the fitted ones."""
        require_fitted(self)
        return check_contexts(self, X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags


def require_fitted(estimator: BaseEstimator) -> None:
    """Raise an `UnfittedError` unless `fit` was called."""
    try:
        check_is_fitted(estimator)
    except NotFittedError as error:
        raise UnfittedError(
            f"this {type(estimator).__name__} is not fitted yet: call fit(X, y) first"
        ) from error


def check_n_scenarios(n_scenarios: Any) -> None:
    """Raise unless it is a positive whole number."""
    whole = isinstance(n_scenarios, int | np.integer) and not isinstance(n_scenarios, bool)
    if not whole or n_scenarios < 1:
        raise InvalidInputError(
            f"n_scenarios must be a whole number of at least 1, but is {n_scenarios!r}"
        )
