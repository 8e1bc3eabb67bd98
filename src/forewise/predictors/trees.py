"""Trees of scikit-learn, kept as arrays, and random forests of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from threading import Lock
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from forewise import _core
from forewise.exceptions import InvalidInputError
from forewise.predictors.base import Predictor
from forewise.predictors.censoring import N_DRAWS, Completion, expanded
from forewise.predictors.sampling import mean_and_std, outcome_order, standardise
from forewise.scenarios import Scenarios
from forewise.validation.censored import check_censored, require_known
from forewise.validation.parameters import as_random_state, require_count
from forewise.validation.tables import check_training_data

_LEAF_SIZES = (1, 2, 5, 10, 20, 40)  # that are compared out of bag
_JUDGED_ROWS, _JUDGED_ENTRIES = 512, 2**22  # most rows, and most weights, of that comparison
_REFERENCE: dict[str, Any] = {"n_trees": 50, "max_features": 0.5}  # completes outcomes


class TreePredictor(Predictor):
    """Trees as arrays; the nodes of all trees stand one behind the other."""

    def _store_trees(self, trees: Iterable[tuple[np.ndarray, ...]]) -> None:
        """Keep trees, each (left, right, feature, threshold) with children numbered within it."""
        lefts, rights, features, thresholds = zip(*trees, strict=True)
        sizes = [len(left) for left in lefts]
        self.roots_ = np.cumsum([0, *sizes[:-1]])  # first node of each tree
        first = np.repeat(self.roots_, sizes)
        left, right = np.concatenate(lefts), np.concatenate(rights)
        # Children are -1 in a leaf. A context goes left if its column is at most the threshold.
        self.left_ = np.where(left < 0, -1, left + first)
        self.right_ = np.where(right < 0, -1, right + first)
        self.feature_ = np.concatenate(features)
        self.threshold_ = np.concatenate(thresholds)

    def _cut_trees(self, top: np.ndarray) -> np.ndarray:
        """Make leaves of the nodes `top`, each node or one above it; the new numbers of nodes."""
        kept = top == np.arange(len(top))
        number = np.cumsum(kept) - 1
        # A node whose left child is not kept has become a leaf.
        leaf = (self.left_ < 0) | ~kept[self.left_]
        left = np.where(leaf, -1, number[self.left_])
        right = np.where(leaf, -1, number[self.right_])
        self.roots_ = number[self.roots_]
        self.left_, self.right_ = left[kept], right[kept]
        self.feature_, self.threshold_ = self.feature_[kept], self.threshold_[kept]
        return number[top]

    def _leaves(self, X: np.ndarray) -> np.ndarray:
        """The leaf that each context falls into, in each tree: (n_contexts, n_trees)."""
        node = np.broadcast_to(self.roots_, (len(X), len(self.roots_))).copy()
        context, tree = np.indices(node.shape).reshape(2, -1)
        while len(context):
            at = node[context, tree]
            inner = self.left_[at] >= 0
            context, tree, at = context[inner], tree[inner], at[inner]
            goes_left = X[context, self.feature_[at]] <= self.threshold_[at]
            node[context, tree] = np.where(goes_left, self.left_[at], self.right_[at])
        return node


@dataclass(eq=False, repr=False)
class ForestPredictor(TreePredictor):
    """Past outcomes, weighted by how often their contexts share a leaf with the new one.

    Decisions from it are the weighted SAA of Bertsimas and Kallus (2020), with the weights of
    quantile regression forests (Meinshausen, 2006):

        w_i(x) = (1/T) Σ_t 1{x_i and x fall into the same leaf of tree t} / (rows in that leaf)

    Trees are grown on bootstrapped rows; all training rows then fall into the leaves. Splits lower
    the squared error of the standardised outcomes. A censored outcome shares its weight among draws
    from beyond its bound, as Kaplan–Meier weights of residuals around it say.

    When to use: the first predictor that reads contexts. It needs no tuning and ignores columns
    that do not matter; it cannot extrapolate a trend.

    Parameters
    ----------
    min_leaf : int, optional
        Fewest bootstrapped rows in a leaf; more make the distributions smoother. By default trees
        are grown to the end, and then cut back to where the CRPS of rows that a tree was not grown
        on is lowest: to leaves of a few rows where outcomes follow the context closely, of many
        where they are mostly noise.
    max_features : int, float, "sqrt", "log2" or None
        Columns tried at each split, as in scikit-learn; all by default.
    n_jobs : int, optional
        Threads that grow trees, one per core by default. The trees do not depend on it.

    Examples
    --------
    >>> import numpy as np
    >>> import forewise as fw
    >>> random = np.random.default_rng(0)
    >>> X = random.uniform(size=(200, 3))
    >>> y = 10.0 + 10.0 * (X[:, 0] > 0.5) + random.normal(size=200)
    >>> forest = fw.ForestPredictor(n_trees=20, random_state=0).fit(X, y)
    >>> low, high = forest.sample([[0.2, 0.5, 0.5], [0.8, 0.5, 0.5]], 64).values.mean(1)
    >>> bool(low < 12) and bool(high > 18)
    True
    """

    n_trees: int = 100
    min_leaf: int | None = None
    max_features: int | float | str | None = 1.0
    random_state: Any = 0
    n_jobs: int | None = -1

    def _fit(self, X: np.ndarray, y: np.ndarray) -> None:
        order = outcome_order(y)
        self._plant(X[order], y[order], standardise(y[order], *mean_and_std(y)))
        self.outcomes_, self.row_of_ = y[order], None

    def _fit_censored(self, X: np.ndarray, y: np.ndarray, censored: np.ndarray) -> None:
        draws, self.undetermined_ = draws_beyond(X, y, censored, N_DRAWS)
        means = draws.mean(axis=1)
        self._plant(X, draws[:, 0], standardise(means, *mean_and_std(means)))
        outcomes, rows = expanded(draws, censored)
        order = outcome_order(outcomes)
        self.outcomes_, self.row_of_ = outcomes[order], rows[order]

    def _plant(self, X: np.ndarray, y: np.ndarray, targets: np.ndarray) -> None:
        """Grow trees on targets (n_contexts, n_outcomes), cut them back by outcomes y."""
        forest = self._grow(X, targets)
        trees = [tree.tree_ for tree in forest.estimators_]
        self._store_trees(
            (tree.children_left, tree.children_right, tree.feature, tree.threshold)
            for tree in trees
        )
        leaves = self._leaves(X)
        if self.min_leaf is None:
            outside = np.ones(leaves.shape, dtype=bool)
            for number, rows in enumerate(forest.estimators_samples_):
                outside[rows, number] = False
            sizes = np.concatenate([tree.n_node_samples for tree in trees])
            leaves = self._cut_trees(self._best_cut(sizes, leaves, outside, y))[leaves]
        self.leaf_rows_, self.leaf_starts_ = _members(leaves, len(self.left_))

    def _grow(self, X: np.ndarray, y: np.ndarray) -> Any:
        from sklearn.ensemble import RandomForestRegressor  # imports rich

        as_random_state(self.random_state)  # or an error
        min_leaf = 1 if self.min_leaf is None else self.min_leaf
        forest = RandomForestRegressor(
            require_count("n_trees", self.n_trees, at_least=1),
            min_samples_leaf=require_count("min_leaf", min_leaf, at_least=1),
            max_features=self.max_features,
            random_state=self.random_state,
            n_jobs=self.n_jobs,
        )
        try:
            return forest.fit(X, y[:, 0] if y.shape[1] == 1 else y)
        except ValueError as error:
            raise InvalidInputError(f"the forest cannot be grown: {error}") from error

    def _best_cut(
        self, sizes: np.ndarray, leaves: np.ndarray, outside: np.ndarray, y: np.ndarray
    ) -> np.ndarray:
        """The leaf of each node, where trees are cut back as out-of-bag rows say.

        A node with fewer than twice as many rows as a leaf should have becomes one.
        """
        n_nodes = len(sizes)
        parent = np.arange(n_nodes)
        inner = np.flatnonzero(self.left_ >= 0)
        parent[self.left_[inner]] = parent[self.right_[inner]] = inner
        judged = evaluated_rows(len(leaves))
        best, least = np.arange(n_nodes), np.inf
        for size in _LEAF_SIZES:
            top = np.arange(n_nodes)
            while (small := (sizes[parent[top]] < 2 * size) & (parent[top] != top)).any():
                top = np.where(small, parent[top], top)
            weights = _out_of_bag_weights(top[leaves], n_nodes, judged, outside[judged])
            loss = weighted_crps(y, weights, y[judged])
            if loss < least:
                best, least = top, loss
        return best

    def _leaves(self, X: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            # Thresholds were chosen between single-precision numbers.
            return super()._leaves(X.astype(np.float32))

    def _scenarios(self, X: np.ndarray, n_scenarios: int, random: np.random.Generator) -> Scenarios:
        """Outcomes picked by their weights, as `weighted_scenarios` does, in one compiled pass."""
        n_outcomes = len(self.outcomes_)
        row_of = np.arange(n_outcomes) if self.row_of_ is None else self.row_of_
        share = 1 / np.bincount(row_of)[row_of]
        whole = (self.left_, self.right_, self.feature_, self.threshold_, self.roots_)
        forest = (*whole, self.leaf_rows_, self.leaf_starts_, row_of, share, int(row_of.max()) + 1)
        with np.errstate(over="ignore"):
            contexts = X.astype(np.float32).astype(np.float64)  # as in `_leaves`
        shape = len(X), min(n_scenarios, n_outcomes)
        picks, weights = np.empty(shape, dtype=np.int64), np.empty(shape)
        _core.pick_from_forest(forest, contexts, random.random(), picks, weights)
        return Scenarios(self.outcomes_[picks], weights)

    def _weights(self, contexts: np.ndarray) -> np.ndarray:
        """Weight of each training row, (n_contexts, n_rows); rows sum to one."""
        leaves = self._leaves(contexts)
        shares = 1 / (len(self.roots_) * np.diff(self.leaf_starts_)[leaves])
        members = (self.leaf_rows_, self.leaf_starts_)
        n_rows = len(self.outcomes_) if self.row_of_ is None else int(self.row_of_.max()) + 1
        return _row_weights(leaves, shares, members, n_rows)


class CompletingPredictor(Predictor):
    """A predictor that takes a draw from beyond its bound for each censored outcome.

    After such a fit `undetermined_` is the share of the draws that no known outcome lies beyond:
    they end too early.
    """

    def _fit_censored(self, X: np.ndarray, y: np.ndarray, censored: np.ndarray) -> None:
        draws, self.undetermined_ = draws_beyond(X, y, censored)
        self._fit(X, draws[:, 0])


def draws_beyond(
    X: np.ndarray, y: np.ndarray, censored: np.ndarray, n_draws: int = 1, seed: int = 0
) -> tuple[np.ndarray, float]:
    """Completed outcomes (n_contexts, n_draws, n_outcomes) of checked ones, by a forest.

    And the share of the draws that no known outcome lies beyond: see `Completion.draws`.
    """
    return _COMPLETIONS.of(X, y, censored).draws(X, y, censored, n_draws, seed)


class Completions:
    """What checked rows say of outcomes beyond bounds, by a forest of few trees.

    The last ones are kept: predictors that are compared are fitted to the same rows, one after the
    other or in threads.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._made: dict[bytes, Completion] = {}  # by a hash of their training rows
        self._lock = Lock()

    def of(self, X: np.ndarray, y: np.ndarray, censored: np.ndarray) -> Completion:
        digest = sha256(repr((X.shape, y.shape)).encode())
        for part in (X, y, censored):
            digest.update(np.ascontiguousarray(part).data)
        key = digest.digest()
        with self._lock:
            if key not in self._made:
                forest = ForestPredictor(**_REFERENCE, n_jobs=None)
                made = Completion.make(forest, X, y, censored)
                while len(self._made) >= self._most:
                    del self._made[next(iter(self._made))]
                self._made[key] = made
            return self._made[key]


