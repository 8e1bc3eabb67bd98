// The arrow-shaped Newton system of one context: factor, solutions, refinement.
//
// For a positive vector Θ with one entry per inequality row, the system is
//
//     [ H   A'    E' ] [x]   [x-part    ]      x = (z, u_1 … u_M)
//     [ A  −Θ⁻¹   0  ] [λ] = [rows      ]      A, E: all inequalities, all equalities
//     [ E   0     0  ] [ν]   [equalities]      H: the cost's second derivatives
//
// The predictor step, the corrector step and the backward pass are all solutions of it. The scenarios
// touch each other through z alone, so that each scenario's (u_j, ν_j) is eliminated by itself: first
// the variables that take one division each (`simple_recourse`), then those that hold the scenario
// together (`linking_recourse`). One n × n system is left.
//
// Near the end of the path Θ spans twenty orders of magnitude; refinement takes back what rounding
// leaves there.
#pragma once

#include "linking_recourse.hpp"

namespace forewise::FOREWISE_ISA {

// A floor of Θ⁻¹, in units of its row, keeps the elimination from dividing by nearly nothing.
// Refinement takes back what it changes.
constexpr double SIMPLE_FLOOR = 1e-12, LINKING_FLOOR = 1e-14;

// S := S + T'κT over the rows with nothing but simple variables.
template <int W>
inline void add_simple_rows(const Work& w) {
    using N = Lanes<W>;
    const Structure& s = w.structure();
    const Size rows = Size(w.r) * W;
    for (int i = 0; i < w.t; ++i) {
        if (s.leads[i] != i || s.W.starts[i + 1] > s.W.starts[i]) continue;
        const int first = s.T.starts[i], count = s.T.starts[i + 1] - first;
        const int* columns = s.T.columns + first;
        const double *T = w.T.data + Size(first) * W, *kappa = w.kappa + Size(i) * W;
        if (w.T.shared) {
            N totals(0.0);
            for (int tile = 0; tile < w.tiles; ++tile) {
                totals += N::load(kappa + tile * rows) * N::load(w.mask + Size(tile) * W);
            }
            const double total = sum(totals);
            for (int a = 0; a < count; ++a) {
                double* row = w.S + Size(columns[a]) * w.n;
                const double scaled = total * T[Size(a) * W];
                for (int c = 0; c <= a; ++c) row[columns[c]] += scaled * T[Size(c) * W];
            }
            continue;
        }
        // Blocks of rows and columns, over all tiles: few numbers are read for many products.
        each_block(count, count, true, [&]<int I, int J>(int a, int c) {
            N totals[I][J];
            for (int i = 0; i < I; ++i) {
                for (int j = 0; j < J; ++j) totals[i][j] = N(0.0);
            }
            const double *x = T + Size(a) * W, *y = T + Size(c) * W, *weight = kappa;
            for (int tile = 0; tile < w.tiles; ++tile) {
                const N of_row = N::load(weight) * N::load(w.mask + Size(tile) * W);
                N of_y[J];
                for (int j = 0; j < J; ++j) of_y[j] = of_row * N::load(y + Size(j) * W);
                for (int i = 0; i < I; ++i) {
                    const N of_x = N::load(x + Size(i) * W);
                    for (int j = 0; j < J; ++j) totals[i][j] += of_x * of_y[j];
                }
                x += w.T.stride, y += w.T.stride, weight += rows;
            }
            for (int i = 0; i < I; ++i) {
                for (int j = 0; j < J; ++j) {
                    if (a + i >= c + j) {
                        w.S[Size(columns[a + i]) * w.n + columns[c + j]] += sum(totals[i][j]);
                    }
                }
            }
        });
    }
}

// Factor the first stage: S, and the equalities' E S⁻¹ E'.
inline void factor_first_stage(const Work& w) {
    const int n = w.n, e = w.e;
    for (int a = 0; a < n; ++a) w.scale[a] = w.S[Size(a) * n + a];
    cholesky(w.S, n, w.scale);
    if (!e) return;
    const Pattern& E = w.structure().E;
    fill(w.bridge, Size(e) * n, 0.0);
    fill(w.N, Size(e) * e, 0.0);
    for (int i = 0; i < e; ++i) {
        double* row = w.bridge + Size(i) * n;
        for (int c = E.starts[i]; c < E.starts[i + 1]; ++c) row[E.columns[c]] = w.E[c];
        solve_lower(w.S, n, row);
        for (int j = 0; j <= i; ++j) w.N[Size(i) * e + j] = inner(row, w.bridge + Size(j) * n, n);
        w.scale[i] = w.N[Size(i) * e + i];
    }
    cholesky(w.N, e, w.scale);
}

// Factor the system for the workspace's Θ⁻¹ and its floor.
template <int W>
inline void factor(const Work& w) {
    const Structure& s = w.structure();
    const int n = w.n;
    const double floor = w.floor;
    each(w.of_rows, [&]<int N>(Size a) {
        const auto inverse = Lanes<N>::load(w.inverse_theta + a);
        (1.0 / (inverse + floor * Lanes<N>::load(w.unit + a))).store(w.theta + a);
    });
    fill(w.S, Size(n) * n, 0.0);
    for (int a = 0; a < n; ++a) {
        for (int c = s.P.starts[a]; c < s.P.starts[a + 1] && s.P.columns[c] <= a; ++c) {
            w.S[Size(a) * n + s.P.columns[c]] = w.P[c];
        }
        w.S[Size(a) * n + a] += PROXIMAL;
    }
    add_gram(w.S, n, s.G, w.G, w.theta + w.scenario_rows);
    const Size lanes = w.lanes_of_S ? W * Size(n) * (n + 1) / 2 : 0;
    fill(w.S_lanes, lanes, 0.0);
    for (int tile = 0; tile < w.tiles; ++tile) {
        eliminate_simple<W>(w, tile);
        if (w.linking) eliminate_linking<W>(w, tile);
    }
    add_simple_rows<W>(w);
    if (lanes) {
        for (int a = 0; a < n; ++a) {
            for (int c = 0; c <= a; ++c) {
                w.S[Size(a) * n + c] += sum(Lanes<W>::load(w.S_lanes + triangle(a, c) * W));
            }
        }
    }
    factor_first_stage(w);
}

// z and ν of the reduced system, whose right side is in the place of z.
inline void solve_first_stage(const Work& w, const Point& right, const Point& out) {
    const int n = w.n, e = w.e;
    solve_lower(w.S, n, out.z);
    if (e) {
        for (int i = 0; i < e; ++i) {
            out.nu[i] = inner(w.bridge + Size(i) * n, out.z, n) - right.nu[i];
        }
        solve_lower(w.N, e, out.nu);
        solve_upper(w.N, e, out.nu);
        for (int i = 0; i < e; ++i) add(out.z, w.bridge + Size(i) * n, n, -out.nu[i]);
    }
    solve_upper(w.S, n, out.z);
}

// Solve the factored system for one right-hand side; A x comes along. `right` gives the x-part and
// the equalities, `right_rows` the inequality rows.
template <int W>
inline void solve(
    const Work& w, const Point& right, const double* right_rows, const Point& out, double* out_Ax
) {
    using N = Lanes<W>;
    const Structure& s = w.structure();
    const Size first = w.scenario_rows;
    for (int a = 0; a < w.g; ++a) out.rows[first + a] = w.theta[first + a] * right_rows[first + a];
    copy(out.z, right.z, w.n, 1.0);
    copy(out.u, right.u, w.of_u, 1.0);
    add_transposed_times(out.z, s.G, w.G, out.rows + first, 1.0);
    const Bridge T = bridge_T(w), F = bridge_F(w);
    begin_columns<W>(w, T), begin_columns<W>(w, F);
    for (int tile = 0; tile < w.tiles; ++tile) {
        reduce_simple<W>(w, tile, right_rows, out);
        if (w.linking) {
            reduce_linking<W>(w, tile, right, out);
        } else {
            const N mask = N::load(w.mask + Size(tile) * W);
            const double* shared = w.shared + Size(tile) * w.r * W;
            for (int i = 0; i < w.t; ++i) {
                add_column<W>(T, tile, i, mask * N::load(shared + Size(i) * W));
            }
        }
    }
    end_columns<W>(w, T, out.z), end_columns<W>(w, F, out.z);

    solve_first_stage(w, right, out);

    begin_times(T, out.z, W), begin_times(F, out.z, W);
    for (int tile = 0; tile < w.tiles; ++tile) {
        if (w.linking) {
            restore_linking<W>(w, tile, out.z, out);
        } else {
            double* shared = w.shared + Size(tile) * w.r * W;
            for (int i = 0; i < w.t; ++i) {
                row_times<W>(T, tile, i, out.z).store(shared + Size(i) * W);
            }
        }
        restore_simple<W>(w, tile, out, out_Ax);
    }
    fill(out_Ax + first, w.g, 0.0);
    add_times(out_Ax + first, s.G, w.G, out.z, 1.0);
    each(w.of_rows, [&]<int L>(Size a) {
        const auto asked = Lanes<L>::load(out.rows + a);
        (Lanes<L>::load(w.theta + a) * Lanes<L>::load(out_Ax + a) - asked).store(out.rows + a);
    });
    if (w.linking) put_kept<W>(w, out);
}

inline double largest_variable(const Work& w, const Point& x) {
    return larger(largest(x.z, w.n), largest(x.u, w.of_u));
}

// Correct what rounding left of a solution, against the system before elimination. Returns the size
// of the correction, relative to the variables.
template <int W>
inline double refine(
    const Work& w, const Point& right, const double* right_rows, const Point& out, double* out_Ax
) {
    const Point &error = w.error, &correction = w.correction;
    put_curvature<W>(w, out, error);
    add_columns<W>(w, out.rows, out, error);
    put_equality_rows<W>(w, out, error);
    auto subtract_from = [](double* residual, const double* given, Size size) {
        for (Size a = 0; a < size; ++a) residual[a] = given[a] - residual[a];
    };
    subtract_from(error.z, right.z, w.n), subtract_from(error.u, right.u, w.of_u);
    subtract_from(error.nu, right.nu, w.e), subtract_from(error.nus, right.nus, w.of_nus);
    const double reach = largest_variable(w, out);
    each(w.of_rows, [&]<int N>(Size a) {
        using L = Lanes<N>;
        const L residual = L::load(right_rows + a) - L::load(out_Ax + a) +
                           L::load(w.inverse_theta + a) * L::load(out.rows + a);
        // What is only rounding must not be chased: Θ would make it large.
        const L rounding = (ROUNDING * reach) * L::load(w.norms + a);
        where_at_most(absolute(residual), rounding, L(0.0), residual).store(error.rows + a);
    });
    solve<W>(w, error, error.rows, correction, w.correction_Ax);
    add(out.z, correction.z, w.n, 1.0), add(out.u, correction.u, w.of_u, 1.0);
    add(out.rows, correction.rows, w.of_rows, 1.0);
    add(out.nu, correction.nu, w.e, 1.0), add(out.nus, correction.nus, w.of_nus, 1.0);
    add(out_Ax, w.correction_Ax, w.of_rows, 1.0);
    return largest_variable(w, correction) / larger(reach, TINY);
}

}  // namespace forewise::FOREWISE_ISA
