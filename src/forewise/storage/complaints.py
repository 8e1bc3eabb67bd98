"""What is said when a folder cannot be read or written. May import: exceptions."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import NoReturn

from forewise.exceptions import StorageError


def reject(folder: Path, what: str, cause: Exception | None = None) -> NoReturn:
    """Raise because what is stored in the folder cannot be what was written."""
    raise StorageError(
        f"{str(folder)!r} is damaged or was not made by forewise: {what}; "
        "restore it from a copy, or make it again"
    ) from cause


def reason(error: Exception) -> str:
    """What the system's error means here, in words that follow a colon."""
    if isinstance(error, FileExistsError | NotADirectoryError):
        return "there is a file where a folder is expected"
    if isinstance(error, MemoryError):
        return "it does not fit into memory"
    if isinstance(error, OSError) and error.errno == errno.ELOOP:
        return "there is a symbolic link; put the file itself there"
    return str(getattr(error, "strerror", None) or error)
