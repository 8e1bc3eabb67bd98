// Eliminating a tile's linking variables, equalities and kept rows; `elimination` has the legend.
//
// The Schur complement of z is T'κT − C'H⁻¹C and, for the rows that are kept, what they add. That is
// a difference of large numbers. With Y = H⁻¹C it is also
//
//     (T − W Y)'κ(T − W Y) + Y'(w D)Y + X'X,     X of the rows that come after the variables,
//
// a sum of squares that Y minimises: rounding errors of Y enter it only squared.
#pragma once

#include "products.hpp"
#include "simple_recourse.hpp"
#include "tile_factor.hpp"

namespace forewise::FOREWISE_ISA {

inline Size triangle(int a, int c) { return Size(a) * (a + 1) / 2 + c; }

// S := S + factor X'Y over `items`, lower triangle, for first-stage variables in a list: entry (item
// q, variable a) is at q item + a column.
template <int W>
inline void add_products(
    const Work& w, const int* reach, int count, const double* X, const double* Y, int items,
    Size item, Size column, double factor
) {
    each_block(count, count, true, [&]<int I, int J>(int i, int j) {
        Lanes<W> totals[I][J];
        for (int a = 0; a < I; ++a) {
            for (int b = 0; b < J; ++b) totals[a][b] = Lanes<W>(0.0);
        }
        const double *x = X + i * column, *y = Y + j * column;
        for (int q = 0; q < items; ++q, x += item, y += item) {
            Lanes<W> of_y[J];
            for (int b = 0; b < J; ++b) of_y[b] = Lanes<W>::load(y + b * column);
            for (int a = 0; a < I; ++a) {
                const auto of_x = Lanes<W>::load(x + a * column);
                for (int b = 0; b < J; ++b) totals[a][b] += of_x * of_y[b];
            }
        }
        for (int a = 0; a < I; ++a) {
            for (int b = 0; b < J; ++b) {
                if (i + a < j + b) continue;
                const int row = reach[i + a], col = reach[j + b];
                if (w.lanes_of_S) {
                    double* to = w.S_lanes + triangle(row, col) * W;
                    (Lanes<W>::load(to) + totals[a][b] * factor).store(to);
                } else {
                    w.S[Size(row) * w.n + col] += factor * sum(totals[a][b]);
                }
            }
        }
    });
}

// Put the lower triangle of sign K, and the rows of z without the copies, into the tile's panels.
template <int W>
inline void assemble(const Work& w, int tile, double* L) {
    using N = Lanes<W>;
    const Structure& s = w.structure();
    const Elimination& e = w.elimination();
    double* reached = w.reached;
    fill(L, Size(e.entries) * W, 0.0);
    fill(reached, Size(e.reached_entries) * W, 0.0);
    const N weight = N::load(w.weight + Size(tile) * W), mask = N::load(w.mask + Size(tile) * W);
    const double *T = w.T.of(tile), *F = w.F.of(tile), *V = w.V.of(tile), *entries = w.W.of(tile);
    const double *D = w.D.of(tile), *off = w.off.of(tile);
    double* kappa = w.kappa + Size(tile) * w.r * W;
    // The weight of every shared row that repeats another one, and is not kept, is added to that one's.
    for (const int a : s.shared) {
        if (s.leads[a] == a || e.position_of_kept[a] >= 0) continue;
        double* to = kappa + Size(s.leads[a]) * W;
        (N::load(to) + N::load(kappa + Size(a) * W)).store(to);
    }
    for (int i = 0; i < w.r; ++i) {
        const N of_row = N::load(kappa + Size(i) * W);
        for (int c = s.W.starts[i]; c < s.W.starts[i + 1]; ++c) {
            (of_row * N::load(entries + Size(c) * W)).store(w.scaled_W + Size(c) * W);
        }
    }
    for (int l = 0; l < w.links; ++l) {
        const N curvature = N::load(D + Size(s.linking[l]) * W) + (w.hold + PROXIMAL);
        const int place = e.diagonal[e.position_of_linking[l]];
        (weight * curvature).store(L + Size(place) * W);
    }
    for (const Pair& entry : e.curvature) {
        (weight * N::load(off + Size(entry.a) * W)).store(L + Size(entry.b) * W);
    }
    for (const Target& target : e.gram) {
        N total = N::load(L + Size(target.place) * W);
        for (int i = target.begin; i < target.end; ++i) {
            const Pair& pair = e.pairs[i];
            total += N::load(w.scaled_W + Size(pair.a) * W) * N::load(entries + Size(pair.b) * W);
        }
        total.store(L + Size(target.place) * W);
    }
    for (const Target& target : e.coupling) {
        N total(0.0);
        for (int i = target.begin; i < target.end; ++i) {
            const Pair& pair = e.pairs[i];
            total += N::load(w.scaled_W + Size(pair.a) * W) * N::load(T + Size(pair.b) * W);
        }
        (mask * total).store(reached + Size(target.place) * W);
    }
    auto put = [&](const std::vector<Pair>& list, const Indices& sign, const double* from, double* to,
                   N factor) {
        for (std::size_t i = 0; i < list.size(); ++i) {
            const N value = N::load(from + Size(list[i].a) * W) * factor;
            (value * double(sign[i])).store(to + Size(list[i].b) * W);
        }
    };
    put(e.equal_V, e.equal_V_sign, V, L, N(1.0));
    put(e.kept_W, e.kept_W_sign, entries, L, N(1.0));
    put(e.equal_F, e.equal_F_sign, F, reached, mask);
    put(e.kept_T, e.kept_T_sign, T, reached, mask);
    for (const int i : s.shared) {
        const int j = e.position_of_kept[i];
        if (j >= 0) (1.0 / N::load(kappa + Size(i) * W)).store(L + Size(e.diagonal[j]) * W);
    }
    for (int j = 0; j < e.nodes; ++j) {
        N::load(L + Size(e.diagonal[j]) * W).store(w.scales + Size(j) * W);
    }
}

// Y := L'⁻¹ X of the trees, row by row in their order of z.
template <int W>
inline void solve_trees(const Work& w, const double* L) {
    using N = Lanes<W>;
    const Elimination& e = w.elimination();
    for (int s = int(e.supernodes.size()) - 1; s >= 0; --s) {
        const Supernode& node = e.supernodes[s];
        if (node.tree < 0 || !e.trees[node.tree].firsts) continue;
        const Tree& tree = e.trees[node.tree];
        const int width = node.width, count = tree.firsts;
        const Size row = Size(width) * W;
        const double *panel = L + Size(node.panel) * W, *below = panel + width * row;
        const int *rows = e.rows.data() + node.rows, *reach = e.reach.data() + node.reach;
        const int* all = e.reach.data() + tree.reach;
        for (int c = width - 1; c >= 0; --c) {
            double* Y = w.solution + Size(e.solution[node.first + c]) * W;
            // X, spread over all that the tree reaches.
            for (int a = 0, i = 0; a < count; ++a) {
                N value(0.0);
                if (i < node.firsts && reach[i] == all[a]) {
                    value = N::load(w.reached + Size(node.reached + i * width + c) * W);
                    ++i;
                }
                value.store(Y + Size(a) * W);
            }
            auto subtract = [&](const double* factor, const double* from) {
                const N x = N::load(factor);
                for (Size a = 0; a < Size(count) * W; a += W) {
                    (N::load(Y + a) - x * N::load(from + a)).store(Y + a);
                }
            };
            for (int d = c + 1; d < width; ++d) {
                subtract(panel + d * row + Size(c) * W,
                         w.solution + Size(e.solution[node.first + d]) * W);
            }
            for (int i = 0; i < node.linking; ++i) {
                subtract(below + i * row + Size(c) * W, w.solution + Size(e.solution[rows[i]]) * W);
            }
            const N inverse = N::load(panel + c * row + Size(c) * W);
            for (Size a = 0; a < Size(count) * W; a += W) (N::load(Y + a) * inverse).store(Y + a);
        }
    }
}

// S := S + (T − W Y)'κ(T − W Y) + Y'(w D)Y of the trees.
template <int W>
inline void add_squares(const Work& w, int tile) {
    using N = Lanes<W>;
    const Structure& s = w.structure();
    const Elimination& e = w.elimination();
    const double *T = w.T.of(tile), *entries = w.W.of(tile), *D = w.D.of(tile), *off = w.off.of(tile);
    const double* kappa = w.kappa + Size(tile) * w.r * W;
    const N weight = N::load(w.weight + Size(tile) * W), mask = N::load(w.mask + Size(tile) * W);
    for (const Tree& tree : e.trees) {
        const int count = tree.firsts;
        if (!count) continue;
        const Size item = Size(count) * W;
        const int* reach = e.reach.data() + tree.reach;
        int items = 0;
        auto flush = [&] {
            add_products<W>(w, reach, count, w.scaled_items, w.items, items, item, W, 1.0);
            items = 0;
        };
        auto solution_of = [&](int l) {
            return w.solution + Size(e.solution[e.position_of_linking[l]]) * W;
        };
        for (int index = tree.rows; index < tree.last_row; ++index) {
            const int i = e.tree_rows[index];
            double *to = w.items + items * item, *scaled = w.scaled_items + items * item;
            fill(to, item, 0.0);
            if (i < w.t) {
                int a = 0;
                for (int c = s.T.starts[i]; c < s.T.starts[i + 1]; ++c) {
                    while (reach[a] != s.T.columns[c]) ++a;
                    N::load(T + Size(c) * W).store(to + Size(a) * W);
                }
            }
            for (int c = s.W.starts[i]; c < s.W.starts[i + 1]; ++c) {
                const N x = N::load(entries + Size(c) * W);
                const double* Y = solution_of(s.W.columns[c]);
                for (Size a = 0; a < item; a += W) (N::load(to + a) - x * N::load(Y + a)).store(to + a);
            }
            const N of_row = mask * N::load(kappa + Size(i) * W);
            for (Size a = 0; a < item; a += W) (of_row * N::load(to + a)).store(scaled + a);
            if (++items == BATCH) flush();
        }
        if (w.curved > 0.0 || w.hold > 0.0) {
            for (int index = tree.variables; index < tree.last_variable; ++index) {
                const int l = e.tree_variables[index];
                const N own = N::load(D + Size(s.linking[l]) * W) + w.hold;
                const bool bent = s.off.starts[l + 1] > s.off.starts[l] || top(absolute(own)) > 0.0;
                if (!bent) continue;
                double *to = w.items + items * item, *scaled = w.scaled_items + items * item;
                const double* Y = solution_of(l);
                for (Size a = 0; a < item; a += W) {
                    const N y = N::load(Y + a);
                    y.store(to + a);
                    (weight * own * y).store(scaled + a);
                }
                for (int c = s.off.starts[l]; c < s.off.starts[l + 1]; ++c) {
                    const N x = weight * N::load(off + Size(c) * W);
                    const double* other = solution_of(s.off.columns[c]);
                    for (Size a = 0; a < item; a += W) {
                        (N::load(scaled + a) + x * N::load(other + a)).store(scaled + a);
                    }
                }
                if (++items == BATCH) flush();
            }
        }
        if (items) flush();
    }
}

// Eliminate a tile: its factor is kept, its Schur complement added to S.
template <int W>
inline void eliminate_linking(const Work& w, int tile) {
    const Elimination& e = w.elimination();
    double* L = w.factor + Size(tile) * e.entries * W;
    assemble<W>(w, tile, L);
    factor_tile<W>(e, L, w.reached, w.scales);
    for (const Supernode& node : e.supernodes) {
        if (!node.firsts || (e.squares && node.sign > 0)) continue;
        const double* X = w.reached + Size(node.reached) * W;
        add_products<W>(
            w, e.reach.data() + node.reach, node.firsts, X, X, node.width, W, Size(node.width) * W,
            -double(node.sign)
        );
    }
    if (e.squares) {
        solve_trees<W>(w, L);
        add_squares<W>(w, tile);
    }
}

// Half-solve a tile for z = 0, and make of `shared`, and of `pulled` for the equalities, what its
// rows ask of z.
template <int W>
inline void reduce_linking(
    const Work& w, int tile, const Point& right, double share, const Point& out
) {
    using N = Lanes<W>;
    const Structure& s = w.structure();
    const Elimination& e = w.elimination();
    const double *u = out.u + Size(tile) * w.k * W, *entries = w.W.of(tile);
    const double *nus = right.nus + Size(tile) * w.s * W, *kappa = w.kappa + Size(tile) * w.r * W;
    double *shared = w.shared + Size(tile) * w.r * W, *given = w.given + Size(tile) * e.nodes * W;
    double* x = w.solved;
    for (int l = 0; l < w.links; ++l) {
        N::load(u + Size(s.linking[l]) * W).store(given + Size(e.position_of_linking[l]) * W);
    }
    for (int i = 0; i < w.s; ++i) {
        (share * N::load(nus + Size(i) * W)).store(given + Size(e.position_of_equality[i]) * W);
    }
    for (const int i : s.shared) {
        const int kept = e.position_of_kept[i];
        const N row = N::load(shared + Size(i) * W);
        if (kept >= 0) {
            (row / N::load(kappa + Size(i) * W)).store(given + Size(kept) * W);
            continue;
        }
        for (int c = s.W.starts[i]; c < s.W.starts[i + 1]; ++c) {
            double* to = given + Size(e.position_of_linking[s.W.columns[c]]) * W;
            (N::load(to) + N::load(entries + Size(c) * W) * row).store(to);
        }
    }
    for (Size i = 0; i < Size(e.nodes) * W; i += W) N::load(given + i).store(x + i);
    solve_tile<W>(e, w.factor + Size(tile) * e.entries * W, x);
    const Bridge T = bridge_T(w), F = bridge_F(w);
    const N mask = N::load(w.mask + Size(tile) * W);
    for (int i = 0; i < w.t; ++i) {
        N row = N::load(shared + Size(i) * W);
        const int kept = e.position_of_kept[i];
        if (kept >= 0) {
            row = 0.0 - N::load(x + Size(kept) * W);
        } else if (s.leads[i] == i && s.W.starts[i + 1] > s.W.starts[i]) {
            N y(0.0);
            for (int c = s.W.starts[i]; c < s.W.starts[i + 1]; ++c) {
                const int j = e.position_of_linking[s.W.columns[c]];
                y += N::load(entries + Size(c) * W) * N::load(x + Size(j) * W);
            }
            row -= N::load(kappa + Size(i) * W) * y;
        }
        add_column<W>(T, tile, i, mask * row);
    }
    for (int i = 0; i < w.s; ++i) {
        add_column<W>(F, tile, i, mask * (0.0 - N::load(x + Size(e.position_of_equality[i]) * W)));
    }
}

// The tile's linking variables and ν with the z that was found; puts its y into `shared`.
template <int W>
inline void restore_linking(const Work& w, int tile, const double* z, const Point& out) {
    using N = Lanes<W>;
    const Structure& s = w.structure();
    const Elimination& e = w.elimination();
    const double *entries = w.W.of(tile), *kappa = w.kappa + Size(tile) * w.r * W;
    double *shared = w.shared + Size(tile) * w.r * W, *x = w.given + Size(tile) * e.nodes * W;
    const Bridge T = bridge_T(w), F = bridge_F(w);
    for (const int i : s.shared) {
        if (i >= w.t) {
            N(0.0).store(shared + Size(i) * W);
            continue;
        }
        const N y = row_times<W>(T, tile, i, z);
        y.store(shared + Size(i) * W);
        if (e.position_of_kept[i] >= 0) {
            double* to = x + Size(e.position_of_kept[i]) * W;
            (N::load(to) - y).store(to);
            continue;
        }
        if (s.leads[i] != i) continue;
        const N row = N::load(kappa + Size(i) * W) * y;
        for (int c = s.W.starts[i]; c < s.W.starts[i + 1]; ++c) {
            double* to = x + Size(e.position_of_linking[s.W.columns[c]]) * W;
            (N::load(to) - N::load(entries + Size(c) * W) * row).store(to);
        }
    }
    for (int i = 0; i < w.s; ++i) {
        double* to = x + Size(e.position_of_equality[i]) * W;
        (N::load(to) - row_times<W>(F, tile, i, z)).store(to);
    }
    solve_tile<W>(e, w.factor + Size(tile) * e.entries * W, x);
    double *u = out.u + Size(tile) * w.k * W, *nus = out.nus + Size(tile) * w.s * W;
    for (int l = 0; l < w.links; ++l) {
        N::load(x + Size(e.position_of_linking[l]) * W).store(u + Size(s.linking[l]) * W);
    }
    for (int i = 0; i < w.s; ++i) {
        N::load(x + Size(e.position_of_equality[i]) * W).store(nus + Size(i) * W);
    }
    for (const int i : s.shared) {
        N y = N::load(shared + Size(i) * W);
        for (int c = s.W.starts[i]; c < s.W.starts[i + 1]; ++c) {
            y += N::load(entries + Size(c) * W) * N::load(u + Size(s.linking[s.W.columns[c]]) * W);
        }
        y.store(shared + Size(i) * W);
    }
}

// The multipliers of the kept rows as they were solved for: Θ (A x − b) would make what rounding left
// of u as large as Θ is.
template <int W>
inline void put_kept_of(const Work& w, int tile, const Point& out) {
    const Elimination& e = w.elimination();
    const double* x = w.given + Size(tile) * e.nodes * W;
    double* rows = out.rows + Size(tile) * w.r * W;
    for (const Pair& kept : e.kept) {
        Lanes<W>::load(x + Size(kept.b) * W).store(rows + Size(kept.a) * W);
    }
}

}  // namespace forewise::FOREWISE_ISA
