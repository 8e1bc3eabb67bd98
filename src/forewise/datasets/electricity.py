"""Half-hourly electricity demand of Victoria, as days of 48 values, and contexts made of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from forewise import features
from forewise.datasets import reading
from forewise.datasets.files import CorruptDataError

#: Names of a day's half hours, by the clock at which they begin.
HALF_HOURS = tuple(f"{k // 2:02d}:{k % 2 * 30:02d}" for k in range(48))
_STEP = pd.Timedelta(minutes=30)


@dataclass(frozen=True, eq=False)
class Victoria:
    """Electricity demand of Victoria, as tables.

    Parameters
    ----------
    half_hours : DataFrame (52608, 6)
        As measured, in order of time: `time` (UTC, when the half hour begins), `date` and
        `half_hour` (0 to 47) of the clocks in Melbourne, `demand`, `temperature` in °C, `holiday`.
    demand, temperature : DataFrame (1096, 48)
        A row per day, a column per half hour of the clock, "00:00" to "23:30".
    days : DataFrame (1096, 3)
        `weekday` (0 for Monday), `holiday`, and `measured`, the number of half hours that the day
        had: 46 or 50 when the clocks changed.

    Examples
    --------
    >>> import forewise as fw
    >>> here = [found.source.name for found in fw.datasets.available() if found.folder]
    >>> if "vic_electricity" in here:
    ...     days = fw.datasets.victoria().days
    """

    half_hours: pd.DataFrame
    demand: pd.DataFrame
    temperature: pd.DataFrame
    days: pd.DataFrame


def victoria(data_dir: str | Path | None = None, *, verify: bool = True) -> Victoria:
    """Electricity demand of the state of Victoria every half hour, 2012 to 2014.

    Days are those of the clocks in Melbourne, because demand follows them, and have 48 values: when
    the clocks skip an hour, the two missing half hours are interpolated; when they repeat it, the
    two that came twice are averaged. That concerns three days each.

    `data_dir` is the folder that holds ``vic_electricity/`` (see `forewise.datasets.files`);
    `verify` refuses a file whose content is not the published one. The temperature of a day is not
    known before: see `features.weather_forecast`.

    Examples
    --------
    No data come with forewise; a message says how to get them:

    >>> import forewise as fw
    >>> here = [found.source.name for found in fw.datasets.available() if found.folder]
    >>> "vic_electricity" not in here or len(fw.datasets.victoria().half_hours) == 52608
    True
    """
    folder = reading.located("vic_electricity", data_dir, verify)
    half_hours = _read(folder / "vic_electricity.csv")
    by_day = half_hours.groupby("date")
    days = pd.DataFrame(
        {
            "weekday": by_day["date"].first().dt.day_of_week.astype("int64"),
            "holiday": by_day["holiday"].first(),
            "measured": by_day.size(),
        }
    )
    return Victoria(half_hours, _wide(half_hours, "demand"), _wide(half_hours, "temperature"), days)


def victoria_contexts(
    data: Victoria, *, temperature_noise: float = 2.0, random_state: int = 0
) -> pd.DataFrame:
    """Contexts of each day: what is known when the day begins, at midnight.

    Calendar and holidays; demand in each half hour of the day before and of the week before; a
    surrogate forecast of the temperature every three hours.

    `temperature_noise` is the standard deviation of the forecast's noise, in °C. Returns a row per
    day of `data.demand` and 117 columns; the first seven lack the week before, and have NaN.

    Examples
    --------
    >>> import forewise as fw
    >>> here = [found.source.name for found in fw.datasets.available() if found.folder]
    >>> if "vic_electricity" in here:
    ...     contexts = fw.datasets.victoria_contexts(fw.datasets.victoria())
    """
    dates = data.days.index.rename("date")
    calendar = features.calendar(dates, data.days.index[data.days["holiday"]])
    demand = data.demand.add_prefix("demand_").rename_axis("date").reset_index()
    temperature = data.temperature.iloc[:, ::6].add_prefix("temperature_")
    temperature = temperature.rename_axis("date").reset_index()
    past = [features.lag(demand, name, (1, 7)) for name in demand.columns.drop("date")]
    forecast = features.weather_forecast(
        temperature,
        list(temperature.columns.drop("date")),
        temperature_noise,
        random_state=random_state,
    )
    by_row = pd.concat([*past, forecast], axis=1).set_axis(dates)
    weekday = pd.Series(data.days["weekday"].to_numpy(), index=dates, name="weekday")
    days = [calendar.drop(columns="weekday"), features.one_hot(weekday, range(7)), by_row]
    return pd.concat(days, axis=1)


def _read(path: Path) -> pd.DataFrame:
    raw = reading.read_table(path)
    reading.require_columns(path, raw, ["Time", "Demand", "Temperature", "Date", "Holiday"])
    reading.require_numbers(path, raw, ["Demand", "Temperature"])
    reading.require_flags(path, raw, ["Holiday"])
    if not (raw["Demand"] > 0).all():
        raise CorruptDataError(f"column Demand of {path} must be positive everywhere, but is not")
    time = _as_times(path, raw["Time"])
    clock = time.dt.tz_convert("Australia/Melbourne")
    date = clock.dt.tz_localize(None).dt.normalize()
    if (date != reading.as_days(path, raw, "Date", "2012-01-01")).any():
        raise CorruptDataError(
            f"column Date of {path} must be the day in Melbourne at that Time, but is another"
        )
    return pd.DataFrame(
        {
            "time": time,
            "date": date,
            "half_hour": (clock.dt.hour * 2 + clock.dt.minute // 30).astype("int64"),
            "demand": raw["Demand"].astype("float64"),
            "temperature": raw["Temperature"].astype("float64"),
            "holiday": raw["Holiday"].astype(bool),
        }
    )


def _as_times(path: Path, column: pd.Series) -> pd.Series:
    """Instants, half an hour apart, from midnight to midnight."""
    try:
        time = pd.to_datetime(column, format="%Y-%m-%dT%H:%M:%SZ", utc=True)
    except (ValueError, TypeError) as error:
        raise CorruptDataError(
            f"column Time of {path} must be instants like 2011-12-31T13:00:00Z, but is not: {error}"
        ) from error
    wrong = np.flatnonzero(time.diff().iloc[1:] != _STEP)
    if len(wrong):
        raise CorruptDataError(
            f"column Time of {path} must go on by half an hour from row to row, but does not in "
            f"row {wrong[0] + 2}"
        )
    ends = [time.iloc[0], time.iloc[-1] + _STEP]
    if any(end.tz_convert("Australia/Melbourne").strftime("%H:%M") != "00:00" for end in ends):
        raise CorruptDataError(
            f"{path} must begin and end at midnight in Melbourne, but goes from {ends[0]} to "
            f"{ends[1]}"
        )
    return time


def _wide(half_hours: pd.DataFrame, column: str) -> pd.DataFrame:
    """A row per day; half hours that came twice are averaged, skipped ones interpolated."""
    wide = half_hours.pivot_table(index="date", columns="half_hour", values=column, aggfunc="mean")
    wide = wide.reindex(columns=range(48)).interpolate(axis=1)
    return wide.set_axis(pd.Index(HALF_HOURS), axis=1)
