"""Which outcomes are censored: at least what was seen, as sales of a sold-out day are of demand."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from forewise.exceptions import InputTypeError, InvalidInputError
from forewise.validation.frames import as_frame, column_names, is_series
from forewise.validation.tables import check_same_rows

_ADVICE = "True where the outcome was at least y, as on a sold-out day, and False elsewhere"


def check_censored(
    censored: Any, y: Any, outcomes: np.ndarray, name: str = "censored", of: str = "y"
) -> np.ndarray | None:
    """Whether each checked outcome is censored, (n_contexts, n_outcomes); None if none is.

    `censored` are truth values, or 0 and 1: (n_contexts,) for one outcome, (n_contexts, n_outcomes)
    for several. `y` is what the outcomes came as, whose labels and columns must be the same.
    """
    if censored is None:
        return None
    check_same_rows(**{of: y, name: censored})
    _check_columns(censored, y, name, of)
    flags = _truth(censored, name)
    n_contexts, n_outcomes = outcomes.shape
    if flags.shape != outcomes.shape and not (n_outcomes == 1 and flags.shape == (n_contexts,)):
        wanted = f"({n_contexts},) or " if n_outcomes == 1 else ""
        raise InvalidInputError(
            f"{name} must have shape {wanted}{outcomes.shape}, a column for each outcome of {of}, "
            f"but has shape {flags.shape}: {_ADVICE}"
        )
    flags = flags.reshape(outcomes.shape)
    return flags if flags.any() else None


def require_known(censored: np.ndarray, name: str = "censored") -> None:
    """Raise where every outcome of a column is censored: how far beyond, no row says."""
    whole = np.flatnonzero(censored.all(axis=0))
    if len(whole):
        raise InvalidInputError(
            f"{name} must be False for some rows of every outcome, but is True for all rows of "
            f"outcome {whole[0]}: nothing says how far beyond y outcomes go. Add rows that were "
            "not sold out"
        )


def _check_columns(censored: Any, y: Any, name: str, of: str) -> None:
    own, other = column_names(censored), column_names(y)
    if own and other and own != other and sorted(own) == sorted(other):
        raise InvalidInputError(
            f"{name} must have its columns in the order of {of} ({', '.join(other)}), but they "
            "come in another one: reorder them"
        )


def _truth(censored: Any, name: str) -> np.ndarray:
    """The values as booleans, of the shape they came in."""
    if isinstance(censored, np.ma.MaskedArray):
        if np.ma.getmaskarray(censored).any():
            raise _missing(name, int(np.ma.getmaskarray(censored).sum()))
        censored = censored.data
    frame = as_frame(censored)
    table = censored if frame is None else frame
    if frame is not None or is_series(table):
        missing = int(np.sum(table.isna().to_numpy()))
        if missing:
            raise _missing(name, missing)
    if isinstance(table, torch.Tensor):
        table = table.detach().cpu().numpy()
    values = np.asarray(table)
    if values.dtype == object and all(isinstance(v, bool | np.bool_) for v in values.ravel()):
        values = values.astype(bool)
    if values.dtype.kind == "f" and np.isnan(values).any():
        raise _missing(name, int(np.isnan(values).sum()))
    if values.dtype.kind not in "biuf":
        raise InputTypeError(
            f"{name} must be truth values, but has the type {values.dtype}: {_ADVICE}"
        )
    if values.dtype != bool and not np.isin(values, (0, 1)).all():
        wrong = values[~np.isin(values, (0, 1))].ravel()[0]
        raise InvalidInputError(
            f"{name} must be truth values, or 0 and 1, but has {wrong}: {_ADVICE}. What was in "
            "stock is no part of it"
        )
    return values.astype(bool)


def _missing(name: str, count: int) -> InvalidInputError:
    return InvalidInputError(
        f"{name} must be known for every outcome, but is missing for {count}: {_ADVICE}; leave out "
        "rows of which it is not known"
    )
