"""All contexts of a program, on as many threads as torch uses."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import torch

from forewise.solvers.interior_point.kernels import workspace as at
from forewise.solvers.interior_point.kernels.arrays import ProgramArrays
from forewise.solvers.interior_point.kernels.arrow import factor, refine, solve
from forewise.solvers.interior_point.kernels.compiling import allocating, compiled
from forewise.solvers.interior_point.kernels.loading import load
from forewise.solvers.interior_point.kernels.path import find_centre, hold, solve_context
from forewise.solvers.interior_point.kernels.points import Points
from forewise.solvers.interior_point.kernels.vectors import copy
from forewise.solvers.interior_point.kernels.workspace import (
    NU,
    NUS,
    ROWS,
    Sizes,
    U,
    Work,
    Z,
    make_work,
    matrix,
    scenario_rows,
    vector,
)

Array = np.ndarray

# A gradient is taken as if no row were more active than this, in units of the row: close enough
# to the limit for seven digits, and far enough from it to solve the system accurately.
_ACTIVE = 1e-9
_ADJOINT_REFINEMENTS = 4
_REFINED = 1e-10  # relative correction after which an adjoint is not refined again


class Rows(NamedTuple):
    """One number for every inequality row of all contexts."""

    first: Array  # (B, n_g)
    scenario: Array  # (B, M, n_r)


class PathEnds(NamedTuple):
    """Where the paths of all contexts ended."""

    points: Points
    slack: Rows
    holds: Array  # (B,) with which points of the central path are held (`path.hold`), or 0


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
    slack = Rows(np.zeros((n_contexts, p.h.shape[-1])), np.zeros((n_contexts, M, p.r.shape[-1])))
    return PathEnds(no_points(p, n_contexts), slack, np.zeros(n_contexts))


def follow_paths(
    p: ProgramArrays, tolerance: float, max_iterations: int, targets: Array
) -> tuple[PathEnds, PathEnds, Array, Array]:
    """Solve every context.

    Returns the solutions; the points of the central path at the `targets` ``(B,)``, in each
    context's own scaled units, which are the solutions where a target is 0; how each path
    ended; and its iterations.
    """
    n_contexts = p.weights.shape[0]
    solutions = no_ends(p, n_contexts)
    centres = no_ends(p, n_contexts) if targets.any() else solutions
    ended, iterations = np.zeros(n_contexts, np.int64), np.zeros(n_contexts, np.int64)

    def run(low: int, high: int) -> None:
        options = (tolerance, max_iterations)
        work = make_work(p)
        _follow_range(p, work, low, high, options, targets, solutions, centres, ended, iterations)

    _on_threads(run, n_contexts)
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

    def run(low: int, high: int) -> None:
        _adjoint_range(p, make_work(p), low, high, ends, right, wanted, out, corrections)

    _on_threads(run, n_contexts)
    return out, corrections


def _on_threads(run: Callable[[int, int], None], n_contexts: int) -> None:
    """Give each of torch's threads a range of contexts."""
    n_threads = min(torch.get_num_threads(), n_contexts)
    if n_threads <= 1:
        run(0, n_contexts)
        return
    edges = np.linspace(0, n_contexts, n_threads + 1).astype(int).tolist()
    with ThreadPoolExecutor(n_threads) as pool:
        for done in [pool.submit(run, *edge) for edge in itertools.pairwise(edges)]:
            done.result()


@compiled
def _unload(source: Array, kept: Array, factor: float, out: Array) -> None:
    """Copy ``(rows, kept)`` to ``(M, rows)``, scenarios first."""
    for m in range(kept.shape[0]):
        for a in range(source.shape[0]):
            out[kept[m], a] = factor * source[a, m]


@compiled
def _unload_point(
    w: Work, s: Sizes, b: int, kept: Array, point: int, length: float, cost: float, out: Points
) -> None:
    """Write a point of the scaled program to the batch, in the user's units."""
    copy(out.z[b], vector(w, point + Z, s.n), length)
    copy(out.nu[b], vector(w, point + NU, s.e), cost)
    copy(out.first[b], vector(w, point + ROWS, s.g), cost)
    _unload(matrix(w, point + U, s.k, s.M), kept, length, out.u[b])
    _unload(matrix(w, point + NUS, s.s, s.M), kept, cost, out.nus[b])
    _unload(scenario_rows(w, s, point + ROWS, s.r), kept, cost, out.scenario[b])


