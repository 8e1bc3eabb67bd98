// The arrow-shaped Newton system of one context: factor, solutions, refinement.
//
// For a positive vector Θ with one entry per inequality row, the system is
//
//     [ H   A'    E' ] [x]   [x-part    ]      x = (z, u_1 … u_M)
//     [ A  −Θ⁻¹   0  ] [λ] = [rows      ]      A, E: all inequalities, all equalities
//     [ E   0     0  ] [ν]   [equalities]      H: the cost's second derivatives
//
// The predictor step, the corrector step and the backward pass are all solutions of it. What belongs to a
// tile is done while the tile is in the cache: callers hand in what comes before and after. The scenarios
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
// A row is nearly active when its Θ⁻¹ is below this, in units of the row.
constexpr double NEARLY_ACTIVE = 1e-8;

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

// Factor the system for the workspace's Θ⁻¹ and its floor; `then` is called with each tile that is
// eliminated, while its factor is in the cache.
template <int W, class Then>
inline void factor(Work& w, Then then) {
    const Structure& s = w.structure();
    const int n = w.n;
    Least apart(1.0);
    auto put_theta = [&](int tile) LANES_LAMBDA {
        each_row<W>(w, tile, [&]<int N>(Size a, Lanes<N>) LANES_LAMBDA {
            const auto inverse = Lanes<N>::load(w.inverse_theta + a), unit = Lanes<N>::load(w.unit + a);
            (1.0 / (inverse + w.floor * unit)).store(w.theta + a);
            apart.add(inverse - NEARLY_ACTIVE * unit);
        });
    };
    put_theta(FIRST_STAGE);
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
        put_theta(tile);
        eliminate_simple<W>(w, tile);
        if (w.linking) eliminate_linking<W>(w, tile);
        then(tile);
    }
    w.near = apart.value() < 0.0;
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

// A right-hand side: x-part and equalities, of which so much counts, and inequality rows.
struct Right {
    const Point& point;
    double share;
    const double* rows;
};

// z and ν of the reduced system, whose right side is in the place of z.
inline void solve_first_stage(const Work& w, const Right& right, const Point& out) {
    const int n = w.n, e = w.e;
    solve_lower(w.S, n, out.z);
    if (e) {
        for (int i = 0; i < e; ++i) {
            out.nu[i] = inner(w.bridge + Size(i) * n, out.z, n) - right.share * right.point.nu[i];
        }
        solve_lower(w.N, e, out.nu);
        solve_upper(w.N, e, out.nu);
        for (int i = 0; i < e; ++i) add(out.z, w.bridge + Size(i) * n, n, -out.nu[i]);
    }
    solve_upper(w.S, n, out.z);
}

// A solution of the factored system, in parts: `begin`, `reduce` every tile, `finish`.
template <int W>
inline void begin(const Work& w) {
    begin_columns<W>(w, bridge_T(w)), begin_columns<W>(w, bridge_F(w));
}

// What a tile asks of z.
template <int W>
inline void reduce(const Work& w, int tile, const Right& right, const Point& out) {
    using N = Lanes<W>;
    const Size first = Size(tile) * w.k * W;
    copy(out.u + first, right.point.u + first, Size(w.k) * W, right.share);
    reduce_simple<W>(w, tile, right.rows, out);
    if (w.linking) return reduce_linking<W>(w, tile, right.point, right.share, out);
    const Bridge T = bridge_T(w);
    const N mask = N::load(w.mask + Size(tile) * W);
    const double* shared = w.shared + Size(tile) * w.r * W;
    for (int i = 0; i < w.t; ++i) add_column<W>(T, tile, i, mask * N::load(shared + Size(i) * W));
}

// z, and what follows from it in every tile; `then` is called with each tile when it is done.
template <int W, class Then>
inline void finish(const Work& w, const Right& right, const Point& out, double* out_Ax, Then then) {
    const Structure& s = w.structure();
    const Size first = w.scenario_rows;
    const Bridge T = bridge_T(w), F = bridge_F(w);
    for (int a = 0; a < w.g; ++a) out.rows[first + a] = w.theta[first + a] * right.rows[first + a];
    copy(out.z, right.point.z, w.n, right.share);
    add_transposed_times(out.z, s.G, w.G, out.rows + first, 1.0);
    end_columns<W>(w, T, out.z), end_columns<W>(w, F, out.z);
    solve_first_stage(w, right, out);
    begin_times(T, out.z, W), begin_times(F, out.z, W);
    auto put_rows = [&](int tile) LANES_LAMBDA {
        each_row<W>(w, tile, [&]<int L>(Size a, Lanes<L>) LANES_LAMBDA {
            const auto asked = Lanes<L>::load(out.rows + a);
            (Lanes<L>::load(w.theta + a) * Lanes<L>::load(out_Ax + a) - asked).store(out.rows + a);
        });
    };
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
        put_rows(tile);
        if (w.linking) put_kept_of<W>(w, tile, out);
        then(tile);
    }
    fill(out_Ax + first, w.g, 0.0);
    add_times(out_Ax + first, s.G, w.G, out.z, 1.0);
    put_rows(FIRST_STAGE);
    then(FIRST_STAGE);
}

