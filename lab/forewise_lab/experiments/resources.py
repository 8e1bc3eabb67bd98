"""Threads, memory and versions: what a row says about the machine it was computed on.

May import: nothing of forewise but its version.
"""

from __future__ import annotations

import platform
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

import forewise

_KIB = 1024
_GIT_SECONDS = 10.0


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread for torch and the linear algebra: the last digits depend on their number."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        torch.set_num_threads(threads)


def restart_peak() -> None:
    """Forget the largest memory so far, where the system can."""
    if sys.platform == "linux":
        Path("/proc/self/clear_refs").write_text("5")


def peak_memory() -> float:
    """Largest resident memory of this process since `restart_peak`, in MiB."""
    if sys.platform == "linux":
        lines = Path("/proc/self/status").read_text().splitlines()
        (line,) = (line for line in lines if line.startswith("VmHWM:"))
        return int(line.split()[1]) / _KIB
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _KIB / _KIB


def versions() -> dict[str, str]:
    """What the figures were computed with."""
    return {
        "forewise": forewise.__version__,
        "torch": str(torch.__version__),
        "numpy": np.__version__,
        "python": platform.python_version(),
    }


@cache
def revision() -> dict[str, Any]:
    """Git revision of forewise's code, and whether it was changed since; None if there is none."""
    package = Path(forewise.__file__).parent
    head = _git(package, "rev-parse", "HEAD")
    changed = _git(package, "status", "--porcelain", "--", ".")
    return {"revision": head or None, "dirty": None if changed is None else bool(changed)}


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True,
            text=True,
            timeout=_GIT_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
