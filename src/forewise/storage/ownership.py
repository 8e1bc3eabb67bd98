"""What in a folder is ours: to be replaced, or removed once nothing refers to it.

May import: exceptions, its siblings `files`, `layout`.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
from pathlib import Path

from forewise.exceptions import StorageError
from forewise.storage.files import open_plainly
from forewise.storage.layout import ARRAYS_FILE, HEADER, TEMPORARY_FILE

_OUR_HEADER = re.compile(rb'\s*\{\s*"format"\s*:\s*"forewise"')
_LEFTOVER_SECONDS = 3600.0


def require_ours(folder: Path) -> None:
    """Raise unless the folder holds something stored before, or nothing of anyone else's."""
    names = sorted(os.listdir(folder))
    if HEADER in names:
        with open(folder / HEADER, "rb", opener=open_plainly) as file:
            if _OUR_HEADER.match(file.read(200)):
                return
        strangers = [HEADER]
    else:  # what a killed first writing left behind is no reason to refuse
        strangers = [name for name in names if not _is_removable(name)]
    if strangers:
        raise StorageError(
            f"cannot write to {str(folder)!r}: it holds files that are not forewise's "
            f"({', '.join(strangers[:3])}), and nothing of them was touched; choose an empty or "
            "a new folder"
        )


def _is_removable(name: str) -> bool:
    return bool(ARRAYS_FILE.fullmatch(name) or TEMPORARY_FILE.fullmatch(name))


def named_in_header(folder: Path) -> set[str]:
    """Names of arrays' files in the header, whatever state it is in."""
    try:
        return set(ARRAYS_FILE.findall((folder / HEADER).read_bytes().decode("latin-1")))
    except FileNotFoundError:
        return set()


def remove_leftovers(folder: Path, obsolete: set[str]) -> None:
    """Remove what is obsolete or old, and not named in the header that is now in place.

    Removing is no part of what was asked for, so no failure of it is reported.
    """
    with contextlib.suppress(OSError):
        named = named_in_header(folder)
        # The header's time, not ours: another machine's clock may have stamped the files.
        oldest = (folder / HEADER).stat().st_mtime - _LEFTOVER_SECONDS if named else -math.inf
        for name in os.listdir(folder):
            if not _is_removable(name) or name in named:
                continue
            with contextlib.suppress(OSError):
                if name in obsolete or (folder / name).lstat().st_mtime < oldest:
                    os.unlink(folder / name)
