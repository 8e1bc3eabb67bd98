"""What the numbers were measured on: machine, packages, command, revision."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = (
    "forewise",
    "torch",
    "numpy",
    "scipy",
    "clarabel",
    "highspy",
    "moreau",
    "cvxpy",
    "cvxpylayers",
    "diffcp",
    "qpth",
)


def description() -> str:
    """One line per fact."""
    facts = {
        "cpu": _processor(),
        "cores": f"{os.cpu_count()}, of which one is used",
        "system": platform.platform(),
        "python": platform.python_version(),
        **{package: _version(package) for package in PACKAGES},
        "command": " ".join([Path(sys.argv[0]).name, *sys.argv[1:]]),
        "revision": _revision(),
    }
    width = max(len(name) for name in facts)
    return "".join(f"{name:<{width}}  {fact}\n" for name, fact in facts.items())


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _revision() -> str:
    """The commit of the sources; "+" where they were changed since."""
    here = Path(__file__).parent
    try:
        revision = _git(here, "rev-parse", "--short", "HEAD")
        changed = _git(here, "status", "--porcelain", "--", ".")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return revision + ("+" if changed else "")


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
