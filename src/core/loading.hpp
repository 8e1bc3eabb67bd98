// Putting one context of a program into the workspace, scaled to the size of one.
//
// Lengths are divided by a power of two near the largest distance from the origin to a row's boundary
// (but no more than 16 times the geometric mean: a bound that is far away on purpose says little), or
// near where the quadratic cost outweighs the linear one if all rows pass through the origin; costs
// by one near the largest cost coefficient. Distances below 1e-9 of the largest do not count: a
// right-hand side that should be 0 may be rounding noise. Powers of two, so that scaling rounds
// nothing and does not change under small changes of the data.
#pragma once

#include "arrow.hpp"

namespace forewise::FOREWISE_ISA {

// What all scenarios together count for in the barrier, against 1 for a first-stage row.
constexpr double BARRIER_SHARE = 16.0;
constexpr double SMALLEST_WEIGHT = 1e-8;  // of a scenario, in the barrier
// Share of the largest distance below which a right-hand side may be rounding noise.
constexpr double NOISE = 1e-9;
constexpr double FAR = 16.0;  // times the typical distance: rows beyond say nothing of the size

// What one unit of the scaled program is in the user's.
struct Units {
    double length, cost;
};

// The power of two nearest to a size; 1 for 0.
inline double power_of_two(double size) {
    return size > 0.0 ? std::exp2(std::nearbyint(std::log2(size))) : 1.0;
}

inline double largest_entry(const Block& block, int b) {
    return largest(block.of(b), block.size * block.scenarios);
}

// Some entries of a block, (1 | tiles, count, W), times a factor.
template <int W>
inline void load_entries(
    const Work& w, const Block& block, int b, const int* places, int count, double factor,
    const Entries& out
) {
    const double* of = block.of(b);
    if (out.shared) {
        for (int i = 0; i < count; ++i) {
            Lanes<W>(places[i] < 0 ? 0.0 : factor * of[places[i]]).store(out.data + Size(i) * W);
        }
        return;
    }
    for (int tile = 0; tile < w.tiles; ++tile) {
        double* to = out.data + tile * out.stride;
        for (int l = 0; l < W; ++l) {
            const double* part = of + w.scenario[tile * W + l] * block.size;
            for (int i = 0; i < count; ++i) {
                to[Size(i) * W + l] = places[i] < 0 ? 0.0 : factor * part[places[i]];
            }
        }
    }
}

// Vectors (M | 1, size) to (tiles, size, W).
template <int W>
inline void load_vectors(const Work& w, const Block& block, int b, double* out) {
    const Size size = block.size;
    for (int tile = 0; tile < w.tiles; ++tile) {
        double* to = out + tile * size * W;
        for (int l = 0; l < W; ++l) {
            const double* part = block.of(b, w.scenario[tile * W + l]);
            for (Size i = 0; i < size; ++i) to[i * W + l] = part[i];
        }
    }
}

inline void load_pattern(const Pattern& pattern, const Block& block, int b, double factor, double* out) {
    const double* of = block.of(b);
    for (int i = 0; i < pattern.entries(); ++i) {
        out[i] = pattern.places[i] < 0 ? 0.0 : factor * of[pattern.places[i]];
    }
}

// norms := largest entry of each row.
inline void put_row_norms(const Pattern& pattern, const double* entries, double* norms) {
    for (int i = 0; i < pattern.rows; ++i) {
        norms[i] = 0.0;
        for (int c = pattern.starts[i]; c < pattern.starts[i + 1]; ++c) {
            norms[i] = larger(norms[i], std::fabs(entries[c]));
        }
    }
}

// norms (tiles, rows, W) := max(norms, largest entry of each row).
template <int W>
inline void raise_to_rows(
    const Work& w, const Pattern& pattern, const Entries& entries, int rows, double* norms
) {
    for (int tile = 0; tile < w.tiles; ++tile) {
        const double* of = entries.of(tile);
        double* to = norms + Size(tile) * rows * W;
        for (int i = 0; i < pattern.rows; ++i) {
            Lanes<W> found = Lanes<W>::load(to + Size(i) * W);
            for (int c = pattern.starts[i]; c < pattern.starts[i + 1]; ++c) {
                found = largest_of(found, absolute(Lanes<W>::load(of + Size(c) * W)));
            }
            found.store(to + Size(i) * W);
        }
    }
}

// The largest of `known` and the distances |b| / norm; sets the norm of zero rows to one.
inline double farthest(double known, const double* bound, double* norms, Size size) {
    for (Size a = 0; a < size; ++a) {
        if (norms[a] == 0.0) norms[a] = 1.0;
        known = larger(known, std::fabs(bound[a]) / norms[a]);
    }
    return known;
}

struct Logs {
    double total = 0.0;
    double number = 0.0;

