"""The child process of `growth.peak_memory`: solve one instance and print the memory it took.

``python -m forewise_lab.bench.memory nvqp 32 4096`` prints one line of JSON, in MiB.
"""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path

import torch

from forewise_lab.bench.instances import FAMILIES, Instance
from forewise_lab.bench.peers.base import PeerFailedError
from forewise_lab.bench.peers.forewise_peer import ForewisePeer
from forewise_lab.bench.results import ABOVE_BASELINE, PEAK

KIB = 1024


def main(family: str, n_contexts: int, n_scenarios: int) -> dict[str, float]:
    """Peak memory of one forward and backward pass, in MiB, whole and above the baseline.

    The baseline is taken after the imports and one tiny solve, so that what is loaded only
    once does not hide the growth. The instance's own data count as memory of the solve.
    """
    torch.set_num_threads(1)
    make = FAMILIES[family]
    _solve(make(2, 2))
    baseline = restarted_peak()
    _solve(make(n_scenarios, n_contexts))
    peak = peak_memory()
    return {PEAK: peak, ABOVE_BASELINE: peak - baseline}


def _solve(instance: Instance) -> None:
    both = ForewisePeer().prepare(instance).forward_backward
    if both is None:
        raise PeerFailedError("forewise has no backward pass")
    both()


def restarted_peak() -> float:
    """Forget the peak of the imports, where the system can, and return the peak from now on."""
    if sys.platform == "linux":
        Path("/proc/self/clear_refs").write_text("5")
    return peak_memory()


def peak_memory() -> float:
    """Largest resident size so far in MiB."""
    if sys.platform == "linux":
        # Not getrusage: a child's ru_maxrss starts at the size of the process that started it.
        lines = Path("/proc/self/status").read_text().splitlines()
        (line,) = (line for line in lines if line.startswith("VmHWM:"))
        return int(line.split()[1]) / KIB
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / KIB / KIB


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