_COMPLETIONS = Completions(most=2)


@dataclass(frozen=True)
class Completer:
    """Outcomes to evaluate and to validate with: a draw where only a bound was seen."""

    completion: Completion | None  # None: no training row is censored

    @classmethod
    def make(cls, X: np.ndarray, y: np.ndarray, censored: np.ndarray | None) -> Completer:
        if censored is None:
            return cls(None)
        require_known(censored)
        return cls(_COMPLETIONS.of(X, y, censored))

    def outcomes(self, X: np.ndarray, y: np.ndarray, censored: np.ndarray | None) -> np.ndarray:
        """Outcomes (n_contexts, n_outcomes), y where they are known."""
        if censored is None:
            return y
        if self.completion is None:
            raise InvalidInputError(
                "censored must be given with censored_val: what lies beyond bounds is learned from "
                "training rows, of which none is said to be censored"
            )
        return self.completion.draws(X, y, censored, 1, seed=0)[0][:, 0]


def completed(X: Any, y: Any, censored: Any, random_state: Any = 0) -> np.ndarray:
    """Outcomes (n_contexts, n_outcomes), a draw beyond the bound in place of each censored one.

    For methods that cannot take `censored`; they believe the draws to be outcomes. Each is drawn
    given its context, from what a `ForestPredictor` learns of outcomes beyond bounds.

    Examples
    --------
    The third day was sold out after 7; that row gets a draw beyond 7:

    >>> import numpy as np
    >>> import forewise as fw
    >>> X = np.arange(12.0)[:, None]
    >>> y = np.array([5, 9, 7, 6, 8, 10, 5, 9, 11, 6, 8, 10.0])
    >>> sold_out = np.arange(12) == 2
    >>> demand = fw.predictors.completed(X, y, sold_out)
    >>> bool(demand[2, 0] >= 7), bool((demand[~sold_out, 0] == y[~sold_out]).all())
    (True, True)
    """
    contexts, outcomes = check_training_data(ForestPredictor(), X, y)
    flags = check_censored(censored, y, outcomes)
    seed = int(as_random_state(random_state).randint(2**31))
    if flags is None:
        return outcomes
    require_known(flags)
    return draws_beyond(contexts, outcomes, flags, 1, seed)[0][:, 0]


