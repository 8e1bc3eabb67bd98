"""A solver in a process of its own: it can be stopped, and takes no memory from the others."""

from __future__ import annotations

import multiprocessing
import os
import resource
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import torch

from forewise_lab.bench.peers import PeerFailedError
from forewise_lab.bench.smps.extensive import ExtensiveLp
from forewise_lab.bench.smps.instances import instance, scenarios_of
from forewise_lab.bench.smps.peers import PEERS, Call, Outcome, built, timed
from forewise_lab.machine import peak_memory, restart_peak

# What a process may take of the computer's memory, so that a failure is its own.
_MEMORY_SHARE = 0.7
# The first answer waits for the imports, a build for the extensive form.
_BUILD_SECONDS = 120.0


class Worker:
    """One solver's process, started when it is first asked and again after it was stopped."""

    def __init__(self, peer: str, limit: float, data_dir: str | None = None) -> None:
        self.peer, self.limit, self.data_dir = peer, limit, data_dir
        self._process: Any = None
        self._pipe: Connection | None = None

    def build(self, name: str, n_scenarios: int) -> float:
        """Build an instance; the seconds that it took."""
        taken: float = self._ask(("build", name, n_scenarios), _BUILD_SECONDS)
        return taken

    def solve(self) -> Outcome:
        """Solve what was built last."""
        found: Outcome = self._ask(("solve",), 1.5 * self.limit + 5.0)
        return found

    def memory(self) -> tuple[float, float]:
        """Peak memory of building and solving, whole and above what was there before, in MiB."""
        found: tuple[float, float] = self._ask(("memory",), 10.0)
        return found

    def stop(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
        self._process = self._pipe = None

    def _ask(self, request: tuple[Any, ...], seconds: float) -> Any:
        if self._pipe is None:
            spawned = multiprocessing.get_context("spawn")
            self._pipe, theirs = spawned.Pipe()
            arguments = (theirs, self.peer, self.limit, self.data_dir)
            self._process = spawned.Process(target=_serve, args=arguments, daemon=True)
            self._process.start()
            theirs.close()
        try:
            self._pipe.send(request)
            answered = self._pipe.poll(seconds)
            kind, answer = self._pipe.recv() if answered else ("late", None)
        except (EOFError, OSError):
            kind, answer = "error", "its process ended, probably for lack of memory"
        if kind == "late":
            answer = f"took over {seconds:.0f} s and was stopped"
        if kind != "ok":
            self.stop()
            raise PeerFailedError(answer)
        return answer


def _serve(pipe: Connection, peer: str, limit: float, data_dir: str | None) -> None:
    torch.set_num_threads(1)
    if sys.platform == "linux":
        most = int(_MEMORY_SHARE * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    answer: Any = None
    call: Callable[[], Outcome] = _nothing_built
    before = 0.0
    while True:
        try:
            request = pipe.recv()
        except EOFError:
            return
        try:
            if request[0] == "build":
                before = restart_peak()
                program = instance(request[1], data_dir)
                scenarios = scenarios_of(program, request[2])
                solve, lp, answer = built(PEERS[peer], program, scenarios, limit)
                call = _call(solve, lp)
            elif request[0] == "solve":
                answer = call()
            else:
                peak = peak_memory()
                answer = (peak, peak - before)
        except Exception as error:  # whatever a peer raises is its result
            pipe.send(("error", f"{type(error).__name__}: {error}"[:300]))
        else:
            pipe.send(("ok", answer))


def _call(solve: Call, lp: ExtensiveLp) -> Callable[[], Outcome]:
    return lambda: timed(solve, lp)


def _nothing_built() -> Outcome:
    raise RuntimeError("nothing was built")
