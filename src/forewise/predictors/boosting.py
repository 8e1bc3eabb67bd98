"""Gradient boosting: the forecast, or the quantiles, that practitioners would start from.

Trees are grown by scikit-learn's histogram gradient boosting and kept as arrays.
May import: exceptions, scenarios, tables, and its siblings `base`, `parameter_checks`,
`standardise`, `trees`, `weighted_support`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from numbers import Real
from typing import Any, Self

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from forewise.exceptions import ForewiseError, InvalidInputError
from forewise.predictors.base import Predictor
from forewise.predictors.networks.standardise import mean_and_std, standardise
from forewise.predictors.trees import find_leaves, numbered
from forewise.predictors.weighted_support import context_slices, systematic_picks
from forewise.scenarios import Scenarios
from forewise.validation.arguments import as_random_state
from forewise.validation.parameters import require_count, require_positive
from forewise.validation.tables import check_training_data

_CHECKED_ROWS = 64


class _BoostedTrees(Predictor):
    """Several boosted models of the same contexts, one for each outcome and loss.

    Parameters
    ----------
    n_trees, learning_rate, max_leaves, min_leaf, random_state
        As below.

    Attributes
    ----------
    baseline_ : array (n_models,)
        What each model's trees add to, in units of the standardised outcome.
    outcome_mean_, outcome_std_ : arrays (n_outcomes,)
    tree_model_ : array (n_all_trees,)
        Number of the model that each tree belongs to.
    roots_ : array (n_all_trees,)
        First node of each tree; the nodes of all trees stand one behind the other.
    left_, right_, feature_, threshold_, value_ : arrays (n_nodes,)
        Children, by number of node, or -1 in a leaf; column to compare; a context goes left if it
        is at most the threshold; what a leaf adds.
    """

    baseline_: np.ndarray
    outcome_mean_: np.ndarray
    outcome_std_: np.ndarray
    tree_model_: np.ndarray
    roots_: np.ndarray
    left_: np.ndarray
    right_: np.ndarray
    feature_: np.ndarray
    threshold_: np.ndarray
    value_: np.ndarray

    def __init__(
        self,
        n_trees: int = 100,
        learning_rate: float = 0.1,
        max_leaves: int = 31,
        min_leaf: int = 20,
        random_state: Any = 0,
    ) -> None:
        self.n_trees = n_trees
        self.learning_rate = learning_rate
        self.max_leaves = max_leaves
        self.min_leaf = min_leaf
        self.random_state = random_state

    def _grow(self, X: np.ndarray, y: np.ndarray, losses: Sequence[dict[str, Any]]) -> None:
        """Fit a model for each outcome and loss; those of an outcome stand together."""
        as_random_state(self.random_state)  # or an error
        settings = {
            "max_iter": require_count("n_trees", self.n_trees, at_least=1),
            "learning_rate": require_positive("learning_rate", self.learning_rate),
            "max_leaf_nodes": require_count("max_leaves", self.max_leaves, at_least=2),
            "min_samples_leaf": require_count("min_leaf", self.min_leaf, at_least=1),
            # Stopping early would take rows away at random, future ones among them.
            "early_stopping": False,
            "random_state": self.random_state,
        }
        self.outcome_mean_, self.outcome_std_ = mean_and_std(y)
        targets = standardise(y, self.outcome_mean_, self.outcome_std_)
        models = [
            HistGradientBoostingRegressor(**settings, **loss).fit(X, target)
            for target in targets.T.copy()
            for loss in losses
        ]
        self._take(models)
        rows = X[:_CHECKED_ROWS]
        expected = np.column_stack([model.predict(rows) for model in models])
        if not np.allclose(self._outputs(rows), expected, rtol=1e-9, atol=1e-9):
            raise ForewiseError(
                "this version of scikit-learn stores boosted trees in a way that forewise does not "
                "know: install a version that pyproject.toml names"
            )

    def _take(self, models: list[HistGradientBoostingRegressor]) -> None:
        """Trees as arrays. scikit-learn has no public way to them, so `_grow` checks the result."""
        trees = [[stage[0].nodes for stage in model._predictors] for model in models]
        nodes = [tree for part in trees for tree in part]
        self.baseline_ = np.array([float(np.ravel(m._baseline_prediction)[0]) for m in models])
        self.tree_model_ = np.repeat(np.arange(len(models)), [len(part) for part in trees])
        self.roots_ = np.cumsum([0, *(len(tree) for tree in nodes[:-1])])
        leaf = [tree["is_leaf"].astype(bool) for tree in nodes]
        for side in ("left", "right"):
            children = [
                np.where(is_leaf, -1, tree[side].astype(np.int64))
                for tree, is_leaf in zip(nodes, leaf, strict=True)
            ]
            setattr(self, f"{side}_", numbered(children, self.roots_))
        self.feature_ = np.concatenate([tree["feature_idx"] for tree in nodes]).astype(np.int64)
        self.threshold_ = np.concatenate([tree["num_threshold"] for tree in nodes])
        self.value_ = np.concatenate([tree["value"] for tree in nodes])

    def _outputs(self, X: np.ndarray) -> np.ndarray:
        """What the models say, standardised: (n_contexts, n_models)."""
        starts = np.searchsorted(self.tree_model_, np.arange(len(self.baseline_)))
        outputs = np.empty((len(X), len(self.baseline_)))
        for part in context_slices(len(X), len(self.roots_)):
            leaves = find_leaves(
                X[part], self.roots_, self.left_, self.right_, self.feature_, self.threshold_
            )
            outputs[part] = np.add.reduceat(self.value_[leaves], starts, axis=1)
        return outputs + self.baseline_


class BoostingPredictor(_BoostedTrees):
    """A point forecast of each outcome by gradient boosting: a single scenario, no uncertainty.

    Prefer it as the yardstick of "forecast well, then optimise", and inside a `ResidualPredictor`,
    which adds its errors. Reads many columns without scaling; cannot extrapolate a trend.

    Parameters
    ----------
    n_trees : int
    learning_rate : float
        Share of each tree that is added; smaller wants more trees.
    max_leaves : int
        Most leaves of a tree.
    min_leaf : int
        Fewest training rows in a leaf.
    random_state : int, RandomState or None
        Matters with more than 200,000 rows only, of which some are drawn to choose thresholds.

    Examples
    --------
    >>> X, y = [[float(i)] for i in range(100)], [2.0] * 50 + [8.0] * 50
    >>> BoostingPredictor().fit(X, y).predict([[0.0], [99.0]]).round(1).tolist()
    [[2.0], [8.0]]
    """

    def fit(self, X: Any, y: Any) -> Self:
        """Grow the trees on contexts (n_contexts, n_features), outcomes (.., n_outcomes)."""
        X, y = check_training_data(self, X, y)
        self._grow(X, y, [{"loss": "squared_error"}])
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The forecast of each context, (n_contexts, n_outcomes)."""
        return self._forecast(self.check_contexts(X))

    def _forecast(self, X: np.ndarray) -> np.ndarray:
        return self.outcome_mean_ + self.outcome_std_ * self._outputs(X)

    def _scenarios(self, X: np.ndarray, n_scenarios: int, random: np.random.Generator) -> Scenarios:
        return Scenarios(self._forecast(X)[:, None])


