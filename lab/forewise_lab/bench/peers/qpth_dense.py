"""qpth: the dense batched interior point of OptNet, with gradients.

qpth asks for numpy < 2. Where it cannot be imported, it gets an environment of its own, made once
under the user's cache folder with the torch version that runs here.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch

from forewise.problems import ScenarioProgram
from forewise_lab.bench.instances import Instance
from forewise_lab.bench.peers import qpth_runner
from forewise_lab.bench.peers.base import (
    Answer,
    Gradient,
    LiftedProgram,
    Peer,
    PeerFailedError,
    Prepared,
    lift,
    split_solution,
)
from forewise_lab.bench.peers.qpth_runner import Arrays

QPTH = "qpth==0.0.18"
READY = "ready"


@dataclass(frozen=True)
class QpthDense(Peer):
    """qpth on the lifted program with all its zeros, so for few scenarios only.

    Runs here if it can be imported, else in an environment of its own. Either way its time is
    that of the solve and its backward pass alone.
    """

    name: str = "qpth"
    largest: int = 32

    def missing(self) -> str | None:
        problem = None if _importable() else make_environment()
        if problem is None:
            return None
        return (
            f"qpth is not installed, and making an environment for it failed ({problem}); "
            f"install it with: pip install --no-deps {QPTH}"
        )

    def supports(self, program: ScenarioProgram) -> str | None:
        if program.n_scenarios > self.largest:
            return f"dense: not run beyond M = {self.largest}"
        if not (_positive_definite(program.P) and _positive_definite(program.D)):
            return "needs a strictly convex cost"
        return None

    def prepare(self, instance: Instance) -> Prepared:
        leaves = instance.leaves()
        program = instance.program_of(leaves)
        tensors = _dense(lift(program))
        problem = {name: tensor.detach().numpy() for name, tensor in tensors.items()}
        undirected = problem | {"direction": np.empty(0)}
        directed = problem | {"direction": instance.direction().numpy()}

        def forward() -> Answer:
            found = solve(undirected)
            return replace(split_solution(found["x"], program), seconds=float(found["seconds"]))

        def forward_backward() -> Gradient:
            found = solve(directed)
            reached = [name for name in found if name in tensors and tensors[name].requires_grad]
            gradients = torch.autograd.grad(
                [tensors[name] for name in reached],
                list(leaves.values()),
                [torch.as_tensor(found[name]) for name in reached],
                retain_graph=True,
            )
            of = {name: g.numpy() for name, g in zip(leaves, gradients, strict=True)}
            return Gradient(of, seconds=float(found["seconds"]))

        return Prepared(forward, forward_backward)


def _importable() -> bool:
    try:
        import qpth.qp  # noqa: F401
    except ImportError:
        return False
    return True


def solve(problem: Arrays) -> Arrays:
    """`qpth_runner.solve`, here or in qpth's own environment."""
    if _importable():
        return qpth_runner.solve(problem)
    return solve_elsewhere(problem, python())


def _positive_definite(matrices: torch.Tensor) -> bool:
    return bool((torch.linalg.cholesky_ex(matrices).info == 0).all())


def _dense(lifted: LiftedProgram) -> dict[str, torch.Tensor]:
    rows, equal = lifted.A.dense(), lifted.n_equalities
    below = {"G": rows[:, equal:], "h": lifted.b[:, equal:]}
    return {"Q": lifted.P.dense(), "p": lifted.q, **below, "A": rows[:, :equal],
            "b": lifted.b[:, :equal]}  # fmt: skip


def folder() -> Path:
    """Where the environment is kept."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "forewise" / "qpth"


def python() -> Path:
    """The environment's interpreter."""
    return folder() / ("Scripts" if sys.platform == "win32" else "bin") / "python"


def make_environment() -> str | None:
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


def solve_elsewhere(problem: Arrays, interpreter: Path) -> Arrays:
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
