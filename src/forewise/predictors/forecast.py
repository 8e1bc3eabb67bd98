"""Scenarios from the forecasts of any other model and the errors of its past forecasts.

A `Forecast` says whether the numbers are means, quantiles or draws. To add one: a frozen dataclass
with the methods below, exported and known to storage.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtri

from forewise.exceptions import InvalidInputError, StorageError
from forewise.predictors.base import Predictor
from forewise.predictors.sampling import equal_picks, outcome_order, quantiles_at
from forewise.scenarios import Scenarios
from forewise.validation.arguments import as_tensor
from forewise.validation.parameters import came_as, require_count, require_instance, require_level

_MAX_SCORE = 4.0  # of an outcome beyond all quantiles of its forecast


class Forecast(ABC):
    """Meaning of a forecast's numbers, (n_contexts, n_outcomes, `width`).

    An outcome is a function of its forecast and a noise. The noises of past rows are resampled.

    Examples
    --------
    Whose numbers a `ForecastPredictor` gets, and how many for each outcome:

    >>> import forewise as fw
    >>> fw.predictors.MeanForecast().width, fw.predictors.QuantileForecast([0.1, 0.5, 0.9]).width
    (1, 3)
    """

    @property
    @abstractmethod
    def width(self) -> int:
        """Numbers per outcome."""

    @abstractmethod
    def noise(self, forecast: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The noise at which the forecast gives y (n_contexts, n_outcomes); called by `fit`."""

    @abstractmethod
    def values(self, forecast: np.ndarray, noise: np.ndarray) -> np.ndarray:
        """Outcomes (n_contexts, n_scenarios, n_outcomes) of noise (n_scenarios, n_outcomes)."""


@dataclass(frozen=True)
class MeanForecast(Forecast):
    """One number per outcome; its past errors are added to it.

    Parameters
    ----------
    relative : bool
        Errors are proportional to the forecast: for positive outcomes of many sizes.

    Examples
    --------
    Past errors of one's own forecast, added to tomorrow's:

    >>> import numpy as np
    >>> import forewise as fw
    >>> forecast = np.array([[10.0], [20.0], [30.0], [40.0]])
    >>> sold = np.array([[11.0], [19.0], [33.0], [40.0]])
    >>> predictor = fw.ForecastPredictor(fw.predictors.MeanForecast()).fit(forecast, sold)
    >>> np.sort(predictor.sample([[50.0]], 4).values.flatten())
    array([49., 50., 51., 53.])
    """

    relative: bool = False

    @property
    def width(self) -> int:
        return 1

    def noise(self, forecast: np.ndarray, y: np.ndarray) -> np.ndarray:
        mean = forecast[..., 0]
        if not self.relative:
            return y - mean
        if not (mean > 0).all():
            rows = np.flatnonzero(~(mean > 0).all(axis=1))
            raise InvalidInputError(
                f"forecasts must be positive for MeanForecast(relative=True), but row {rows[0]} "
                "has one that is not: drop such rows, or use MeanForecast()"
            )
        return y / mean

    def values(self, forecast: np.ndarray, noise: np.ndarray) -> np.ndarray:
        mean = forecast[:, None, :, 0]
        if self.relative and (mean < 0).any():
            raise InvalidInputError(
                "forecasts must not be negative for MeanForecast(relative=True), but "
                f"{int((mean < 0).any(axis=(1, 2)).sum())} of {len(mean)} rows have one that is: "
                "correct these rows, or use MeanForecast()"
            )
        return mean * noise if self.relative else mean + noise


