"""WHAT may happen: predictors, from contexts to scenarios. They know no problem and no solver.

`base` is the contract. Networks (`bayesian`, `point`, `ensemble`) are put together from weights,
heads and the one `training` loop, may see contexts through `encodings`, and may be held back by
`off_support`; `empirical`, `grouped`, `neighbor`, `forest`, `boosting`, `residual` and
`gaussian_process` are the baselines that practitioners trust.
"""

from forewise.predictors.base import Predictor
from forewise.predictors.boosting import BoostingPredictor, QuantileBoostingPredictor
from forewise.predictors.empirical import EmpiricalPredictor
from forewise.predictors.forest import ForestPredictor
from forewise.predictors.gaussian_process import GaussianProcessPredictor
from forewise.predictors.grouped import GroupedPredictor
from forewise.predictors.neighbor import NeighborPredictor
from forewise.predictors.networks.base import NetworkPredictor
from forewise.predictors.networks.bayesian import BayesianPredictor, MixturePredictor
from forewise.predictors.networks.encodings import Encoding, FourierFeatures
from forewise.predictors.networks.ensemble import EnsemblePredictor
from forewise.predictors.networks.off_support import OffSupportFallback
from forewise.predictors.networks.point import GaussianPredictor, PointPredictor
from forewise.predictors.networks.schedules import CosineSchedule, ExponentialSchedule, Schedule
from forewise.predictors.networks.training import Training
from forewise.predictors.residual import ResidualPredictor

__all__ = [
    "BayesianPredictor",
    "BoostingPredictor",
    "CosineSchedule",
    "EmpiricalPredictor",
    "Encoding",
    "EnsemblePredictor",
    "ExponentialSchedule",
    "ForestPredictor",
    "FourierFeatures",
    "GaussianPredictor",
    "GaussianProcessPredictor",
    "GroupedPredictor",
    "MixturePredictor",
    "NeighborPredictor",
    "NetworkPredictor",
    "OffSupportFallback",
    "PointPredictor",
    "Predictor",
    "QuantileBoostingPredictor",
    "ResidualPredictor",
    "Schedule",
    "Training",
]
