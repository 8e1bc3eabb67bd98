"""Which entries of a batch's scenario blocks are there at all, in any context and scenario.

A recourse variable is *simple* if nothing but one row ties it to others: its curvature is its own,
no equality has it, and all but one of the rows with it (its *bounds*) have nothing else. Shortage
and excess, losses beyond a threshold and the epigraphs of most costs are simple: eliminating them
is a division each. The others are *linking*: a battery that every hour of the day shares.

A row is *shared* if it has anything but one simple variable. Rows of T are shared, whatever they
are; so is every row with a linking variable.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from forewise.solvers.interior_point.kernels.arrays import ProgramArrays

Array = np.ndarray


class Structure(NamedTuple):
    """What is where in a scenario's rows."""

    own: Array  # (r,) the simple variable of each row, −1 if it has none
    linking: Array  # (links,) the linking variables
    starts: Array  # (r + 1,) where each row's linking entries begin and end
    columns: Array  # (entries,) which linking variable an entry is of, ascending in a row
    leads: Array  # (r,) the first shared row that is the same but for its own variable and its sign


def structure(p: ProgramArrays) -> Structure:
    """The structure of a batch of programs."""
    pattern = (p.W != 0).any((0, 1))
    coupled = np.arange(len(pattern)) < p.T.shape[-2]
    simple = _simple_variables(p, pattern, coupled)
    own = np.full(len(pattern), -1)
    row, variable = (pattern & simple).nonzero()  # one in a row at most
    own[row] = variable
    linking = np.flatnonzero(~simple)
    links = pattern[:, linking]
    starts = np.concatenate([[0], links.sum(1).cumsum()])
    leads = _leads(p, linking, coupled | links.any(1))
    return Structure(own, linking, starts, links.nonzero()[1], leads)


def _simple_variables(p: ProgramArrays, pattern: Array, coupled: Array) -> Array:
    """Which variables are simple, ``(k,)``."""
    curved = (p.D != 0).any((0, 1))
    np.fill_diagonal(curved, False)
    shared = coupled | (pattern.sum(1) > 1)
    simple = (pattern[shared].sum(0) <= 1) & ~curved.any(0) & ~(p.V != 0).any((0, 1, 2))
    # Two in one shared row: the first keeps it, the others link.
    found = pattern[shared] & simple
    return simple & ~(found & (found.cumsum(1) > 1)).any(0)


def _leads(p: ProgramArrays, linking: Array, shared: Array) -> Array:
    """The first row that each shared row repeats, but for its sign, ``(r,)``.

    Only where all contexts and scenarios have the same rows; |x| has its two rows there, and so
    have the lower and the upper bound of a sum.
    """
    leads = np.arange(len(shared))
    if len(linking) == 0 or p.T.shape[:2] != (1, 1) or p.W.shape[:2] != (1, 1):
        return leads
    T = np.zeros((len(shared), p.T.shape[-1]))
    T[: p.T.shape[-2]] = p.T[0, 0]
    rows = np.concatenate([T, p.W[0, 0][:, linking]], axis=1)
    first = np.take_along_axis(rows, (rows != 0).argmax(1)[:, None], axis=1)
    rows = rows * np.where(first < 0, -1.0, 1.0) + 0.0  # no −0, which is other bytes than 0
    known: dict[bytes, int] = {}
    for a in np.flatnonzero(shared).tolist():
        leads[a] = known.setdefault(rows[a].tobytes(), a)
    return leads
