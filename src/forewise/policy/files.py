"""Reading policies back: the classes of forewise that are stored, and older formats."""

from __future__ import annotations

import os
from typing import Any

from forewise import predictors, problems, solvers
from forewise.exceptions import StorageError
from forewise.policy import base
from forewise.policy.base import Policy
from forewise.policy.packing import KIND, VERSION, register, unpack
from forewise.problems.cvxpy.problem import CvxpyProblem
from forewise.storage import read_folder
from forewise.validation import columns

# What version 2 of the format calls otherwise than version 1.
_RENAMED_CLASSES = {
    "Caution": "OffSupportFallback",
    "Clarabel": "ClarabelEngine",
    "DualSearch": "DualSearchSolver",
    "InteriorPoint": "InteriorPointSolver",
    "Moreau": "MoreauEngine",
    "PeriodicEncoding": "FourierFeatures",
    "WeightedQuantile": "WeightedQuantileSolver",
}
# By the old name of the class; "" stands for every class.
_RENAMED_ARGUMENTS = {"Caution": {"usual": "quantile"}, "": {"caution": "off_support"}}
_RENAMED_FITTED = {"usual_distance_": "typical_distance_"}

for _module, _names in {
    problems: "CVaR Expectation MeanCVaR Newsvendor Portfolio QuadraticNewsvendor "
    "RiskAverseProblem WorstCase",
    solvers: "AutoSolver ClarabelEngine ConicSolver DualSearchSolver IntegerSolver "
    "InteriorPointSolver MoreauEngine ReferenceSolver RidgeSolver RiskSolver "
    "WeightedQuantileSolver",
    predictors: "BayesianPredictor BoostingPredictor CosineSchedule EmpiricalPredictor "
    "EnsemblePredictor ExponentialSchedule ForestPredictor FourierFeatures GaussianPredictor "
    "GaussianProcessPredictor GroupedPredictor MixturePredictor NeighborPredictor "
    "OffSupportFallback PointPredictor QuantileBoostingPredictor ResidualPredictor "
    "StackedPredictor Training",
    base: "DirectPolicy ScenarioPolicy",
    columns: "BooleanColumn CategoryColumn Columns DateColumn IgnoredColumn NumberColumn",
}.items():
    for _name in _names.split():
        register(getattr(_module, _name))
register(CvxpyProblem)


def load_policy(folder: str | os.PathLike[str]) -> Policy:
    """Read a policy that `Policy.save` wrote, in this version of the format or an older one.

    Nothing in the folder is run: objects are made of registered classes only, through their
    constructors. What is damaged, cut short, unknown or too new is a `StorageError`.
    """
    version, content = read_folder(folder, kind=KIND, versions=range(1, VERSION + 1))
    tree = content.get("policy")
    policy = unpack(from_version_1(tree) if version == 1 else tree)
    if not isinstance(policy, Policy):
        raise StorageError(f"{folder} holds no policy, but a {type(policy).__name__}")
    return policy


def from_version_1(tree: Any) -> Any:
    """The tree of an object that version 1 packed, as version 2 packs it.

    Only the names of classes, of arguments and of fitted attributes change: keys of a user's
    own dicts, which are `items`, stay as they are.
    """
    if not isinstance(tree, dict):
        return tree
    name = tree.get("class")
    arguments = _RENAMED_ARGUMENTS[""] | _RENAMED_ARGUMENTS.get(str(name), {})
    renamed = {"settings": arguments, "fitted": _RENAMED_FITTED, "items": {}}
    moved: dict[str, Any] = {}
    for part, held in tree.items():
        if isinstance(held, list):
            moved[part] = [from_version_1(item) for item in held]
        elif isinstance(held, dict) and part in renamed:
            names = renamed[part]
            moved[part] = {names.get(key, key): from_version_1(v) for key, v in held.items()}
        else:
            moved[part] = from_version_1(held)
    return moved | {"class": _RENAMED_CLASSES.get(str(name), name)}
