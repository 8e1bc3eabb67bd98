"""The methods of the suite by name, with their defaults or with settings that a name changes.

A name may carry settings: ``bayesian:n_members=8:defaults.epochs=128``. A setting of a part has the
part's name first; `defaults` are what a network takes where its `Training` is silent.
To add a method: a line in `METHODS`.
"""

from __future__ import annotations

import ast
import copy
import dataclasses
from collections.abc import Callable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator

import forewise as fw
from forewise import predictors as known
from forewise_lab.experiments.kinds import unknown
from forewise_lab.experiments.rows import hash_of

#: The learner that chooses a predictor for the problem; all others are predictors.
AUTO = "auto"
METHODS: dict[str, Callable[[], fw.Predictor]] = {
    "neighbours": known.NeighborPredictor,
    "linear-residuals": known.ResidualPredictor,
    "boosted-residuals": lambda: known.ResidualPredictor(known.BoostingPredictor()),
    "boosted-quantiles": known.QuantileBoostingPredictor,
    "boosting": known.BoostingPredictor,
    "forest": known.ForestPredictor,
    "gaussian-process": known.GaussianProcessPredictor,
    "mean-field": known.MeanFieldPredictor,
    "mixture": known.MixturePredictor,
    "bayesian": known.BayesianPredictor,
    "bayesian-ensemble": lambda: known.EnsemblePredictor(known.BayesianPredictor()),
}
#: What None stands for, where it is a part with settings of its own.
_PARTS = {"inference": known.LastLayer(), "embedding": known.PeriodicEmbedding()}
#: Settings that a cliff test leaves alone: they change no result, or have no scale.
_UNSCALED = frozenset({"random_state", "n_jobs", "levels"})
_WITH_DOCSTRING = (ast.Module, ast.ClassDef, ast.FunctionDef)


def make_method(name: str) -> fw.Predictor:
    """The unfitted predictor of a name, with the settings that the name carries."""
    base, *settings = name.split(":")
    if base not in METHODS:
        raise unknown("method of the suite", base, [*METHODS, AUTO])
    predictor = METHODS[base]()
    for setting in settings:
        path, _, text = setting.partition("=")
        try:
            value = ast.literal_eval(text)
        except (SyntaxError, ValueError) as error:
            message = f"a setting must be like n_members=8, but is {setting!r}"
            raise fw.InvalidInputError(message) from error
        predictor = _changed(predictor, path.split("."), value)
    own = predictor.get_params(deep=False)
    fixed = {"random_state": 0, "n_jobs": 1}
    return predictor.set_params(**{key: fixed[key] for key in fixed.keys() & own.keys()})


def cliff_methods(name: str) -> list[str]:
    """Names of the method with every number among its defaults halved, and doubled."""
    return [
        f"{name}:{path}={scaled!r}"
        for path, value in _numbers(make_method(name))
        for scaled in (_scaled(value, 0.5), _scaled(value, 2.0))
        if scaled != value and not (path == "max_features" and scaled > 1)  # a share
    ]


@cache
def config_hash(method: str) -> str:
    """Hash of a method's name and of the code behind it, without comments and docstrings."""
    pending, sources = ["forewise.learners.auto"], {}
    if method != AUTO:
        predictor = make_method(method)
        parts = [predictor, *predictor.get_params().values()]
        pending = [type(part).__module__ for part in parts if isinstance(part, fw.Predictor)]
    while pending:
        module = pending.pop()
        spec = find_spec(module)
        if module in sources or spec is None or spec.origin is None:
            continue
        tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, _WITH_DOCSTRING) and ast.get_docstring(node) is not None:
                del node.body[0]
            if isinstance(node, ast.ImportFrom) and node.module:
                rooms = ("forewise.predictors", "forewise.learners")
                pending += [node.module] if node.module.startswith(rooms) else []
        sources[module] = ast.unparse(tree)  # unlike a dump, the same in every Python
    return hash_of([method, sources])


def _changed(owner: Any, path: list[str], value: Any) -> Any:
    """A copy with another value of the setting at the end of the path."""
    name, *rest = path
    if not hasattr(owner, name):
        raise fw.InvalidInputError(f"{type(owner).__name__} has no setting {name!r}")
    if rest:
        value = _changed(_part(owner, name), rest, value)
    if not isinstance(owner, BaseEstimator):
        return dataclasses.replace(owner, **{name: value})
    changed = copy.copy(owner)
    setattr(changed, name, value)  # `defaults` are no argument, but an instance may have its own
    return changed


def _part(owner: Any, name: str) -> Any:
    value = getattr(owner, name)
    return _PARTS.get(name) if value is None else value


def _numbers(owner: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Paths and values of numbers among the settings, and of tuples of integers."""
    if isinstance(owner, BaseEstimator):
        names = list(owner.get_params(deep=False))
        # An ensemble's are its member's.
        if isinstance(owner, fw.predictors.NetworkPredictor) and not isinstance(
            owner, known.EnsemblePredictor
        ):
            names.append("defaults")
    else:
        names = [field.name for field in dataclasses.fields(owner)]
    for name in names:
        value = _part(owner, name)
        if name in _UNSCALED or isinstance(value, bool | str):
            continue
        integers = isinstance(value, tuple) and all(isinstance(part, int) for part in value)
        if integers or isinstance(value, int | float):
            yield prefix + name, value
        elif isinstance(value, BaseEstimator) or dataclasses.is_dataclass(value):
            yield from _numbers(value, f"{prefix}{name}.")


def _scaled(value: Any, factor: float) -> Any:
    if isinstance(value, tuple):
        return tuple(_scaled(part, factor) for part in value)
    return max(1, round(value * factor)) if isinstance(value, int) and value else value * factor
