"""The paper's real portfolio data (POP2): returns of five stock indices, from CNNpred.

`pop2_paper` repeats the paper's protocol, with features of the same day as the return that is to be
predicted; `pop2_strict` uses what was known the evening before.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

import forewise as fw
from forewise.datasets.reading import as_days, read_table, require_columns, require_numbers

INDICES = ("DJI", "NASDAQ", "NYSE", "RUSSELL", "SP")
TECHNICAL = (
    "Volume", "mom", "mom1", "mom2", "mom3", "ROC_5", "ROC_10", "ROC_15", "ROC_20",
    "EMA_10", "EMA_20", "EMA_50", "EMA_200",
)  # fmt: skip

N_DAYS = 1984
_FIRST_VALIDATION_DAY, _FIRST_TEST_DAY = 800, 1200
_N_COMMON = 68
_LARGEST_CORRELATION = 0.3


@dataclass(frozen=True, eq=False)
class _Days:
    """The five files side by side, one row per day; what is missing is NaN.

    `technical` is ``(n_days, 5 · 13)``, `common` ``(n_days, 68)``, `returns` ``(n_days, 5)``,
    whose first row is NaN.
    """

    dates: np.ndarray
    technical: pd.DataFrame
    common: pd.DataFrame
    returns: np.ndarray


def pop2_paper(data_dir: str | Path | None = None) -> fw.datasets.Split:
    """Five indices, with features of the same day: the paper's protocol.

    `y` is the close-to-close return of the day, 0 on the first day. The 128 features are, for each
    index, 12 technical ones (all but ``mom``, the day's return itself), and the 68 that the files
    share; missing values are 0. Columns whose correlation with a return exceeds 0.3, over all days,
    are dropped, which leaves 95. The first 800 days are for training, the next 400 for validation,
    the last 784 for the test; `index` is the day of the return. `data_dir` holds ``cnnpred/``.
    """
    days = _read(data_dir)
    same_day = [f"{index}_mom" for index in INDICES]
    features = pd.concat([days.technical.drop(columns=same_day), days.common], axis=1).fillna(0.0)
    returns = np.nan_to_num(days.returns)
    too_close = (_correlation(features.to_numpy(), returns) > _LARGEST_CORRELATION).any(axis=1)
    return _by_time(_dataset(days.dates, features.loc[:, ~too_close], returns))


def pop2_strict(data_dir: str | Path | None = None) -> fw.datasets.Split:
    """Five indices, with features of the day before: nothing that was not known.

    `y` is the close-to-close return of a day, X what the files say of the trading day before: all
    13 technical features of each index and the 68 shared ones; missing values are 0. The first day
    has no return and is left out; validation and test are the days of `pop2_paper`.
    """
    days = _read(data_dir)
    features = pd.concat([days.technical, days.common], axis=1).fillna(0.0)
    return _by_time(_dataset(days.dates[1:], features.iloc[:-1], days.returns[1:]), skipped=1)


def _dataset(dates: np.ndarray, features: pd.DataFrame, returns: np.ndarray) -> fw.datasets.Dataset:
    return fw.datasets.Dataset(features.to_numpy(), returns, features.columns, INDICES, index=dates)


def _by_time(dataset: fw.datasets.Dataset, skipped: int = 0) -> fw.datasets.Split:
    """The split of a data set that starts on day `skipped`."""
    validation, test = _FIRST_VALIDATION_DAY - skipped, _FIRST_TEST_DAY - skipped
    return fw.datasets.Split(dataset[:validation], dataset[validation:test], dataset[test:])


def _correlation(features: np.ndarray, returns: np.ndarray) -> np.ndarray:
    """Correlation of each feature with each return; 0 for a feature that never changes."""
    a, b = features - features.mean(axis=0), returns - returns.mean(axis=0)
    scale = np.linalg.norm(a, axis=0)[:, None] * np.linalg.norm(b, axis=0)
    return np.divide(a.T @ b, scale, out=np.zeros_like(scale), where=scale > 0)


def _read(data_dir: str | Path | None) -> _Days:
    folder = fw.datasets.locate("cnnpred", data_dir)
    paths = {index: folder / f"Processed_{index}.csv" for index in INDICES}
    tables = {index: _read_one(path) for index, path in paths.items()}
    dates = tables[INDICES[0]]["Date"].to_numpy(dtype="datetime64[D]")
    for index, table in tables.items():
        different = table["Date"].to_numpy() != dates
        if different.any():
            raise fw.datasets.CorruptDataError(
                f"{paths[index]} must have the same dates as {paths[INDICES[0]].name}, but row "
                f"{int(different.argmax()) + 1} is of another day"
            )
    first = tables[INDICES[0]]
    common = first.drop(columns=["Date", "Close", "Name", *TECHNICAL])
    if common.shape[1] != _N_COMMON:
        raise fw.datasets.CorruptDataError(
            f"{paths[INDICES[0]]} must have {_N_COMMON} columns beside Date, Close, Name and the "
            f"{len(TECHNICAL)} technical ones, but has {common.shape[1]}"
        )
    technical = [tables[index][list(TECHNICAL)].add_prefix(f"{index}_") for index in INDICES]
    close = np.column_stack([tables[index]["Close"].to_numpy() for index in INDICES])
    returns = np.full_like(close, np.nan)
    returns[1:] = close[1:] / close[:-1] - 1.0
    return _Days(dates, pd.concat(technical, axis=1), common, returns)


def _read_one(path: Path) -> pd.DataFrame:
    """One file, with dates and numbers checked; of whatever version, if it has the right form."""
    table = read_table(path)
    require_columns(path, table, ("Date", "Close", "Name", *TECHNICAL))
    if len(table) != N_DAYS:
        raise fw.datasets.CorruptDataError(f"{path} must have {N_DAYS} rows, but has {len(table)}")
    require_numbers(path, table, table.columns.drop(["Date", "Name"]), complete=False)
    if not (table["Close"] > 0).all():
        raise fw.datasets.CorruptDataError(
            f"column Close of {path} must be positive everywhere, but is not"
        )
    dates = as_days(path, table, "Date", "2009-12-31").to_numpy(dtype="datetime64[D]")
    if not (dates[1:] > dates[:-1]).all():
        raise fw.datasets.CorruptDataError(
            f"column Date of {path} must increase from row to row, but does not"
        )
    return table.assign(Date=dates)
