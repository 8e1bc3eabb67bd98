"""WHAT may happen: predictors, from contexts to scenarios. They know no problem and no solver.

`base` is the contract. Networks (`bayesian`, `point`, `ensemble`) are put together from weights,
heads and the one `training` loop, may see contexts through `encodings`, and may be held back by
`caution`; `empirical`, `grouped`, `neighbor`, `forest`, `boosting`, `residual` and
`gaussian_process` are the baselines that practitioners trust.
"""

from forewise.predictors.base import Predictor
from forewise.predictors.bayesian import BayesianPredictor, MixturePredictor
from forewise.predictors.boosting import BoostingPredictor, QuantileBoostingPredictor
from forewise.predictors.caution import Caution
from forewise.predictors.empirical import EmpiricalPredictor
from forewise.predictors.encodings import Encoding, PeriodicEncoding
from forewise.predictors.ensemble import EnsemblePredictor
from forewise.predictors.forest import ForestPredictor
from forewise.predictors.gaussian_process import GaussianProcessPredictor
from forewise.predictors.grouped import GroupedPredictor
from forewise.predictors.neighbor import NeighborPredictor
from forewise.predictors.networked import NetworkPredictor
from forewise.predictors.point import GaussianPredictor, PointPredictor
from forewise.predictors.residual import ResidualPredictor
from forewise.predictors.schedules import CosineSchedule, ExponentialSchedule, Schedule
from forewise.predictors.training import Training

__all__ = [
    "BayesianPredictor",
    "BoostingPredictor",
    "Caution",
    "CosineSchedule",
    "EmpiricalPredictor",
    "Encoding",
    "EnsemblePredictor",
    "ExponentialSchedule",
    "ForestPredictor",
    "GaussianPredictor",
    "GaussianProcessPredictor",
    "GroupedPredictor",
    "MixturePredictor",
    "NeighborPredictor",
    "NetworkPredictor",
    "PeriodicEncoding",
    "PointPredictor",
    "Predictor",
    "QuantileBoostingPredictor",
    "ResidualPredictor",
    "Schedule",
    "Training",
]
