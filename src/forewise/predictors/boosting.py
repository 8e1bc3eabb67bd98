"""Gradient boosting: trees of scikit-learn, kept as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from numbers import Real
from typing import Any

import numpy as np
from scipy.special import ndtri
from sklearn.base import clone

from forewise.exceptions import ForewiseError, InvalidInputError
from forewise.predictors.sampling import (
    context_slices,
    mean_and_std,
    quantiles_at,
    standardise,
)
from forewise.predictors.trees import CompletingPredictor, TreePredictor
from forewise.scenarios import Scenarios
from forewise.validation.parameters import (
    as_random_state,
    require_count,
    require_number,
    require_positive,
)

# Trees of few rows do better with few leaves: a leaf of 20 rows is a large part of them.
_FEW_ROWS = 600
_OF_FEW_ROWS = {"max_leaves": 8, "min_leaf": 5}
_OF_MANY_ROWS = {"max_leaves": 31, "min_leaf": 20}
_CHECKED_ROWS = 64  # that boosted trees are compared with scikit-learn's forecasts on
_FEWEST_HELD = 10  # rows that outer quantiles are calibrated on
_SMALLEST_SPREAD = 1e-3  # of a quantile from the median, in units of the outcome's std


class _BoostedTrees(CompletingPredictor, TreePredictor):
    """Several boosted models of the same contexts, one for each outcome and loss."""

    def _grow(self, X: np.ndarray, y: np.ndarray, losses: Sequence[dict[str, Any]]) -> None:
        """Fit a model for each outcome and loss, and check that its arrays say the same."""
        from sklearn.ensemble import HistGradientBoostingRegressor  # imports rich

        as_random_state(self.random_state)  # or an error
        settings = {
            "max_iter": require_count("n_trees", self.n_trees, at_least=1),
            "learning_rate": require_positive("learning_rate", self.learning_rate),
            "max_leaf_nodes": self._size("max_leaves", len(X), 2),
            "min_samples_leaf": self._size("min_leaf", len(X), 1),
            # Stopping early would hold out rows at random, future ones among them.
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
        # There is no public way to the trees.
        nodes = [stage[0].nodes for model in models for stage in model._predictors]
        self.baseline_ = np.array([float(np.ravel(m._baseline_prediction)[0]) for m in models])
        self.tree_model_ = np.repeat(np.arange(len(models)), [len(m._predictors) for m in models])
        self._store_trees(_node_arrays(tree) for tree in nodes)
        self.value_ = np.concatenate([tree["value"] for tree in nodes])
        rows = X[:_CHECKED_ROWS]
        expected = np.column_stack([model.predict(rows) for model in models])
        if not np.allclose(self._outputs(rows), expected, rtol=1e-9, atol=1e-9):
            raise ForewiseError(
                "this version of scikit-learn stores boosted trees in a way that forewise does not "
                "know: install a version that pyproject.toml names"
            )

    def _size(self, name: str, n_rows: int, at_least: int) -> int:
        """A setting of trees; by default that of as many rows."""
        value = getattr(self, name)
        if value is None:
            return _OF_FEW_ROWS[name] if n_rows < _FEW_ROWS else _OF_MANY_ROWS[name]
        return require_count(name, value, at_least=at_least)

    def _outputs(self, X: np.ndarray) -> np.ndarray:
        """The models' standardised forecasts, (n_contexts, n_models)."""
        starts = np.searchsorted(self.tree_model_, np.arange(len(self.baseline_)))
        outputs = np.empty((len(X), len(self.baseline_)))
        for part in context_slices(len(X), len(self.roots_)):
            leaves = self._leaves(X[part])
            outputs[part] = np.add.reduceat(self.value_[leaves], starts, axis=1)
        return outputs + self.baseline_


def _node_arrays(nodes: np.ndarray) -> tuple[np.ndarray, ...]:
    """Left, right, feature and threshold of a boosted tree."""
    left, right, feature = (nodes[k].astype(np.int64) for k in ("left", "right", "feature_idx"))
    leaf = nodes["is_leaf"].astype(bool)
    return np.where(leaf, -1, left), np.where(leaf, -1, right), feature, nodes["num_threshold"]


