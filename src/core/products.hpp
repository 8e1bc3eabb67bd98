// Products of one context's matrices with points: A x, A'λ, H x, E x, E'ν.
//
// `arrow` has the legend of the system that they belong to.
#pragma once

#include "algebra.hpp"

namespace forewise::FOREWISE_ISA {

// T or F: the block of scenario rows that touches the first stage.
struct Bridge {
    const Pattern& pattern;
    const Entries& entries;
    double* sums;   // lanes of sums over scenarios: by row if they share the block, else by column
    double* times;  // the block times z, if the scenarios share it

    bool shared() const { return entries.shared; }
};

inline Bridge bridge_T(const Work& w) { return {w.structure().T, w.T, w.sums_T, w.times_T}; }
inline Bridge bridge_F(const Work& w) { return {w.structure().F, w.F, w.sums_F, w.times_F}; }

// Before the products of all tiles with z.
inline void begin_times(const Bridge& A, const double* z, int W) {
    if (!A.shared()) return;
    for (int i = 0; i < A.pattern.rows; ++i) {
        double total = 0.0;
        for (int c = A.pattern.starts[i]; c < A.pattern.starts[i + 1]; ++c) {
            total += A.entries.data[Size(c) * W] * z[A.pattern.columns[c]];
        }
        A.times[i] = total;
    }
}

// Row i of the block times z.
template <int W>
LANES_INLINE Lanes<W> row_times(const Bridge& A, int tile, int i, const double* z) {
    if (A.shared()) return Lanes<W>(A.times[i]);
    const double* entries = A.entries.of(tile);
    Lanes<W> total(0.0);
    for (int c = A.pattern.starts[i]; c < A.pattern.starts[i + 1]; ++c) {
        total += Lanes<W>::load(entries + Size(c) * W) * z[A.pattern.columns[c]];
    }
    return total;
}

template <int W>
inline void begin_columns(const Work& w, const Bridge& A) {
    fill(A.sums, Size(W) * (A.shared() ? A.pattern.rows : w.n), 0.0);
}

// Add row i of the block, transposed, times x; copies must have been masked.
template <int W>
LANES_INLINE void add_column(const Bridge& A, int tile, int i, Lanes<W> x) {
    if (A.shared()) {
        double* to = A.sums + Size(i) * W;
        (Lanes<W>::load(to) + x).store(to);
        return;
    }
    const double* entries = A.entries.of(tile);
    for (int c = A.pattern.starts[i]; c < A.pattern.starts[i + 1]; ++c) {
        double* to = A.sums + Size(A.pattern.columns[c]) * W;
        (Lanes<W>::load(to) + Lanes<W>::load(entries + Size(c) * W) * x).store(to);
    }
}

// z := z + what was added.
template <int W>
inline void end_columns(const Work& w, const Bridge& A, double* z) {
    if (!A.shared()) {
        for (int c = 0; c < w.n; ++c) z[c] += sum(Lanes<W>::load(A.sums + Size(c) * W));
        return;
    }
    for (int i = 0; i < A.pattern.rows; ++i) {
        const double total = sum(Lanes<W>::load(A.sums + Size(i) * W));
        for (int c = A.pattern.starts[i]; c < A.pattern.starts[i + 1]; ++c) {
            z[A.pattern.columns[c]] += total * A.entries.data[Size(c) * W];
        }
    }
}

// out := A x.
template <int W>
inline void inequality_rows(const Work& w, const Point& x, double* out) {
    const Structure& s = w.structure();
    const Bridge T = bridge_T(w);
    begin_times(T, x.z, W);
    for (int tile = 0; tile < w.tiles; ++tile) {
        const double *u = x.u + Size(tile) * w.k * W, *own = w.own.of(tile), *entries = w.W.of(tile);
        double* to = out + Size(tile) * w.r * W;
        for (int i = 0; i < w.r; ++i) {
            Lanes<W> total = i < w.t ? row_times<W>(T, tile, i, x.z) : Lanes<W>(0.0);
            if (s.own[i] >= 0) {
                total += Lanes<W>::load(own + Size(i) * W) * Lanes<W>::load(u + Size(s.own[i]) * W);
            }
            for (int c = s.W.starts[i]; c < s.W.starts[i + 1]; ++c) {
                const int v = s.linking[s.W.columns[c]];
                total += Lanes<W>::load(entries + Size(c) * W) * Lanes<W>::load(u + Size(v) * W);
            }
            total.store(to + Size(i) * W);
        }
    }
    double* first = out + w.scenario_rows;
    fill(first, w.g, 0.0);
    add_times(first, s.G, w.G, x.z, 1.0);
}

// Calls f<N>(a, mask) for the inequality rows of a tile, or of the first stage; N of them begin at a.
constexpr int FIRST_STAGE = -1;

template <int W, class Do>
LANES_INLINE void each_row(const Work& w, int tile, Do f) {
    if (tile == FIRST_STAGE) {
        each(w.g, [&]<int N>(Size a) LANES_LAMBDA {
            f.template operator()<N>(w.scenario_rows + a, Lanes<N>(1.0));
        });
        return;
    }
    const auto mask = Lanes<W>::load(w.mask + Size(tile) * W);
    Size a = Size(tile) * w.r * W;
    for (int i = 0; i < w.r; ++i, a += W) f.template operator()<W>(a, mask);
}

// The tile's part of out := H x.
template <int W>
inline void put_curvature_of(const Work& w, int tile, const Point& x, const Point& out) {
    const Structure& s = w.structure();
    double* to = out.u + Size(tile) * w.k * W;
    if (w.curved == 0.0 && w.hold == 0.0) return fill(to, Size(w.k) * W, 0.0);
    const double *u = x.u + Size(tile) * w.k * W, *D = w.D.of(tile), *off = w.off.of(tile);
    const auto weight = Lanes<W>::load(w.weight + Size(tile) * W);
    for (int v = 0; v < w.k; ++v) {
        const auto curvature = weight * (Lanes<W>::load(D + Size(v) * W) + w.hold);
        (curvature * Lanes<W>::load(u + Size(v) * W)).store(to + Size(v) * W);
    }
    if (!s.off.entries()) return;
    for (int l = 0; l < w.links; ++l) {
        Lanes<W> total(0.0);
        for (int c = s.off.starts[l]; c < s.off.starts[l + 1]; ++c) {
            const int v = s.linking[s.off.columns[c]];
            total += Lanes<W>::load(off + Size(c) * W) * Lanes<W>::load(u + Size(v) * W);
        }
        double* place = to + Size(s.linking[l]) * W;
        (Lanes<W>::load(place) + weight * total).store(place);
    }
}

// The tile's part of out := itself + A' rows + E' ν.
template <int W>
inline void add_columns_of(
    const Work& w, int tile, const Bridge& T, const Bridge& F, const Point& x, const Point& out
) {
    const Structure& s = w.structure();
    const double *own = w.own.of(tile), *entries = w.W.of(tile), *V = w.V.of(tile);
    const double *rows = x.rows + Size(tile) * w.r * W, *nus = x.nus + Size(tile) * w.s * W;
    double* u = out.u + Size(tile) * w.k * W;
    const auto mask = Lanes<W>::load(w.mask + Size(tile) * W);
    auto add_to = [&](int v, Lanes<W> value) {
        (Lanes<W>::load(u + Size(v) * W) + value).store(u + Size(v) * W);
    };
    for (int i = 0; i < w.r; ++i) {
        const auto row = Lanes<W>::load(rows + Size(i) * W);
        if (i < w.t) add_column<W>(T, tile, i, mask * row);
        if (s.own[i] >= 0) add_to(s.own[i], Lanes<W>::load(own + Size(i) * W) * row);
        for (int c = s.W.starts[i]; c < s.W.starts[i + 1]; ++c) {
            add_to(s.linking[s.W.columns[c]], Lanes<W>::load(entries + Size(c) * W) * row);
        }
    }
    for (int i = 0; i < w.s; ++i) {
        const auto row = Lanes<W>::load(nus + Size(i) * W);
        add_column<W>(F, tile, i, mask * row);
        for (int c = s.V.starts[i]; c < s.V.starts[i + 1]; ++c) {
            add_to(s.linking[s.V.columns[c]], Lanes<W>::load(V + Size(c) * W) * row);
        }
    }
}

// The tile's part of out := E x.
template <int W>
inline void put_equality_rows_of(
    const Work& w, int tile, const Bridge& F, const Point& x, const Point& out
) {
    const Structure& s = w.structure();
    const double *u = x.u + Size(tile) * w.k * W, *V = w.V.of(tile);
    double* to = out.nus + Size(tile) * w.s * W;
    for (int i = 0; i < w.s; ++i) {
        Lanes<W> total = row_times<W>(F, tile, i, x.z);
        for (int c = s.V.starts[i]; c < s.V.starts[i + 1]; ++c) {
            const int v = s.linking[s.V.columns[c]];
            total += Lanes<W>::load(V + Size(c) * W) * Lanes<W>::load(u + Size(v) * W);
        }
        total.store(to + Size(i) * W);
    }
}

inline void put_first_curvature(const Work& w, const Point& x, const Point& out) {
    fill(out.z, w.n, 0.0);
    add_times(out.z, w.structure().P, w.P, x.z, 1.0);
}

// A tile's residuals, (size, W): residual := share given − residual. Returns the sum over its scenarios
// of the largest of each, infinite if there is a NaN.
template <int W>
inline double put_left(
    const Work& w, int tile, Size size, double* residual, const double* given, double share
) {
    Lanes<W> tops(0.0), broken(0.0);
    for (Size v = tile * size * W; v < (tile + 1) * size * W; v += W) {
        const auto left = share * Lanes<W>::load(given + v) - Lanes<W>::load(residual + v);
        left.store(residual + v);
        tops = largest_of(tops, absolute(left));
        broken += left - left;
    }
    return sum(tops + broken, tile + 1 < w.tiles ? W : w.valid);
}

// x-part of out := itself + A' rows + E' ν, equality part := E x, tile after tile: `of` does one, which
// stays in the cache for what its caller does with it, and `end` the first stage.
template <int W>
struct Conditions {
    const Work& w;
    const Point &x, &out;
    Bridge T, F;

    Conditions(const Work& w, const Point& x, const Point& out)
        : w(w), x(x), out(out), T(bridge_T(w)), F(bridge_F(w)) {
        begin_times(F, x.z, W);
        begin_columns<W>(w, T), begin_columns<W>(w, F);
    }
    void of(int tile) const {
        add_columns_of<W>(w, tile, T, F, x, out);
        put_equality_rows_of<W>(w, tile, F, x, out);
    }
    void end() const {
        const Structure& s = w.structure();
        end_columns<W>(w, T, out.z), end_columns<W>(w, F, out.z);
        add_transposed_times(out.z, s.G, w.G, x.rows + w.scenario_rows, 1.0);
        add_transposed_times(out.z, s.E, w.E, x.nu, 1.0);
        fill(out.nu, w.e, 0.0);
        add_times(out.nu, s.E, w.E, x.z, 1.0);
    }
};

}  // namespace forewise::FOREWISE_ISA