    void add(double bound, double norm, double least) {
        const double distance = std::fabs(bound) / norm;
        if (distance > least) total += std::log(distance), number += 1.0;
    }
};

// Add the logarithms of the distances above `least`, of (tiles, size, W) without the copies.
template <int W>
inline void add_logs(
    const Work& w, Logs& logs, const double* bound, const double* norms, Size size, double least
) {
    for (int tile = 0; tile < w.tiles; ++tile) {
        const int count = tile + 1 < w.tiles ? W : w.valid;
        for (Size i = 0; i < size; ++i) {
            const Size at = (tile * size + i) * W;
            for (int l = 0; l < count; ++l) logs.add(bound[at + l], norms[at + l], least);
        }
    }
}

// The distance at which the quadratic cost outweighs the linear one; 0 where it never does.
inline double bend(const Program& p, int b) {
    const double curvature = larger(largest_entry(p.P, b), largest_entry(p.D, b));
    const double linear = larger(largest_entry(p.q, b), largest_entry(p.d, b));
    return curvature > 0.0 ? linear / curvature : 0.0;
}

// Load the constraints; returns the unit of length, already applied.
template <int W>
inline double load_rows(Work& w, const Program& p, int b) {
    const Structure& s = w.structure();
    load_pattern(s.G, p.G, b, 1.0, w.G);
    load_pattern(s.E, p.E, b, 1.0, w.E);
    copy(w.bound + w.scenario_rows, p.h.of(b), w.g, 1.0);
    copy(w.h_equal, p.ee.of(b), w.e, 1.0);
    load_vectors<W>(w, p.rr, b, w.bound);
    load_vectors<W>(w, p.ss, b, w.equals);
    load_entries<W>(w, p.T, b, s.T.places, s.T.entries(), 1.0, w.T);
    load_entries<W>(w, p.F, b, s.F.places, s.F.entries(), 1.0, w.F);
    load_entries<W>(w, p.V, b, s.V.places, s.V.entries(), 1.0, w.V);
    load_entries<W>(w, p.W, b, s.W.places, s.W.entries(), 1.0, w.W);
    load_entries<W>(w, p.W, b, s.own_place.data(), w.r, 1.0, w.own);

    put_row_norms(s.G, w.G, w.norms + w.scenario_rows);
    fill(w.norms, w.scenario_rows, 0.0);
    raise_to_rows<W>(w, s.T, w.T, w.r, w.norms);
    raise_to_rows<W>(w, s.W, w.W, w.r, w.norms);
    for (int tile = 0; tile < w.tiles; ++tile) {
        const double* own = w.own.of(tile);
        for (int i = 0; i < w.r; ++i) {
            if (s.own[i] < 0) continue;
            double* to = w.norms + (Size(tile) * w.r + i) * W;
            const auto entry = absolute(Lanes<W>::load(own + Size(i) * W));
            largest_of(Lanes<W>::load(to), entry).store(to);
        }
    }
    put_row_norms(s.E, w.E, w.equal_norms);
    fill(w.equals_norms, w.of_nus, 0.0);
    raise_to_rows<W>(w, s.F, w.F, w.s, w.equals_norms);
    raise_to_rows<W>(w, s.V, w.V, w.s, w.equals_norms);

    double far = farthest(0.0, w.bound, w.norms, w.of_rows);
    far = farthest(far, w.h_equal, w.equal_norms, w.e);
    far = farthest(far, w.equals, w.equals_norms, w.of_nus);
    double length;
    if (far > 0.0) {
        Logs logs;
        const double least = NOISE * far;
        add_logs<W>(w, logs, w.bound, w.norms, w.r, least);
        for (Size a = w.scenario_rows; a < w.of_rows; ++a) logs.add(w.bound[a], w.norms[a], least);
        for (int a = 0; a < w.e; ++a) logs.add(w.h_equal[a], w.equal_norms[a], least);
        add_logs<W>(w, logs, w.equals, w.equals_norms, w.s, least);
        length = power_of_two(smaller(far, FAR * std::exp(logs.total / logs.number)));
    } else {
        length = power_of_two(bend(p, b));
    }
    w.reach = larger(far / length, 1.0);
    scale(w.bound, w.of_rows, 1.0 / length);
    scale(w.h_equal, w.e, 1.0 / length);
    scale(w.equals, w.of_nus, 1.0 / length);
    return length;
}

// Load the costs; returns the unit of cost, already applied.
template <int W>
inline double load_costs(Work& w, const Program& p, int b, double length) {
    const Structure& s = w.structure();
    load_vectors<W>(w, p.d, b, w.cost);
    const double curvature = larger(largest_entry(p.P, b), largest_entry(p.D, b));
    const double linear = larger(largest_entry(p.q, b), largest(w.cost, w.of_u));
    const double cost = power_of_two(larger(linear, curvature * length));
    copy(w.q, p.q.of(b), w.n, 1.0 / cost);
    load_pattern(s.P, p.P, b, length / cost, w.P);
    for (int tile = 0; tile < w.tiles; ++tile) {
        const auto weight = Lanes<W>::load(w.weight + Size(tile) * W) * (1.0 / cost);
        double* to = w.cost + Size(tile) * w.k * W;
        for (Size v = 0; v < Size(w.k) * W; v += W) (Lanes<W>::load(to + v) * weight).store(to + v);
    }
    load_entries<W>(w, p.D, b, s.diagonal.data(), w.k, length / cost, w.D);
    load_entries<W>(w, p.D, b, s.off.places, s.off.entries(), length / cost, w.off);
    w.curved = curvature;
    return cost;
}

// Weights of the rows in the barrier, and the units that follow from them and the norms.
template <int W>
inline void load_barrier(Work& w, const Program& p, int b) {
    if (p.barrier.data) load_vectors<W>(w, p.barrier, b, w.barrier);
    for (int tile = 0; tile < w.tiles && !p.barrier.data; ++tile) {
        const auto weight = Lanes<W>::load(w.weight + Size(tile) * W);
        const auto barrier = BARRIER_SHARE * largest_of(weight, Lanes<W>(SMALLEST_WEIGHT));
        double* to = w.barrier + Size(tile) * w.r * W;
        for (Size a = 0; a < Size(w.r) * W; a += W) barrier.store(to + a);
    }
    fill(w.barrier + w.scenario_rows, w.g, 1.0);
    for (Size a = 0; a < w.of_rows; ++a) {
        w.inverse_norms[a] = 1.0 / w.norms[a];
        w.unit[a] = w.norms[a] * w.norms[a] / w.barrier[a];
    }
    w.barrier_sum = sum_over<W>(w, w.r, w.g, [&]<int N>(Size a) { return Lanes<N>::load(w.barrier + a); });
}

// Put one context's scaled program into the workspace.
template <int W>
inline Units load(Work& w, const Program& p, int b) {
    const double* weights = p.weights.of(b);
    int M = 0;
    w.context = b, w.passed = 0;
    for (int j = 0; j < p.M; ++j) {
        if (weights[j] > 0.0) w.scenario[M] = j, w.weight[M] = weights[j], w.mask[M] = 1.0, ++M;
    }
    w.M = M, w.tiles = (M + W - 1) / W, w.valid = M - (w.tiles - 1) * W;
    for (int j = M; j < w.tiles * W; ++j) {
        w.scenario[j] = w.scenario[M - 1], w.weight[j] = w.weight[M - 1], w.mask[j] = 0.0;
    }
    const Size lanes = Size(w.tiles) * W;
    w.of_u = lanes * w.k, w.scenario_rows = lanes * w.r, w.of_rows = w.scenario_rows + w.g;
    w.of_nus = lanes * w.s;
    w.hold = 0.0;
    Units units;
    units.length = load_rows<W>(w, p, b);
    units.cost = load_costs<W>(w, p, b, units.length);
    load_barrier<W>(w, p, b);
    w.floor = w.linking ? LINKING_FLOOR : SIMPLE_FLOOR;
    return units;
}

}  // namespace forewise::FOREWISE_ISA
