"""Which settings are searched, and in which range."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from sklearn.base import clone

from forewise.exceptions import InvalidInputError
from forewise.predictors import (
    BayesianPredictor,
    BoostingPredictor,
    ForestPredictor,
    GaussianPredictor,
    MixturePredictor,
    NeighborPredictor,
    Predictor,
    QuantileBoostingPredictor,
    RelativePredictor,
    Training,
)


@dataclass(frozen=True)
class Between:
    """Numbers from `low` to `high`; integers if both are, evenly in the logarithm with `log`.

    Examples
    --------
    >>> import forewise as fw
    >>> fw.tuning.Between(50, 500, log=True).is_integer
    True
    """

    low: float
    high: float
    log: bool = False

    def __post_init__(self) -> None:
        if not self.low < self.high or (self.log and self.low <= 0):
            raise InvalidInputError(
                "low must be below high, and positive with log, but they are "
                f"{self.low!r} and {self.high!r}"
            )

    @property
    def is_integer(self) -> bool:
        return isinstance(self.low, int) and isinstance(self.high, int)


@dataclass(frozen=True)
class OneOf:
    """One of several values, of any kind; they are shown and stored by their `repr`.

    Examples
    --------
    >>> import forewise as fw
    >>> fw.tuning.OneOf((64,), (64, 64)).values
    ((64,), (64, 64))
    """

    values: tuple[Any, ...]

    def __init__(self, *values: Any) -> None:
        if len({repr(value) for value in values}) < 2 or len({*map(repr, values)}) < len(values):
            raise InvalidInputError(f"there must be several different values, but came {values!r}")
        object.__setattr__(self, "values", values)

    def of(self, shown: str) -> Any:
        """The value with this `repr`."""
        return next(value for value in self.values if repr(value) == shown)


#: Settings by name: those of the predictor, and with ``__`` those of its parts.
Space = Mapping[str, Between | OneOf]

_NETWORK: dict[str, Between | OneOf] = {
    "hidden_sizes": OneOf((64,), (64, 64), (128, 128), (256, 256)),
    "training__learning_rate": Between(3e-4, 1e-2, log=True),
    "training__epochs": Between(40, 400, log=True),
    "training__batch_size": OneOf(32, 64, 128, 256),
}
_SPACES: dict[type[Predictor], dict[str, Between | OneOf]] = {
    ForestPredictor: {
        "n_trees": Between(50, 400, log=True),
        "min_leaf": Between(1, 100, log=True),
        "max_features": Between(0.2, 1.0),
    },
    NeighborPredictor: {
        "n_neighbors": Between(4, 200, log=True),
        "kernel": OneOf("uniform", "epanechnikov"),
    },
    BoostingPredictor: {
        "n_trees": Between(30, 500, log=True),
        "learning_rate": Between(0.01, 0.3, log=True),
        "max_leaves": Between(4, 64, log=True),
        "min_leaf": Between(5, 100, log=True),
    },
    QuantileBoostingPredictor: {
        "n_trees": Between(50, 800, log=True),
        "learning_rate": Between(0.01, 0.3, log=True),
        "max_leaves": Between(3, 48, log=True),
        "min_leaf": Between(5, 150, log=True),
    },
    BayesianPredictor: {
        "hidden_sizes": OneOf((64, 64), (128, 128), (256, 256)),
        "n_members": OneOf(2, 4, 8),
        "training__learning_rate": Between(0.03, 0.4, log=True),
        "training__epochs": Between(30, 400, log=True),
        "training__batch_size": OneOf(32, 64, 128, 256),
    },
    GaussianPredictor: _NETWORK,
    MixturePredictor: _NETWORK | {"n_components": OneOf(2, 4, 8)},
}


def default_space(predictor: Predictor) -> dict[str, Between | OneOf]:
    """The settings of a predictor that are worth a search.

    Examples
    --------
    >>> import forewise as fw
    >>> sorted(fw.tuning.default_space(fw.ForestPredictor()))
    ['max_features', 'min_leaf', 'n_trees']
    """
    if isinstance(predictor, RelativePredictor):
        inner = default_space(predictor.predictor)
        return {f"predictor__{name}": values for name, values in inner.items()}
    for kind in type(predictor).__mro__:
        if kind in _SPACES:
            return _SPACES[kind]
    known = ", ".join(kind.__name__ for kind in _SPACES)
    raise InvalidInputError(
        f"space must be given for a {type(predictor).__name__}, of which no settings are known to "
        f"be worth a search (those of {known} are): space={{'name': Between(1, 100)}}"
    )


def check_space(predictor: Predictor, space: Space | None) -> Space:
    """The space, or the predictor's own; raises where it names what the predictor has not."""
    if space is None:
        return default_space(predictor)
    if not isinstance(space, Mapping) or not space:
        raise InvalidInputError(
            f"space must be a dict such as {{'n_trees': Between(50, 500)}}, but is {space!r}"
        )
    for name, values in space.items():
        if not isinstance(values, Between | OneOf):
            raise InvalidInputError(
                f"space[{name!r}] must be Between(low, high) or OneOf(...), but is {values!r}"
            )
        first = values.low if isinstance(values, Between) else values.values[0]
        with_settings(predictor, {name: first})
    return space


def with_settings(predictor: Predictor, settings: Mapping[str, Any]) -> Predictor:
    """A clone of the predictor with other settings."""
    made: Predictor = clone(predictor)
    for name, value in settings.items():
        _set(made, name, value)
    return made


def _set(owner: Any, name: str, value: Any) -> None:
    first, _, rest = name.partition("__")
    known = owner.get_params(deep=False)
    if first not in known and isinstance(owner, RelativePredictor):
        _set(owner.predictor, name, value)
        return
    if first not in known:
        raise InvalidInputError(
            f"space must name settings of a {type(owner).__name__}, but {first!r} is none of "
            f"{', '.join(known)}"
        )
    if not rest:
        owner.set_params(**{first: value})
        return
    part = known[first]
    if isinstance(part, Predictor):
        _set(part, rest, value)
        return
    part = Training() if part is None and first == "training" else part
    if not is_dataclass(part) or rest not in {entry.name for entry in fields(part)}:
        raise InvalidInputError(
            f"space must name settings, but {first} of the {type(owner).__name__} is {part!r}, "
            f"which has no {rest!r}"
        )
    owner.set_params(**{first: replace(part, **{rest: value})})  # type: ignore[type-var]
