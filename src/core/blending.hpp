// Directions that are put aside, and blends of two: as much of a corrector as helps.
#pragma once

#include "arrow.hpp"

namespace forewise::FOREWISE_ISA {

struct Steps {
    double primal, dual;
};

inline void copy_direction(
    const Work& w, const Point& from, const double* Ax, const double* change, const Point& to,
    double* to_Ax, double* to_change
) {
    copy(to.z, from.z, w.n, 1.0), copy(to.u, from.u, w.of_u, 1.0);
    copy(to.rows, from.rows, w.of_rows, 1.0), copy(to.nu, from.nu, w.e, 1.0);
    copy(to.nus, from.nus, w.of_nus, 1.0);
    copy(to_Ax, Ax, w.of_rows, 1.0), copy(to_change, change, w.of_rows, 1.0);
}

constexpr int BLENDS = 8;  // shares of a corrector that are tried beside all of it
constexpr double WORTH_A_BLEND = 1.01;  // how much longer a step must be for less than all of it

// x := from + share (x − from)
inline void mix(double* x, const double* from, Size size, double share) {
    for (Size a = 0; a < size; ++a) x[a] = from[a] + share * (x[a] - from[a]);
}

// After Colombo and Gondzio, "Further development of multiple centrality correctors" (2008): the
// direction becomes kept + ω (step − kept), with the ω between `least` and 1 that gives the longest
// step. A corrector is made for a full step, and can mislead where steps are short. Variables and
// multipliers have an ω of their own in a linear program. `whole` are the steps for ω = 1; returns
// the blend's, so much (`fraction`) of the way to the boundary and at most 1.
inline Steps blend(const Work& w, double least, bool linear, double fraction, Steps whole) {
    Lanes<8> primal[BLENDS], dual[BLENDS];  // the fastest way to the boundary, of each share
    double last_primal[BLENDS], last_dual[BLENDS], share[BLENDS];
    for (int i = 0; i < BLENDS; ++i) {
        primal[i] = dual[i] = Lanes<8>(-fraction);
        last_primal[i] = last_dual[i] = -fraction;
        share[i] = least + (1.0 - least) * i / BLENDS;
    }
    each(w.of_rows, [&]<int N>(Size a) {
        using L = Lanes<N>;
        const L inverse_slack = L::load(w.inverse_slack + a);
        const L inverse_dual = L::load(w.inverse_dual + a);
        const L slow = L::load(w.kept_change + a) * inverse_slack;
        const L falling = L::load(w.kept.rows + a) * inverse_dual;
        const L more = L::load(w.change + a) * inverse_slack - slow;
        const L steeper = L::load(w.step.rows + a) * inverse_dual - falling;
        for (int i = 0; i < BLENDS; ++i) {
            const L x = slow + share[i] * more, y = falling + share[i] * steeper;
            if constexpr (N == 8) {
                primal[i] = smallest_of(x, primal[i]), dual[i] = smallest_of(y, dual[i]);
            } else {
                last_primal[i] = smaller(last_primal[i], sum(x));
                last_dual[i] = smaller(last_dual[i], sum(y));
            }
        }
    });
    double of_primal = 1.0, of_dual = 1.0;
    Steps best = whole;
    for (int i = 0; i < BLENDS; ++i) {
        const double x = -fraction / smaller(last_primal[i], -top(0.0 - primal[i]));
        const double y = -fraction / smaller(last_dual[i], -top(0.0 - dual[i]));
        if (linear) {
            if (x > WORTH_A_BLEND * best.primal) best.primal = x, of_primal = share[i];
            if (y > WORTH_A_BLEND * best.dual) best.dual = y, of_dual = share[i];
        } else if (smaller(x, y) > WORTH_A_BLEND * smaller(best.primal, best.dual)) {
            best = {x, y}, of_primal = of_dual = share[i];
        }
    }
    if (of_primal < 1.0) {
        mix(w.step.z, w.kept.z, w.n, of_primal), mix(w.step.u, w.kept.u, w.of_u, of_primal);
        mix(w.step_Ax, w.kept_Ax, w.of_rows, of_primal);
        mix(w.change, w.kept_change, w.of_rows, of_primal);
    }
    if (of_dual < 1.0) {
        mix(w.step.rows, w.kept.rows, w.of_rows, of_dual), mix(w.step.nu, w.kept.nu, w.e, of_dual);
        mix(w.step.nus, w.kept.nus, w.of_nus, of_dual);
    }
    return best;
}

}  // namespace forewise::FOREWISE_ISA
