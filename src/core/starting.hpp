// Where a path starts.
#pragma once

#include "arrow.hpp"

namespace forewise::FOREWISE_ISA {

// How far a linear program's start is moved beyond the farthest violation, and beyond that, in units
// of its complementarity (Mehrotra has 0.5).
constexpr double INSIDE = 1.5, FARTHER = 2.0;

// Mehrotra's start of a linear program, from the factored system and the costs in the right-hand side:
// the least-squares variables know nothing of the costs, and the multipliers of the smallest norm
// nothing of the bounds. Both are moved inside, the more, the larger their complementarity.
template <int W>
inline void start_apart(const Work& w, double shift) {
    fill(w.right.nu, w.e, 0.0), fill(w.right.nus, w.of_nus, 0.0);
    fill(w.change, w.of_rows, 0.0);
    solve<W>(w, {w.right, 1.0, w.change}, w.step, w.step_Ax, nothing, nothing);
    fill(w.right.z, w.n, 0.0), fill(w.right.u, w.of_u, 0.0);
    copy(w.right.nu, w.h_equal, w.e, 1.0), copy(w.right.nus, w.equals, w.of_nus, 1.0);
    solve<W>(w, {w.right, 1.0, w.bound}, w.point, w.Ax, nothing, nothing);
    copy(w.point.nu, w.step.nu, w.e, 1.0), copy(w.point.nus, w.step.nus, w.of_nus, 1.0);
    double below = 0.0, under = 0.0;
    for (Size a = 0; a < w.of_rows; ++a) {
        w.slack[a] = (w.bound[a] - w.Ax[a]) * w.inverse_norms[a];
        w.point.rows[a] = w.step.rows[a] * w.norms[a] / w.barrier[a];
        below = larger(below, -w.slack[a]), under = larger(under, -w.point.rows[a]);
    }
    below *= INSIDE, under *= INSIDE;
    auto over_rows = [&](auto f) { return sum_over<W>(w, w.r, w.g, f); };
    const double slacks = over_rows([&]<int N>(Size a) {
        return Lanes<N>::load(w.barrier + a) * (Lanes<N>::load(w.slack + a) + below);
    });
    const double multipliers = over_rows([&]<int N>(Size a) {
        return Lanes<N>::load(w.barrier + a) * (Lanes<N>::load(w.point.rows + a) + under);
    });
    const double products = over_rows([&]<int N>(Size a) {
        using L = Lanes<N>;
        return L::load(w.barrier + a) * (L::load(w.slack + a) + below) *
               (L::load(w.point.rows + a) + under);
    });
    below += larger(shift, FARTHER * products / larger(multipliers, TINY));
    under += larger(shift, FARTHER * products / larger(slacks, TINY));
    for (Size a = 0; a < w.of_rows; ++a) {
        w.point.rows[a] = (w.point.rows[a] + under) * w.barrier[a] * w.inverse_norms[a];
        w.slack[a] = (w.slack[a] + below) * w.norms[a];
    }
}

// Put a point with positive slacks and multipliers, near least squares, into the workspace. None of
// them is smaller than `shift`, in units of its row.
template <int W>
inline void start(Work& w, double shift) {
    copy(w.right.z, w.q, w.n, -1.0);
    copy(w.right.u, w.cost, w.of_u, -1.0);
    copy(w.inverse_theta, w.unit, w.of_rows, 1.0);
    factor<W>(w, nothing);
    if (w.linking && w.curved == 0.0 && w.hold == 0.0) return start_apart<W>(w, shift);
    copy(w.right.nu, w.h_equal, w.e, 1.0);
    copy(w.right.nus, w.equals, w.of_nus, 1.0);
    solve<W>(w, {w.right, 1.0, w.bound}, w.point, w.Ax, nothing, nothing);
    double above = 0.0, below = 0.0;
    for (Size a = 0; a < w.of_rows; ++a) {
        w.slack[a] = (w.bound[a] - w.Ax[a]) * w.inverse_norms[a];
        above = larger(above, w.slack[a]), below = larger(below, -w.slack[a]);
    }
    for (Size a = 0; a < w.of_rows; ++a) {
        w.point.rows[a] = (above + shift - w.slack[a]) * w.barrier[a] * w.inverse_norms[a];
        w.slack[a] = (w.slack[a] + below + shift) * w.norms[a];
    }
}

}  // namespace forewise::FOREWISE_ISA
