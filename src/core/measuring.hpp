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

// Put the affine right-hand side (minus the residuals), Θ⁻¹ and the reciprocals of slacks and multipliers
// into the workspace; tell the sizes of the residuals.
template <int W>
inline Progress measure(const Work& w, double target) {
    const Point &right = w.right, &point = w.point;
    const double size = larger(largest_variable(w, point), 1.0);
    const double rounding = ROUNDING * size;
    double cost = 0.0, dual = 0.0;
    Largest equal, off;
    Sum total, multipliers, drift, costs;
    auto put_rows = [&](int tile) LANES_LAMBDA {
        each_row<W>(w, tile, [&]<int N>(Size a, Lanes<N> mask) LANES_LAMBDA {
            using L = Lanes<N>;
            const L slack = L::load(w.slack + a), dual = L::load(point.rows + a);
            const L known = L::load(w.bound + a) - L::load(w.Ax + a);
            const L residual = absolute(slack - known) * L::load(w.inverse_norms + a);
            // Residuals that are only rounding must not be chased: Θ would make them large.
            const L rows = where_at_most(residual, L(rounding), slack, known);
            rows.store(right.rows + a);
            off.add(residual);
            const L both = 1.0 / (slack * dual), inverse_dual = slack * both;
            (dual * both).store(w.inverse_slack + a);
            inverse_dual.store(w.inverse_dual + a);
            (slack * inverse_dual).store(w.inverse_theta + a);
            const L counted = mask * dual;
            total.add(counted * slack);
            multipliers.add(counted * L::load(w.norms + a));
            drift.add(counted * (rows - slack));
        });
    };
    put_first_curvature(w, point, right);
    for (int a = 0; a < w.n; ++a) cost += point.z[a] * (0.5 * right.z[a] + w.q[a]);
    const Conditions<W> products(w, point, right);
    for (int tile = 0; tile < w.tiles; ++tile) {
        using L = Lanes<W>;
        const L mask = L::load(w.mask + Size(tile) * W);
        const Size u = Size(tile) * w.k * W, end = u + Size(w.k) * W;
        put_curvature_of<W>(w, tile, point, right);
        for (Size i = u; i < end; i += W) {
            costs.add(mask * L::load(point.u + i) * (0.5 * L::load(right.u + i) + L::load(w.cost + i)));
        }
        products.of(tile);
        dual += put_left<W>(w, tile, w.k, right.u, w.cost, -1.0);
        for (Size i = u; i < end; i += W) {
            drift.add((0.0 - mask) * L::load(point.u + i) * L::load(right.u + i));
        }
        const Size first = Size(tile) * w.s * W;
        for (Size i = first; i < first + Size(w.s) * W; i += W) {
            const L left = L::load(w.equals + i) - L::load(right.nus + i);
            left.store(right.nus + i);
            equal.add(left);
            drift.add(mask * L::load(point.nus + i) * left);
        }
        put_rows(tile);
    }
    products.end();
    put_rows(FIRST_STAGE);
    for (int a = 0; a < w.n; ++a) right.z[a] = -w.q[a] - right.z[a];
    for (int a = 0; a < w.e; ++a) right.nu[a] = w.h_equal[a] - right.nu[a];
    dual = larger(dual, largest(right.z, w.n));
    const double primal = larger(larger(largest(right.nu, w.e), equal.value()), off.value());
    // What the residuals do to the cost is the part of the gap that complementarity misses.
    const double drifted = drift.value() + inner(point.nu, right.nu, w.e) - inner(point.z, right.z, w.n);
    cost = larger(std::fabs(cost + costs.value()), SMALLEST_COST);
    dual = larger(dual, std::fabs(drifted) / cost);
    const double gap = target > 0.0 ? deviation(w, target) : total.value() / cost;
    return {
        total.value() / larger(w.barrier_sum, TINY), primal / size, dual, gap, size, multipliers.value()
    };
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
    const Conditions<W> products(w, point, error);
    for (int tile = 0; tile < w.tiles; ++tile) products.of(tile);
    products.end();
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
    const Bridge F = bridge_F(w);
    begin_times(F, point.z, W);
    put_first_curvature(w, point, error);
    for (int tile = 0; tile < w.tiles; ++tile) {
        put_curvature_of<W>(w, tile, point, error);
        put_equality_rows_of<W>(w, tile, F, point, error);
    }
    fill(error.nu, w.e, 0.0);
    add_times(error.nu, w.structure().E, w.E, point.z, 1.0);
    double stray = larger(largest(error.z, w.n), sum_of_largest<W>(w, error.u));
    stray = larger(stray, largest(error.nu, w.e));
    stray = larger(stray, largest(error.nus, w.of_nus));
    for (Size a = 0; a < w.of_rows; ++a) stray = larger(stray, w.Ax[a] / w.norms[a]);
    return fall > SIGNIFICANT * largest_variable(w, point) && stray <= CERTAIN * fall;
}

}  // namespace forewise::FOREWISE_ISA