@dataclass(eq=False, repr=False)
class BoostingPredictor(_BoostedTrees):
    """A point forecast of each outcome by gradient boosting: a single scenario, no uncertainty.

    When to use: as the baseline "forecast well, then optimise", and inside a `ResidualPredictor`,
    which adds its errors. It cannot extrapolate a trend.

    Parameters
    ----------
    learning_rate : float
        Share of each tree that is added; smaller wants more trees.
    max_leaves, min_leaf : int, optional
        Most leaves of a tree, and fewest training rows in a leaf: 8 and 5 with fewer than 600 rows,
        otherwise 31 and 20.
    random_state : int, RandomState or None
        Matters with more than 200,000 rows only, of which some are drawn to choose thresholds.

    Examples
    --------
    >>> import numpy as np
    >>> import forewise as fw
    >>> X = np.linspace(0.0, 1.0, 200)[:, None]
    >>> forecast = fw.BoostingPredictor(n_trees=50).fit(X, 10.0 * (X > 0.5))
    >>> forecast.sample([[0.2], [0.8]], 1).values.flatten().round(decimals=1)
    tensor([ 0., 10.], dtype=torch.float64)
    """

    n_trees: int = 200
    learning_rate: float = 0.1
    max_leaves: int | None = None
    min_leaf: int | None = None
    random_state: Any = 0

    def _fit(self, X: np.ndarray, y: np.ndarray) -> None:
        self._grow(X, y, [{"loss": "squared_error"}])

    def predict(self, X: Any) -> np.ndarray:
        """The forecast of each context, (n_contexts, n_outcomes)."""
        return self._forecast(self.check_contexts(X))

    def _forecast(self, X: np.ndarray) -> np.ndarray:
        return self.outcome_mean_ + self.outcome_std_ * self._outputs(X)

    def _scenarios(self, X: np.ndarray, n_scenarios: int, random: np.random.Generator) -> Scenarios:
        return Scenarios(self._forecast(X)[:, None])


