"""Single files: read with care, and put in place whole.

May import: exceptions, its siblings `complaints`, `layout`.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path

from forewise.exceptions import StorageError
from forewise.storage.complaints import reason, reject
from forewise.storage.layout import temporary_file


def read_file(path: Path, smallest: int, largest: int) -> bytes:
    """All of a regular file whose size is as expected; FileNotFoundError is the caller's."""
    try:
        with open(path, "rb", opener=open_plainly) as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                reject(path.parent, f"{path.name} is not a regular file")
            if not smallest <= found.st_size <= largest:
                reject(
                    path.parent,
                    f"{path.name} has {found.st_size} bytes, where "
                    f"{'at most ' if smallest < largest else ''}{largest} are expected",
                )
            return file.read(found.st_size)
    except (FileNotFoundError, StorageError):
        raise
    except (OSError, ValueError, MemoryError) as error:
        raise StorageError(f"cannot read {str(path)!r}: {reason(error)}") from error


def open_plainly(path: str, flags: int) -> int:
    """Open without following a link out of the folder, or waiting for the end of a pipe."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))


def place(path: Path, data: bytes) -> None:
    """Put a whole file in place at once, on the disk before it can be seen."""
    temporary = path.with_name(temporary_file())
    try:
        with open(temporary, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def flush_folder(folder: Path) -> None:
    """Make renames in the folder survive a power failure, where the system can."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some file systems have no such call
            raise
    finally:
        os.close(descriptor)
