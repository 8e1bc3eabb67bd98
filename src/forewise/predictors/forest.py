"""Outcomes of past contexts that a random forest does not tell apart from the new one.

May import: exceptions, scenarios, tables, and its siblings `base`, `parameter_checks`,
`standardise`, `trees`, `weighted_support`.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.sparse import csr_array
from sklearn.ensemble import RandomForestRegressor

from forewise.exceptions import InvalidInputError
from forewise.predictors.base import Predictor
from forewise.predictors.networks.standardise import mean_and_std, standardise
from forewise.predictors.trees import find_leaves, numbered
from forewise.predictors.weighted_support import outcome_order, weighted_scenarios
from forewise.scenarios import Scenarios
from forewise.validation.arguments import as_random_state
from forewise.validation.parameters import require_count
from forewise.validation.tables import check_training_data


class ForestPredictor(Predictor):
    """Past outcomes, weighted by how often their contexts share a leaf with the new one.

    Prefer it as the first predictor that reads contexts: it needs no scaling and no tuning,
    takes many columns, ignores those that do not matter, and never predicts what has not been
    seen. For the same reason it cannot extrapolate a trend. Decisions from it are the weighted SAA
    of Bertsimas and Kallus (2020), with the weights of quantile regression forests
    (Meinshausen, 2006),

        w_i(x) = (1/T) Σ_t 1{x_i and x fall into the same leaf of tree t} / (rows in that leaf).

    Trees are grown on bootstrapped rows; *all* training rows, in the bag or not, then fall into
    the leaves and are weighed. Splits lower the squared error of the standardised outcomes, all
    of them together: a leaf tells means apart, and spreads only where means differ too.

    Parameters
    ----------
    n_trees : int
        T.
    min_leaf : int
        Fewest bootstrapped rows in a leaf; more make the distributions smoother.
    max_features : int, float, "sqrt", "log2" or None
        Columns tried at each split, as in scikit-learn; all by default.
    random_state : int, RandomState or None

    Attributes
    ----------
    outcomes_ : array (n_rows, n_outcomes)
        The training outcomes, in order.
    roots_ : array (n_trees,)
        First node of each tree; the nodes of all trees stand one behind the other.
    left_, right_, feature_ : arrays (n_nodes,)
        Children, by number of node, and column to compare; -1 and a negative number in a leaf.
    threshold_ : array (n_nodes,)
        A context goes left if its column is at most this, in single precision.
    leaf_rows_ : array (n_trees · n_rows,)
        Training rows by the leaf they fall into; those of node v stand from
        ``leaf_starts_[v]`` to ``leaf_starts_[v + 1]``.
    leaf_starts_ : array (n_nodes + 1,)

    Examples
    --------
    >>> X, y = [[0.0], [0.0], [1.0], [1.0]], [1.0, 2.0, 8.0, 9.0]
    >>> predictor = ForestPredictor(n_trees=50, min_leaf=1).fit(X, y)
    >>> predictor.sample([[1.0]]).values.flatten().max()
    tensor(9., dtype=torch.float64)
    """

    outcomes_: np.ndarray
    roots_: np.ndarray
    left_: np.ndarray
    right_: np.ndarray
    feature_: np.ndarray
    threshold_: np.ndarray
    leaf_rows_: np.ndarray
    leaf_starts_: np.ndarray

    def __init__(
        self,
        n_trees: int = 200,
        min_leaf: int = 10,
        max_features: int | float | str | None = 1.0,
        random_state: Any = 0,
    ) -> None:
        self.n_trees = n_trees
        self.min_leaf = min_leaf
        self.max_features = max_features
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Grow the trees on contexts (n_contexts, n_features), outcomes (.., n_outcomes)."""
        X, y = check_training_data(self, X, y)
        order = outcome_order(y)
        X, self.outcomes_ = X[order], y[order]
        forest = self._grown_forest(X, standardise(self.outcomes_, *mean_and_std(y)))
        trees = [tree.tree_ for tree in forest.estimators_]
        self.roots_ = np.cumsum([0, *(tree.node_count for tree in trees[:-1])])
        self.left_ = numbered([tree.children_left for tree in trees], self.roots_)
        self.right_ = numbered([tree.children_right for tree in trees], self.roots_)
        self.feature_ = np.concatenate([tree.feature for tree in trees])
        self.threshold_ = np.concatenate([tree.threshold for tree in trees])
        leaves = self._leaves(X)
        rows = np.broadcast_to(np.arange(len(X))[:, None], leaves.shape)
        by_leaf = np.argsort(leaves.T, axis=None, kind="stable")
        self.leaf_rows_ = rows.T.ravel()[by_leaf]
        counts = np.bincount(leaves.ravel(), minlength=len(self.left_))
        self.leaf_starts_ = np.concatenate([[0], counts.cumsum()])
        return self

    def _grown_forest(self, X: np.ndarray, y: np.ndarray) -> RandomForestRegressor:
        n_trees = require_count("n_trees", self.n_trees, at_least=1)
        min_leaf = require_count("min_leaf", self.min_leaf, at_least=1)
        as_random_state(self.random_state)  # or an error
        forest = RandomForestRegressor(
            n_trees,
            min_samples_leaf=min_leaf,
            max_features=self.max_features,
            random_state=self.random_state,
        )
        try:
            return forest.fit(X, y[:, 0] if y.shape[1] == 1 else y)
        except ValueError as error:
            raise InvalidInputError(f"the forest cannot be grown: {error}") from error

    def _leaves(self, X: np.ndarray) -> np.ndarray:
        """The leaf that each context falls into, in each tree: (n_contexts, n_trees)."""
        with np.errstate(over="ignore"):
            # Thresholds were chosen between single-precision numbers.
            columns = X.astype(np.float32)
        return find_leaves(
            columns, self.roots_, self.left_, self.right_, self.feature_, self.threshold_
        )

    def _scenarios(self, X: np.ndarray, n_scenarios: int, random: np.random.Generator) -> Scenarios:
        width = min(n_scenarios, len(self.outcomes_))
        return weighted_scenarios(self.outcomes_, X, self._weights, width, random)

    def _weights(self, contexts: np.ndarray) -> np.ndarray:
        """Weight of each training row, (n_contexts, n_rows); rows sum to one."""
        n_trees, n_nodes = len(self.roots_), len(self.left_)
        leaves = self._leaves(contexts)
        shares = 1 / (n_trees * np.diff(self.leaf_starts_)[leaves])
        begins = np.arange(len(contexts) + 1) * n_trees
        reached = csr_array((shares.ravel(), leaves.ravel(), begins), (len(contexts), n_nodes))
        members = csr_array(
            (np.ones(len(self.leaf_rows_)), self.leaf_rows_, self.leaf_starts_),
            (n_nodes, len(self.outcomes_)),
        )
        return (reached @ members).toarray()
