"""The recipe from the rows of a table to contexts: fixed in training, applied to any later table.

With a date, a row's context is made of its calendar, of its columns that are known ahead, and of
what the same series had up to `horizon` days before; in units of the series' own level, where
outcomes are never negative. Nothing later than the row's day minus the horizon is used.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pandas as pd

from forewise import features
from forewise.exceptions import ColumnWarning, InvalidInputError
from forewise.features.grid import Grid
from forewise.features.history import Past
from forewise.planner.roles import Roles, numbers, require_one_row_a_day, series_text
from forewise.validation.columns import Columns
from forewise.validation.encodings import BooleanColumn, IgnoredColumn, NumberColumn
from forewise.validation.frames import listed

_MEANS, _QUANTILE_DAYS, _WEEKS = (7, 28), 56, (4, 12)
_LEVELS = (0.1, 0.5, 0.9)
_MEMORY = 84  # days of the past that matter: twelve weeks
_LEAST = 0.01  # share of a typical level that every level has at least
_KEY, _DAY = "series", "date"


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a table, read by a recipe; `frame` are the columns as they came."""

    frame: pd.DataFrame
    days: np.ndarray | None  # datetime64[D] (n_rows,)
    keys: np.ndarray  # the series, as text (n_rows,)
    outcome: np.ndarray  # (n_rows, n_outcomes); NaN where unknown or closed
    closed: np.ndarray  # (n_rows,)
    censored: np.ndarray  # (n_rows, n_outcomes)
    fixed: np.ndarray  # features of the row's own columns (n_rows, n_fixed)
    lagged: np.ndarray  # numbers of which only the past is known (n_rows, n_lagged)

    def __len__(self) -> int:
        return len(self.keys)

    def take(self, rows: np.ndarray) -> Rows:
        """Some of the rows, by number or by truth values."""
        arrays: dict[str, Any] = {
            name: None if value is None else value[rows]
            for name, value in vars(self).items()
            if name != "frame"
        }
        return Rows(frame=self.frame.iloc[np.arange(len(self))[rows]], **arrays)

    def joined(self, other: Rows) -> Rows:
        """These rows, and the others behind them."""
        mine, others = vars(self), vars(other)
        arrays: dict[str, Any] = {
            name: None if value is None else np.concatenate([value, others[name]])
            for name, value in mine.items()
            if name != "frame"
        }
        return Rows(frame=pd.concat([self.frame, other.frame]), **arrays)