inline void nothing(int) {}

// Solve the factored system for one right-hand side; A x comes along. `before` is called with every
// tile before it is read, `then` when it is done.
template <int W, class Before, class Then>
inline void solve(
    const Work& w, const Right& right, const Point& out, double* out_Ax, Before before, Then then
) {
    begin<W>(w);
    before(FIRST_STAGE);
    for (int tile = 0; tile < w.tiles; ++tile) {
        before(tile);
        reduce<W>(w, tile, right, out);
    }
    finish<W>(w, right, out, out_Ax, then);
}

inline double largest_variable(const Work& w, const Point& x) {
    return larger(largest(x.z, w.n), largest(x.u, w.of_u));
}

// How well a system is solved: the error of the x-part, of the equalities, and of rows as a share of
// their slacks.
struct Errors {
    double slope, equal, rows;
};

// Put what rounding left of a solution, in the system before elimination, into the workspace.
template <int W>
inline Errors put_errors(
    const Work& w, const Right& right, const Point& out, const double* out_Ax, double reach
) {
    const Point& error = w.error;
    Largest equal, of_rows;
    double slope = 0.0;
    auto put_rows = [&](int tile) LANES_LAMBDA {
        each_row<W>(w, tile, [&]<int N>(Size a, Lanes<N>) LANES_LAMBDA {
            using L = Lanes<N>;
            const L residual = L::load(right.rows + a) - L::load(out_Ax + a) +
                               L::load(w.inverse_theta + a) * L::load(out.rows + a);
            // What is only rounding must not be chased: Θ would make it large.
            const L rounding = (ROUNDING * reach) * L::load(w.norms + a);
            const L left = where_at_most(absolute(residual), rounding, L(0.0), residual);
            left.store(error.rows + a);
            of_rows.add(left * L::load(w.inverse_slack + a));
        });
    };
    put_first_curvature(w, out, error);
    const Conditions<W> products(w, out, error);
    for (int tile = 0; tile < w.tiles; ++tile) {
        put_curvature_of<W>(w, tile, out, error);
        products.of(tile);
        slope += put_left<W>(w, tile, w.k, error.u, right.point.u, right.share);
        const Size first = Size(tile) * w.s * W;
        for (Size i = first; i < first + Size(w.s) * W; i += W) {
            const auto given = right.share * Lanes<W>::load(right.point.nus + i);
            const auto left = given - Lanes<W>::load(error.nus + i);
            left.store(error.nus + i);
            equal.add(left);
        }
        put_rows(tile);
    }
    products.end();
    auto subtract_from = [&](double* residual, const double* given, Size size) {
        for (Size a = 0; a < size; ++a) residual[a] = right.share * given[a] - residual[a];
    };
    subtract_from(error.z, right.point.z, w.n), subtract_from(error.nu, right.point.nu, w.e);
    put_rows(FIRST_STAGE);
    return {
        larger(slope, largest(error.z, w.n)), larger(equal.value(), largest(error.nu, w.e)), of_rows.value()
    };
}

// Correct what rounding left of a solution, unless the errors are `small` already. Returns the size of
// the correction, relative to the variables. `then` is called with every tile when it is done.
template <int W, class Then>
inline double refine(
    const Work& w, const Right& right, const Point& out, double* out_Ax, const Errors& small, Then then
) {
    const Point &error = w.error, &correction = w.correction;
    const double reach = largest_variable(w, out);
    const Errors errors = put_errors<W>(w, right, out, out_Ax, reach);
    if (errors.slope <= small.slope && errors.equal <= small.equal && errors.rows <= small.rows) return 0.0;
    solve<W>(w, {error, 1.0, error.rows}, correction, w.correction_Ax, nothing, [&](int tile) LANES_LAMBDA {
        if (tile != FIRST_STAGE) {
            const Size u = Size(tile) * w.k * W, nus = Size(tile) * w.s * W;
            add(out.u + u, correction.u + u, Size(w.k) * W, 1.0);
            add(out.nus + nus, correction.nus + nus, Size(w.s) * W, 1.0);
        }
        each_row<W>(w, tile, [&]<int N>(Size a, Lanes<N>) LANES_LAMBDA {
            using L = Lanes<N>;
            (L::load(out.rows + a) + L::load(correction.rows + a)).store(out.rows + a);
            (L::load(out_Ax + a) + L::load(w.correction_Ax + a)).store(out_Ax + a);
        });
        then(tile);
    });
    add(out.z, correction.z, w.n, 1.0), add(out.nu, correction.nu, w.e, 1.0);
    return largest_variable(w, correction) / larger(reach, TINY);
}

}  // namespace forewise::FOREWISE_ISA
