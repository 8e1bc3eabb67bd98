"""The scratch memory in which one context is solved, and how a program gets there.

All of it is one buffer; a *slot* names a part of it, and `vector`, `matrix`, `cube` look at a
slot in the shape it has. A *point* (variables, inequality rows, equality rows) is five slots
in a row. Inequality rows stand in one flat vector: the first stage's, then row by row those of
the scenarios, coupled rows first, so that elementwise work is one loop.

Scenarios of weight zero are left out when a context is loaded: `Sizes.M` counts the others.
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from forewise.solvers.interior_point.kernels.arrays import ProgramArrays
from forewise.solvers.interior_point.kernels.compiling import inlined, view
from forewise.solvers.interior_point.kernels.structure import structure
from forewise.solvers.interior_point.kernels.views import look

Array = np.ndarray

# The parts of a point, to be added to the slot of the point.
Z, U, ROWS, NU, NUS = range(5)
# Points: the iterate, the best one so far, the end of a first try, one near a centre that is
# wanted later, the right-hand sides of the predictor and the corrector, a direction, and
# what refinement needs.
POINT, BEST, FIRST, EARLY, RIGHT, CORRECTED, STEP, ERROR, CORRECTION = range(0, 45, 5)
# The scaled program.
P, G, E, D, T, W, F, V, Q, COST, BOUND, EQUAL, EQUALS, WEIGHT = range(45, 59)
# Of every row: its largest coefficient, one over that, its weight ω in the barrier, and
# norm²/ω, the unit of its Θ⁻¹.
NORMS, INVERSE_NORMS, BARRIER, UNIT = range(59, 63)
# The rest of the iterate, with reciprocals (divisions are slow), and products with A.
SLACK, BEST_SLACK, FIRST_SLACK, EARLY_SLACK, INVERSE_SLACK, INVERSE_DUAL = range(63, 69)
AX, STEP_AX, CORRECTION_AX, CHANGE = range(69, 73)
# The factored system.
INVERSE_THETA, THETA, L, SCALE, BRIDGE_E, N_E = range(73, 79)
H, KAPPA, COUPLING, X, Y, ROW, BRIDGE, N, PULL, SHARED, SCRATCH, FLOOR = range(79, 91)
# Of the linking variables: curvature, entries in rows, factored block, and themselves.
LINK_D, LINK_W, LINK_H, LINK_U = range(91, 95)
# The largest coefficients of the equality rows, and the largest distance to a row's boundary.
EQUAL_NORMS, EQUALS_NORMS, REACH = range(95, 98)
N_SLOTS = 98
# The structure of the batch, in `Work.layout`.
OWN, LINKING, STARTS, COLUMNS, LEADS, SPAN_G, SPAN_P = range(98, 105)

_LINE = 8  # numbers in a line of the processor's cache; every slot begins with one


class Sizes(NamedTuple):
    """Sizes of one context's program."""

    n: int  # first-stage variables
    k: int  # recourse variables of a scenario
    links: int  # those of them that are linking
    M: int  # scenarios of positive weight
    g: int  # first-stage inequalities
    e: int  # first-stage equalities
    t: int  # scenario inequalities that touch the first stage
    r: int  # scenario inequalities
    s: int  # scenario equalities
    rows: int  # inequalities of all stages


class Work(NamedTuple):
    """One context's scratch memory, and the structure of its batch.

    Every kernel gets it by value: hence one array of whole numbers for all that is known of the
    structure, `layout`. It begins with where each slot of the buffer begins, and where each part of
    the structure does: those of `Structure`, and the spans of the rows of G and of P (first and
    last column, exclusive, that is not zero).
    """

    buffer: Array
    layout: Array
    shared_T: bool  # whether the scenarios of a context share T


def make_work(p: ProgramArrays) -> Work:
    """Scratch memory for the contexts of one batch, one at a time."""
    parts = (*structure(p), _spans(p.G), _spans(p.P, diagonal=True))
    shared_T = p.T.shape[1] == 1
    M, k, n, links = p.weights.shape[1], p.d.shape[-1], p.q.shape[-1], len(parts[1])
    g, e, t, r, s = (x.shape[-1] for x in (p.h, p.e, p.T[..., 0], p.r, p.s))
    sizes = Sizes(n, k, links, M, g, e, t, r, s, g + r * M)
    start = np.array(_slot_starts(sizes, len(parts[3]), shared_T))
    first = N_SLOTS + len(parts)
    begin = first + np.cumsum([0, *(part.size for part in parts[:-1])])
    layout = np.concatenate([start[:-1], begin, *(part.reshape(-1) for part in parts)])
    return Work(_aligned_zeros(start[-1]), layout.astype(np.int64), shared_T)