def _members(leaves: np.ndarray, n_nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Training rows by leaf; those of node v are rows[starts[v] : starts[v + 1]]."""
    rows = np.broadcast_to(np.arange(len(leaves))[:, None], leaves.shape)
    by_leaf = np.argsort(leaves.T, axis=None, kind="stable")
    counts = np.bincount(leaves.ravel(), minlength=n_nodes)
    return rows.T.ravel()[by_leaf], np.concatenate([[0], counts.cumsum()])


def _row_weights(
    leaves: np.ndarray, shares: np.ndarray, members: tuple[np.ndarray, np.ndarray], n_rows: int
) -> np.ndarray:
    """Weights (n_contexts, n_rows), where each row of a leaf (n_contexts, n_trees) has a share."""
    leaf_rows, leaf_starts = members
    n_contexts, n_trees = leaves.shape
    n_nodes = len(leaf_starts) - 1
    begins = np.arange(n_contexts + 1) * n_trees
    reached = csr_array((shares.ravel(), leaves.ravel(), begins), (n_contexts, n_nodes))
    inside = csr_array((np.ones(len(leaf_rows)), leaf_rows, leaf_starts), (n_nodes, n_rows))
    return (reached @ inside).toarray()


def _out_of_bag_weights(
    leaves: np.ndarray, n_nodes: int, judged: np.ndarray, outside: np.ndarray
) -> np.ndarray:
    """Out-of-bag weights (n_evaluated, n_rows): of trees grown without the row, itself excluded."""
    members = _members(leaves, n_nodes)
    others = np.diff(members[1])[leaves[judged]] - 1
    shares = np.where(outside & (others > 0), 1 / np.maximum(others, 1), 0.0)
    weights = _row_weights(leaves[judged], shares, members, len(leaves))
    weights[np.arange(len(judged)), judged] = 0.0
    total = weights.sum(axis=1, keepdims=True)
    # Few trees may all have seen a row: it then says nothing.
    return np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)


def evaluated_rows(n_rows: int) -> np.ndarray:
    """Some rows, evenly spread, on which settings are compared in bounded time."""
    most = max(1, min(n_rows, _JUDGED_ROWS, _JUDGED_ENTRIES // n_rows))
    return np.linspace(0, n_rows - 1, most).astype(int)


def weighted_crps(outcomes: np.ndarray, weights: np.ndarray, seen: np.ndarray) -> float:
    """Mean CRPS of weighted outcomes, each column in units of its spread.

    `outcomes` (n_rows, n_outcomes) with `weights` (n_contexts, n_rows), judged by what was `seen`
    (n_contexts, n_outcomes).
    """
    total, spreads = 0.0, mean_and_std(outcomes)[1]
    for column, spread in enumerate(spreads):
        if spread > 0:
            order = np.argsort(outcomes[:, column], kind="stable")
            values = outcomes[order, column]
            below = weights[:, order].cumsum(axis=1)[:, :-1]
            above = values[:-1] >= seen[:, column, None]
            total += float(((below - above) ** 2 @ np.diff(values)).mean() / spread)
    return total
