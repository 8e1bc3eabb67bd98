"""The machine a result was computed on: threads, memory, versions, revision, whole files."""

from __future__ import annotations

import os
import platform
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import torch

import forewise
from forewise.storage import write_file

PACKAGES = (
    *("forewise", "torch", "numpy", "scipy", "clarabel", "highspy", "piqp", "moreau"),
    *("cvxpy", "cvxpylayers", "diffcp", "qpth"),
)
_KIB = 1024


@contextmanager
def one_core() -> Iterator[None]:
    """Keep this process, and those it starts, on one core and torch on one thread.

    Where the system cannot bind a process to a core (macOS, Windows), only torch is limited.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    allowed: set[int] = set()
    if sys.platform == "linux":
        allowed = os.sched_getaffinity(0)
        # The first core usually serves the system's interrupts.
        os.sched_setaffinity(0, {max(allowed)})
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        if allowed:
            os.sched_setaffinity(0, allowed)


def restart_peak() -> float:
    """Reset the peak memory where the system can; the peak from now on, in MiB."""
    if sys.platform == "linux":
        Path("/proc/self/clear_refs").write_text("5")
    return peak_memory()


def peak_memory() -> float:
    """Largest resident memory of this process since `restart_peak`, in MiB."""
    if sys.platform == "linux":
        # Not getrusage: a child's ru_maxrss starts at the size of the process that started it.
        lines = Path("/proc/self/status").read_text().splitlines()
        (line,) = (line for line in lines if line.startswith("VmHWM:"))
        return int(line.split()[1]) / _KIB
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _KIB / _KIB


def versions() -> dict[str, str]:
    """The version columns of a results row."""
    return {
        "forewise": forewise.__version__,
        "torch": str(torch.__version__),
        "numpy": np.__version__,
        "python": platform.python_version(),
    }


@cache
def revision() -> dict[str, Any]:
    """Git revision of forewise, and whether its files were changed since; None if unknown."""
    git = ["git", "-C", str(Path(forewise.__file__).parent)]
    try:
        head, changed = (
            subprocess.run([*git, *command], capture_output=True, text=True, check=True).stdout
            for command in (["rev-parse", "HEAD"], ["status", "--porcelain", "--", "."])
        )
    except (OSError, subprocess.SubprocessError):
        return {"revision": None, "dirty": None}
    return {"revision": head.strip(), "dirty": bool(changed.strip())}


def processor() -> str:
    """Name of the processor."""
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine() or "unknown"


def description() -> str:
    """Machine, packages, command and revision of a bench, one per line."""
    found = revision()
    facts = {
        "cpu": processor(),
        "cores": f"{os.cpu_count()}, of which one is used",
        "system": platform.platform(),
        "python": platform.python_version(),
        **{package: _version(package) for package in PACKAGES},
        "command": " ".join([Path(sys.argv[0]).name, *sys.argv[1:]]),
        "revision": (found["revision"] or "unknown")[:7] + ("+" if found["dirty"] else ""),
    }
    width = max(len(name) for name in facts)
    return "".join(f"{name:<{width}}  {fact}\n" for name, fact in facts.items())


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file atomically: readers see the old content or the new."""
    write_file(path, content.encode() if isinstance(content, str) else content)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
