"""All contexts of a program, on as many threads as torch uses."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

from forewise import _core
from forewise.solvers.interior_point.kernels.arrays import Points, ProgramArrays

Array = np.ndarray


class Rows(NamedTuple):
    """One number for every inequality row of all contexts."""

    first: Array  # (B, n_g)
    scenario: Array  # (B, M, n_r)


class PathEnds(NamedTuple):
    """Where the paths of all contexts ended."""

    points: Points
    slack: Rows
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
    slack = Rows(np.zeros((n_contexts, p.h.shape[-1])), np.zeros((n_contexts, M, p.r.shape[-1])))
    return PathEnds(no_points(p, n_contexts), slack, np.zeros(n_contexts))


def follow_paths(
    p: ProgramArrays, tolerance: float, max_iterations: int, targets: Array
) -> tuple[PathEnds, PathEnds, Array, Array]:
    """Solve every context.

    Returns the solutions; the points of the central path at the `targets` ``(B,)``, in each
    context's own scaled units, which are the solutions where a target is 0; how each path
    ended (`path`); and its iterations.
    """
    n_contexts = p.weights.shape[0]
    solutions = no_ends(p, n_contexts)
    centres = no_ends(p, n_contexts) if targets.any() else solutions
    ended, iterations = np.zeros(n_contexts, np.int64), np.zeros(n_contexts, np.int64)
    n_threads, targets = torch.get_num_threads(), np.ascontiguousarray(targets, float)
    _core.follow(
        p, n_threads, tolerance, max_iterations, targets, solutions, centres, ended, iterations
    )
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
