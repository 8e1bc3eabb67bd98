// Eliminating a tile's simple recourse variables from the arrow-shaped system.
//
// A simple variable v (`plan`) has one shared row, y + c v ≤ r with y = T z + W u of the linking u,
// and bounds. Its Newton block is one number H, and eliminating it leaves the row y with the weight κ
// in the place of Θ. κ is positive and computed without subtraction.
#pragma once

#include "algebra.hpp"

namespace forewise::FOREWISE_ISA {

// Put the weights κ of all shared rows, and the reciprocals of H, into the workspace.
template <int W>
inline void eliminate_simple(const Work& w, int tile) {
    using L = Lanes<W>;
    const Structure& s = w.structure();
    const Size rows = Size(tile) * w.r * W;
    double *H = w.H + Size(tile) * w.k * W, *kappa = w.kappa + rows, *coupling = w.coupling + rows;
    const double *theta = w.theta + rows, *own = w.own.of(tile), *D = w.D.of(tile);
    const L weight = L::load(w.weight + Size(tile) * W);
    // Steps with simple recourse alone are not refined but near the end: they cannot afford it.
    const L proximal = weight * (w.linking ? PROXIMAL : 0.0) + ABSOLUTE_RIDGE;
    for (const int v : s.simple) {
        (weight * (L::load(D + Size(v) * W) + w.hold) + proximal).store(H + Size(v) * W);
    }
    for (const int a : s.bounds) {
        if (s.own[a] < 0) continue;
        double* to = H + Size(s.own[a]) * W;
        const L c = L::load(own + Size(a) * W);
        (L::load(to) + L::load(theta + Size(a) * W) * c * c).store(to);
    }
    for (const int a : s.shared) {
        const L of_row = L::load(theta + Size(a) * W);
        if (s.own[a] < 0) {
            of_row.store(kappa + Size(a) * W);
            continue;
        }
        double* to = H + Size(s.own[a]) * W;
        const L c = L::load(own + Size(a) * W), before = L::load(to), scaled = of_row * c;
        const L inverse = 1.0 / (before + scaled * c);
        // Its one shared row: nothing else is added to H after this.
        inverse.store(to);
        (of_row * before * inverse).store(kappa + Size(a) * W);
        (scaled * inverse).store(coupling + Size(a) * W);
    }
    for (const int v : s.unshared) {
        double* to = H + Size(v) * W;
        (1.0 / L::load(to)).store(to);
    }
}

// Scale the tile's rows by Θ; add what they ask of u, and put what of y into `shared`.
template <int W>
inline void reduce_simple(const Work& w, int tile, const double* given_rows, const Point& out) {
    using L = Lanes<W>;
    const Structure& s = w.structure();
    const Size first = Size(tile) * w.r * W;
    double *u = out.u + Size(tile) * w.k * W, *rows = out.rows + first, *shared = w.shared + first;
    const double *given = given_rows + first, *theta = w.theta + first;
    const double *coupling = w.coupling + first, *own = w.own.of(tile);
    // Bounds first: what they ask of a variable must be there when its shared row comes.
    for (const int a : s.bounds) {
        const L row = L::load(theta + Size(a) * W) * L::load(given + Size(a) * W);
        row.store(rows + Size(a) * W);
        if (s.own[a] < 0) continue;
        double* to = u + Size(s.own[a]) * W;
        (L::load(to) + L::load(own + Size(a) * W) * row).store(to);
    }
    for (const int a : s.shared) {
        const L row = L::load(theta + Size(a) * W) * L::load(given + Size(a) * W);
        row.store(rows + Size(a) * W);
        if (s.own[a] < 0) {
            row.store(shared + Size(a) * W);
            continue;
        }
        double* to = u + Size(s.own[a]) * W;
        const L asked = L::load(to) + L::load(own + Size(a) * W) * row;
        asked.store(to);
        (row - L::load(coupling + Size(a) * W) * asked).store(shared + Size(a) * W);
    }
}

// The tile's simple u, with the y that was found in `shared`, and its rows of A x.
template <int W>
inline void restore_simple(const Work& w, int tile, const Point& out, double* out_Ax) {
    using L = Lanes<W>;
    const Structure& s = w.structure();
    const Size first = Size(tile) * w.r * W;
    double *u = out.u + Size(tile) * w.k * W, *Ax = out_Ax + first;
    const double *shared = w.shared + first, *coupling = w.coupling + first;
    const double *inverse = w.H + Size(tile) * w.k * W, *own = w.own.of(tile);
    for (const int v : s.simple) {
        (L::load(u + Size(v) * W) * L::load(inverse + Size(v) * W)).store(u + Size(v) * W);
    }
    // Shared rows first: bounds need their variables finished.
    for (const int a : s.shared) {
        const L y = L::load(shared + Size(a) * W);
        if (s.own[a] < 0) {
            y.store(Ax + Size(a) * W);
            continue;
        }
        double* to = u + Size(s.own[a]) * W;
        const L found = L::load(to) - L::load(coupling + Size(a) * W) * y;
        found.store(to);
        (y + L::load(own + Size(a) * W) * found).store(Ax + Size(a) * W);
    }
    for (const int a : s.bounds) {
        const L found = s.own[a] < 0 ? L(0.0) : L::load(own + Size(a) * W) *
                                                    L::load(u + Size(s.own[a]) * W);
        found.store(Ax + Size(a) * W);
    }
}

}  // namespace forewise::FOREWISE_ISA
