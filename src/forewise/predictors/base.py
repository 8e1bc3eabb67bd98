"""The contract of a predictor: from contexts to scenarios of the outcome.

To add one: derive from `Predictor`, write `_fit` and `_scenarios`, and keep fitted attributes
(names that end in "_") as arrays, numbers, text or lists of them, because policies store those.
A predictor is a dataclass where it has parameters: each stands once, with its type and default,
and the constructor that scikit-learn expects follows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from forewise.exceptions import InvalidInputError, UnfittedError
from forewise.scenarios import Scenarios
from forewise.validation.censored import check_censored, require_known
from forewise.validation.parameters import as_random_state, require_count
from forewise.validation.tables import check_contexts, check_training_data


class Predictor(BaseEstimator, ABC):
    """A distribution of the outcome, given the context.

    Contexts and outcomes come in the user's units; what needs scaling is scaled inside.

    Examples
    --------
    Every predictor is fitted and sampled alike:

    >>> import numpy as np
    >>> import forewise as fw
    >>> X, y = np.arange(20.0)[:, None], np.arange(20.0) + 5.0
    >>> for predictor in (fw.EmpiricalPredictor(), fw.NeighborPredictor(4)):
    ...     scenarios = predictor.fit(X, y).sample([[10.0]], n_scenarios=4, random_state=0)
    ...     print(scenarios.values.mean().item())
    13.5
    14.5
    """

    #: Training row of each outcome that is kept; None: one of each row. Censored ones have several.
    row_of_: np.ndarray | None = None
    #: Share of the draws beyond bounds that end too early, because no known outcome lies there.
    undetermined_: float = 0.0
    #: What to use instead, where outcomes are censored and a predictor has no way to learn of them.
    censored_advice: ClassVar[str] = (
        "use BayesianPredictor, ForestPredictor, QuantileBoostingPredictor or NeighborPredictor, "
        "or fit to forewise.predictors.completed(X, y, censored)"
    )

    def fit(self, X: Any, y: Any, *, censored: Any = None) -> Self:
        """Fit to contexts (n_contexts, n_features) and outcomes (n_contexts, n_outcomes).

        `censored`, truth values of the shape of y, are True where the outcome was at least y, as
        demand of a sold-out day is at least what was sold.
        """
        contexts, outcomes = check_training_data(self, X, y)
        bound = check_censored(censored, y, outcomes)
        for earlier in ("row_of_", "undetermined_"):  # of an earlier fit with censored outcomes
            self.__dict__.pop(earlier, None)
        if bound is None:
            self._fit(contexts, outcomes)
        else:
            require_known(bound)
            self._fit_censored(contexts, outcomes, bound)
        return self

    def _fit_censored(self, X: np.ndarray, y: np.ndarray, censored: np.ndarray) -> None:
        """Fit where some checked outcomes are lower bounds; called by `fit` in place of `_fit`."""
        raise InvalidInputError(
            f"censored must be left out for a {type(self).__name__}, which has no way to learn "
            f"from {int(censored.sum())} outcome(s) that are lower bounds: {self.censored_advice}"
        )

    def _fit(self, X: np.ndarray, y: np.ndarray) -> None:
        """Fit to checked contexts and outcomes; called by `fit`."""
        raise NotImplementedError

    @abstractmethod
    def _scenarios(self, X: np.ndarray, n_scenarios: int, random: np.random.Generator) -> Scenarios:
        """Scenarios of checked contexts; called by `sample`."""

    def sample(self, X: Any, n_scenarios: int = 64, random_state: Any = None) -> Scenarios:
        """Draw at most `n_scenarios` scenarios of the outcome for each context (.., n_features).

        A point forecast gives one scenario, few past outcomes all of them. With the same
        `random_state` (int, RandomState or None) a context gets the same scenarios whatever other
        contexts are passed with it, so that large tables can be cut into pieces.
        """
        check_n_scenarios(n_scenarios)
        seed = int(as_random_state(random_state).randint(2**31))
        return self.sample_checked(self.check_contexts(X), int(n_scenarios), seed)

    def sample_checked(self, X: np.ndarray, n_scenarios: int, seed: int) -> Scenarios:
        """Scenarios of contexts that `check_contexts` returned; called by policies."""
        with torch.no_grad():
            return self._scenarios(X, n_scenarios, np.random.default_rng(seed))

    def extrapolates(self, X: np.ndarray) -> np.ndarray:
        """Which checked contexts lie far outside of the training data; called by policies."""
        return np.zeros(len(X), dtype=bool)

    @property
    def is_fitted(self) -> bool:
        return "n_features_in_" in vars(self)

    @property
    def n_inputs(self) -> int:
        """Columns of checked contexts: those of the table, or its features where it is encoded."""
        columns = getattr(self, "table_columns_", None)
        return self.n_features_in_ if columns is None else len(columns.features)

    def settings(self) -> dict[str, Any]:
        """The constructor's arguments, as far as they can be stored."""
        return {
            name: None if isinstance(value, np.random.RandomState) else value
            for name, value in self.get_params(deep=False).items()
        }

    def state(self) -> dict[str, Any]:
        """The fitted attributes, as plain values and arrays."""
        return {
            name: value
            for name, value in vars(self).items()
            if name.endswith("_") and not name.startswith("_")
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take the fitted attributes from `state`; called on an unfitted predictor."""
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
    """Raise unless it is a positive integer."""
    require_count("n_scenarios", n_scenarios, at_least=1)
