"""The compiled inner loops of the interior-point solver, as the rest of it calls them.

The loops themselves are C++ (``src/core``, built as ``forewise._core``): a context's whole path
runs there on scratch memory of its own, with the interpreter's lock released, and no way to touch
a neighbour. Here is what goes in and what comes out: a program's blocks, points of a batch,
solutions and adjoints of all contexts, the optimality conditions, the structure of a batch.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch

from forewise import _core
from forewise.exceptions import InsufficientMemoryError
from forewise.problems.programs import BLOCKS, MATRICES, ScenarioProgram
from forewise.problems.sparse import SparseBlock

Array = np.ndarray

# How a path ended; `src/core/path.hpp` has the same numbers.
CONVERGED = 1
STALLED = 2
PRIMAL_RAY = 3  # the variables diverge along a ray of falling cost: unbounded
DUAL_RAY = 4  # the multipliers diverge along a proof that nothing is feasible
LOST = 5  # the centre that was looked for is far away, or nowhere
STOPPED = 6  # the time was over

#: Share of the largest distance below which a right-hand side may be rounding noise.
NOISE = 1e-9


# Entries from which on a dense block is searched for zeros, and the share of others above which it
# stays dense.
_WORTH_A_SEARCH, _FULL = 512, 0.4


class SparseArray(NamedTuple):
    """A block of matrices with one pattern: entries ``(..., nnz)`` stand row by row."""

    starts: Array  # (rows + 1,) where each row begins, int32
    columns: Array  # (nnz,) ascending in a row, int32
    entries: Array


Matrix = Array | SparseArray


def entries_of(block: Matrix) -> Array:
    """All numbers of a block that may be nonzero, contexts first."""
    return block.entries if isinstance(block, SparseArray) else block


def dense(block: Matrix) -> Array:
    """A block of square matrices, with its zeros."""
    if not isinstance(block, SparseArray):
        return block
    size = len(block.starts) - 1
    full = np.zeros((*block.entries.shape[:-1], size, size))
    full[..., np.repeat(np.arange(size), np.diff(block.starts)), block.columns] = block.entries
    return full


class ProgramArrays(NamedTuple):
    """The blocks of a `ScenarioProgram` as arrays; its module has the legend.

    Matrices are dense or sparse.
    """

    weights: Array
    q: Array
    P: Matrix
    G: Matrix
    h: Array
    E: Matrix
    e: Array
    d: Array
    D: Matrix
    T: Matrix
    W: Matrix
    r: Array
    F: Matrix
    V: Matrix
    s: Array


def as_arrays(program: ScenarioProgram) -> ProgramArrays:
    """The program's blocks as contiguous arrays on the host; large ones of zeros are sparse."""
    assert not program.bounds  # they are rows by now, or would be lost
    blocks: dict[str, Any] = {}
    for name in ("weights", *BLOCKS):
        if name == "c":
            continue
        block = program.block(name)
        if isinstance(block, SparseBlock):
            columns = block.columns.numpy().astype(np.int32)
            blocks[name] = SparseArray(block.starts(), columns, _on_host(block.entries))
        else:
            blocks[name] = _thinned(_on_host(block)) if name in MATRICES else _on_host(block)
    return ProgramArrays(**blocks)


def _on_host(block: torch.Tensor) -> Array:
    return np.ascontiguousarray(block.detach().cpu().numpy())


def _thinned(block: Array) -> Matrix:
    if block.shape[-1] * block.shape[-2] < _WORTH_A_SEARCH:
        return block
    found = _core.entries(block, _FULL)
    return block if found is None else SparseArray(*found)


class Points(NamedTuple):
    """Points of all contexts, in the user's units; scenarios of weight zero hold zeros."""

    z: Array  # (B, n_z)
    u: Array  # (B, M, n_u)
    first: Array  # inequality rows of the first stage (B, n_g)
    scenario: Array  # inequality rows of the scenarios (B, M, n_r)
    nu: Array  # (B, n_e)
    nus: Array  # (B, M, n_s)


class Slacks(NamedTuple):
    """The slack of every inequality row of all contexts."""

    first: Array  # (B, n_g)
    scenario: Array  # (B, M, n_r)


class PathEnds(NamedTuple):
    """Where the paths of all contexts ended."""

    points: Points
    slack: Slacks
    holds: Array  # (B,) with which points of the central path are held, or 0


def no_points(p: ProgramArrays, n_contexts: int) -> Points:
    """Room for the points of that many contexts."""
    M = p.weights.shape[1]
    return Points(
        z=np.zeros((n_contexts, p.q.shape[-1])),
        u=np.zeros((n_contexts, M, p.d.shape[-1])),
        first=np.zeros((n_contexts, p.h.shape[-1])),
        scenario=np.zeros((n_contexts, M, p.r.shape[-1])),
        nu=np.zeros((n_contexts, p.e.shape[-1])),
        nus=np.zeros((n_contexts, M, p.s.shape[-1])),
    )


def no_ends(p: ProgramArrays, n_contexts: int) -> PathEnds:
    """Room for the ends of that many contexts' paths."""
    M = p.weights.shape[1]
    slack = Slacks(np.zeros((n_contexts, p.h.shape[-1])), np.zeros((n_contexts, M, p.r.shape[-1])))
    return PathEnds(no_points(p, n_contexts), slack, np.zeros(n_contexts))


