// Small dense linear algebra of one context, in place.
//
// Matrices are (rows, columns). A Cholesky factor has the reciprocals of its diagonal there:
// divisions are slow, and it is made once and used often.
#pragma once

#include "vectors.hpp"

namespace forewise::FOREWISE_ISA {

// Added to pivots before a factorisation. Relative: far above rounding, far below what would bend a
// Newton step. Absolute, in the scaled program's units: for directions without any cost.
constexpr double RELATIVE_RIDGE = 1e-13, ABSOLUTE_RIDGE = 1e-13;
// A curvature of variables, in units of their weight, for those that have no cost or that only
// equalities hold. Refinement takes back what it changes.
constexpr double PROXIMAL = 1e-9;
// A pivot that is lost to rounding becomes this multiple of its scale, which takes its direction out
// of the solution.
constexpr double LOST_PIVOT = 1e16;

// One over the root of a pivot with its ridge; `scale` bounds the rounding made in it.
inline double inverse_root(double pivot, double scale) {
    const double ridge = RELATIVE_RIDGE * scale;
    pivot += ridge + ABSOLUTE_RIDGE;
    return 1.0 / std::sqrt(pivot > 0.01 * ridge ? pivot : LOST_PIVOT * (scale + ABSOLUTE_RIDGE));
}

// out[i ni + j nj] −= a_i·b_j for I rows of a and J of b, each `size` long.
template <int I, int J>
inline void subtract_products(
    double* out, Size stride, const double* a, Size a_stride, const double* b, Size b_stride,
    Size size
) {
    Lanes<8> totals[I][J];
    for (int i = 0; i < I; ++i) {
        for (int j = 0; j < J; ++j) totals[i][j] = Lanes<8>(0.0);
    }
    Size c = 0;
    for (; c + 8 <= size; c += 8) {
        Lanes<8> y[J];
        for (int j = 0; j < J; ++j) y[j] = Lanes<8>::load(b + j * b_stride + c);
        for (int i = 0; i < I; ++i) {
            const auto x = Lanes<8>::load(a + i * a_stride + c);
            for (int j = 0; j < J; ++j) totals[i][j] += x * y[j];
        }
    }
    for (int i = 0; i < I; ++i) {
        for (int j = 0; j < J; ++j) {
            double total = sum(totals[i][j]);
            for (Size d = c; d < size; ++d) total += a[i * a_stride + d] * b[j * b_stride + d];
            out[i * stride + j] -= total;
        }
    }
}

// Replace a lower triangle by the Cholesky factor of a nearly positive definite matrix. Block column
// by block column: what the columns before take from one is dot products of rows.
inline void cholesky(double* S, int n, const double* scale) {
    constexpr int BLOCK = 32;
    const Size stride = n;
    for (int first = 0; first < n; first += BLOCK) {
        const int end = first + BLOCK < n ? first + BLOCK : n;
        if (first > 0) {
            int i = first;
            for (; i + 4 <= n; i += 4) {
                const int last = end < i + 4 ? end : i + 4;
                int j = first;
                for (; j + 4 <= last; j += 4) {
                    subtract_products<4, 4>(
                        S + i * stride + j, stride, S + i * stride, stride, S + j * stride, stride, first
                    );
                }
                for (; j < last; ++j) {
                    subtract_products<4, 1>(
                        S + i * stride + j, stride, S + i * stride, stride, S + j * stride, stride, first
                    );
                }
            }
            for (; i < n; ++i) {
                for (int j = first; j < end && j <= i; ++j) {
                    subtract_products<1, 1>(
                        S + i * stride + j, stride, S + i * stride, stride, S + j * stride, stride, first
                    );
                }
            }
        }
        for (int j = first; j < end; ++j) {
            double* row = S + j * stride;
            double pivot = row[j];
            pivot -= inner(row + first, row + first, j - first);
            const double inverse = inverse_root(pivot, scale[j]);
            row[j] = inverse;
            for (int i = j + 1; i < n; ++i) {
                double* other = S + i * stride;
                other[j] = (other[j] - inner(other + first, row + first, j - first)) * inverse;
            }
        }
    }
}

// b := L⁻¹ b.
inline void solve_lower(const double* L, int n, double* b) {
    for (int i = 0; i < n; ++i) {
        b[i] = (b[i] - inner(L + Size(i) * n, b, i)) * L[Size(i) * n + i];
    }
}

// b := L'⁻¹ b.
inline void solve_upper(const double* L, int n, double* b) {
    for (int i = n - 1; i >= 0; --i) {
        b[i] *= L[Size(i) * n + i];
        add(b, L + Size(i) * n, i, -b[i]);
    }
}

// out := out + factor A x, with the entries of A in a pattern.
inline void add_times(
    double* out, const Pattern& A, const double* entries, const double* x, double factor
) {
    for (int i = 0; i < A.rows; ++i) {
        double total = 0.0;
        for (int c = A.starts[i]; c < A.starts[i + 1]; ++c) total += entries[c] * x[A.columns[c]];
        out[i] += factor * total;
    }
}

// out := out + factor A'x.
inline void add_transposed_times(
    double* out, const Pattern& A, const double* entries, const double* x, double factor
) {
    for (int i = 0; i < A.rows; ++i) {
        const double scaled = factor * x[i];
        for (int c = A.starts[i]; c < A.starts[i + 1]; ++c) out[A.columns[c]] += scaled * entries[c];
    }
}

// Lower triangle of S := S + A' diag(weight) A.
inline void add_gram(
    double* S, int n, const Pattern& A, const double* entries, const double* weight
) {
    for (int i = 0; i < A.rows; ++i) {
        for (int a = A.starts[i]; a < A.starts[i + 1]; ++a) {
            const double scaled = weight[i] * entries[a];
            double* row = S + Size(A.columns[a]) * n;
            for (int c = A.starts[i]; c <= a; ++c) row[A.columns[c]] += scaled * entries[c];
        }
    }
}

}  // namespace forewise::FOREWISE_ISA
