"""Predictors, from contexts to scenarios. They know no problem and no solver.

`base` is the contract and `sampling` what all share. `empirical`, `trees`, `gaussian_process` and
`residual` are the baselines, `stacked` is a union of any; `networks` are put together from weights,
heads and one training loop.
"""

from forewise.predictors.base import Predictor
from forewise.predictors.empirical import EmpiricalPredictor, GroupedPredictor, NeighborPredictor
from forewise.predictors.gaussian_process import GaussianProcessPredictor
from forewise.predictors.networks.base import NetworkPredictor
from forewise.predictors.networks.contexts import (
    Encoding,
    FourierFeatures,
    OffSupportFallback,
)
from forewise.predictors.networks.kinds import (
    BayesianPredictor,
    EnsemblePredictor,
    GaussianPredictor,
    MixturePredictor,
    PointPredictor,
)
from forewise.predictors.networks.training import (
    CosineSchedule,
    ExponentialSchedule,
    Schedule,
    Training,
)
from forewise.predictors.residual import ResidualPredictor
from forewise.predictors.stacked import StackedPredictor
from forewise.predictors.trees import (
    BoostingPredictor,
    ForestPredictor,
    QuantileBoostingPredictor,
)

__all__ = [
    "BayesianPredictor", "BoostingPredictor", "CosineSchedule", "EmpiricalPredictor", "Encoding",
    "EnsemblePredictor", "ExponentialSchedule", "ForestPredictor", "FourierFeatures",
    "GaussianPredictor", "GaussianProcessPredictor", "GroupedPredictor", "MixturePredictor",
    "NeighborPredictor", "NetworkPredictor", "OffSupportFallback", "PointPredictor", "Predictor",
    "QuantileBoostingPredictor", "ResidualPredictor", "Schedule", "StackedPredictor", "Training",
]  # fmt: skip
