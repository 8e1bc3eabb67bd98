"""Claims: two runs on one folder do not compute the same fit.

A claim is a lock on a small file that the system takes back when the claiming process ends, in
whatever way: there are no stale claims. May import: exceptions.
"""

from __future__ import annotations

import fcntl
import os
from dataclasses import dataclass
from pathlib import Path

from forewise.exceptions import StorageError


@dataclass(frozen=True)
class Claim:
    """The right to compute a fit, while it is held."""

    path: Path
    descriptor: int

    def release(self) -> None:
        """Give it back; its file goes first, so that nobody can lock what is removed."""
        try:
            self.path.unlink(missing_ok=True)
        finally:
            os.close(self.descriptor)


@dataclass(frozen=True)
class Claims:
    """The claims on the fits of one results folder.

    Parameters
    ----------
    folder : Path
        Made if it does not exist.
    """

    folder: Path

    def take(self, identifier: str) -> Claim | None:
        """Claim a fit; None if somebody who is alive has claimed it."""
        path = self.folder / f"{identifier}.lock"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            while True:
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    os.close(descriptor)
                    return None
                # Whoever held it may have removed the file between our opening and locking it.
                if _is_at(path, descriptor):
                    return Claim(path, descriptor)
                os.close(descriptor)
        except OSError as error:
            raise StorageError(
                f"cannot write to {str(self.folder)!r}: {error.strerror}; all finished rows are "
                "kept: see to it, and run the same again to go on"
            ) from error


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False
