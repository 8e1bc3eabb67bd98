// Sparse factor of a tile's quasi-definite matrices, K = L diag(±1) L', and solutions with it.
//
// Every entry of L is a short vector over the tile. Columns are grouped in supernodes, whose panels
// are dense: (rows, width), row by row, reciprocals on the diagonal. A panel takes from all earlier
// ones what they subtract (dot products of their rows), and then factors itself. The rows of z, which
// are not eliminated here, come along: they are what the Schur complement of z is made of.
#pragma once

#include "algebra.hpp"

namespace forewise::FOREWISE_ISA {

#if defined(__AVX512F__)
constexpr int BLOCK_ROWS = 4, BLOCK_COLUMNS = 4;
#else
constexpr int BLOCK_ROWS = 2, BLOCK_COLUMNS = 2;
#endif

// Dot products of I rows of a with J rows of b.
template <int W, int I, int J>
struct Products {
    Lanes<W> of[I][J];

    LANES_INLINE Products(const double* a, const double* b, Size row, int size) {
        for (int i = 0; i < I; ++i) {
            for (int j = 0; j < J; ++j) of[i][j] = Lanes<W>(0.0);
        }
        if constexpr (W == 1) {
            // One scenario has no lanes to fill: neighbouring columns do.
            Lanes<8> totals[I][J];
            for (int i = 0; i < I; ++i) {
                for (int j = 0; j < J; ++j) totals[i][j] = Lanes<8>(0.0);
            }
            const int whole = size / 8 * 8;
            for (int c = 0; c < whole; c += 8) {
                Lanes<8> y[J];
                for (int j = 0; j < J; ++j) y[j] = Lanes<8>::load(b + j * row + c);
                for (int i = 0; i < I; ++i) {
                    const auto x = Lanes<8>::load(a + i * row + c);
                    for (int j = 0; j < J; ++j) totals[i][j] += x * y[j];
                }
            }
            for (int i = 0; i < I; ++i) {
                for (int j = 0; j < J; ++j) {
                    double total = whole ? sum(totals[i][j]) : 0.0;
                    for (int c = whole; c < size; ++c) total += a[i * row + c] * b[j * row + c];
                    of[i][j] = total;
                }
            }
            return;
        }
        for (Size c = 0; c < Size(size) * W; c += W) {
            Lanes<W> y[J];
            for (int j = 0; j < J; ++j) y[j] = Lanes<W>::load(b + j * row + c);
            for (int i = 0; i < I; ++i) {
                const auto x = Lanes<W>::load(a + i * row + c);
                for (int j = 0; j < J; ++j) of[i][j] += x * y[j];
            }
        }
    }
};

// Calls f<I, J>(i, j) for blocks of the pairs (i, j) of `rows` × `columns`; with `lower`, only for
// blocks that reach the lower triangle.
template <class Do>
LANES_INLINE void each_block(int rows, int columns, bool lower, Do f) {
    constexpr int I = BLOCK_ROWS, J = BLOCK_COLUMNS;
    int j = 0;
    for (; j + J <= columns; j += J) {
        int i = lower ? j : 0;
        for (; i + I <= rows; i += I) f.template operator()<I, J>(i, j);
        for (; i < rows; ++i) f.template operator()<1, J>(i, j);
    }
    for (; j < columns; ++j) {
        int i = lower ? j : 0;
        for (; i + I <= rows; i += I) f.template operator()<I, 1>(i, j);
        for (; i < rows; ++i) f.template operator()<1, 1>(i, j);
    }
}

// Subtract from a panel what an earlier one takes from it.
template <int W>
inline void update_panel(
    const Elimination& e, const Supernode& target, const Update& update, double* L, double* reached,
    double* scales
) {
    const Supernode& source = e.supernodes[update.source];
    const int width = source.width, rows = source.below - update.from;
    const Size row = Size(width) * W, target_row = Size(target.width) * W;
    const double* from = L + Size(source.panel + (width + update.from) * width) * W;
    const int* places = e.places.data() + update.places;
    double* to = L + Size(target.panel) * W;
    const double sign = source.sign == target.sign ? -1.0 : 1.0;
    double* target_scales = scales + Size(target.first) * W;
    each_block(rows, update.columns, true, [&]<int I, int J>(int i, int j) {
        const Products<W, I, J> products(from + i * row, from + j * row, row, width);
        for (int a = 0; a < I; ++a) {
            for (int b = 0; b < J; ++b) {
                if (i + a < j + b) continue;
                double* place = to + places[i + a] * target_row + Size(places[j + b]) * W;
                (Lanes<W>::load(place) + products.of[a][b] * sign).store(place);
                if (i + a == j + b && sign > 0.0) {
                    double* scale = target_scales + Size(places[j + b]) * W;
                    (Lanes<W>::load(scale) + products.of[a][b]).store(scale);
                }
            }
        }
    });
    if (!source.firsts) return;
    const double* from_z = reached + Size(source.reached) * W;
    double* to_z = reached + Size(target.reached) * W;
    const int* z_places = places + rows;
    each_block(source.firsts, update.columns, false, [&]<int I, int J>(int i, int j) {
        const Products<W, I, J> products(from_z + i * row, from + j * row, row, width);
        for (int a = 0; a < I; ++a) {
            for (int b = 0; b < J; ++b) {
                double* place = to_z + z_places[i + a] * target_row + Size(places[j + b]) * W;
                (Lanes<W>::load(place) + products.of[a][b] * sign).store(place);
            }
        }
    });
}

// a·b of rows of panels, `size` entries long.
template <int W>
LANES_INLINE Lanes<W> product_of(const double* a, const double* b, int size) {
    if constexpr (W == 1) {
        return size < 8 ? short_inner(a, b, size) : inner(a, b, size);
    } else {
        Lanes<W> total(0.0);
        for (Size c = 0; c < Size(size) * W; c += W) total += Lanes<W>::load(a + c) * Lanes<W>::load(b + c);
        return total;
    }
}

template <int W>
LANES_INLINE Lanes<W> inverse_roots(Lanes<W> pivot, Lanes<W> scale) {
    double pivots[W], scales[W];
    pivot.store(pivots), scale.store(scales);
    for (int l = 0; l < W; ++l) pivots[l] = inverse_root(pivots[l], scales[l]);
    return Lanes<W>::load(pivots);
}

// Rows of a panel := themselves times L'⁻¹ of its triangle.
template <int W, int I>
LANES_INLINE void finish_rows(double* rows, const double* triangle, int width) {
    const Size row = Size(width) * W;
    for (int c = 0; c < width; ++c) {
        const double* pivot = triangle + c * row;
        Lanes<W> totals[I];
        for (int i = 0; i < I; ++i) totals[i] = Lanes<W>::load(rows + i * row + Size(c) * W);
        if constexpr (W == 1) {
            const Products<1, I, 1> products(rows, pivot, row, c);
            for (int i = 0; i < I; ++i) {
                rows[i * row + c] = (rows[i * row + c] - sum(products.of[i][0])) * pivot[c];
            }
            continue;
        }
        for (int d = 0; d < c; ++d) {
            const auto y = Lanes<W>::load(pivot + Size(d) * W);
            for (int i = 0; i < I; ++i) totals[i] -= Lanes<W>::load(rows + i * row + Size(d) * W) * y;
        }
        const auto inverse = Lanes<W>::load(pivot + Size(c) * W);
        for (int i = 0; i < I; ++i) (totals[i] * inverse).store(rows + i * row + Size(c) * W);
    }
}

template <int W>
inline void finish_all_rows(double* rows, const double* triangle, int width, int count) {
    int i = 0;
    for (; i + 4 <= count; i += 4) finish_rows<W, 4>(rows + Size(i) * width * W, triangle, width);
    for (; i < count; ++i) finish_rows<W, 1>(rows + Size(i) * width * W, triangle, width);
}

// Factor the panels of a tile, which hold the lower triangle of sign K; `scales` its diagonal.
template <int W>
inline void factor_tile(const Elimination& e, double* L, double* reached, double* scales) {
    for (const Supernode& node : e.supernodes) {
        for (int i = node.updates; i < node.last_update; ++i) {
            update_panel<W>(e, node, e.updates[i], L, reached, scales);
        }
        double* panel = L + Size(node.panel) * W;
        const Size row = Size(node.width) * W;
        for (int c = 0; c < node.width; ++c) {
            double* pivot = panel + c * row;
            // The row of a pivot, up to it, and then the pivot.
            for (int d = 0; d < c; ++d) {
                const double* other = panel + d * row;
                const Lanes<W> total = Lanes<W>::load(pivot + Size(d) * W) - product_of<W>(pivot, other, d);
                (total * Lanes<W>::load(other + Size(d) * W)).store(pivot + Size(d) * W);
            }
            const Lanes<W> total = Lanes<W>::load(pivot + Size(c) * W) - product_of<W>(pivot, pivot, c);
            const auto scale = Lanes<W>::load(scales + Size(node.first + c) * W);
            inverse_roots<W>(total, scale).store(pivot + Size(c) * W);
        }
        finish_all_rows<W>(panel + Size(node.width) * row, panel, node.width, node.below);
        finish_all_rows<W>(reached + Size(node.reached) * W, panel, node.width, node.firsts);
    }
}

// x := K⁻¹ x, by position.
template <int W>
inline void solve_tile(const Elimination& e, const double* L, double* x) {
    using N = Lanes<W>;
    for (const Supernode& node : e.supernodes) {
        const double* panel = L + Size(node.panel) * W;
        double* own = x + Size(node.first) * W;
        const int width = node.width;
        const int* rows = e.rows.data() + node.rows;
        for (int c = 0; c < width; ++c) {
            const N total = N::load(own + Size(c) * W) - product_of<W>(panel, own, c);
            (total * N::load(panel + Size(c) * W)).store(own + Size(c) * W);
            panel += Size(width) * W;
        }
        for (int i = 0; i < node.below; ++i) {
            double* to = x + Size(rows[i]) * W;
            (N::load(to) - product_of<W>(panel, own, width)).store(to);
            panel += Size(width) * W;
        }
        if (node.sign < 0) {
            for (int c = 0; c < width; ++c) (0.0 - N::load(own + Size(c) * W)).store(own + Size(c) * W);
        }
    }
    for (int s = int(e.supernodes.size()) - 1; s >= 0; --s) {
        const Supernode& node = e.supernodes[s];
        const int width = node.width;
        const Size row = Size(width) * W;
        const double* panel = L + Size(node.panel) * W;
        const double* below = panel + width * row;
        double* own = x + Size(node.first) * W;
        const int* rows = e.rows.data() + node.rows;
        if constexpr (W == 1) {
            for (int i = 0; i < node.below; ++i) add(own, below + i * row, width, -x[rows[i]]);
            for (int c = width - 1; c >= 0; --c) {
                own[c] *= panel[c * row + c];
                add(own, panel + c * row, c, -own[c]);
            }
            continue;
        }
        for (int c = width - 1; c >= 0; --c) {
            N total = N::load(own + Size(c) * W), other(0.0);
            for (int d = c + 1; d < width; ++d) {
                total -= N::load(panel + d * row + Size(c) * W) * N::load(own + Size(d) * W);
            }
            int i = 0;
            for (; i + 2 <= node.below; i += 2) {
                total -= N::load(below + i * row + Size(c) * W) * N::load(x + Size(rows[i]) * W);
                other -= N::load(below + (i + 1) * row + Size(c) * W) * N::load(x + Size(rows[i + 1]) * W);
            }
            if (i < node.below) {
                total -= N::load(below + i * row + Size(c) * W) * N::load(x + Size(rows[i]) * W);
            }
            ((total + other) * N::load(panel + c * row + Size(c) * W)).store(own + Size(c) * W);
        }
    }
}

}  // namespace forewise::FOREWISE_ISA
