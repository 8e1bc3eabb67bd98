"""The same algebra for all scenarios of a context at once, in place.

Blocks of all scenarios are ``(rows, columns, M)``, and `M` is the inner loop: what is done for one
scenario is a vector instruction for several. A block that the scenarios share is
``(rows, columns, 1)``.
"""

from __future__ import annotations

import numpy as np

from forewise.solvers.interior_point.kernels.algebra import inverse_root
from forewise.solvers.interior_point.kernels.compiling import compiled

Array = np.ndarray


@compiled
def cholesky_each(H: Array, scale: Array) -> None:
    """`cholesky` of every scenario's matrix ``(k, k, M)``; `scale` is scratch ``(M,)``."""
    k, M = H.shape[0], H.shape[2]
    for i in range(k):
        for j in range(i):
            for c in range(j):
                for m in range(M):
                    H[i, j, m] -= H[i, c, m] * H[j, c, m]
            for m in range(M):
                H[i, j, m] *= H[j, j, m]
        for m in range(M):
            scale[m] = H[i, i, m]
        for c in range(i):
            for m in range(M):
                H[i, i, m] -= H[i, c, m] * H[i, c, m]
        for m in range(M):
            H[i, i, m] = inverse_root(H[i, i, m], scale[m])


@compiled
def solve_lower_each(L: Array, b: Array) -> None:
    """b := L⁻¹ b of every scenario, ``(k, k, M)`` and ``(k, M)``."""
    k, M = b.shape
    for i in range(k):
        for c in range(i):
            for m in range(M):
                b[i, m] -= L[i, c, m] * b[c, m]
        for m in range(M):
            b[i, m] *= L[i, i, m]


@compiled
def solve_upper_each(L: Array, b: Array) -> None:
    """b := L'⁻¹ b of every scenario."""
    k, M = b.shape
    for i in range(k - 1, -1, -1):
        for m in range(M):
            b[i, m] *= L[i, i, m]
        for c in range(i):
            for m in range(M):
                b[c, m] -= L[i, c, m] * b[i, m]


@compiled
def solve_lower_columns_each(L: Array, B: Array) -> None:
    """B := L⁻¹ B of every scenario, ``(k, k, M)`` and ``(k, n, M)``."""
    k, n, M = B.shape
    for i in range(k):
        for c in range(i):
            for a in range(n):
                for m in range(M):
                    B[i, a, m] -= L[i, c, m] * B[c, a, m]
        for a in range(n):
            for m in range(M):
                B[i, a, m] *= L[i, i, m]


@compiled
def solve_upper_columns_each(L: Array, B: Array) -> None:
    """B := L'⁻¹ B of every scenario, ``(k, k, M)`` and ``(k, n, M)``."""
    k, n, M = B.shape
    for i in range(k - 1, -1, -1):
        for a in range(n):
            for m in range(M):
                B[i, a, m] *= L[i, i, m]
        for c in range(i):
            for a in range(n):
                for m in range(M):
                    B[c, a, m] -= L[i, c, m] * B[i, a, m]


@compiled
def add_times_each(out: Array, A: Array, x: Array, factor: float) -> None:
    """out := out + factor A_m x_m of every scenario: ``(r, M)``, ``(r, k, M | 1)``, ``(k, M)``."""
    for i in range(A.shape[0]):
        for c in range(A.shape[1]):
            if A.shape[2] == 1:
                entry = factor * A[i, c, 0]
                if entry != 0.0:
                    for m in range(x.shape[1]):
                        out[i, m] += entry * x[c, m]
            else:
                for m in range(x.shape[1]):
                    out[i, m] += factor * A[i, c, m] * x[c, m]


@compiled
def add_transposed_times_each(out: Array, A: Array, x: Array, factor: float) -> None:
    """out := out + factor A_m' x_m of every scenario: ``(k, M)``, ``(r, k, M | 1)``, ``(r, M)``."""
    for i in range(A.shape[0]):
        for c in range(A.shape[1]):
            if A.shape[2] == 1:
                entry = factor * A[i, c, 0]
                if entry != 0.0:
                    for m in range(x.shape[1]):
                        out[c, m] += entry * x[i, m]
            else:
                for m in range(x.shape[1]):
                    out[c, m] += factor * A[i, c, m] * x[i, m]