@dataclass(eq=False, repr=False)
class QuantileBoostingPredictor(_BoostedTrees):
    """Quantiles by gradient boosting, one model for each level, joined to a distribution.

        scenario j of M:   q(Φ⁻¹((j − ½) / M)),    q piecewise linear through (Φ⁻¹(level), quantile)

    Quantiles that cross are sorted. Beyond the last levels the last line goes on. Boosting fits the
    outer quantiles too closely to the training rows: the first and the last are moved away from the
    median by the factor that makes their interval cover rows held out as often as it says.

    When to use: for a `Newsvendor`, with shortage / (shortage + excess) among `levels`. A scenario
    of several outcomes has all at the same level: right for costs that are a sum over outcomes,
    biased for others; inside a `ForecastPredictor` outcomes move as they did in the past.

    Parameters
    ----------
    levels : sequence of float
        Rising, between 0 and 1. One alone is a forecast without uncertainty: a single scenario.
    learning_rate, max_leaves, min_leaf
        As of a `BoostingPredictor`.
    calibration_share : float
        Share of the rows, at random, that a second fit of the outer levels and the median holds
        out for calibration; 0 for none. With fewer than 10 such rows there is none.

    Attributes
    ----------
    outer_scale_ : ndarray (n_outcomes,)
        The factor of each outcome; 1 without calibration.

    Examples
    --------
    >>> import numpy as np
    >>> import forewise as fw
    >>> random = np.random.default_rng(0)
    >>> X = random.uniform(size=(300, 1))
    >>> y = 10.0 + (1 + 4 * X) * random.normal(size=X.shape)
    >>> levels = (0.1, 0.5, 0.75, 0.9)
    >>> quantiles = fw.QuantileBoostingPredictor(levels, n_trees=20, calibration_share=0).fit(X, y)
    >>> calm, wild = quantiles.sample([[0.1], [0.9]], 50).values.std(1).flatten()
    >>> bool(calm < wild)
    True
    """

    levels: Sequence[float] = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
    n_trees: int = 300
    learning_rate: float = 0.2
    max_leaves: int | None = None
    min_leaf: int | None = None
    calibration_share: float = 0.25
    random_state: Any = 0

    def _fit(self, X: np.ndarray, y: np.ndarray) -> None:
        levels = self._checked_levels()
        self._grow(X, y, [{"loss": "quantile", "quantile": level} for level in levels])
        share = require_number("calibration_share", self.calibration_share, at_least=0, below=1)
        self.outer_scale_ = np.ones(y.shape[1])
        outer = [levels[0], levels[_central(levels)], levels[-1]]
        if int(share * len(X)) >= _FEWEST_HELD and outer[0] < outer[1] < outer[2]:
            order = as_random_state(self.random_state).permutation(len(X))
            held, train = np.split(order, [int(share * len(X))])
            plain = clone(self).set_params(levels=outer, calibration_share=0.0)
            quantiles = plain.fit(X[train], y[train]).predict_quantiles(X[held])
            self.outer_scale_ = _covering_scale(quantiles, y[held], outer[2] - outer[0])

    def restore(self, state: dict[str, Any]) -> None:
        """Take the fitted attributes; those stored before there was a calibration have none."""
        super().restore({"outer_scale_": np.ones(state["n_outcomes_"])} | state)

    def _checked_levels(self) -> list[float]:
        levels = list(self.levels) if isinstance(self.levels, Sequence | np.ndarray) else []
        numbers = [float(q) for q in levels if isinstance(q, Real) and 0 < float(q) < 1]
        rising = all(low < high for low, high in pairwise(numbers))
        if not numbers or len(numbers) < len(levels) or not rising:
            raise InvalidInputError(
                f"levels must be rising numbers between 0 and 1, but is {self.levels!r}"
            )
        return numbers

    def predict_quantiles(self, X: Any) -> np.ndarray:
        """Quantiles of each context at `levels`, rising, (n_contexts, n_outcomes, n_levels)."""
        return self._quantiles(self.check_contexts(X))

    def _quantiles(self, X: np.ndarray) -> np.ndarray:
        outputs = np.sort(self._outputs(X).reshape(len(X), self.n_outcomes_, -1), axis=2)
        centre = _central(self.levels)
        for outer in {0, outputs.shape[2] - 1} - {centre}:
            spread = outputs[:, :, outer] - outputs[:, :, centre]
            outputs[:, :, outer] = outputs[:, :, centre] + self.outer_scale_ * spread
        scale, mean = self.outcome_std_[:, None], self.outcome_mean_[:, None]
        return mean + scale * np.sort(outputs, axis=2)

    def _scenarios(self, X: np.ndarray, n_scenarios: int, random: np.random.Generator) -> Scenarios:
        knots, quantiles = ndtri(np.array(self._checked_levels())), self._quantiles(X)
        if len(knots) == 1:
            return Scenarios(quantiles.transpose(0, 2, 1))
        scores = ndtri((np.arange(n_scenarios) + 0.5) / n_scenarios)
        scores = np.broadcast_to(scores[:, None], (n_scenarios, self.n_outcomes_))
        return Scenarios(quantiles_at(scores, knots, quantiles))


def _central(levels: Sequence[float]) -> int:
    """The place of the level nearest to the median."""
    return int(np.abs(np.array(levels) - 0.5).argmin())


def _covering_scale(quantiles: np.ndarray, y: np.ndarray, share: float) -> np.ndarray:
    """Factors by which intervals grow from the median to cover a share of outcomes.

    Quantiles are (n_rows, n_outcomes, 3): lower, median, upper. An outcome's score is the factor
    that just reaches it; its quantile over rows covers new ones as often as it says (conformal).
    """
    low, middle, high = np.moveaxis(quantiles, 2, 0)
    least = np.maximum(_SMALLEST_SPREAD * y.std(axis=0), np.finfo(float).tiny)
    reached = np.where(
        y < middle, (middle - y) / np.maximum(middle - low, least),
        (y - middle) / np.maximum(high - middle, least),
    )  # fmt: skip
    return np.quantile(reached, min(1.0, share * (1 + 1 / len(y))), axis=0)
