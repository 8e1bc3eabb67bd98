"""The problems that a plan can ask for by name, and the keys that each has in [problem].

To add one: a `Template` in `TEMPLATES`. Problems of other kinds are the user's own code, given by
`--problem` on the command line.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from math import isfinite
from pathlib import Path
from typing import Any

import forewise as fw
from forewise.exceptions import InvalidInputError, MissingDependencyError


@dataclass(frozen=True)
class Key:
    """A key of a plan: what is expected, what to write, and whether a value fits."""

    expected: str
    example: str
    fits: Callable[[Any], bool]
    required: bool = False
    comment: str = ""  # beside it, in the plan that `init` writes


def whole_number(example: str, at_least: int) -> Key:
    """A key that is an integer."""
    return Key(
        f"an integer of at least {at_least}",
        example,
        lambda value: type(value) is int and value >= at_least,
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


def _number(example: str, comment: str, required: bool = True) -> Key:
    return Key("a number", example, _is_number, required, comment)


def _numbers(example: str, comment: str, required: bool = True) -> Key:
    def fits(value: Any) -> bool:
        many = isinstance(value, list) and value and all(_is_number(part) for part in value)
        return _is_number(value) or bool(many)

    return Key("a number, or one for each outcome", example, fits, required, comment)


@dataclass(frozen=True)
class Template:
    """A kind of problem: its keys in [problem], and how it is made for some outcomes."""

    title: str
    make: Callable[[Mapping[str, Any], list[str], list[str]], fw.Problem]
    keys: dict[str, Key] = field(default_factory=dict)
    several: bool = True  # whether a row has several outcomes


def own_problem(place: str) -> fw.Problem:
    """The problem at ``package.module:name``, or what the function of that name makes."""
    module, _, name = place.partition(":")
    if not module or not name:
        raise InvalidInputError(
            f"--problem must be package.module:name, as problem:problem for `problem` of "
            f"problem.py, but is {place!r}"
        )
    sys.path.insert(0, str(Path.cwd()))
    try:
        found = getattr(import_module(module), name)
        made = found() if callable(found) else found
    except (ImportError, AttributeError) as error:
        raise InvalidInputError(
            f"--problem names {name!r} of {module!r}, which cannot be had: {error}. Modules are "
            "sought in this folder and in the environment"
        ) from error
    finally:
        sys.path.remove(str(Path.cwd()))
    if not isinstance(made, fw.Problem):
        raise InvalidInputError(
            f"--problem must name a forewise problem, or a function without arguments that makes "
            f"one, but {place} is a {type(made).__name__}"
        )
    return made


def _newsvendor(values: Mapping[str, Any], outcomes: list[str], given: list[str]) -> fw.Problem:
    return fw.Newsvendor(values["shortage"], values["excess"])


def _budget(values: Mapping[str, Any], outcomes: list[str], given: list[str]) -> fw.Problem:
    n, limit = len(outcomes), values["budget"]
    each = {key: _for_each(key, values[key], n) for key in ("shortage", "excess", "price")}
    if not isinstance(limit, str):
        return fw.QuadraticNewsvendor(0.0, 0.0, 0.0, each["shortage"], 0.0, each["excess"],
                                      each["price"], limit)  # fmt: skip
    if given != [limit]:
        raise InvalidInputError(
            f"budget names the column {limit!r}: write given = [{limit!r}] below [columns], or a "
            "number here"
        )
    cp = _cvxpy()
    order = cp.Variable(n, nonneg=True, name="order")
    demand, room = cp.Parameter(n, name="demand"), cp.Parameter(name=limit)
    cost = each["shortage"] @ cp.pos(demand - order) + each["excess"] @ cp.pos(order - demand)
    rows = [each["price"] @ order <= room]
    return fw.CvxpyProblem(cp.Minimize(cost), rows, decision=order, outcome=demand, given=room)


def _portfolio(values: Mapping[str, Any], outcomes: list[str], given: list[str]) -> fw.Problem:
    arguments = {key: value for key, value in values.items() if key != "template"}
    expected = _for_each("expected_return", arguments.pop("expected_return"), len(outcomes))
    return fw.Portfolio(expected, **arguments)


def _schedule(values: Mapping[str, Any], outcomes: list[str], given: list[str]) -> fw.Problem:
    cp = _cvxpy()
    n = len(outcomes)
    if n < 2:
        raise InvalidInputError(
            "template 'schedule' must have an outcome for every step of the day, but has one: name "
            "the columns of all steps in outcome"
        )
    plan, need = cp.Variable(n, nonneg=True, name="schedule"), cp.Parameter(n, name="need")
    short = _for_each("shortage", values["shortage"], n) @ cp.pos(need - plan)
    rows = []
    if "ramp" in values:
        rows.append(cp.abs(cp.diff(plan)) <= values["ramp"])
    if "capacity" in values:
        rows.append(plan <= values["capacity"])
    cost = short + _for_each("excess", values["excess"], n) @ cp.pos(plan - need)
    return fw.CvxpyProblem(cp.Minimize(cost), rows, decision=plan, outcome=need)


def _own(values: Mapping[str, Any], outcomes: list[str], given: list[str]) -> fw.Problem:
    raise InvalidInputError("template 'cvxpy' needs --problem package.module:name")


def _cvxpy() -> Any:
    try:
        import cvxpy
    except ImportError as error:
        raise MissingDependencyError(
            "this problem needs CVXPY, which is not installed: pip install 'forewise[cvxpy]'"
        ) from error
    return cvxpy


def _for_each(key: str, value: Any, n: int) -> Any:
    """A number for each of n outcomes."""
    import numpy as np

    values = np.array(value, dtype=float).ravel()
    if len(values) not in (1, n):
        raise InvalidInputError(
            f"{key} must be one number, or {n}, one for each outcome, but is {len(values)}"
        )
    return np.broadcast_to(values, n).copy()


_COSTS = {
    "shortage": _numbers("3.0", "cost of a unit too few: margin lost, customer annoyed"),
    "excess": _numbers("1.0", "cost of a unit too many: thrown away, stored, sold off"),
}
TEMPLATES = {
    "newsvendor": Template("how much to order of each item", _newsvendor, _COSTS, several=False),
    "budget": Template(
        "how much to order of items that share a budget",
        _budget,
        {
            **_COSTS,
            "price": _numbers("2.0", "what a unit takes of the budget"),
            "budget": Key(
                "a number, or the name of a column that is given",
                "100.0",
                lambda v: _is_number(v) or (isinstance(v, str) and bool(v)),
                True,
                "what may be spent a day; or the name of a column, listed in given as well",
            ),
        },
    ),
    "portfolio": Template(
        "what to hold, with the least expected loss",
        _portfolio,
        {
            "expected_return": _numbers("[0.05, 0.03]", "of each asset"),
            "minimum_return": _number("0.02", "what the holdings must return on average"),
            "budget": _number("1.0", "what the holdings sum to", required=False),
            "upper": _numbers("0.5", "largest holding", required=False),
            "lower": _numbers("0.0", "smallest holding; negative for short sales", required=False),
        },
    ),
    "schedule": Template(
        "a schedule for the steps of a day, with limits to its changes",
        _schedule,
        {
            **_COSTS,
            "ramp": _number("10.0", "largest change from one step to the next", required=False),
            "capacity": _number("100.0", "largest value of a step", required=False),
        },
    ),
    "cvxpy": Template("a problem of your own, in Python", _own),
}