@compiled
def add_first_stage_times(out: Array, A: Array, z: Array, factor: float) -> None:
    """out := out + factor A_m z of every scenario: ``(r, M)``, ``(r, n, M | 1)``, ``(n,)``."""
    n, M = A.shape[1], out.shape[1]
    whole = n - n % 4
    for i in range(A.shape[0]):
        if A.shape[2] == 1:
            total = 0.0
            for c in range(n):
                total += A[i, c, 0] * z[c]
            for m in range(M):
                out[i, m] += factor * total
        else:
            # Four columns at a time: the sum is read and written once for four of them.
            for c in range(0, whole, 4):
                f0, f1, f2, f3 = (
                    factor * z[c],
                    factor * z[c + 1],
                    factor * z[c + 2],
                    factor * z[c + 3],
                )
                for m in range(M):
                    out[i, m] += (f0 * A[i, c, m] + f1 * A[i, c + 1, m]) + (
                        f2 * A[i, c + 2, m] + f3 * A[i, c + 3, m]
                    )
            for c in range(whole, n):
                f0 = factor * z[c]
                for m in range(M):
                    out[i, m] += f0 * A[i, c, m]


@compiled
def add_first_stage_columns(out: Array, A: Array, rows: Array, factor: float) -> None:
    """out := out + factor Σ_m A_m' rows_m: ``(n,)``, ``(r, n, M | 1)``, ``(r, M)``."""
    n, M = A.shape[1], rows.shape[1]
    whole = n - n % 4
    for i in range(A.shape[0]):
        if A.shape[2] == 1:
            total = 0.0
            for m in range(M):
                total += rows[i, m]
            for c in range(A.shape[1]):
                out[c] += factor * A[i, c, 0] * total
        else:
            # Four columns at a time: the rows are read once for four of them.
            for c in range(0, whole, 4):
                t0, t1, t2, t3 = 0.0, 0.0, 0.0, 0.0
                for m in range(M):
                    row = rows[i, m]
                    t0 += A[i, c, m] * row
                    t1 += A[i, c + 1, m] * row
                    t2 += A[i, c + 2, m] * row
                    t3 += A[i, c + 3, m] * row
                out[c] += factor * t0
                out[c + 1] += factor * t1
                out[c + 2] += factor * t2
                out[c + 3] += factor * t3
            for c in range(whole, n):
                total = 0.0
                for m in range(M):
                    total += A[i, c, m] * rows[i, m]
                out[c] += factor * total


@compiled
def add_gram_each(S: Array, A: Array, weight: Array) -> None:
    """Lower triangle of S := S + Σ_m A_m' diag(weight_m) A_m, with A ``(r, n, M | 1)``."""
    n, M = A.shape[1], weight.shape[1]
    for i in range(A.shape[0]):
        if A.shape[2] == 1:
            total = 0.0
            for m in range(M):
                total += weight[i, m]
            for a in range(n):
                scaled = total * A[i, a, 0]
                if scaled != 0.0:
                    for c in range(a + 1):
                        S[a, c] += scaled * A[i, c, 0]
        else:
            add_lower_products(S, A[i], A[i], weight[i])


@compiled
def add_lower_products(S: Array, X: Array, Y: Array, weight: Array | None = None) -> None:
    """Lower triangle of S := S + X diag(weight) Y', with X and Y ``(n, M)``.

    The upper triangle is not kept. Without weights their multiplications are not compiled. With
    them they are made anew in every block: a scaled copy of X would not stay in the cache next to
    Y where there are thousands of scenarios, and reading it takes longer.
    """
    n, M = Y.shape
    whole = n - n % 3
    # Blocks of three rows and three columns: six numbers are read for nine products.
    for a in range(0, whole, 3):
        for c in range(0, a + 3, 3):
            t00, t01, t02, t10, t11, t12, t20, t21, t22 = (0.0,) * 9
            for m in range(M):
                x0, x1, x2 = X[a, m], X[a + 1, m], X[a + 2, m]
                if weight is not None:
                    x0, x1, x2 = weight[m] * x0, weight[m] * x1, weight[m] * x2
                y0, y1, y2 = Y[c, m], Y[c + 1, m], Y[c + 2, m]
                t00 += x0 * y0
                t01 += x0 * y1
                t02 += x0 * y2
                t10 += x1 * y0
                t11 += x1 * y1
                t12 += x1 * y2
                t20 += x2 * y0
                t21 += x2 * y1
                t22 += x2 * y2
            S[a, c] += t00
            S[a, c + 1] += t01
            S[a, c + 2] += t02
            S[a + 1, c] += t10
            S[a + 1, c + 1] += t11
            S[a + 1, c + 2] += t12
            S[a + 2, c] += t20
            S[a + 2, c + 1] += t21
            S[a + 2, c + 2] += t22
    for a in range(whole, n):
        for c in range(a + 1):
            total = 0.0
            for m in range(M):
                x0 = X[a, m]
                if weight is not None:
                    x0 = weight[m] * x0
                total += x0 * Y[c, m]
            S[a, c] += total