def _aligned_zeros(size: int) -> Array:
    """Zeros that begin where a line of the cache does: vectors across two lines load slower."""
    zeros = np.zeros(size + _LINE)
    skipped = -(zeros.ctypes.data // zeros.itemsize) % _LINE
    return zeros[skipped : skipped + size]


@lru_cache
def _slot_starts(sizes: Sizes, n_entries: int, shared_T: bool) -> tuple[int, ...]:
    """Where each slot begins in the buffer, and where the last one ends."""
    n, k, links, M, g, e, t, r, s, rows = sizes
    shapes: dict[int, tuple[int, ...]] = {}
    for point in (POINT, BEST, FIRST, EARLY, RIGHT, CORRECTED, STEP, ERROR, CORRECTION):
        parts = {Z: (n,), U: (k, M), ROWS: (rows,), NU: (e,), NUS: (s, M)}
        shapes |= {point + part: shape for part, shape in parts.items()}
    flat = (BOUND, NORMS, INVERSE_NORMS, BARRIER, UNIT, INVERSE_THETA, THETA)
    slacks = (SLACK, BEST_SLACK, FIRST_SLACK, EARLY_SLACK, INVERSE_SLACK, INVERSE_DUAL)
    products = (AX, STEP_AX, CORRECTION_AX, CHANGE)
    shapes |= dict.fromkeys((*flat, *slacks, *products), (rows,))
    shapes |= {
        **{P: (n, n), G: (g, n), E: (e, n), Q: (n,), COST: (k, M), EQUAL: (e,), EQUALS: (s, M)},
        **{T: (t, n, 1 if shared_T else M), F: (s, n, M), V: (s, links, M), WEIGHT: (M,)},
        **{D: (k, M), W: (r, M), LINK_W: (n_entries, M), LINK_U: (links, M)},
        **{L: (n, n), SCALE: (max(n, e),), BRIDGE_E: (n, e), N_E: (e, e)},
        **{H: (k, M), KAPPA: (r, M), COUPLING: (r, M), SHARED: (r, M)},
        **dict.fromkeys((LINK_D, LINK_H), (links, links, M)),
        **{X: (links, n, M), Y: (links, n, M), ROW: (n, M), BRIDGE: (links, s, M), N: (s, s, M)},
        **{PULL: (s, n, M), SCRATCH: (M,), FLOOR: (1,)},
        **{EQUAL_NORMS: (e,), EQUALS_NORMS: (s, M), REACH: (1,)},
    }
    lines = (math.ceil(math.prod(shapes[slot]) / _LINE) for slot in range(N_SLOTS))
    return tuple(accumulate((_LINE * count for count in lines), initial=0))


def _spans(block: Array, *, diagonal: bool = False) -> Array:
    """The columns outside which each row of ``(B | 1, rows, columns)`` is zero in all contexts.

    With `diagonal` its place there counts, too: something may be added to it later.
    """
    pattern = (block != 0).any(0)
    if diagonal:
        np.fill_diagonal(pattern, True)
    first, last = pattern.argmax(1), pattern.shape[1] - pattern[:, ::-1].argmax(1)
    return np.stack([first, np.where(pattern.any(1), last, first)], axis=1).astype(np.int64)


@view
def vector(w: Work, slot: int, a: int) -> Array:
    """A slot as a vector."""
    return look(w.buffer, w.layout[slot], (a,))


@view
def matrix(w: Work, slot: int, a: int, b: int) -> Array:
    """A slot as a matrix."""
    return look(w.buffer, w.layout[slot], (a, b))


@view
def cube(w: Work, slot: int, a: int, b: int, c: int) -> Array:
    """A slot as a block of all scenarios."""
    return look(w.buffer, w.layout[slot], (a, b, c))


@view
def own_variables(w: Work, s: Sizes) -> Array:
    """The simple variable of each scenario row, −1 if it has none, ``(r,)``."""
    return look(w.layout, w.layout[OWN], (s.r,))


@view
def linking_variables(w: Work, s: Sizes) -> Array:
    """The linking variables, ``(links,)``."""
    return look(w.layout, w.layout[LINKING], (s.links,))


@view
def link_starts(w: Work, s: Sizes) -> Array:
    """Where the linking entries of each scenario row begin and end, ``(r + 1,)``."""
    return look(w.layout, w.layout[STARTS], (s.r + 1,))


@view
def link_columns(w: Work, s: Sizes) -> Array:
    """Which linking variable each entry is of, ``(entries,)``."""
    return look(w.layout, w.layout[COLUMNS], (link_starts(w, s)[s.r],))


@view
def link_entries(w: Work, s: Sizes) -> Array:
    """The linking entries of the scenario rows, ``(entries, M)``."""
    return matrix(w, LINK_W, link_starts(w, s)[s.r], s.M)


@view
def leading_rows(w: Work, s: Sizes) -> Array:
    """The row whose weight stands for each shared row's too, ``(r,)``."""
    return look(w.layout, w.layout[LEADS], (s.r,))


@inlined
def is_linking(s: Sizes) -> bool:
    """Whether scenarios have more than simple variables: linking ones, or equalities."""
    return s.links + s.s > 0


@inlined
def is_linked(w: Work, s: Sizes, a: int) -> bool:
    """Whether a scenario row has linking variables."""
    start = w.layout[STARTS] + a
    return w.layout[start + 1] > w.layout[start]


@inlined
def is_shared(w: Work, s: Sizes, a: int) -> bool:
    """Whether a scenario row has anything but one simple variable."""
    return a < s.t or is_linked(w, s, a)


@view
def spans(w: Work, slot: int, rows: int) -> Array:
    """The spans of the rows of G or P, ``(rows, 2)``."""
    return look(w.layout, w.layout[slot], (rows, 2))


@view
def scenario_rows(w: Work, s: Sizes, slot: int, count: int) -> Array:
    """The first `count` scenario rows of a flat vector of rows, ``(count, M)``."""
    return look(w.buffer, w.layout[slot] + s.g, (count, s.M))


@view
def coupling_block(w: Work, s: Sizes) -> Array:
    """T, ``(t, n, M)`` or, if the scenarios share it, ``(t, n, 1)``."""
    return cube(w, T, s.t, s.n, 1 if w.shared_T else s.M)