class Iteration(NamedTuple):
    """One iteration of a context's path, as a log gets it; sizes are the scaled program's."""

    context: int  # its place in the batch that is being solved
    iteration: int
    mu: float  # of slack·multiplier, weighted
    primal_residual: float
    dual_residual: float
    gap: float


class Watch(NamedTuple):
    """Until when paths are followed, and what is called with every iteration."""

    deadline: float = np.inf  # of `time.monotonic`
    log: Callable[[Iteration], object] | None = None


def follow_paths(
    p: ProgramArrays,
    tolerance: float,
    max_iterations: int,
    targets: Array,
    watch: Watch | None = None,
    start: Points | None = None,
) -> tuple[PathEnds, PathEnds, Array, Array]:
    """Solve every context, from points near their solutions where some are given.

    Returns the solutions; the points of the central path at the `targets` ``(B,)``, in each
    context's own scaled units, which are the solutions where a target is 0; how each path
    ended (`CONVERGED` and so on); and its iterations.
    """
    n_contexts = p.weights.shape[0]
    ended, iterations = np.zeros(n_contexts, np.int64), np.zeros(n_contexts, np.int64)
    n_threads, targets = torch.get_num_threads(), np.ascontiguousarray(targets, float)
    watch = Watch() if watch is None else watch
    seconds, log = max(watch.deadline - time.monotonic(), 0.0), watch.log
    report = None if log is None else lambda *values: log(Iteration(*values))
    settings = (n_threads, tolerance, max_iterations, seconds, report)
    try:
        solutions = no_ends(p, n_contexts)
        centres = no_ends(p, n_contexts) if targets.any() else solutions
        _core.follow(p, *settings, targets, start, solutions, centres, ended, iterations)
    except MemoryError as error:
        raise InsufficientMemoryError(
            f"{error}: solve fewer scenarios, or give large matrices of zeros as sparse ones"
        ) from error
    return solutions, centres, ended, iterations


def solve_adjoints(
    p: ProgramArrays, ends: PathEnds, right: Points, wanted: Array
) -> tuple[Points, Array]:
    """Solve the Newton system at the paths' ends for one right-hand side per context.

    `wanted` is a mask ``(B,)``; the other contexts hold zeros. Returns the solutions, and the size
    of the last correction of each, relative to it: where it is not small, the system says nothing.
    """
    n_contexts = p.weights.shape[0]
    out, corrections = no_points(p, n_contexts), np.zeros(n_contexts)
    right = Points(*(np.ascontiguousarray(part, float) for part in right))
    wanted = np.ascontiguousarray(wanted, bool)
    _core.adjoint(p, torch.get_num_threads(), ends, right, wanted, out, corrections)
    return out, corrections


class Evidence(NamedTuple):
    """Sizes of what the optimality conditions are made of, each ``(n_contexts,)``.

    From the raw data: nothing in `src/core/evidence.cpp` uses the scaled program, the workspace or
    anything else that solving uses.
    """

    violation: Array  # largest violation of a row, in units of its largest coefficient
    slope: Array  # violation of stationarity in z, and in u_j summed over the scenarios
    shadow: Array  # b'λ + e'ν over all stages
    curved: Array  # z'P z + Σ_j w_j u_j'D_j u_j
    linear: Array  # q'z + Σ_j w_j d_j'u_j
    length: Array  # a typical distance from the origin to a row's boundary
    size: Array  # of the variables
    cost_size: Array  # of the costs' gradients
    own_violation: Array  # largest violation of a first-stage row, relative to that stage's size
    own_gap: Array  # largest multiplier of one times its slack, relative to that size


def evidence(p: ProgramArrays, x: Points) -> Evidence:
    """The evidence for or against the points of all contexts; NaN where a point is not finite."""
    found = Evidence(*(np.zeros(len(x.z)) for _ in Evidence._fields))
    _core.weigh(p, Points(*(np.ascontiguousarray(part) for part in x)), found)
    return found


class Structure(NamedTuple):
    """What is where in a scenario's rows (`src/core/plan.hpp`)."""

    own: Array  # (r,) the simple variable of each row, −1 if it has none
    linking: Array  # (links,) the linking variables
    starts: Array  # (r + 1,) where each row's linking entries begin and end
    leads: Array  # (r,) the first shared row that is the same but for its own variable and its sign
    elimination: dict[str, Any]  # of the linking ones: sizes of the factor, its work, memory


def structure(p: ProgramArrays) -> Structure:
    """The structure of a batch of programs."""
    found = _core.describe(p)
    own, linking, starts, leads = (
        np.array(found.pop(name), int) for name in ("own", "linking", "starts", "leads")
    )
    return Structure(own, linking, starts, leads, found)


def balanced_units(p: ProgramArrays) -> tuple[Array, Array]:
    """Exponents of units that coefficients ask for, and what right-hand sides add to them.

    Each ``(B | 1, n_z + n_u)``.
    """
    return _core.balance(p)


def convex_contexts(block: SparseArray) -> Array:
    """Of each context of a sparse block of P or D: 1 if convex, 0 if not, −1 if not found out."""
    scenarios = block.entries.shape[1] if block.entries.ndim > 2 else 0
    sizes = (len(block.starts) - 1, len(block.entries), scenarios)
    return np.array(_core.convex(block, *sizes))


def units(p: ProgramArrays) -> Array:
    """What one unit of length and of cost is in each context's scaled program, ``(B, 2)``."""
    found = np.zeros((len(p.weights), 2))
    _core.units(p, found)
    return found
