"""One core for everyone: a comparison of algorithms and not of thread pools."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def one_core() -> Iterator[None]:
    """Keep this process, and those it starts, on one core and torch on one thread.

    Some peers take as many threads as they may use cores and have no setting for it, so the
    cores themselves are taken away. Where the system cannot do that (macOS, Windows), only
    torch is limited, and `timed` notes who used more than one core.
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
