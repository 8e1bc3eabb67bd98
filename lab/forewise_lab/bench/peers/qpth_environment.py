"""An environment of qpth's own, for where it cannot be imported: qpth asks for numpy < 2.

Made once, under the user's cache folder, with the torch version that runs here.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

import numpy as np

from forewise_lab.bench.peers import qpth_runner
from forewise_lab.bench.peers.base import PeerFailedError
from forewise_lab.bench.peers.qpth_runner import Arrays

QPTH = "qpth==0.0.18"
READY = "ready"


def folder() -> Path:
    """Where the environment is kept."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "forewise" / "qpth"


def python() -> Path:
    """The environment's interpreter."""
    scripts = folder() / ("Scripts" if sys.platform == "win32" else "bin")
    return scripts / "python"


def make() -> str | None:
    """Make the environment if it is not there; a line that says what went wrong, or None."""
    done = folder() / READY
    if done.exists():
        return None
    # "+cpu" and the like name a build, which not every index has; the version is what counts.
    torch_version = version("torch").split("+")[0]
    install = ["-m", "pip", "install", "--quiet", f"torch=={torch_version}", QPTH]
    try:
        _run([sys.executable, "-m", "venv", str(folder())])
        _run([str(python()), *install])
    except (OSError, subprocess.CalledProcessError) as error:
        return _last_line(error)
    done.touch()
    return None


def solve(problem: Arrays, interpreter: Path) -> Arrays:
    """`qpth_runner.solve` in a process of another interpreter."""
    with tempfile.TemporaryDirectory() as scratch:
        given, answer = Path(scratch, "problem.npz"), Path(scratch, "answer.npz")
        np.savez(given, allow_pickle=False, **problem)
        try:
            _run([str(interpreter), qpth_runner.__file__, str(given), str(answer)])
        except (OSError, subprocess.CalledProcessError) as error:
            raise PeerFailedError(f"qpth failed: {_last_line(error)}") from error
        with np.load(answer) as file:
            return dict(file)


def _run(command: list[str]) -> None:
    # PYTHONPATH would lead the other interpreter to this one's packages.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run(command, check=True, capture_output=True, text=True, env=environment)


def _last_line(error: OSError | subprocess.CalledProcessError) -> str:
    if isinstance(error, OSError):
        return str(error)
    return (error.stderr.strip().splitlines() or [str(error)])[-1]
