"""Machine code of other sources is not used.

numba keeps what it compiled beside the sources, and takes it again as long as the kernel's own
file is the same. What that kernel calls is compiled into it: after a change there (an update by
``git pull``, say, which leaves all other files as they are) the old code would run on, on a
workspace that may no longer look as it believes.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

_STAMP = "forewise-kernels.sha256"


def forget_stale_code(sources: Iterable[Path], cache: Path) -> None:
    """Forget what is cached, unless it was compiled from these very sources.

    A folder that cannot be written is left as it is: nobody changes sources there either.

    Parameters
    ----------
    sources : files
    cache : folder
        Where numba keeps its index files, ``*.nbi``. It may not exist yet.
    """
    digest = hashlib.sha256()
    for source in sorted(sources):
        content = source.read_bytes()
        digest.update(f"{source.name} {len(content)} ".encode() + content)
    stamp = cache / _STAMP
    with suppress(OSError):
        if stamp.is_file() and stamp.read_text() == digest.hexdigest():
            return
        for index in cache.glob("*.nbi"):
            index.unlink(missing_ok=True)
        cache.mkdir(parents=True, exist_ok=True)
        # Whole or not at all: several processes may start at once.
        written = cache / f"{_STAMP}.{os.getpid()}"
        written.write_text(digest.hexdigest())
        written.replace(stamp)