class _Distribution(Forecast):
    """A forecast with a quantile function; noise is a normal score."""

    calibrated: bool

    @abstractmethod
    def _quantiles(self, forecast: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Normal scores (n_knots,), and the quantiles there, rising (.., n_outcomes, n_knots)."""

    def noise(self, forecast: np.ndarray, y: np.ndarray) -> np.ndarray:
        knots, quantiles = self._quantiles(forecast)
        found = np.empty_like(y)
        for outcome, values in enumerate(y.T):
            found[:, outcome] = [
                _score(value, knots, own)
                for value, own in zip(values, quantiles[:, outcome], strict=True)
            ]
        if self.calibrated:
            return found
        # Ranks keep the dependence between outcomes and discard the marginals.
        ranks = found.argsort(axis=0, kind="stable").argsort(axis=0)
        return ndtri((ranks + 0.5) / len(y))

    def values(self, forecast: np.ndarray, noise: np.ndarray) -> np.ndarray:
        return quantiles_at(noise, *self._quantiles(forecast))


@dataclass(frozen=True)
class QuantileForecast(_Distribution):
    """Quantiles of each outcome at some levels.

    The quantile function is piecewise linear in the normal score, extrapolated beyond the last
    levels; crossing quantiles are sorted.

    Parameters
    ----------
    levels : sequence of float
        At least two, rising, between 0 and 1.
    calibrated : bool
        Recalibrate on past outcomes, which corrects a forecast that is biased or overconfident.
        Without it quantiles are used as they are, and past outcomes give only the dependence
        between outcomes.

    Examples
    --------
    >>> import numpy as np
    >>> import forewise as fw
    >>> quantiles = np.array([[8.0, 10.0, 13.0]] * 50)  # of every day, at three levels
    >>> sold = np.random.default_rng(0).gamma(20.0, 0.5, size=(50, 1))
    >>> meaning = fw.predictors.QuantileForecast([0.1, 0.5, 0.9], calibrated=False)
    >>> predictor = fw.ForecastPredictor(meaning).fit(quantiles, sold)
    >>> float(np.median(predictor.sample(quantiles[:1], 99).values).round(1))
    10.0
    """

    levels: Sequence[float]
    calibrated: bool = True

    def __post_init__(self) -> None:
        levels = tuple(self.levels) if isinstance(self.levels, Sequence | np.ndarray) else ()
        if len(levels) < 2 or any(low >= high for low, high in pairwise(levels)):
            raise InvalidInputError(
                f"levels must be two or more rising numbers, but is {self.levels!r}"
            )
        for level in levels:
            require_level("each of levels", level)
        object.__setattr__(self, "levels", tuple(float(level) for level in levels))

    @property
    def width(self) -> int:
        return len(self.levels)

    def _quantiles(self, forecast: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return ndtri(np.array(self.levels)), np.sort(forecast, axis=-1)


@dataclass(frozen=True)
class DrawForecast(_Distribution):
    """Draws of each outcome, from its own distribution.

    Parameters
    ----------
    n_draws : int
        Draws of each outcome.
    calibrated : bool
        As for a `QuantileForecast`.

    Examples
    --------
    Draws of two products, each from its own distribution; joint scenarios move as past days did:

    >>> import numpy as np
    >>> import forewise as fw
    >>> random = np.random.default_rng(0)
    >>> forecast = random.gamma(4.0, 3.0, size=(200, 2, 50))  # days, products, draws
    >>> y = forecast[..., 0]
    >>> predictor = fw.ForecastPredictor(fw.predictors.DrawForecast(n_draws=50))
    >>> predictor = predictor.fit(forecast[:150].reshape(150, -1), y[:150])
    >>> predictor.sample(forecast[150:].reshape(50, -1), 100).values.shape
    torch.Size([50, 100, 2])
    """

    n_draws: int
    calibrated: bool = True

    def __post_init__(self) -> None:
        require_count("n_draws", self.n_draws, at_least=2)

    @property
    def width(self) -> int:
        return self.n_draws

    def _quantiles(self, forecast: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        levels = (np.arange(self.n_draws) + 0.5) / self.n_draws
        return ndtri(levels), np.sort(forecast, axis=-1)


@dataclass(eq=False, repr=False)
class ForecastPredictor(Predictor):
    """Scenarios from the forecasts of an existing model.

    The errors of its forecasts for past rows are resampled, all outcomes of a row together, and
    applied to new forecasts. Outcomes therefore depend on each other as in the past (an empirical
    copula), whether or not the model describes their dependence.

    When to use: a model that you trust gives a mean, quantiles or draws for every row.

    Parameters
    ----------
    forecast : Forecast
        What its numbers mean: `MeanForecast()`, `QuantileForecast(levels)`, `DrawForecast(n)`.
    model : object with predict, or list of such, optional
        Already fitted, to other rows than those passed to `fit`: errors on a model's own training
        rows are too small. ``predict(X)`` gives (n_contexts,) or (n_contexts, columns), a list
        a column each. Without it the contexts are the forecasts themselves. Columns are those of
        the first outcome, then of the second, and so on. Where its predictions depend on the other
        rows by rounding, as those of matrix products do, so do scenarios.

    Examples
    --------
    Quantiles that another system forecast for each day, as columns of the table:

    >>> import numpy as np
    >>> import forewise as fw
    >>> level = np.random.default_rng(0).uniform(10.0, 30.0, size=(100, 1))
    >>> quantiles = level * [0.8, 1.0, 1.3]
    >>> sold = level * np.random.default_rng(1).gamma(25.0, 0.04, size=(100, 1))
    >>> meaning = fw.predictors.QuantileForecast(levels=(0.1, 0.5, 0.9))
    >>> learner = fw.DecoupledLearner(fw.Newsvendor(3.0, 1.0), fw.ForecastPredictor(meaning))
    >>> orders = learner.fit(quantiles, sold).decide([[8.0, 10.0, 13.0]], n_scenarios=50)
    >>> bool(10.0 < orders[0, 0] < 14.0)
    True
    """

    forecast: Forecast
    model: Any = None

    censored_advice: ClassVar[str] = (
        "a forecaster that exists already learned from outcomes or from sales, which is not said; "
        "fit to forewise.predictors.completed(X, y, censored) if it forecasts outcomes"
    )

    def __sklearn_clone__(self) -> ForecastPredictor:
        """With the same model: it is fitted, and a clone of it would not be."""
        return type(self)(self.forecast, self.model)

    def _fit(self, X: np.ndarray, y: np.ndarray) -> None:
        require_instance("forecast", self.forecast, Forecast, "MeanForecast()")
        self.n_outcomes_ = y.shape[1]
        noise = self.forecast.noise(self._forecasts(X), y)
        self.noise_ = noise[outcome_order(noise)]

    def _forecasts(self, X: np.ndarray) -> np.ndarray:
        """(n_contexts, n_outcomes, width)."""
        if self.model is None:
            columns = X
        elif isinstance(self.model, list | tuple):
            columns = np.column_stack([self._predicted(model, X) for model in self.model])
        else:
            columns = self._predicted(self.model, X)
        columns = columns.reshape(len(X), -1)
        width, expected = self.forecast.width, self.n_outcomes_ * self.forecast.width
        if columns.shape[1] != expected:
            source = "X" if self.model is None else "model"
            raise InvalidInputError(
                f"forecasts of {source} must have {expected} columns, {width} for each of "
                f"{self.n_outcomes_} outcomes, but have {columns.shape[1]}"
            )
        return columns.reshape(len(X), self.n_outcomes_, width)

    def _predicted(self, model: Any, X: np.ndarray) -> np.ndarray:
        if not callable(getattr(model, "predict", None)) or isinstance(model, type):
            raise InvalidInputError(
                "model must be an object with a method predict, or a list of such, but is "
                f"{came_as(model)}"
            )
        name = f"what {type(model).__name__} predicts"
        found = as_tensor(name, model.predict(X)).detach().cpu().double().numpy()
        if not found.ndim or len(found) != len(X) or not np.isfinite(found).all():
            raise InvalidInputError(
                f"model must predict a finite number for each of {len(X)} rows, but "
                f"{type(model).__name__} gives an array {found.shape} "
                f"with {int((~np.isfinite(found)).sum())} numbers that are not finite"
            )
        return found

    def _scenarios(self, X: np.ndarray, n_scenarios: int, random: np.random.Generator) -> Scenarios:
        picks = equal_picks(len(self.noise_), n_scenarios, random.random())
        return Scenarios(self.forecast.values(self._forecasts(X), self.noise_[picks]))

    def state(self) -> dict[str, Any]:
        """What was learned; a model of another library cannot be stored."""
        if self.model is not None:
            raise StorageError(
                "a ForecastPredictor with a model cannot be stored: store the model in its own "
                "way, and fit and decide with its forecasts in the place of contexts (model=None)"
            )
        return super().state()


def _score(value: float, knots: np.ndarray, quantiles: np.ndarray) -> float:
    """The normal score at which a quantile function has a value, the middle of a flat piece."""
    found = []
    for side in ("left", "right"):
        left = int(np.searchsorted(quantiles[1:-1], value, side=side))
        low, high = quantiles[left], quantiles[left + 1]
        if high > low:
            share = (value - low) / (high - low)
        else:
            share = 0.5 if value == low else math.copysign(math.inf, value - low)
        score = knots[left] + share * (knots[left + 1] - knots[left])
        found.append(min(max(score, -_MAX_SCORE), _MAX_SCORE))
    return 0.5 * (found[0] + found[1])
