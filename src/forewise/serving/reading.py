"""From the bytes of a request to a checked question: strict JSON, and the fields of a request."""

from __future__ import annotations

import json
import math
from typing import Annotated, Any, Literal, NoReturn

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, StrictStr

_DEPTH = 8  # what a request needs is 4: fields, rows, cells, vectors
_LARGEST = 2**63

_MOVED = 1000

Number = StrictFloat | StrictInt
Cell = StrictBool | StrictInt | StrictFloat | StrictStr | None
Row = Annotated[dict[str, Cell], Field(max_length=10_000)]


class RequestError(Exception):
    """What is answered in place of a result: an HTTP status, and what to do about it."""

    def __init__(self, status: int, message: str, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after


class RowsRequest(BaseModel):
    """Rows, cells by column name; `past` and `given` where the policy asks for them."""

    model_config = ConfigDict(extra="forbid")

    rows: list[Row] = Field(min_length=1, description="One object per row, cells by column name.")
    past: list[Row] | None = Field(
        None,
        description="Policies of a planner with a date: rows of the past, with their outcomes. "
        "Without it the table that the service was started with is used.",
    )
    given: dict[str, list[Any]] | None = Field(
        None, description="What is given to the problem: for each parameter a value per row."
    )
    n_scenarios: StrictInt | None = Field(None, ge=1, description="Scenarios of each row.")
    random_state: StrictInt = Field(
        0, ge=0, lt=2**32, description="The same number, the same decisions."
    )


class DecideRequest(RowsRequest):
    """Rows to decide, cells by column name; `past` and `given` where the policy asks for them."""

    policy: StrictStr | None = Field(None, description="Name of the policy, if there are several.")


class ExplainRequest(DecideRequest):
    """As for a decision, with one row."""

    rows: list[Row] = Field(min_length=1, max_length=1, description="The row to explain.")


class RiskChoice(BaseModel):
    """What is minimised of the cost."""

    model_config = ConfigDict(extra="forbid")

    measure: Literal["mean", "cvar", "mean_cvar", "worst_case"]
    level: Number = Field(0.9, ge=0, lt=1, description="Of cvar: the share below the tail.")
    weight: Number = Field(0.5, ge=0, le=1, description="Of mean_cvar: the weight of the tail.")


class WhatIfRequest(RowsRequest):
    """One row, and what is to be other than the policy has it; nothing of it is kept."""

    rows: list[Row] = Field(min_length=1, max_length=1, description="The row to decide.")
    parameters: dict[str, Number] = Field(
        {},
        max_length=_MOVED,
        description="Numbers of the problem by name, such as shortage[bread].",
    )
    factors: dict[str, Number] = Field(
        {}, max_length=_MOVED, description="What all numbers of a parameter are multiplied by."
    )
    risk: RiskChoice | None = Field(None, description="Left out, as the policy has it.")
    trial: dict[str, Number] | None = Field(
        None, max_length=_MOVED, description="A decision of your own, by name: what it would cost."
    )
    about: StrictStr | None = Field(None, description="The decision that the cost curve is of.")
    scenarios: StrictBool = Field(True, description="Whether the answer has the scenarios.")


def parsed(body: bytes) -> Any:
    """Strict JSON: UTF-8, finite numbers of 64 bits, each key once, few levels, whole text."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RequestError(400, f"the body must be UTF-8, but byte {error.start} is not") from None
    if text.startswith("\ufeff"):
        raise RequestError(400, "the body must be UTF-8 without a byte order mark: leave it out")
    try:
        value = json.loads(
            text, object_pairs_hook=_object, parse_constant=_constant, parse_float=_float,
            parse_int=_integer,
        )  # fmt: skip
    except RecursionError:
        raise RequestError(400, _TOO_DEEP) from None
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise RequestError(
            400, f"the body must be JSON, but is not ({error.msg}, {place})"
        ) from None
    _check(value, _DEPTH)
    return value


_TOO_DEEP = f"the body must have at most {_DEPTH} levels of objects and lists, but has more"


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in found if names.count(name) > 1)
        raise RequestError(400, f"an object must have each key once, but has {twice!a:.80} twice")
    return found


def _constant(name: str) -> NoReturn:
    raise RequestError(400, f"numbers must be finite, but one is {name}: a missing cell is null")


def _float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise RequestError(400, f"numbers must fit 64 bits, but one is {text[:30]}")
    return number


def _integer(text: str) -> int:
    # Python refuses to read integers of thousands of digits.
    number = int(text) if len(text) <= 20 else _LARGEST
    if not -_LARGEST <= number < _LARGEST:
        raise RequestError(400, f"integers must fit 64 bits, but one is {text[:30]}")
    return number


def _check(value: Any, levels: int) -> None:
    """Raise where values lie too deep, or text has halves of surrogate pairs."""
    if isinstance(value, str):
        if not value.isascii() and any("\ud800" <= sign <= "\udfff" for sign in value):
            raise RequestError(400, "text must be Unicode, but has half of a surrogate pair")
    elif isinstance(value, dict | list):
        if not levels:
            raise RequestError(400, _TOO_DEEP)
        for part in value:
            _check(part, levels - 1)
        for part in value.values() if isinstance(value, dict) else ():
            _check(part, levels - 1)
