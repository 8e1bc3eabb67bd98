"""What a worker does: read a part, decide it piece by piece, write its file and rename it."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from forewise import tables
from forewise.bulk.parts import RECORD, Part, digest
from forewise.exceptions import ForewiseError, InvalidInputError, StorageError
from forewise.planner.policy import PlannerPolicy, load_policy
from forewise.planner.roles import numbers
from forewise.policy.base import Policy
from forewise.policy.batches import ROWS, arrow

_HEADER = "header.json"
#: Workers that may die with a part before it is given up.
ATTEMPTS = 4
LOST = (
    "its worker died again and again: was it killed, or did memory run out? Fewer workers or "
    "smaller parts need less"
)


@dataclass(frozen=True)
class Job:
    """How all parts are decided; sent to every worker.

    Parameters
    ----------
    policy : str
        Folder of the policy, which every worker reads.
    out : str
        Folder of the decisions, which every worker writes to.
    identity : dict
        Of policy, past and options: what must be the same for parts of one folder.
    past : str or None
        File of the past, of a planner's policy.
    n_scenarios, random_state, keep : as for `Policy.decide_batches`
    """

    policy: str
    out: str
    identity: dict[str, Any]
    past: str | None
    n_scenarios: int | None
    random_state: int
    keep: tuple[str, ...] | None

    @classmethod
    def make(
        cls,
        policy: str | os.PathLike[str],
        out: Path,
        past: str | os.PathLike[str] | None,
        n_scenarios: int | None,
        random_state: int,
        keep: tuple[str, ...] | None,
    ) -> Job:
        """A job with its identity; raises unless policy and past go together."""
        folder, file = str(Path(policy).absolute()), None if past is None else Path(past).absolute()
        stored = load_policy(folder)
        identity: dict[str, Any] = {
            "policy": policy_identity(folder),
            "forewise": version("forewise"),
            "n_scenarios": n_scenarios,
            "random_state": random_state,
        }
        if isinstance(stored, PlannerPolicy):
            if stored.roles.date is not None and file is None:
                raise InvalidInputError(
                    "the past of the days to decide must be there: name the file of the table, "
                    "and the rows to decide in --future"
                )
            if keep is not None:
                raise InvalidInputError("keep is for policies of contexts: leave it out")
        elif isinstance(stored, Policy):
            if file is not None:
                raise InvalidInputError(
                    f"{policy} holds a {type(stored).__name__}, which decides contexts and needs "
                    "no past: name the files to decide alone"
                )
            identity["keep"] = None if keep is None else list(keep)
        else:
            raise InvalidInputError(
                f"{policy} must hold a Policy or a PlannerPolicy, but holds a "
                f"{type(stored).__name__}"
            )
        if file is not None:
            with file.open("rb") as opened:
                identity["past"] = hashlib.file_digest(opened, "sha256").hexdigest()
        return cls(
            folder, str(out.absolute()), identity, None if file is None else str(file),
            n_scenarios, random_state, keep,
        )  # fmt: skip

    def prepare(self) -> None:
        """Load the policy, once in a worker."""
        _loaded(self.policy, self.identity["policy"])

    def decide(self, part: Part) -> dict[str, Any]:
        """Decide a part and write its decisions; an error is recorded instead of raised.

        So is a part that has killed its workers: a mark counts those that began it.
        """
        mark = Path(self.out) / f".forewise-begun-{digest(part.name)[:16]}.tmp"
        with mark.open("ab") as file:
            file.write(b".")
        if mark.stat().st_size > ATTEMPTS:
            return {"part": part.name, "error": f"{part.source}: {LOST}"}
        said = self._said(part)
        mark.unlink(missing_ok=True)
        return said

    def _said(self, part: Part) -> dict[str, Any]:
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", UserWarning)
                record = self._decided(part)
        except (ForewiseError, OSError, ValueError, KeyError, TypeError, MemoryError) as error:
            return {"part": part.name, "error": _said(part, error)}
        except arrow().ArrowException as error:
            return {"part": part.name, "error": _said(part, error)}
        noted = [str(warning.message) for warning in caught]
        return {"part": part.name, "record": record, "notes": noted[:1]}

    def _decided(self, part: Part) -> dict[str, Any]:
        from pyarrow.parquet import ParquetWriter

        policy = _loaded(self.policy, self.identity["policy"])
        target = Path(self.out) / part.name
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f".forewise-{secrets.token_hex(8)}.tmp")
        record: dict[str, Any] = {"job": digest(self.identity), "source": part.identity}
        record |= {"rows": 0, "failed": 0}
        writer = None
        try:
            for table in self._tables(policy, part):
                if writer is None:
                    writer = ParquetWriter(temporary, table.schema)
                writer.write_table(table.cast(writer.schema))
                record["rows"] += table.num_rows
                record["failed"] += _failed(table, policy)
            assert writer is not None  # an empty file has one table without rows
            writer.add_key_value_metadata({RECORD: json.dumps(record, sort_keys=True)})
            writer.close()
            _put_in_place(temporary, target)
        finally:
            if writer is not None:
                writer.close()
            temporary.unlink(missing_ok=True)
        return record

    def _tables(self, policy: Any, part: Part) -> Iterator[Any]:
        """Decisions of a part, piece by piece."""
        options: dict[str, Any] = {"random_state": self.random_state, "on_failure": "return"}
        if self.n_scenarios is not None:
            options["n_scenarios"] = self.n_scenarios
        if not isinstance(policy, PlannerPolicy):
            yield from policy.decide_batches(_read(part.source), keep=self.keep, **options)
            return
        if policy.roles.date is None:
            yield from policy.decide_batches(_read(part.source), **options)
            return
        assert self.past is not None
        past = _past(self.past, self.identity["past"], tuple(policy.roles.outcome))
        whole = arrow().concat_tables(list(_read(part.source)))
        yield from policy.decide_batches([whole], past, **options)


@lru_cache(maxsize=1)
def _loaded(folder: str, identity: str) -> Any:
    """The policy, read once in a process."""
    if policy_identity(folder) != identity:
        raise StorageError(
            f"the policy in {folder} was written anew while it decided: run the command again, "
            "into another folder"
        )
    return load_policy(folder)


@lru_cache(maxsize=1)
def _past(file: str, identity: str, outcome: tuple[str, ...]) -> Any:
    """The table of the past, read once in a process."""
    frame = tables.read(file)
    return frame.assign(**{name: numbers(frame[name]) for name in outcome if name in frame})


def policy_identity(folder: str) -> str:
    """SHA-256 of a stored policy: its header has that of its arrays."""
    try:
        return hashlib.sha256((Path(folder) / _HEADER).read_bytes()).hexdigest()
    except OSError as error:
        raise StorageError(f"nothing is stored in {folder!r}: {error.strerror}") from error


def _read(file: Path) -> Iterator[Any]:
    """Arrow tables of a file: Parquet by its pieces, CSV and Excel as `forewise.tables` reads."""
    with file.open("rb") as opened:
        is_parquet = opened.read(4) == b"PAR1"
    if not is_parquet:
        for frame in tables.chunks(file, ROWS):
            yield arrow().Table.from_pandas(frame, preserve_index=False)
        return
    from pyarrow.parquet import ParquetFile

    with ParquetFile(file) as opened:
        empty = True
        for batch in opened.iter_batches(ROWS, use_threads=False):
            empty = False
            yield arrow().Table.from_batches([batch])
        if empty:
            yield opened.schema_arrow.empty_table()


def _failed(table: Any, policy: Any) -> int:
    """Rows without a decision; closed days are none."""
    first = table.column(policy.decision_names[0]).to_numpy()
    missing = np.isnan(first)
    if isinstance(policy, PlannerPolicy):
        notes = table.column("note").to_pandas().str.contains("no decision", regex=False)
        missing &= notes.to_numpy()
    return int(missing.sum())


def _put_in_place(temporary: Path, target: Path) -> None:
    """Flush, and rename: the part is there as a whole, or not at all."""
    with temporary.open("rb") as file:
        os.fsync(file.fileno())
    temporary.replace(target)


def _said(part: Part, error: Exception) -> str:
    text = str(error).strip() or type(error).__name__
    lines = text.splitlines()
    said = lines[0] if lines else text
    return said if str(part.source) in said else f"{part.source}: {said}"
