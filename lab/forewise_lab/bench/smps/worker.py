"""A solver in a process of its own: it can be stopped, and takes no memory from the others."""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from joblib.externals.loky.process_executor import ProcessPoolExecutor, TerminatedWorkerError

from forewise_lab.bench.peers.base import Peer, PeerFailedError, Prepared
from forewise_lab.bench.smps.instances import instance, scenarios_of
from forewise_lab.bench.smps.peers import PEERS, Outcome, built, timed
from forewise_lab.machine import peak_memory, restart_peak

# What a process may take of the computer's memory, so that a failure is its own.
_MEMORY_SHARE = 0.7
# The first answer waits for the imports, a build for the extensive form.
_BUILD_SECONDS = 120.0
# In a worker's process: the call that solves what was built last, and the memory before that.
_BUILT: tuple[Callable[[], Outcome], float] | None = None


class Worker(Peer):
    """One solver's process, started when it is first asked and again after it was stopped."""

    def __init__(self, name: str, limit: float, data_dir: Path | None = None) -> None:
        self.name, self.limit, self.data_dir = name, limit, data_dir
        self._pool: ProcessPoolExecutor | None = None

    def prepare(self, case: Any) -> Prepared:
        """Build a case, an instance and its number of scenarios."""
        return Prepared(self.solve, seconds=self.build(case.name, case.n_scenarios))

    def build(self, name: str, n_scenarios: int) -> float:
        """Build an instance; the seconds that it took."""
        place = (self.name, name, n_scenarios, self.limit, self.data_dir)
        taken: float = self._ask(_BUILD_SECONDS, _build, *place)
        return taken

    def solve(self) -> Outcome:
        """Solve what was built last."""
        found: Outcome = self._ask(1.5 * self.limit + 5.0, _solve)
        return found

    def memory(self) -> tuple[float, float]:
        """Peak memory of building and solving, whole and above what was there before, in MiB."""
        found: tuple[float, float] = self._ask(10.0, _memory)
        return found

    def stop(self) -> None:
        """End the process."""
        if self._pool is not None:
            self._pool.shutdown(kill_workers=True)
        self._pool = None

    def _ask(self, seconds: float, function: Callable[..., Any], *arguments: Any) -> Any:
        if self._pool is None:
            self._pool = ProcessPoolExecutor(1, initializer=_limit)
        try:
            return self._pool.submit(function, *arguments).result(timeout=seconds)
        except TimeoutError:
            reason = f"took over {seconds:.0f} s and was stopped"
        except TerminatedWorkerError:
            reason = "its process ended, probably for lack of memory"
        except Exception as error:  # whatever a peer raises is its result
            reason = f"{type(error).__name__}: {error}"[:300]
        self.stop()
        raise PeerFailedError(reason)


def _limit() -> None:
    torch.set_num_threads(1)
    if sys.platform == "linux":
        most = int(_MEMORY_SHARE * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def _build(peer: str, name: str, n_scenarios: int, limit: float, data_dir: Path | None) -> float:
    global _BUILT
    before = restart_peak()
    program = instance(name, data_dir)
    call, lp, taken = built(PEERS[peer], program, scenarios_of(program, n_scenarios), limit)
    _BUILT = (lambda: timed(call, lp)), before
    return taken


def _solve() -> Outcome:
    if _BUILT is None:
        raise RuntimeError("nothing was built")
    return _BUILT[0]()


def _memory() -> tuple[float, float]:
    peak = peak_memory()
    return peak, peak - (peak if _BUILT is None else _BUILT[1])
