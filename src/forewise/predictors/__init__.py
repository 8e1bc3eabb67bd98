"""Predictors, from contexts to scenarios. They know no problem and no solver.

`base` is the contract and `sampling` what all share. `empirical`, `trees`, `boosting`,
`gaussian_process` and `residual` are the baselines, `stacked` is a union of any, `relative`
learns in units of a level, `forecast` wraps other models; `networks` are put together from weights,
heads and one training loop.
"""

from forewise.predictors.base import Predictor
from forewise.predictors.boosting import BoostingPredictor, QuantileBoostingPredictor
from forewise.predictors.empirical import EmpiricalPredictor, GroupedPredictor, NeighborPredictor
from forewise.predictors.forecast import (
    DrawForecast,
    Forecast,
    ForecastPredictor,
    MeanForecast,
    QuantileForecast,
)
from forewise.predictors.gaussian_process import GaussianProcessPredictor
from forewise.predictors.networks.base import NetworkPredictor
from forewise.predictors.networks.bayesian import BayesianPredictor
from forewise.predictors.networks.contexts import (
    Encoding,
    FourierFeatures,
    OffSupportFallback,
)
from forewise.predictors.networks.embeddings import (
    Embedding,
    LinearEmbedding,
    PeriodicEmbedding,
)
from forewise.predictors.networks.inference import LastLayer, MeanField
from forewise.predictors.networks.kinds import (
    EnsemblePredictor,
    GaussianPredictor,
    MeanFieldPredictor,
    MixturePredictor,
    PointPredictor,
)
from forewise.predictors.networks.member_heads import MemberHead, NormalHead, QuantileHead
from forewise.predictors.networks.members import Inference
from forewise.predictors.networks.ranks import AllProcesses
from forewise.predictors.networks.settings import (
    CosineSchedule,
    CosLogSchedule,
    ExponentialSchedule,
    Schedule,
    TimeOrdered,
    Training,
)
from forewise.predictors.relative import RelativePredictor
from forewise.predictors.residual import ResidualPredictor
from forewise.predictors.stacked import StackedPredictor
from forewise.predictors.trees import ForestPredictor, completed

__all__ = [
    "AllProcesses", "BayesianPredictor", "BoostingPredictor", "CosLogSchedule", "CosineSchedule",
    "DrawForecast", "Embedding", "EmpiricalPredictor", "Encoding", "EnsemblePredictor",
    "ExponentialSchedule", "Forecast", "ForecastPredictor", "ForestPredictor", "FourierFeatures",
    "GaussianPredictor", "GaussianProcessPredictor", "GroupedPredictor", "Inference", "LastLayer",
    "LinearEmbedding", "MeanField", "MeanFieldPredictor", "MeanForecast", "MemberHead",
    "MixturePredictor", "NeighborPredictor", "NetworkPredictor", "NormalHead", "OffSupportFallback",
    "PeriodicEmbedding", "PointPredictor", "Predictor", "QuantileBoostingPredictor",
    "QuantileForecast", "QuantileHead", "RelativePredictor", "ResidualPredictor",
    "Schedule", "StackedPredictor", "TimeOrdered", "Training", "completed",
]  # fmt: skip
