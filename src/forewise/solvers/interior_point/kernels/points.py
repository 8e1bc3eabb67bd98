"""Points of a whole batch: variables, inequality rows and equality rows, in the user's units."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

Array = np.ndarray


class Points(NamedTuple):
    """Points of all contexts, in the user's units; scenarios of weight zero hold zeros."""

    z: Array  # (B, n_z)
    u: Array  # (B, M, n_u)
    first: Array  # inequality rows of the first stage (B, n_g)
    scenario: Array  # inequality rows of the scenarios (B, M, n_r)
    nu: Array  # (B, n_e)
    nus: Array  # (B, M, n_s)
