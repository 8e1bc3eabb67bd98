// How far a context is from its solution, or along a ray that proves that there is none.
#pragma once

#include "arrow.hpp"

namespace forewise::FOREWISE_ISA {

constexpr double SMALLEST_COST = 1e-2;  // to which a gap is relative, in the scaled program's units
constexpr double CERTAIN = 1e-9;        // relative residual at which a ray is a proof
// What a proof shows must be more than this share of the program's size: the rest is rounding.
constexpr double SIGNIFICANT = 1e-11;

// How far a context is, in the scaled program's units.
struct Progress {
    double mu;
    double primal;
    double dual;         // slope of the Lagrangian, or what residuals do to the cost
    double gap;          // relative to the cost; for a target, the deviation from the centre
    double size;         // of the variables
    double multipliers;  // the sum of their sizes, in units of their rows
};

// Σ_j of the largest absolute value in scenario j, (tiles, k, W).
template <int W>
inline double sum_of_largest(const Work& w, const double* values) {
    double total = 0.0;
    for (int tile = 0; tile < w.tiles; ++tile) {
        Lanes<W> tops(0.0), broken(0.0);
        for (int v = 0; v < w.k; ++v) {
            const auto x = Lanes<W>::load(values + (Size(tile) * w.k + v) * W);
            tops = largest_of(tops, absolute(x));
            broken += x - x;
        }
        total += sum(tops + broken, tile + 1 < w.tiles ? W : w.valid);
    }
    return total;
}

// ½ x'H x + q'x, with H x in `Hx`.
template <int W>
inline double half_cost(const Work& w, const Point& x, const Point& Hx) {
    double cost = 0.0;
    for (int a = 0; a < w.n; ++a) cost += x.z[a] * (0.5 * Hx.z[a] + w.q[a]);
    return cost + sum_over<W>(w, w.k, 0, [&]<int N>(Size i) {
               using L = Lanes<N>;
               return L::load(x.u + i) * (0.5 * L::load(Hx.u + i) + L::load(w.cost + i));
           });
}

// Put b − A x into the rows of the right-hand side; returns how far the slacks are from it, in units
// of the rows. Residuals that are only rounding must not be chased: Θ would make them large.
inline double put_row_residuals(const Work& w, double rounding) {
    each(w.of_rows, [&]<int N>(Size a) {
        using L = Lanes<N>;
        const L slack = L::load(w.slack + a), known = L::load(w.bound + a) - L::load(w.Ax + a);
        const L residual = absolute(slack - known) * L::load(w.inverse_norms + a);
        residual.store(w.change + a);
        where_at_most(residual, L(rounding), slack, known).store(w.right.rows + a);
    });
    return largest(w.change, w.of_rows);
}

// Largest relative deviation from slack·λ = ω·target.
inline double deviation(const Work& w, double target) {
    Lanes<8> worst(0.0);
    double last = 0.0;
    each(w.of_rows, [&]<int N>(Size a) {
        using L = Lanes<N>;
        const L weight = L::load(w.barrier + a);
        const L off = absolute(
            L::load(w.slack + a) * L::load(w.point.rows + a) - weight * target
        ) / weight;
        if constexpr (N == 8) {
            worst = largest_of(worst, off);
        } else {
            last = larger(last, sum(off));
        }
    });
    return larger(top(worst), last) / target;
}

inline void negate_residual(double* residual, const double* known, Size size, double sign) {
    for (Size a = 0; a < size; ++a) residual[a] = sign * known[a] - residual[a];
}

// Put the affine right-hand side (minus the residuals) into the workspace; tell their sizes.
template <int W>
inline Progress measure(const Work& w, double target) {
    const Point &right = w.right, &point = w.point;
    put_curvature<W>(w, point, right);
    double cost = half_cost<W>(w, point, right);
    add_columns<W>(w, point.rows, point, right);
    put_equality_rows<W>(w, point, right);
    negate_residual(right.z, w.q, w.n, -1.0);
    negate_residual(right.u, w.cost, w.of_u, -1.0);
    negate_residual(right.nu, w.h_equal, w.e, 1.0);
    negate_residual(right.nus, w.equals, w.of_nus, 1.0);
    double dual = larger(largest(right.z, w.n), sum_of_largest<W>(w, right.u));
    double primal = larger(largest(right.nu, w.e), largest(right.nus, w.of_nus));
    const double size = larger(largest_variable(w, point), 1.0);
    primal = larger(primal, put_row_residuals(w, ROUNDING * size));

    const double *slack = w.slack, *multiplier = point.rows, *rows = right.rows;
    auto over_rows = [&](auto f) { return sum_over<W>(w, w.r, w.g, f); };
    const double total = inner_over<W>(w, w.r, w.g, slack, multiplier);
    const double barrier = over_rows([&]<int N>(Size a) { return Lanes<N>::load(w.barrier + a); });
    const double multipliers = inner_over<W>(w, w.r, w.g, multiplier, w.norms);
    double drift = over_rows([&]<int N>(Size a) {
        using L = Lanes<N>;
        return L::load(multiplier + a) * (L::load(rows + a) - L::load(slack + a));
    });
    // What the residuals do to the cost is the part of the gap that complementarity misses.
    drift += inner(point.nu, right.nu, w.e) + inner_over<W>(w, w.s, 0, point.nus, right.nus);
    drift -= inner(point.z, right.z, w.n) + inner_over<W>(w, w.k, 0, point.u, right.u);
    cost = larger(std::fabs(cost), SMALLEST_COST);
    dual = larger(dual, std::fabs(drift) / cost);
    const double gap = target > 0.0 ? deviation(w, target) : total / cost;
    return {total / larger(barrier, TINY), primal / size, dual, gap, size, multipliers};
}

template <int W>
inline double weighted_size(const Work& w, Size per_tile, Size more, const double* x, const double* norms) {
    return sum_over<W>(w, per_tile, more, [&]<int N>(Size a) {
        return absolute(Lanes<N>::load(x + a)) * Lanes<N>::load(norms + a);
    });
}

// Whether the multipliers have A'λ + E'ν ≈ 0 and b'λ + e'ν < 0: nothing is feasible.
template <int W>
inline bool is_dual_ray(const Work& w) {
    const Point &point = w.point, &error = w.error;
    double proof = -inner_over<W>(w, w.r, w.g, w.bound, point.rows);
    proof -= inner(w.h_equal, point.nu, w.e);
    proof -= inner_over<W>(w, w.s, 0, w.equals, point.nus);
    fill(error.z, w.n, 0.0);
    fill(error.u, w.of_u, 0.0);
    add_columns<W>(w, point.rows, point, error);
    const double slope = larger(largest(error.z, w.n), sum_of_largest<W>(w, error.u));
    double total = weighted_size<W>(w, w.r, w.g, point.rows, w.norms);
    for (int a = 0; a < w.e; ++a) total += std::fabs(point.nu[a]) * w.equal_norms[a];
    total += weighted_size<W>(w, w.s, 0, point.nus, w.equals_norms);
    return proof > SIGNIFICANT * w.reach * total && w.reach * slope <= CERTAIN * proof;
}

// Whether the variables have H x ≈ 0, A x ≤ 0, E x ≈ 0 and falling cost: unbounded.
template <int W>
inline bool is_primal_ray(const Work& w) {
    const Point &point = w.point, &error = w.error;
    double fall = -inner(w.q, point.z, w.n);
    fall -= inner_over<W>(w, w.k, 0, w.cost, point.u);
    put_curvature<W>(w, point, error);
    put_equality_rows<W>(w, point, error);
    double stray = larger(largest(error.z, w.n), sum_of_largest<W>(w, error.u));
    stray = larger(stray, largest(error.nu, w.e));
    stray = larger(stray, largest(error.nus, w.of_nus));
    for (Size a = 0; a < w.of_rows; ++a) stray = larger(stray, w.Ax[a] / w.norms[a]);
    return fall > SIGNIFICANT * largest_variable(w, point) && stray <= CERTAIN * fall;
}

}  // namespace forewise::FOREWISE_ISA
