"""What could be otherwise in a row that is decided, in the words of the user's table.

A column that is known ahead may have another value, and the days before may have gone otherwise:
the last outcome, the one of a week before the day that is decided, the whole level of the series,
and what else only the past is known of. Each makes another context.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from forewise.explanation import Alternative, other_values
from forewise.planner.contexts import Recipe, Rows
from forewise.planner.roles import numbers
from forewise.validation.encodings import NumberColumn

_FACTORS = (0.5, 0.67, 0.8, 0.9, 1.1, 1.25, 1.5, 2.0)  # of the level
_WEEK = np.timedelta64(7, "D")


def alternatives(
    recipe: Recipe, rows: Rows, row: int, context: np.ndarray, past: np.ndarray
) -> list[Alternative]:
    """Other contexts of one row, by its number among `rows`.

    Parameters
    ----------
    context : array (n_features,), of the row
    past : array (n_rows, n_features), contexts of past rows
    """
    known = list(_of_known_columns(recipe, rows, row, context, past))
    return known if rows.days is None else [*known, *_of_the_past(recipe, rows, row, context, past)]


def _of_known_columns(
    recipe: Recipe, rows: Rows, row: int, context: np.ndarray, past: np.ndarray
) -> Iterator[Alternative]:
    """Past values of the columns that are known ahead."""
    assert recipe.features is not None
    for part in recipe.fixed.parts:
        places = [recipe.features.index(name) for name in part.features]
        (now,) = part.decode(context[None, places])
        seen = pd.Series([value for value in part.decode(past[:, places]) if value is not None])
        if now is None or not len(seen):
            continue
        now = _as_written(part, now, rows, row)
        for value, distance in other_values(seen, now):
            other = context.copy()
            other[places] = part.encode(pd.Series([value]), [])[0]
            yield Alternative(part.name, now, value, distance, other)


def _as_written(part: Any, value: Any, rows: Rows, row: int) -> Any:
    """The value of the row itself: contexts have single precision."""
    if not isinstance(part, NumberColumn):
        return value
    written = float(numbers(rows.frame[part.name].iloc[[row]])[0])
    return value if np.isnan(written) else written


def _of_the_past(
    recipe: Recipe, rows: Rows, row: int, context: np.ndarray, past: np.ndarray
) -> Iterator[Alternative]:
    """Other outcomes, and other values of columns without a role, on the days before."""
    assert rows.days is not None
    today, ahead = rows.days[row], np.timedelta64(recipe.roles.horizon, "D")
    before = (rows.keys == rows.keys[row]) & (rows.days <= today - ahead)
    own = rows.take(np.concatenate([np.flatnonzero(before), [row]]))
    tried: list[tuple[str, float, float, float]] = []
    changed: list[Rows] = []
    for j, name in enumerate(recipe.roles.outcome):
        for column, place, value, distance in _on_single_days(name, own, own.outcome[:, j]):
            outcome = own.outcome.copy()
            outcome[place, j] = value
            tried.append((column, float(own.outcome[place, j]), value, distance))
            changed.append(replace(own, outcome=outcome))
        if recipe.relative:
            level = float(np.exp(context[recipe.levels[j]]))
            levels = np.sort(np.exp(past[:, recipe.levels[j]]))
            for factor in _FACTORS if np.isfinite(own.outcome[:-1, j]).any() else ():
                outcome = own.outcome.copy()
                outcome[:, j] *= factor
                between = np.searchsorted(levels, [level, factor * level])
                distance = abs(int(between[1]) - int(between[0])) / max(1, len(levels))
                tried.append((f"mean {name} of the weeks before", level, factor * level, distance))
                changed.append(replace(own, outcome=outcome))
    for j, part in enumerate(recipe.lagged):
        for column, place, value, distance in _on_single_days(part.name, own, own.lagged[:, j]):
            lagged = own.lagged.copy()
            lagged[place, j] = value
            tried.append((column, float(own.lagged[place, j]), value, distance))
            changed.append(replace(own, lagged=lagged))
    for what, made in zip(tried, _contexts(recipe, changed), strict=True):
        yield Alternative(*what, made)


def _on_single_days(
    name: str, own: Rows, values: np.ndarray
) -> Iterator[tuple[str, int, float, float]]:
    """Other values on the last known day, and on the day a week before the row that is decided.

    Yields what is changed, the number of its row, the other value, and its distance.
    """
    assert own.days is not None
    known = np.flatnonzero(~np.isnan(values[:-1]))
    if not len(known):
        return
    last = known[own.days[known].argmax()]
    week = known[own.days[known] == own.days[-1] - _WEEK]
    seen = pd.Series(values[known])
    for place in dict.fromkeys([int(last), *map(int, week)]):
        for value, distance in other_values(seen, values[place]):
            day = pd.Timestamp(own.days[place])
            yield f"{name} on {day:%a %Y-%m-%d}", place, float(value), distance


def _contexts(recipe: Recipe, changed: list[Rows]) -> np.ndarray:
    """Contexts (n_changed, n_features) of the last rows, each in a table of its own."""
    if not changed:
        return np.empty((0, 0))
    apart = [replace(rows, keys=np.full(len(rows), str(k))) for k, rows in enumerate(changed)]
    joined = apart[0]
    for rows in apart[1:]:
        joined = joined.joined(rows)
    ends = np.cumsum([len(rows) for rows in apart]) - 1
    return recipe.contexts(joined, ends).to_numpy()
