"""Columns in units of their own spread, so that no unit of measure decides what counts.

May import: nothing of forewise.
"""

from __future__ import annotations

import numpy as np


def mean_and_std(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of each column; exactly 0 where a column never changes."""
    # The mean of equal numbers may be off by rounding; their spread must not be.
    constant = values.min(axis=0) == values.max(axis=0)
    mean = np.where(constant, values[0], values.mean(axis=0))
    return mean, np.where(constant, 0.0, values.std(axis=0))


def standardise(values: np.ndarray, mean: np.ndarray, std: np.ndarray) -> np.ndarray:
    """``(values - mean) / std``; 0 in a column that never changed, which can tell nothing."""
    changes = std > 0
    return np.where(changes, (values - mean) / np.where(changes, std, 1.0), 0.0)
