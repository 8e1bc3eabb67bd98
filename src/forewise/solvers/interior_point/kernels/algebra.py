"""Small dense linear algebra of one context, in place.

Matrices are ``(rows, columns)``. A Cholesky factor has the reciprocals of its diagonal there:
divisions are slow, and it is made once and used often. The *span* of a row is the range of columns
outside which it is zero, in all contexts: bounds on variables cost next to nothing.
"""

from __future__ import annotations

import numpy as np

from forewise.solvers.interior_point.kernels.compiling import compiled

Array = np.ndarray

# Added to pivots before a factorization. Relative: far above rounding, far below what would
# bend a Newton step. Absolute, in the scaled program's units: for directions without any cost.
RELATIVE_RIDGE = 1e-13
ABSOLUTE_RIDGE = 1e-13
# A curvature of variables, in units of their weight, for those that have no cost or that only
# equalities hold. Refinement takes back what it changes.
PROXIMAL = 1e-9
# A pivot that is lost to rounding becomes this multiple of its scale, which takes its
# direction out of the solution.
_LOST_PIVOT = 1e16


@compiled
def inverse_root(pivot: float, scale: float) -> float:
    """One over the root of a pivot with its ridge; `scale` bounds the rounding made in it."""
    ridge = RELATIVE_RIDGE * scale
    pivot += ridge + ABSOLUTE_RIDGE
    return 1.0 / np.sqrt(pivot if pivot > 0.01 * ridge else _LOST_PIVOT * (scale + ABSOLUTE_RIDGE))


@compiled
def cholesky(S: Array, scale: Array) -> None:
    """Replace a lower triangle by the Cholesky factor of a nearly positive definite matrix."""
    n = S.shape[0]
    # Column by column: the rows of a column do not wait for each other.
    for j in range(n):
        pivot = S[j, j]
        for k in range(j):
            pivot -= S[j, k] * S[j, k]
        inverse = inverse_root(pivot, scale[j])
        S[j, j] = inverse
        for i in range(j + 1, n):
            total = S[i, j]
            for k in range(j):
                total -= S[i, k] * S[j, k]
            S[i, j] = total * inverse


@compiled
def solve_lower(L: Array, b: Array) -> None:
    """b := L⁻¹ b."""
    for i in range(L.shape[0]):
        total = b[i]
        for k in range(i):
            total -= L[i, k] * b[k]
        b[i] = total * L[i, i]


@compiled
def solve_upper(L: Array, b: Array) -> None:
    """b := L'⁻¹ b."""
    for i in range(L.shape[0] - 1, -1, -1):
        b[i] *= L[i, i]
        for k in range(i):
            b[k] -= L[i, k] * b[i]


@compiled
def solve_lower_columns(L: Array, B: Array) -> None:
    """B := L⁻¹ B."""
    for i in range(B.shape[0]):
        for k in range(i):
            factor = L[i, k]
            for c in range(B.shape[1]):
                B[i, c] -= factor * B[k, c]
        for c in range(B.shape[1]):
            B[i, c] *= L[i, i]


@compiled
def add_times(out: Array, A: Array, x: Array, factor: float) -> None:
    """out := out + factor A x."""
    for i in range(A.shape[0]):
        total = 0.0
        for c in range(A.shape[1]):
            total += A[i, c] * x[c]
        out[i] += factor * total


@compiled
def add_transposed_times(out: Array, A: Array, x: Array, factor: float) -> None:
    """out := out + factor A'x."""
    for i in range(A.shape[0]):
        scaled = factor * x[i]
        for c in range(A.shape[1]):
            out[c] += scaled * A[i, c]


@compiled
def add_times_within(out: Array, A: Array, span: Array, x: Array) -> None:
    """out := out + A x, with A's rows zero outside their spans ``(rows, 2)``."""
    for i in range(A.shape[0]):
        total = 0.0
        for c in range(span[i, 0], span[i, 1]):
            total += A[i, c] * x[c]
        out[i] += total


@compiled
def add_transposed_times_within(out: Array, A: Array, span: Array, x: Array) -> None:
    """out := out + A'x, with A's rows zero outside their spans."""
    for i in range(A.shape[0]):
        for c in range(span[i, 0], span[i, 1]):
            out[c] += x[i] * A[i, c]


@compiled
def add_gram_within(S: Array, A: Array, span: Array, weight: Array) -> None:
    """Lower triangle of S := S + A' diag(weight) A, with A's rows zero outside their spans."""
    for i in range(A.shape[0]):
        first, end = span[i, 0], span[i, 1]
        if end - first == 1:
            # Bounds on variables are most rows: two loops of one turn would take longer.
            S[first, first] += weight[i] * A[i, first] * A[i, first]
        else:
            for a in range(first, end):
                scaled = weight[i] * A[i, a]
                for c in range(first, a + 1):
                    S[a, c] += scaled * A[i, c]
