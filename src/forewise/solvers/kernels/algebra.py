"""Small dense linear algebra, in place.

Matrices of one context are ``(rows, columns)``; blocks of all its scenarios are
``(rows, columns, M)``, and `M` is then the inner loop. A block that the scenarios share is
``(rows, columns, 1)``. A Cholesky factor has the reciprocals of its diagonal there: divisions
are slow, and it is made once and used often. The *span* of a row is the range of columns
outside which it is zero, in all contexts: bounds on variables cost next to nothing.
"""

from __future__ import annotations

import numpy as np

from forewise.solvers.kernels.compiling import compiled, view
from forewise.solvers.kernels.views import look

Array = np.ndarray

# Added to pivots before a factorization. Relative: far above rounding, far below what would
# bend a Newton step. Absolute, in the scaled program's units: for directions without any cost.
RELATIVE_RIDGE = 1e-13
ABSOLUTE_RIDGE = 1e-13
#: What a sum of products is off by, relative to its terms.
ROUNDING = 1e-15
#: Keeps zero from being divided by zero.
TINY = 1e-300
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
    M = rows.shape[1]
    for i in range(A.shape[0]):
        if A.shape[2] == 1:
            total = 0.0
            for m in range(M):
                total += rows[i, m]
            for c in range(A.shape[1]):
                out[c] += factor * A[i, c, 0] * total
        else:
            for c in range(A.shape[1]):
                total = 0.0
                for m in range(M):
                    total += A[i, c, m] * rows[i, m]
                out[c] += factor * total


@compiled
def add_gram_each(S: Array, A: Array, weight: Array, scratch: Array) -> None:
    """Lower triangle of S := S + Σ_m A_m' diag(weight_m) A_m.

    A is ``(r, n, M | 1)`` and the scratch memory ``(n, M)``.
    """
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
            scale_columns(A[i], weight[i], scratch)
            add_lower_products(S, scratch, A[i])


@compiled
def scale_columns(A: Array, weight: Array, out: Array) -> None:
    """out := A diag(weight), both ``(n, M)``."""
    for a in range(A.shape[0]):
        for m in range(A.shape[1]):
            out[a, m] = weight[m] * A[a, m]


@compiled
def add_lower_products(S: Array, X: Array, Y: Array) -> None:
    """Lower triangle of S := S + X Y', with X and Y ``(n, M)``; the upper one is not kept."""
    n, M = Y.shape
    whole = n - n % 3
    # Blocks of three rows and three columns: six numbers are read for nine products.
    for a in range(0, whole, 3):
        for c in range(0, a + 3, 3):
            t00, t01, t02, t10, t11, t12, t20, t21, t22 = (0.0,) * 9
            for m in range(M):
                x0, x1, x2 = X[a, m], X[a + 1, m], X[a + 2, m]
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
                total += X[a, m] * Y[c, m]
            S[a, c] += total


@view
def flattened(values: Array) -> Array:
    """A contiguous array as a vector; `reshape` would take longer than the loops it is for."""
    return look(values, 0, (values.size,))


@compiled
def largest(values: Array) -> float:
    """Largest absolute value of an array of any shape; infinity if there is a NaN."""
    top = 0.0
    broken = False
    flat = flattened(values)
    for i in range(flat.shape[0]):
        size = abs(flat[i])
        top = max(top, size)
        broken |= size != size
    return np.inf if broken else top


@compiled
def fill(out: Array, value: float) -> None:
    """out := value, for an array of any shape."""
    flat = flattened(out)
    for i in range(flat.shape[0]):
        flat[i] = value


@compiled
def copy(out: Array, source: Array, factor: float) -> None:
    """out := factor source, for arrays of one shape."""
    a, b = flattened(out), flattened(source)
    for i in range(a.shape[0]):
        a[i] = factor * b[i]


@compiled
def add(out: Array, source: Array, factor: float) -> None:
    """out := out + factor source, for arrays of one shape."""
    a, b = flattened(out), flattened(source)
    for i in range(a.shape[0]):
        a[i] += factor * b[i]
