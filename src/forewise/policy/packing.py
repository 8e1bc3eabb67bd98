"""Objects to trees of plain values and arrays, and back: what may be stored, and how.

An object is stored as the name of its class, the arguments it was made with and, if it is an
estimator, what it was fitted to. A problem that was written in CVXPY is stored as what was read
from it. Reading makes objects of the classes registered here and of no
others, through their own checked constructors: no code comes from a file.
May import: exceptions, problems, solvers, predictors, storage.
"""

from __future__ import annotations

import inspect
import os
from typing import Any

import numpy as np
import torch

from forewise import predictors, problems, solvers
from forewise.exceptions import ForewiseError, StorageError
from forewise.problems.cvxpy import CvxpyProblem
from forewise.storage import write_folder

KIND, VERSION = "policy", 1

_CLASSES: dict[str, type] = {
    kind.__name__: kind
    for kind in (
        CvxpyProblem,
        problems.Newsvendor,
        problems.Portfolio,
        problems.QuadraticNewsvendor,
        problems.RiskAverseProblem,
        problems.CVaR,
        problems.Expectation,
        problems.MeanCVaR,
        problems.WorstCase,
        solvers.AutoSolver,
        solvers.ClarabelEngine,
        solvers.ConicSolver,
        solvers.DualSearchSolver,
        solvers.IntegerSolver,
        solvers.InteriorPointSolver,
        solvers.MoreauEngine,
        solvers.ReferenceSolver,
        solvers.RidgeSolver,
        solvers.RiskSolver,
        solvers.WeightedQuantileSolver,
        predictors.BayesianPredictor,
        predictors.BoostingPredictor,
        predictors.EmpiricalPredictor,
        predictors.EnsemblePredictor,
        predictors.ForestPredictor,
        predictors.GaussianPredictor,
        predictors.GaussianProcessPredictor,
        predictors.GroupedPredictor,
        predictors.MixturePredictor,
        predictors.NeighborPredictor,
        predictors.PointPredictor,
        predictors.QuantileBoostingPredictor,
        predictors.ResidualPredictor,
        predictors.Training,
        predictors.CosineSchedule,
        predictors.ExponentialSchedule,
        predictors.FourierFeatures,
        predictors.OffSupportFallback,
    )
}


def register(kind: type) -> type:
    """Let a class be stored under its name; used as a decorator by policies themselves."""
    _CLASSES[kind.__name__] = kind
    return kind


def write_policy(folder: str | os.PathLike[str], policy: Any) -> None:
    """Write a policy to a folder."""
    write_folder(folder, {"policy": pack(policy, "policy")}, kind=KIND, version=VERSION)


def pack(value: Any, path: str) -> Any:
    """The tree of an object; `path` is where it stands, for the message if it cannot be stored."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray) and value.dtype.kind in "OU":
        return {"class": "text", "items": [str(item) for item in value]}
    if isinstance(value, np.ndarray | torch.Tensor):
        return value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, list | tuple):
        items = [pack(item, f"{path}[{i}]") for i, item in enumerate(value)]
        return {"class": type(value).__name__, "items": items}
    if isinstance(value, dict):
        entries = {str(key): pack(item, f"{path}.{key}") for key, item in value.items()}
        return {"class": "dict", "items": entries}
    if type(value).__name__ not in _CLASSES:
        raise StorageError(
            f"{path} is a {type(value).__name__}, which cannot be stored; what can is: "
            f"{', '.join(sorted(_CLASSES))}"
        )
    if isinstance(value, CvxpyProblem):
        return {"class": type(value).__name__, "state": pack(value.state(), path)}
    settings = {name: pack(item, f"{path}.{name}") for name, item in _settings(value).items()}
    packed: dict[str, Any] = {"class": type(value).__name__, "settings": settings}
    if isinstance(value, predictors.Predictor) and value.is_fitted:
        state = value.state()
        packed["fitted"] = {name: pack(item, f"{path}.{name}") for name, item in state.items()}
    return packed


def unpack(tree: Any) -> Any:
    """The object of a tree."""
    if not isinstance(tree, dict):
        return tree
    try:
        return _object_of(tree)
    except StorageError:
        raise
    except (ForewiseError, ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError,
            ValueError) as error:  # fmt: skip
        raise StorageError(
            f"the stored {tree.get('class', 'object')} does not make sense: {error}"
        ) from error


def _object_of(tree: dict[str, Any]) -> Any:
    name = tree["class"]
    if name in ("list", "tuple"):
        items = [unpack(item) for item in tree["items"]]
        return items if name == "list" else tuple(items)
    if name == "text":
        return np.array(tree["items"], dtype=object)
    if name == "dict":
        return {key: unpack(item) for key, item in tree["items"].items()}
    if name not in _CLASSES:
        raise StorageError(
            f"a {name} is stored here, which this version of forewise does not know: "
            "it was written by another version"
        )
    if "state" in tree:
        return CvxpyProblem.from_state(unpack(tree["state"]))
    made = _CLASSES[name](**{key: unpack(item) for key, item in tree["settings"].items()})
    if "fitted" in tree:
        made.restore({key: unpack(item) for key, item in tree["fitted"].items()})
    return made


def _settings(value: Any) -> dict[str, Any]:
    """The arguments that a constructor would make the same object from."""
    if isinstance(value, predictors.Predictor):
        return value.settings()
    return {name: getattr(value, name) for name in inspect.signature(type(value)).parameters}
