"""Contexts in blocks of one size, so that what comes out for one does not depend on the others.

Products of matrices, and vectorised functions, round by shape: the product of one row is not to the
bit the same as that row of a larger product. In blocks that are always as long, filled up where the
table ends, it is. May import: nothing of forewise.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

#: A multiple of what vector instructions take at a time: no row is left over to be done otherwise.
SIZE = 64


def blocks(contexts: np.ndarray, size: int = SIZE) -> Iterator[tuple[slice, np.ndarray]]:
    """Which contexts, and a block (size, n_features) that begins with them.

    The last block is filled up with its first context.
    """
    for start in range(0, len(contexts), size):
        block = contexts[start : start + size]
        missing = size - len(block)
        filled = np.concatenate([block, block[:1].repeat(missing, axis=0)]) if missing else block
        yield slice(start, start + len(block)), filled