@compiled
def _unload_end(
    w: Work, s: Sizes, b: int, kept: Array, length: float, cost: float, out: PathEnds
) -> None:
    _unload_point(w, s, b, kept, at.POINT, length, cost, out.points)
    copy(out.slack.first[b], vector(w, at.SLACK, s.g), length)
    _unload(scenario_rows(w, s, at.SLACK, s.r), kept, length, out.slack.scenario[b])


@allocating
def _follow_range(
    p: ProgramArrays,
    w: Work,
    low: int,
    high: int,
    options: tuple[float, int],
    targets: Array,
    solutions: PathEnds,
    centres: PathEnds,
    ended: Array,
    iterations: Array,
) -> None:
    tolerance, max_iterations = options
    for b in range(low, high):
        kept = np.flatnonzero(p.weights[b] > 0.0)
        s, units = load(p, w, b)
        ended[b], iterations[b] = solve_context(w, s, tolerance, max_iterations, targets[b])
        _unload_end(w, s, b, kept, units.length, units.cost, solutions)
        if targets[b] > 0.0:
            centres.holds[b] = find_centre(w, s, tolerance, max_iterations, targets[b])
        _unload_end(w, s, b, kept, units.length, units.cost, centres)


@compiled
def _load_rows(source: Rows, b: int, kept: Array, first: Array, scenario: Array) -> None:
    """Copy one context's rows to the workspace, scenarios last."""
    for a in range(first.shape[0]):
        first[a] = source.first[b, a]
    for a in range(scenario.shape[0]):
        for m in range(scenario.shape[1]):
            scenario[a, m] = source.scenario[b, kept[m], a]


@allocating
def _adjoint_range(
    p: ProgramArrays,
    w: Work,
    low: int,
    high: int,
    ends: PathEnds,
    right: Points,
    wanted: Array,
    out: Points,
    corrections: Array,
) -> None:
    for b in range(low, high):
        if not wanted[b]:
            continue
        kept = np.flatnonzero(p.weights[b] > 0.0)
        s, units = load(p, w, b)
        if ends.holds[b] > 0.0:
            hold(w, s, ends.holds[b])
        # In the scaled program slack/λ and the x-part change their units, the rest does not.
        ratio = units.length / units.cost
        copy(vector(w, at.RIGHT + Z, s.n), right.z[b], ratio)
        copy(vector(w, at.RIGHT + NU, s.e), right.nu[b], 1.0)
        u, nus = matrix(w, at.RIGHT + U, s.k, s.M), matrix(w, at.RIGHT + NUS, s.s, s.M)
        for m in range(s.M):
            for v in range(s.k):
                u[v, m] = ratio * right.u[b, kept[m], v]
            for a in range(s.s):
                nus[a, m] = right.nus[b, kept[m], a]
        rows = Rows(right.first, right.scenario)
        multipliers = Rows(ends.points.first, ends.points.scenario)
        for source, slot in (
            (rows, at.RIGHT + ROWS),
            (ends.slack, at.SLACK),
            (multipliers, at.POINT + ROWS),
        ):
            _load_rows(source, b, kept, vector(w, slot, s.g), scenario_rows(w, s, slot, s.r))
        slack, dual = vector(w, at.SLACK, s.rows), vector(w, at.POINT + ROWS, s.rows)
        inverse_theta, unit = vector(w, at.INVERSE_THETA, s.rows), vector(w, at.UNIT, s.rows)
        for a in range(s.rows):
            inverse_theta[a] = max(slack[a] / (dual[a] * ratio), _ACTIVE * unit[a])
        factor(w, s)
        solve(w, s, at.RIGHT, at.RIGHT + ROWS, at.STEP, at.STEP_AX)
        for _ in range(_ADJOINT_REFINEMENTS):
            corrections[b] = refine(w, s, at.RIGHT, at.RIGHT + ROWS, at.STEP, at.STEP_AX)
            if corrections[b] <= _REFINED:
                break
        _unload_point(w, s, b, kept, at.STEP, 1.0, 1.0 / ratio, out)
