"""The methods of the suite by name, with their defaults or with settings that a name changes.

A name may carry settings: ``bayesian:n_members=8:defaults.epochs=128``. A setting of a part has the
part's name first; `defaults` are what a network takes where its `Training` is silent.
To add a method: a line in `METHODS`.
"""

from __future__ import annotations

import ast
import copy
import dataclasses
import hashlib
from collections.abc import Callable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator

from forewise import predictors as known
from forewise.exceptions import InvalidInputError
from forewise.predictors import NetworkPredictor, Predictor
from forewise_lab.experiments.configuration import unknown

#: The learner that chooses a predictor for the problem; all others are predictors.
AUTO = "auto"
METHODS: dict[str, Callable[[], Predictor]] = {
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
_ROOMS = ("forewise.predictors", "forewise.learners")


def make_method(name: str) -> Predictor:
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
            raise InvalidInputError(
                f"a setting must be like n_members=8, but is {setting!r}"
            ) from error
        predictor = _changed(predictor, path.split("."), value)
    for fixed, value in {"random_state": 0, "n_jobs": 1}.items():
        if fixed in predictor.get_params(deep=False):
            predictor.set_params(**{fixed: value})
    return predictor


def cliff_methods(name: str) -> list[str]:
    """Names of the method with every number among its defaults halved, and doubled."""
    found = []
    for path, value in _numbers(make_method(name)):
        for factor in (0.5, 2.0):
            scaled = _scaled(value, factor)
            if scaled != value:
                found.append(f"{name}:{path}={scaled!r}")
    return found


@cache
def code_of(base: str) -> str:
    """Hash of the library's code behind a method, without comments and docstrings."""
    sources: dict[str, str] = {}
    pending = ["forewise.learners.auto"]
    if base != AUTO:
        method = make_method(base)
        parts = [method, *method.get_params().values()]
        pending = [type(part).__module__ for part in parts if isinstance(part, Predictor)]
    while pending:
        module = pending.pop()
        if module in sources or not module.startswith(_ROOMS):
            continue
        spec = find_spec(module)
        if spec is None or spec.origin is None:
            continue
        tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                pending.append(node.module)
            if isinstance(getattr(node, "body", None), list):
                node.body = [part for part in node.body if not _is_text(part)]  # type: ignore[attr-defined]
        sources[module] = ast.dump(tree)
    return hashlib.sha256(repr(sorted(sources.items())).encode()).hexdigest()[:12]


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _part(owner: Any, name: str) -> Any:
    """A setting of an estimator or of a frozen value, or what stands for it if it is None."""
    if not hasattr(owner, name):
        raise InvalidInputError(f"{type(owner).__name__} has no setting {name!r}")
    value = getattr(owner, name)
    return _PARTS.get(name) if value is None else value


def _changed(owner: Any, path: list[str], value: Any) -> Any:
    """A copy with another value of the setting at the end of the path."""
    name, *rest = path
    part = _part(owner, name)
    if rest:
        value = _changed(part, rest, value)
    if not isinstance(owner, BaseEstimator):
        return dataclasses.replace(owner, **{name: value})
    changed = copy.copy(owner)
    setattr(changed, name, value)  # `defaults` are no argument, but an instance may have its own
    return changed


def _numbers(owner: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Paths and values of numbers among the settings, and of tuples of whole numbers."""
    if isinstance(owner, BaseEstimator):
        names = list(owner.get_params(deep=False))
        # An ensemble's are its member's.
        if isinstance(owner, NetworkPredictor) and not isinstance(owner, known.EnsemblePredictor):
            names.append("defaults")
    else:
        names = [field.name for field in dataclasses.fields(owner)]
    for name in names:
        value = _part(owner, name)
        if name in _UNSCALED or isinstance(value, bool | str):
            continue
        counts = isinstance(value, tuple) and all(isinstance(part, int) for part in value)
        if counts or isinstance(value, int | float):
            yield prefix + name, value
        elif isinstance(value, BaseEstimator) or dataclasses.is_dataclass(value):
            yield from _numbers(value, f"{prefix}{name}.")


def _scaled(value: Any, factor: float) -> Any:
    if isinstance(value, tuple):
        return tuple(_scaled(part, factor) for part in value)
    return max(1, round(value * factor)) if isinstance(value, int) and value else value * factor
