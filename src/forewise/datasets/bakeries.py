"""Daily demand of three products in 35 bakeries: the table, cleaned, and contexts made of it."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from forewise import features
from forewise.datasets import reading
from forewise.datasets.files import CorruptDataError

#: Columns of 0 and 1 in the file, and their names here.
_FLAGS = {
    "is_holiday": "holiday",
    "is_holiday_next2days": "holiday_in_2_days",
    "is_schoolholiday": "school_holiday",
    "promotion_currentweek": "promotion",
    "promotion_lastweek": "promotion_last_week",
}
_SERIES = ["store", "product"]
PRODUCTS = (101, 109, 110)
STORES = (
    2, 3, 4, 5, 17, 19, 20, 21, 22, 24, 25, 26, 27, 28, 29, 30, 31, 33, 34, 35, 36, 37, 38, 40, 41,
    43, 44, 45, 46, 47, 48, 49, 50, 70, 71,
)  # fmt: skip


def bakery(data_dir: str | Path | None = None, *, verify: bool = True) -> pd.DataFrame:
    """Demand of 3 products in 35 stores, one row per store, product and day, 2016 to 2019.

    * The weekday is recomputed from the date: the label in the file is a day behind.
    * A store is `closed` on a day when none of its products has demand: 4,897 of 42,525
      store-days, mostly Sundays and holidays, and all days before stores 5 and 22 opened in 2018.
      Their demand is 0 in the table: mask it (``demand.where(~closed)``) before lags and means are
      taken, and leave these rows out of training and evaluation.
    * A demand of 0 on an open day is kept (708 rows), and so are 42 demands that are no integers.

    There is a row for every series on every day. Demand falls over the years (that of product 101
    by some 40 % in three years).

    `data_dir` is the folder that holds ``bakery/`` (see `forewise.datasets.files`); `verify`
    refuses files whose content is not the published one.

    Returns
    -------
    DataFrame (127575, 13)
        Sorted by store, product and date: `date`; `store` and `product`, integers; `weekday`, 0
        for Monday; `demand`; the booleans `closed`, `holiday`, `holiday_in_2_days`,
        `school_holiday`, `promotion` (of the product, this week) and `promotion_last_week`;
        `rain`; `temperature` in °C. The weather is that of the day itself, which is not known
        before: see `features.weather_forecast`.

    Examples
    --------
    No data come with forewise; a message says how to get them:

    >>> import forewise as fw
    >>> here = [found.source.name for found in fw.datasets.available() if found.folder]
    >>> "bakery" not in here or len(fw.datasets.bakery()) == 127575
    True
    """
    folder = reading.located("bakery", data_dir, verify)
    path, target_path = folder / "bakery_data.csv", folder / "bakery_target.csv"
    raw, target = reading.read_table(path), reading.read_table(target_path)
    reading.require_columns(path, raw, ["date", *_SERIES, *_FLAGS, "rain", "temperature"])
    reading.require_columns(target_path, target, ["demand"])
    if len(raw) != len(target):
        raise CorruptDataError(
            f"{target_path} must have the {len(raw)} rows of {path.name}, but has {len(target)}"
        )
    reading.require_numbers(path, raw, [*_SERIES, "rain", "temperature"])
    reading.require_numbers(target_path, target, ["demand"])
    reading.require_flags(path, raw, _FLAGS)
    if (target["demand"] < 0).any():
        raise CorruptDataError(f"column demand of {target_path} must be at least 0, but is not")
    date = reading.as_days(path, raw, "date", "2016-01-02")
    table = pd.DataFrame(
        {
            "date": date,
            **{name: raw[name].astype("int64") for name in _SERIES},
            "weekday": date.dt.day_of_week.astype("int64"),
            "demand": target["demand"].astype("float64"),
        }
    )
    repeated = table[table.duplicated([*_SERIES, "date"])]
    if len(repeated):
        row = repeated.iloc[0]
        raise CorruptDataError(
            f"{path} must have one row per store, product and date, but repeats store "
            f"{row['store']}, product {row['product']} on {row['date']:%Y-%m-%d}"
        )
    table["closed"] = table.groupby(["store", "date"])["demand"].transform("max") == 0
    for name, renamed in _FLAGS.items():
        table[renamed] = raw[name].astype(bool)
    table[["rain", "temperature"]] = raw[["rain", "temperature"]].astype("float64")
    return table.sort_values([*_SERIES, "date"], ignore_index=True)


def bakery_contexts(
    table: pd.DataFrame,
    *,
    temperature_noise: float = 2.0,
    rain_noise: float = 2.0,
    unseen: str = "raise",
    random_state: int = 0,
) -> pd.DataFrame:
    """Contexts of the bakery's rows: what was known on the evening before.

    Calendar, promotions and school holidays; lags, means, standard deviations and quantiles of the
    demand on earlier open days, and the days since; a surrogate weather forecast; store and
    product. Where the past of a series is too short for a feature, its mean (or standard
    deviation) of 28 days replaces it, or else 0; ``demand_mean_28_missing`` says where.

    `table` is that of `bakery`, or some stores of it with all their days. Noises are the standard
    deviations of the forecast, in °C and in the units of rain. `unseen`, "raise" or "zeros", is for
    stores and products that are not in the published table; see `features.one_hot`.

    Returns
    -------
    DataFrame (n_rows, 73)
        For all rows, also those of closed days: leave these out, ``contexts[~table["closed"]]``.

    Examples
    --------
    >>> import forewise as fw
    >>> here = [found.source.name for found in fw.datasets.available() if found.folder]
    >>> if "bakery" in here:
    ...     table = fw.datasets.bakery()
    ...     contexts = fw.datasets.bakery_contexts(table[table["store"] == 2])
    """
    open_days = table.assign(demand=table["demand"].where(~table["closed"]))
    days = features.calendar(table["date"], table.loc[table["holiday"], "date"].unique())
    levels = pd.concat(
        [
            features.lag(open_days, "demand", (1, 2, 7, 14), _SERIES),
            features.rolling(open_days, "demand", (7, 28), ("mean",), _SERIES),
            features.rolling(open_days, "demand", 56, (0.1, 0.5, 0.9), _SERIES),
            features.same_weekday(open_days, "demand", (4, 12), _SERIES),
        ],
        axis=1,
    )
    spreads = features.rolling(open_days, "demand", (7, 28), ("std",), _SERIES)
    noise = {"temperature": temperature_noise, "rain": rain_noise}
    weather = features.weather_forecast(
        table, list(noise), noise, "store", random_state=random_state
    )
    planned = ["holiday_in_2_days", "school_holiday", "promotion", "promotion_last_week"]
    return pd.concat(
        [
            days.drop(columns="weekday"),
            features.one_hot(table["weekday"], range(7)),
            table[planned].astype(float),
            features.fill_missing(levels, fallback="demand_mean_28", flags=["demand_mean_28"]),
            features.fill_missing(spreads, fallback="demand_std_28"),
            features.fill_missing(features.days_since(open_days, "demand", _SERIES)),
            features.fill_missing(weather),
            features.one_hot(table["product"], PRODUCTS, unseen),
            features.one_hot(table["store"], STORES, unseen),
        ],
        axis=1,
    )


def columns_in_pieces(contexts: pd.DataFrame) -> list[str]:
    """The columns of `bakery_contexts` that count pieces: lags, means, quantiles and spreads."""
    counted = contexts.columns[contexts.columns.str.startswith("demand_")]
    return [name for name in counted if not name.endswith(("_missing", "_days_since"))]
