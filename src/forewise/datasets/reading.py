"""Tables of comma-separated values, checked: every message names the file and the column."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd

from forewise.datasets.files import CorruptDataError, checksum, how_to_get, locate, source


def read_table(path: Path) -> pd.DataFrame:
    """The table of a file, as it is."""
    try:
        return pd.read_csv(path, encoding="utf-8")
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        raise CorruptDataError(
            f"{path} must be a table of comma-separated values, but cannot be read as one: {error}"
        ) from error


def require_columns(path: Path, table: pd.DataFrame, names: Iterable[str]) -> None:
    """Raise unless the table has all of these columns."""
    lacking = [name for name in names if name not in table]
    if lacking:
        raise CorruptDataError(f"{path} must have the columns {', '.join(lacking)}, but has not")


def require_numbers(
    path: Path, table: pd.DataFrame, names: Iterable[str], *, complete: bool = True
) -> None:
    """Raise unless these columns are finite numbers; `complete`: and none is missing."""
    for name in names:
        numbers = pd.api.types.is_numeric_dtype(table[name])
        if not numbers or np.isinf(table[name].to_numpy(dtype=float)).any():
            raise CorruptDataError(
                f"column {name} of {path} must be finite numbers, but has other entries"
            )
        missing = int(table[name].isna().sum())
        if complete and missing:
            raise CorruptDataError(
                f"column {name} of {path} must have a number in every row, but {missing} are "
                "missing"
            )


def require_flags(path: Path, table: pd.DataFrame, names: Iterable[str]) -> None:
    """Raise unless these columns are 0 or 1 (or true or false) in every row."""
    for name in names:
        if not table[name].isin([0, 1]).all():
            raise CorruptDataError(
                f"column {name} of {path} must be 0 or 1 in every row, but has other entries"
            )


def as_days(path: Path, table: pd.DataFrame, name: str, example: str) -> pd.Series:
    """A column of days like 2009-12-31."""
    try:
        return pd.to_datetime(table[name], format="%Y-%m-%d")
    except (ValueError, TypeError) as error:
        raise CorruptDataError(
            f"column {name} of {path} must be days like {example}, but is not: {error}"
        ) from error


def located(name: str, data_dir: str | Path | None, verify: bool) -> Path:
    """Folder of a data set; with `verify`, every file has the published content."""
    folder, known = locate(name, data_dir), source(name)
    for file, expected in known.checksums.items() if verify else ():
        found = checksum(folder / file)
        if found != expected:
            raise CorruptDataError(
                f"{folder / file} must have the SHA-256 checksum {expected}, but has {found}: it "
                f"is another version, or was changed. To get the published one, "
                f"{how_to_get(known)}; verify=False takes any file of the same form"
            )
    return folder
