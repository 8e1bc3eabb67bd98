"""Reading policies back: the classes of forewise that are stored, and older formats."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

from forewise import predictors, problems, solvers
from forewise.exceptions import StorageError
from forewise.policy import base
from forewise.policy.base import StoredPolicy
from forewise.policy.packing import KIND, VERSION, register, unpack
from forewise.problems.cvxpy.problem import CvxpyProblem
from forewise.storage import read_folder
from forewise.validation import columns, encodings


@dataclass(frozen=True)
class Renaming:
    """What the next version of the format calls otherwise than one version."""

    classes: dict[str, str]
    arguments: dict[str, dict[str, str]] = field(default_factory=dict)  # by the old class; "": any
    fitted: dict[str, str] = field(default_factory=dict)

    def __call__(self, tree: Any) -> Any:
        """The tree of an object that this version packed, as the next one packs it.

        Only the names of classes, of arguments and of fitted attributes change: keys of a user's
        own dicts, which are `items`, stay as they are.
        """
        if not isinstance(tree, dict):
            return tree
        name = tree.get("class")
        arguments = self.arguments.get("", {}) | self.arguments.get(str(name), {})
        renamed = {"settings": arguments, "fitted": self.fitted, "items": {}}
        moved: dict[str, Any] = {}
        for part, held in tree.items():
            if isinstance(held, list):
                moved[part] = [self(item) for item in held]
            elif isinstance(held, dict) and part in renamed:
                names = renamed[part]
                moved[part] = {names.get(key, key): self(value) for key, value in held.items()}
            else:
                moved[part] = self(held)
        return moved | {"class": self.classes.get(str(name), name)}


#: From each version to the next.
_RENAMINGS = {
    1: Renaming(
        {
            "Caution": "OffSupportFallback",
            "Clarabel": "ClarabelEngine",
            "DualSearch": "DualSearchSolver",
            "InteriorPoint": "InteriorPointSolver",
            "Moreau": "MoreauEngine",
            "PeriodicEncoding": "FourierFeatures",
            "WeightedQuantile": "WeightedQuantileSolver",
        },
        {"Caution": {"usual": "quantile"}, "": {"caution": "off_support"}},
        {"usual_distance_": "typical_distance_"},
    ),
    2: Renaming({"BayesianPredictor": "MeanFieldPredictor"}),
}

for _module, _names in {
    problems: "CVaR Expectation MeanCVaR Newsvendor Portfolio QuadraticNewsvendor "
    "RiskAverseProblem WorstCase",
    solvers: "AutoSolver ClarabelEngine ConicSolver DualSearchSolver IntegerSolver "
    "InteriorPointSolver MoreauEngine ReferenceSolver RidgeSolver RiskSolver "
    "WeightedQuantileSolver",
    predictors: "AllProcesses BayesianPredictor BoostingPredictor CosLogSchedule CosineSchedule "
    "DrawForecast EmpiricalPredictor EnsemblePredictor ExponentialSchedule "
    "ForecastPredictor ForestPredictor FourierFeatures GaussianPredictor "
    "GaussianProcessPredictor GroupedPredictor LastLayer LinearEmbedding MeanField "
    "MeanFieldPredictor MeanForecast MixturePredictor NeighborPredictor NormalHead "
    "OffSupportFallback PeriodicEmbedding PointPredictor "
    "QuantileBoostingPredictor QuantileForecast QuantileHead RelativePredictor "
    "ResidualPredictor StackedPredictor TimeOrdered Training",
    base: "DirectPolicy ScenarioPolicy",
    columns: "Columns",
    encodings: "BooleanColumn CategoryColumn DateColumn IgnoredColumn NumberColumn",
}.items():
    for _name in _names.split():
        register(getattr(_module, _name))
register(CvxpyProblem)


def load_policy(folder: str | os.PathLike[str]) -> Any:
    """Read a policy that its `save` wrote, in this version of the format or an older one.

    It is of the class that was saved: a `ScenarioPolicy`, say, or a `PlannerPolicy`.

    Nothing in the folder is run: objects are made of registered classes only, through their
    constructors. What is damaged, cut short, unknown or too new is a `StorageError`.

    Examples
    --------
    >>> import numpy as np
    >>> import forewise as fw
    >>> X, y = np.arange(20.0)[:, None], np.arange(20.0)
    >>> learner = fw.DecoupledLearner(fw.Newsvendor(3.0, 1.0), fw.NeighborPredictor(3)).fit(X, y)
    >>> learner.policy_.save("policy_to_load")
    >>> fw.load_policy("policy_to_load").decide([[10.0]])
    array([[11.]])
    """
    version, content = read_folder(folder, kind=KIND, versions=range(1, VERSION + 1))
    tree = content.get("policy")
    for older in range(version, VERSION):
        tree = _RENAMINGS[older](tree)
    policy = unpack(tree)
    if not isinstance(policy, StoredPolicy):
        raise StorageError(f"{folder} holds no policy, but a {type(policy).__name__}")
    return policy
