"""Eliminating every scenario's simple recourse variables from the arrow-shaped system.

A simple variable v (`structure`) has one shared row, y + c v ≤ r with y = T z + W u of the linking
u, and bounds. Its Newton block is one number H, and eliminating it leaves the row y with the
weight κ in the place of Θ. κ is positive and computed without subtraction.
"""

from __future__ import annotations

import numpy as np

from forewise.solvers.interior_point.kernels import workspace as at
from forewise.solvers.interior_point.kernels.algebra import ABSOLUTE_RIDGE, PROXIMAL
from forewise.solvers.interior_point.kernels.compiling import compiled
from forewise.solvers.interior_point.kernels.vectors import copy, fill
from forewise.solvers.interior_point.kernels.workspace import (
    ROWS,
    Sizes,
    U,
    Work,
    is_linking,
    is_shared,
    matrix,
    own_variables,
    scenario_rows,
    vector,
)

Array = np.ndarray


@compiled
def eliminate_simple(w: Work, s: Sizes) -> None:
    """Put the weights κ of all shared rows, and the reciprocals of H, into the workspace."""
    own = own_variables(w, s)
    H, theta = matrix(w, at.H, s.k, s.M), scenario_rows(w, s, at.THETA, s.r)
    coefficient = matrix(w, at.W, s.r, s.M)
    kappa, coupling = matrix(w, at.KAPPA, s.r, s.M), matrix(w, at.COUPLING, s.r, s.M)
    curvature = matrix(w, at.D, s.k, s.M)
    # Steps with simple recourse alone are not refined but near the end: they cannot afford it.
    weight, proximal = vector(w, at.WEIGHT, s.M), PROXIMAL if is_linking(s) else 0.0
    for v in range(s.k):
        for m in range(s.M):
            H[v, m] = curvature[v, m] + (proximal * weight[m] + ABSOLUTE_RIDGE)
    for a in range(s.r):
        v = own[a]
        if v >= 0 and not is_shared(w, s, a):
            for m in range(s.M):
                H[v, m] += theta[a, m] * coefficient[a, m] * coefficient[a, m]
    for a in range(s.r):
        if not is_shared(w, s, a):
            continue
        v = own[a]
        if v >= 0:
            for m in range(s.M):
                kappa[a, m] = theta[a, m] * H[v, m]
                coupling[a, m] = theta[a, m] * coefficient[a, m]
                H[v, m] += coupling[a, m] * coefficient[a, m]
        else:
            for m in range(s.M):
                kappa[a, m] = theta[a, m]
                coupling[a, m] = 0.0
    for v in range(s.k):
        for m in range(s.M):
            H[v, m] = 1.0 / H[v, m]
    for a in range(s.r):
        v = own[a]
        if v >= 0 and is_shared(w, s, a):
            for m in range(s.M):
                kappa[a, m] *= H[v, m]
                coupling[a, m] *= H[v, m]


@compiled
def reduce_simple(w: Work, s: Sizes, right_rows: int, out: int) -> None:
    """Scale the scenarios' rows by Θ; add what they ask of u, and put what of y into `SHARED`."""
    own = own_variables(w, s)
    u, coupling = matrix(w, out + U, s.k, s.M), matrix(w, at.COUPLING, s.r, s.M)
    rows, shared = scenario_rows(w, s, out + ROWS, s.r), matrix(w, at.SHARED, s.r, s.M)
    given, theta = scenario_rows(w, s, right_rows, s.r), scenario_rows(w, s, at.THETA, s.r)
    coefficient = matrix(w, at.W, s.r, s.M)
    # Bounds first: what they ask of a variable must be there when its shared row comes.
    for a in range(s.r):
        if not is_shared(w, s, a):
            for m in range(s.M):
                rows[a, m] = theta[a, m] * given[a, m]
            v = own[a]
            if v >= 0:
                for m in range(s.M):
                    u[v, m] += coefficient[a, m] * rows[a, m]
    for a in range(s.r):
        if is_shared(w, s, a):
            v = own[a]
            if v >= 0:
                for m in range(s.M):
                    rows[a, m] = theta[a, m] * given[a, m]
                    u[v, m] += coefficient[a, m] * rows[a, m]
                    shared[a, m] = rows[a, m] - coupling[a, m] * u[v, m]
            else:
                for m in range(s.M):
                    rows[a, m] = theta[a, m] * given[a, m]
                    shared[a, m] = rows[a, m]


@compiled
def restore_simple(w: Work, s: Sizes, out: int, out_Ax: int) -> None:
    """The scenarios' simple u, with the y that was found in `SHARED`, and their rows of A x.

    Linking variables are spoilt on the way: they are put back after it.
    """
    own = own_variables(w, s)
    u, coupling = matrix(w, out + U, s.k, s.M), matrix(w, at.COUPLING, s.r, s.M)
    inverse, shared = matrix(w, at.H, s.k, s.M), matrix(w, at.SHARED, s.r, s.M)
    Ax, coefficient = scenario_rows(w, s, out_Ax, s.r), matrix(w, at.W, s.r, s.M)
    for v in range(s.k):
        for m in range(s.M):
            u[v, m] *= inverse[v, m]
    # Shared rows first: bounds need their variables finished.
    for a in range(s.r):
        if is_shared(w, s, a):
            v = own[a]
            if v >= 0:
                for m in range(s.M):
                    u[v, m] -= coupling[a, m] * shared[a, m]
                    Ax[a, m] = shared[a, m] + coefficient[a, m] * u[v, m]
            else:
                copy(Ax[a], shared[a], 1.0)
    for a in range(s.r):
        if not is_shared(w, s, a):
            v = own[a]
            if v >= 0:
                for m in range(s.M):
                    Ax[a, m] = coefficient[a, m] * u[v, m]
            else:
                fill(Ax[a], 0.0)
