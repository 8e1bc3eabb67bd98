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

from forewise.problems.program import BLOCKS, ScenarioProgram
from forewise.solvers.kernels.compiling import view
from forewise.solvers.kernels.views import look

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
H, KAPPA, COUPLING, X, Y, ROW, BRIDGE, N, PULL, TZ, SCRATCH, FLOOR = range(79, 91)
N_SLOTS = 91
# The structure of the batch, in `Work.layout`.
COLUMN, SPAN_G, SPAN_P = range(91, 94)

_LINE = 8  # numbers in a line of the processor's cache; every slot begins with one


class Sizes(NamedTuple):
    """Sizes of one context's program."""

    n: int  # first-stage variables
    k: int  # recourse variables of a scenario
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
    structure, `layout`. It begins with where each slot of the buffer begins, and of the structure:
    the recourse variable of each scenario row, −1 if it has none (where `diagonal`), and the
    spans of the rows of G and of P (first and last column, exclusive, that is not zero).
    """

    buffer: Array
    layout: Array
    diagonal: bool  # whether the scenarios' own Newton blocks are diagonal, whatever Θ is
    shared_T: bool  # whether the scenarios of a context share T


class ProgramArrays(NamedTuple):
    """The blocks of a `ScenarioProgram` as arrays; its module has the legend."""

    weights: Array
    q: Array
    P: Array
    G: Array
    h: Array
    E: Array
    e: Array
    d: Array
    D: Array
    T: Array
    W: Array
    r: Array
    F: Array
    V: Array
    s: Array


def as_arrays(program: ScenarioProgram) -> ProgramArrays:
    """The program's blocks as contiguous arrays on the host."""
    blocks = {
        name: np.ascontiguousarray(getattr(program, name).detach().cpu().numpy())
        for name in ("weights", *BLOCKS)
        if name != "c"
    }
    return ProgramArrays(**blocks)


def make_work(p: ProgramArrays) -> Work:
    """Scratch memory for the contexts of one batch, one at a time."""
    diagonal, column = _structure(p)
    shared_T = p.T.shape[1] == 1
    M, k, n = p.weights.shape[1], p.d.shape[-1], p.q.shape[-1]
    g, e, t, r, s = (x.shape[-1] for x in (p.h, p.e, p.T[..., 0], p.r, p.s))
    start = np.array(_slot_starts(Sizes(n, k, M, g, e, t, r, s, g + r * M), diagonal, shared_T))
    structure = (column, _spans(p.G), _spans(p.P))
    first = N_SLOTS + len(structure)
    begin = first + np.cumsum([0, *(part.size for part in structure[:-1])])
    layout = np.concatenate([start[:-1], begin, *(part.reshape(-1) for part in structure)])
    return Work(_aligned_zeros(start[-1]), layout.astype(np.int64), diagonal, shared_T)


def _aligned_zeros(size: int) -> Array:
    """Zeros that begin where a line of the cache does: vectors across two lines load slower."""
    zeros = np.zeros(size + _LINE)
    skipped = -(zeros.ctypes.data // zeros.itemsize) % _LINE
    return zeros[skipped : skipped + size]


@lru_cache
def _slot_starts(sizes: Sizes, diagonal: bool, shared_T: bool) -> tuple[int, ...]:
    """Where each slot begins in the buffer, and where the last one ends."""
    n, k, M, g, e, t, r, s, rows = sizes
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
        **{T: (t, n, 1 if shared_T else M), F: (s, n, M), V: (s, k, M), WEIGHT: (M,)},
        **{D: (k, M) if diagonal else (k, k, M), W: (r, M) if diagonal else (r, k, M)},
        **{L: (n, n), SCALE: (max(n, e),), BRIDGE_E: (n, e), N_E: (e, e)},
        **{H: (k, M) if diagonal else (k, k, M), KAPPA: (t, M), COUPLING: (t, M), TZ: (t, M)},
        **dict.fromkeys((X, Y), (0,) if diagonal else (k, n, M)),
        **{ROW: (0,) if diagonal else (n, M), BRIDGE: (k, s, M), N: (s, s, M)},
        **{PULL: (s, n, M), SCRATCH: (M,), FLOOR: (1,)},
    }
    lines = (math.ceil(math.prod(shapes[slot]) / _LINE) for slot in range(N_SLOTS))
    return tuple(accumulate((_LINE * count for count in lines), initial=0))


def _structure(p: ProgramArrays) -> tuple[bool, Array]:
    """Whether every row has one recourse variable, and every such variable one coupled row."""
    pattern = (p.W != 0).any((0, 1))
    curved = (p.D != 0).any((0, 1))
    np.fill_diagonal(curved, False)
    diagonal = (
        bool((pattern.sum(1) <= 1).all())
        and bool((pattern[: p.T.shape[-2]].sum(0) <= 1).all())
        and not curved.any()
        and p.s.shape[-1] == 0
    )
    column = np.full(pattern.shape[0], -1, dtype=np.int64)
    if diagonal:
        row, variable = pattern.nonzero()
        column[row] = variable
    return diagonal, column


def _spans(block: Array) -> Array:
    """The columns outside which each row of ``(B | 1, rows, columns)`` is zero in all contexts."""
    pattern = (block != 0).any(0)
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
def recourse_variables(w: Work, s: Sizes) -> Array:
    """The recourse variable of each scenario row, −1 if it has none, ``(r,)``."""
    return look(w.layout, w.layout[COLUMN], (s.r,))


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