class QuantileBoostingPredictor(_BoostedTrees):
    """Quantiles by gradient boosting, one model for each level: scenarios with weights.

    Prefer it for a `Newsvendor`, whose decision is a quantile: with the level
    shortage / (shortage + excess) among `levels`, the decision is that model's forecast. Of several
    outcomes, the scenarios have all at the same level: right for costs that are a sum over
    outcomes, as the newsvendor's, and too pessimistic or optimistic for others.

        scenario k of x:   the forecast of the quantile q_k; its weight is the distance between
        the points halfway to its neighbours, or to 0 and 1 at the ends

    Quantiles that cross are put in order. Asked for fewer scenarios than levels, it picks some.

    Parameters
    ----------
    levels : sequence of float
        Rising, between 0 and 1.
    n_trees, learning_rate, max_leaves, min_leaf, random_state
        Of each model, as for `BoostingPredictor`.
    """

    def __init__(
        self,
        levels: Sequence[float] = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95),
        n_trees: int = 100,
        learning_rate: float = 0.1,
        max_leaves: int = 31,
        min_leaf: int = 20,
        random_state: Any = 0,
    ) -> None:
        super().__init__(n_trees, learning_rate, max_leaves, min_leaf, random_state)
        self.levels = levels

    def fit(self, X: Any, y: Any) -> Self:
        """Grow the trees on contexts (n_contexts, n_features), outcomes (.., n_outcomes)."""
        X, y = check_training_data(self, X, y)
        levels = self._checked_levels()
        self._grow(X, y, [{"loss": "quantile", "quantile": level} for level in levels])
        return self

    def _checked_levels(self) -> list[float]:
        levels = list(self.levels) if isinstance(self.levels, Sequence | np.ndarray) else []
        numbers = [float(q) for q in levels if isinstance(q, Real) and 0 < float(q) < 1]
        rising = all(low < high for low, high in pairwise(numbers))
        if not numbers or len(numbers) < len(levels) or not rising:
            raise InvalidInputError(
                f"levels must be rising numbers between 0 and 1, but is {self.levels!r}"
            )
        return numbers

    def _scenarios(self, X: np.ndarray, n_scenarios: int, random: np.random.Generator) -> Scenarios:
        levels = np.array(self._checked_levels())
        outputs = self._outputs(X).reshape(len(X), self.n_outcomes_, len(levels))
        values = np.sort(outputs, axis=2).transpose(0, 2, 1)
        values = self.outcome_mean_ + self.outcome_std_ * values
        weights = np.diff(np.concatenate([[0.0], (levels[1:] + levels[:-1]) / 2, [1.0]]))
        start = random.random()
        if n_scenarios >= len(levels):
            return Scenarios(values, weights)
        return Scenarios(values[:, systematic_picks(weights[None], n_scenarios, start)[0]])
