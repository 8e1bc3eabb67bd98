"""How time and memory grow with the number of scenarios: fitted exponents, and peak memory.

Memory is measured in a fresh process for each size (`memory`), because a process's peak never
falls. May import: results.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping

import numpy as np

from forewise_lab.bench.peers.base import PeerFailedError
from forewise_lab.bench.results import ABOVE_BASELINE, PEAK, Measurement


def fitted_exponent(values: Mapping[int, float]) -> float:
    """p of the least-squares fit value ≈ c · size^p, from values by size.

    NaN where fewer than two values are positive: a memory too small to be seen is 0.
    """
    seen = {size: value for size, value in values.items() if value > 0}
    if len(seen) < 2:
        return float("nan")
    sizes, heights = np.array(list(seen), dtype=float), np.array(list(seen.values()))
    return float(np.polyfit(np.log(sizes), np.log(heights), 1)[0])


def between(values: Mapping[int, float], sizes: Iterable[int]) -> dict[int, float]:
    """The values of the given sizes, where there are any."""
    return {size: values[size] for size in sizes if size in values}


def peak_memory(instance: str, n_contexts: int, n_scenarios: int, peer: str) -> list[Measurement]:
    """Peak memory of forewise's forward and backward pass, in a fresh process."""
    arguments = [instance, str(n_contexts), str(n_scenarios)]
    command = [sys.executable, "-m", "forewise_lab.bench.memory", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise PeerFailedError((done.stderr.strip().splitlines() or ["no message"])[-1])
    found: dict[str, float] = json.loads(done.stdout)
    return [
        Measurement(instance, n_contexts, n_scenarios, peer, quantity, "MiB", size, size, 1)
        for quantity, size in ((PEAK, found[PEAK]), (ABOVE_BASELINE, found[ABOVE_BASELINE]))
    ]
