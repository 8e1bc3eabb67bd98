"""Random numbers of a draw: stratified where few scenarios must stand for a whole distribution.

May import: nothing of forewise.
"""

from __future__ import annotations

import numpy as np
import torch
from scipy.special import ndtri
from scipy.stats.qmc import Sobol

_MAX_SOBOL = 21201  # dimensions that the Sobol sequence has


def normal_draws(n_draws: int, n_columns: int, random: np.random.Generator) -> np.ndarray:
    """Standard normal draws (n_draws, n_columns), spread evenly over the distribution.

    A scrambled Sobol sequence through the normal quantile: each draw alone is a standard
    normal, together they leave no gaps, so that 16 of them say about as much of a mean or a
    quantile as several times as many independent ones.
    """
    if n_columns > _MAX_SOBOL:
        return random.standard_normal((n_draws, n_columns))
    sequence = Sobol(n_columns, rng=random)
    # The sequence is balanced in powers of two only; the first of a longer one will do.
    points = sequence.random_base2(max(n_draws - 1, 0).bit_length())[:n_draws]
    # The middle of each point's cell: no point at 0, whose normal quantile is infinite.
    return ndtri(points * (1 - 2**-30) + 2**-31)


def stratified_normals(
    n_draws: int, n_contexts: int, n_columns: int, generator: torch.Generator
) -> torch.Tensor:
    """Standard normal draws (n_draws, n_contexts, n_columns), one from each n_draws-th part.

    A Latin hypercube for every context and column by itself, as training wants it: independent
    between contexts, evenly spread within one. The decision of few scenarios is then much the
    same as that of many, and its gradient much less noisy.
    """
    shape = (n_draws, n_contexts, n_columns)
    parts = torch.rand(shape, generator=generator).argsort(0)
    levels = (parts + torch.rand(shape, generator=generator)) / n_draws
    return torch.special.ndtri(levels.clamp(1e-7, 1 - 1e-7))


def torch_generator(random: np.random.Generator) -> torch.Generator:
    """A torch generator that continues a NumPy one."""
    return torch.Generator().manual_seed(int(random.integers(2**62)))
