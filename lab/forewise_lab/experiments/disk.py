"""Writing to a results folder, and what a person is told when the disk refuses.

May import: exceptions.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from forewise.exceptions import StorageError


def write_beside(folder: Path, place: str, content: bytes) -> None:
    """Write a file that rows refer to: whole or not at all, and before them."""
    with told("write to", folder):
        path = folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.tmp")
        with open(temporary, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)


@contextmanager
def told(what: str, folder: Path) -> Iterator[None]:
    """Errors of the system meanwhile become a `StorageError` with advice."""
    try:
        yield
    except OSError as error:
        advice = {
            errno.ENOSPC: "free some space",
            errno.EDQUOT: "free some space",
            errno.EFBIG: "files may not grow that large here: raise the limit",
            errno.EROFS: "choose a folder that can be written to",
            errno.EACCES: "choose a folder that can be written to",
            errno.ENOTDIR: "choose a folder",
            errno.EEXIST: "choose a folder",
        }.get(error.errno or 0, "see to it")
        raise StorageError(
            f"cannot {what} {str(folder)!r}: {error.strerror or error}; all finished rows are "
            f"kept: {advice}, and run the same again to go on"
        ) from error