@dataclass(frozen=True)
class Recipe:
    """What was made of each column in training; made by `from_table`.

    Parameters
    ----------
    roles : Roles
    fixed : Columns
        Columns of the row itself that are features.
    series : Columns
        Names of series, as categories.
    lagged : list
        Number and boolean columns of which only the past is known.
    day_first : bool
        In days such as 3/4/2024.
    relative : bool
        Outcomes are learned in units of the level of their series.
    level, least : list of float
        Level of a series without a past, and the lowest of any series, for each outcome.
    features : list of str
    fills : list of float
        What stands for each feature where it is not known.
    """

    roles: Roles
    fixed: Columns
    series: Columns
    lagged: list[Any]
    day_first: bool = False
    relative: bool = False
    level: list[float] | None = None
    least: list[float] | None = None
    features: list[str] | None = None
    fills: list[float] | None = None

    @classmethod
    def from_table(
        cls, roles: Roles, frame: pd.DataFrame, kinds: Mapping[str, str] | None, notes: list[str]
    ) -> Self:
        """Look at the columns of a table; `notes` gets what is left out, and why."""
        kinds = dict(kinds or {})
        unknown = [repr(name) for name in kinds if name not in frame.columns]
        if unknown:
            raise InvalidInputError(f"kinds must name columns, but {listed(unknown)} are none")
        named = {*roles.needed, *roles.outcome, *roles.sold_out}
        others = [name for name in frame.columns if name not in named]
        plain = roles.date is None  # it has no past: what is not named is taken for known
        usable = [name for name in others if plain and _is_usable(frame[[name]], kinds, notes)]
        kept = [*roles.known, *usable]
        chosen = {name: kind for name, kind in kinds.items() if name in kept}
        fixed = Columns.from_frame(frame[kept], chosen)
        names = pd.DataFrame({name: series_text(frame[name]) for name in roles.series})
        series = Columns.from_frame(names, dict.fromkeys(roles.series, "category"))
        lagged = []
        for name in [] if plain else others:
            part = _lagged_part(frame[[name]], kinds, notes)
            lagged += [] if part is None else [part]
        ignored = [part.name for part in fixed.parts if isinstance(part, IgnoredColumn)]
        notes += [f"{name!r} is left out: it is constant, or ignored as asked" for name in ignored]
        recipe = cls(roles, fixed, series, lagged)
        if plain:
            return recipe
        assert roles.date is not None
        return replace(recipe, day_first=_day_first(frame[roles.date]))

    def fitted(self, rows: Rows) -> Recipe:
        """With levels and fills of the training rows."""
        outcome = rows.outcome
        relative = self.roles.date is not None and not bool((outcome < 0).any())
        level, least = [], []
        for column in outcome.T:
            typical = [v for v in _typical(column, rows.keys) if np.isfinite(v)]
            positive = [value for value in typical if value > 0]
            level.append(float(np.median(typical)) if typical else 0.0)
            least.append(_LEAST * float(np.median(positive)) if positive else 1.0)
        made = replace(self, relative=relative, level=level, least=least)
        raw = made._raw(rows, np.arange(len(rows)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # of columns that are never known
            fills = np.nan_to_num(np.nanmedian(raw.to_numpy(), axis=0))
        return replace(made, features=list(raw.columns), fills=[float(fill) for fill in fills])

    @property
    def memory(self) -> int:
        """Days before a row that its context is made of."""
        return _MEMORY + 7 * -(-self.roles.horizon // 7)

    @property
    def levels(self) -> list[int]:
        """Numbers of the features with the logarithm of each outcome's level."""
        assert self.features is not None
        return [self.features.index(f"{name}_level") for name in self.roles.outcome]

    def read(self, frame: pd.DataFrame, name: str) -> Rows:
        """The rows of a checked table; what training has not seen is a `ColumnWarning`."""
        roles, report = self.roles, list[str]()
        closed = roles.flags(frame, roles.closed)
        outcome = np.where(closed[:, None], np.nan, roles.outcomes(frame))
        texts = pd.DataFrame({n: series_text(frame[n]) for n in roles.series}, index=frame.index)
        blocks = [self.fixed.encode(frame[self.fixed.names], report)]
        blocks.append(self.series.encode(texts, report))
        if report:
            warnings.warn(f"{name}: {'; '.join(report)}", ColumnWarning, stacklevel=3)
        days = None if roles.date is None else roles.days(frame, name, self.day_first)
        keys = roles.keys(frame, name)
        if days is not None:
            require_one_row_a_day(roles, frame.index, days, keys, name)
        lagged = [_lagged_values(part, frame) for part in self.lagged]
        return Rows(
            frame=frame,
            days=days,
            keys=keys,
            outcome=outcome,
            closed=closed,
            censored=roles.censored(frame) & ~np.isnan(outcome),
            fixed=np.concatenate(blocks, axis=1),
            lagged=np.array(lagged).T if lagged else np.empty((len(frame), 0)),
        )

    def contexts(self, rows: Rows, wanted: np.ndarray | None = None) -> pd.DataFrame:
        """Contexts (n_wanted, n_features) of some of the rows, without missing values."""
        raw = self._raw(rows, np.arange(len(rows)) if wanted is None else wanted)
        assert self.fills is not None
        # Single precision: sums over a window depend on where the table begins, in the last digits.
        values = raw.to_numpy(dtype=np.float32).astype(np.float64)
        if self.relative:  # units of outcomes, so that their digits count
            values[:, self.levels] = raw.iloc[:, self.levels].to_numpy().round(9)
        filled = np.where(np.isnan(values), np.array(self.fills), values)
        return pd.DataFrame(filled, columns=raw.columns)

    def build(self, table: pd.DataFrame) -> pd.DataFrame:
        """Contexts of all rows of a table, with its index: what `check_no_future` asks for."""
        return self.contexts(self.read(table, "table")).set_index(table.index)

    def past_known(self, rows: Rows) -> np.ndarray:
        """Rows whose series has an outcome in the past that matters (n_rows,)."""
        if rows.days is None:
            return np.ones(len(rows), dtype=bool)
        pasts, ahead = _Pasts.of(rows, np.arange(len(rows))), self.roles.horizon
        since = [
            pasts.column(name, values).days_since(horizon=ahead).to_numpy()[:, 0]
            for name, values in zip(self.roles.outcome, rows.outcome.T, strict=True)
        ]
        return np.any(np.array(since) < ahead + _MEMORY, axis=0)

    def _raw(self, rows: Rows, wanted: np.ndarray) -> pd.DataFrame:
        """All features of some of the rows, by number; NaN where not known."""
        own = [*self.fixed.features, *self.series.features]
        parts = [pd.DataFrame(rows.fixed[wanted], columns=own)]
        if rows.days is not None:
            pasts = _Pasts.of(rows, wanted)
            calendar = features.calendar(pd.Series(rows.days[wanted].astype("datetime64[s]")))
            weekday = features.one_hot(calendar.pop("weekday"), range(7))
            parts = [calendar, weekday, *parts]
            parts += [
                self._history(pasts.column(name, rows.outcome[:, j]), j)
                for j, name in enumerate(self.roles.outcome)
            ]
            parts.append(self._other_columns(pasts, rows, wanted))
        raw = pd.concat(parts, axis=1)
        return raw if raw.shape[1] else pd.DataFrame({"constant": np.ones(len(wanted))})

    def _history(self, past: Past, j: int) -> pd.DataFrame:
        """Lags and moving statistics of an outcome, and the level that they are multiples of."""
        assert self.level is not None
        assert self.least is not None
        name, ahead = past.name, self.roles.horizon
        week = 7 * -(-ahead // 7)
        lags = past.lag(sorted({ahead, ahead + 1, week, week + 7}))
        means = past.rolling(_MEANS, ("mean",), horizon=ahead)
        spreads = past.rolling(_MEANS, ("std",), horizon=ahead)
        ranks = past.rolling(_QUANTILE_DAYS, _LEVELS, horizon=ahead)
        weekday = past.weekday_means(_WEEKS, horizon=ahead)
        whole = past.rolling(_MEMORY, ("mean",), min_values=1, horizon=ahead)
        since = past.days_since(horizon=ahead).clip(upper=_MEMORY)
        level = means.iloc[:, -1].fillna(whole.iloc[:, 0]).fillna(self.level[j])
        short = means.iloc[:, -1].isna().astype(float).rename(f"{name}_past_short")
        few, many = weekday.columns
        weekday[few] = weekday[few].fillna(weekday[many])
        for days in (week, week + 7):
            lags[f"{name}_lag_{days}"] = lags[f"{name}_lag_{days}"].fillna(weekday[few])
        levels = pd.concat([lags, means, ranks, weekday], axis=1).apply(lambda c: c.fillna(level))
        made = pd.concat([levels, spreads], axis=1)
        if self.relative:
            unit = level.clip(lower=self.least[j])
            made = made.div(unit, axis=0).drop(columns=means.columns[-1])
            level = np.log(unit)
        return pd.concat([made, level.rename(f"{name}_level"), short, since], axis=1)

    def _other_columns(self, pasts: _Pasts, rows: Rows, wanted: np.ndarray) -> pd.DataFrame:
        """The day before of known numbers; the last known values of columns without a role."""
        made, ahead = [], self.roles.horizon
        fixed = self.fixed.features
        for part in self.fixed.parts:
            if isinstance(part, NumberColumn | BooleanColumn):
                own = rows.fixed[:, fixed.index(part.name)]
                before = pasts.column(part.name, own).lag(1)
                made.append(before.fillna({before.columns[0]: pd.Series(own[wanted])}))
        for j, name in enumerate(self.roles.outcome):
            # What was sold says less of demand where it was all there was.
            if self.roles.sold_out:
                flags = np.where(np.isnan(rows.outcome[:, j]), np.nan, rows.censored[:, j])
                past = pasts.column(f"{name}_sold_out", flags)
                made.append(past.lag(ahead))
                made.append(past.rolling(28, ("mean",), min_values=1, horizon=ahead))
        for part, values in zip(self.lagged, rows.lagged.T, strict=True):
            past = pasts.column(part.name, values)
            made.append(past.lag(ahead))
            made.append(past.rolling(7, ("mean",), min_values=1, horizon=ahead))
        return pd.concat(made, axis=1) if made else pd.DataFrame(index=pasts.index)


@dataclass(frozen=True, eq=False)
class _Pasts:
    """The past of each column, for some of the rows."""

    grid: Grid
    wanted: np.ndarray

    @classmethod
    def of(cls, rows: Rows, wanted: np.ndarray) -> Self:
        assert rows.days is not None
        named = {_DAY: rows.days.astype("datetime64[s]"), _KEY: pd.factorize(rows.keys)[0]}
        return cls(Grid.from_table(pd.DataFrame(named), _KEY, _DAY), wanted)

    @property
    def index(self) -> pd.Index:
        return pd.RangeIndex(len(self.wanted))

    def column(self, name: str, values: np.ndarray) -> Past:
        """Of a column's values in all rows."""
        return Past.of(name, values, self.grid, self.wanted, self.index)


def _is_usable(column: pd.DataFrame, kinds: Mapping[str, str], notes: list[str]) -> bool:
    """Whether a column without a role can be made features; the reason, if not, is noted."""
    chosen = {name: kinds[name] for name in column.columns if name in kinds}
    try:
        Columns.from_frame(column, chosen)
    except InvalidInputError as error:
        notes.append(f"{column.columns[0]!r} is left out: {error}")
        return False
    return True


def _lagged_part(column: pd.DataFrame, kinds: Mapping[str, str], notes: list[str]) -> Any:
    """What a column of which only the past is known becomes; None where it is left out."""
    name = str(column.columns[0])
    if not _is_usable(column, kinds, notes):
        return None
    part = Columns.from_frame(column, {name: kinds[name]} if name in kinds else None).parts[0]
    if isinstance(part, NumberColumn | BooleanColumn):
        notes.append(f"{name!r} is not named as known: only its past is used")
        return part
    why = part.reason if isinstance(part, IgnoredColumn) else f"a {part.kind}, not named as known"
    notes.append(f"{name!r} is left out: {why}")
    return None


def _lagged_values(part: Any, frame: pd.DataFrame) -> np.ndarray:
    """The numbers of a column, NaN where missing, or where the table has not got it (n_rows,)."""
    if part.name not in frame.columns:
        return np.full(len(frame), np.nan)
    if isinstance(part, NumberColumn):
        return numbers(frame[part.name])
    encoded = BooleanColumn(part.name, True, part.crosses).encode(frame[part.name], [])
    return np.where(encoded[:, 1] > 0, np.nan, encoded[:, 0])


def _typical(column: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """The mean of each series."""
    return pd.Series(column).groupby(keys).mean().to_numpy()


def _day_first(column: pd.Series) -> bool:
    """Whether 3/4/2024 has its day first, by the unambiguous rows."""
    kind = Columns.from_frame(column.to_frame(), {str(column.name): "date"}).parts[0]
    return bool(kind.day_first)
