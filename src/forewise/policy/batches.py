"""Decisions for tables of any length: Arrow tables one after the other, or frames of an engine.

A table's decisions are its kept columns and those of the decisions. What a row gets does not
depend on the rows that come with it, so engines may cut tables as they like.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from forewise.exceptions import InvalidInputError, MissingDependencyError
from forewise.validation.frames import is_frame

if TYPE_CHECKING:
    import pandas as pd


ROWS = 2**16  # that are in memory at a time


@dataclass(frozen=True)
class FrameDecider:
    """A plain function of data frames that a policy decides; it can be pickled.

    Of a frame it makes a frame, as Dask's `map_partitions` and Ray Data's `map_batches` want; of
    an iterator of frames an iterator, as Spark's `mapInPandas` wants. A result has the columns that
    the policy does not use, such as keys, then the decisions.

    Parameters
    ----------
    policy : Policy
    keep : tuple of str, optional
        Columns of the frame that come along; by default those that the policy does not use.
    options : dict
        Of `Policy.decide`.
    """

    policy: Any
    keep: tuple[str, ...] | None = None
    options: dict[str, Any] = field(default_factory=dict)

    def __call__(self, frames: Any) -> Any:
        """Decide a frame, or an iterator of frames."""
        if is_frame(frames):
            return self._decided(frames)
        return (self._decided(frame) for frame in frames)

    @property
    def meta(self) -> dict[str, str]:
        """Columns of the decisions with their types: with those kept, Dask's `meta`."""
        return dict.fromkeys(self.policy.decision_names, "float64")

    def _decided(self, frame: pd.DataFrame) -> pd.DataFrame:
        kept = self.kept(list(frame.columns))
        return frame[kept].assign(**self.decisions(frame))

    def kept(self, columns: list[str]) -> list[str]:
        """Columns of the frame that come along."""
        used = {*self._features(columns), *self._given()}
        kept = [name for name in columns if name not in used] if self.keep is None else self.keep
        missing = [name for name in kept if name not in columns]
        twice = [name for name in kept if name in self.policy.decision_names]
        if missing:
            raise InvalidInputError(
                f"keep must have columns of the table, but {missing} are not among {columns}"
            )
        if twice:
            raise InvalidInputError(
                f"keep must not have {twice}: decisions have these names. Say what to keep, "
                "keep=['id'], or keep=[] for nothing"
            )
        return list(kept)

    def decisions(self, frame: pd.DataFrame) -> dict[str, np.ndarray]:
        """Decisions (n_rows,) by name."""
        names = self.policy.decision_names
        if not len(frame):
            return {name: np.empty(0) for name in names}
        given = self._given()
        missing = [name for name in given if name not in frame.columns]
        if missing:
            raise InvalidInputError(
                f"the table must have what the problem is given, but has no column {missing[0]!r}"
            )
        decided = self.policy.decide(
            frame[self._features(list(frame.columns))],
            given=frame[given] if given else None,
            **self.options,
        )
        return dict(zip(names, decided.to_numpy().T, strict=True))

    def _features(self, columns: list[str]) -> list[str]:
        """Columns that are contexts; without names, all that are neither given nor kept."""
        known = getattr(self.policy.fitted, "feature_names_in_", None)
        if known is not None:
            # One that is missing is for `decide` to report.
            return [name for name in known if name in columns]
        other = {*(self.keep or ()), *self._given()}
        return [name for name in columns if name not in other]

    def _given(self) -> list[str]:
        return self.policy.problem.given_names


def decided_tables(decider: FrameDecider, dataset: Iterable[Any]) -> Iterator[Any]:
    """An Arrow table of decisions for each piece of the dataset, in bounded memory."""
    pa = arrow()
    for table in pieces_of(dataset):
        frame = table.to_pandas(ignore_metadata=True, use_threads=False)
        # What is kept stays Arrow's, to the type.
        made = {name: table.column(name) for name in decider.kept(table.column_names)}
        for name, values in decider.decisions(frame).items():
            made[name] = pa.array(values, pa.float64())
        yield pa.table(made)


def pieces_of(dataset: Iterable[Any], rows: int | None = ROWS) -> Iterator[Any]:
    """Arrow tables of at most so many rows, from Arrow tables, record batches or data frames."""
    pa = arrow()
    if isinstance(dataset, pa.Table | pa.RecordBatch) or is_frame(dataset):
        dataset = [dataset]
    for part in dataset:
        table = _as_table(part)
        for start in range(0, max(1, table.num_rows), rows or max(1, table.num_rows)):
            yield table.slice(start, rows)


def _as_table(part: Any) -> Any:
    pa = arrow()
    if isinstance(part, pa.Table):
        return part
    if isinstance(part, pa.RecordBatch):
        return pa.Table.from_batches([part])
    try:
        return (
            pa.Table.from_pandas(part, preserve_index=False) if is_frame(part) else pa.table(part)
        )
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            "dataset must be an iterable of Arrow tables, such as "
            f"pyarrow.parquet.ParquetFile(file).iter_batches(), but has a {type(part).__name__}"
        ) from error


def arrow() -> Any:
    """Arrow's Python package."""
    try:
        import pyarrow
    except ImportError as error:
        raise MissingDependencyError(
            "decisions for datasets need pyarrow, which is not installed: "
            "pip install 'forewise[files]'"
        ) from error
    return pyarrow


def options_of(n_scenarios: int | None, random_state: int, on_failure: str) -> dict[str, Any]:
    """Options of `decide`, the same for every piece."""
    if not isinstance(random_state, int | np.integer) or isinstance(random_state, bool):
        raise InvalidInputError(
            "random_state must be an integer where tables are decided piece by piece, so that all "
            f"pieces have the same draws, but is {random_state!r}"
        )
    options = {"random_state": int(random_state), "on_failure": on_failure}
    return options if n_scenarios is None else options | {"n_scenarios": n_scenarios}


def keep_of(keep: Sequence[str] | None) -> tuple[str, ...] | None:
    """Names to keep; a text alone is one name."""
    if keep is None:
        return None
    return (keep,) if isinstance(keep, str) else tuple(keep)
