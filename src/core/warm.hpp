// A path from near its end: an earlier solution of a program that was nearly this one.
//
// A solution lies on the boundary, and after a change of the data a little beyond it. Slack and
// multiplier of every row are moved inside as a pair: in units of the row they keep their difference d
// and get the product that the centre at μ has,
//
//     s − l = d,   s l = μ:   s = (d + √(d² + 4 μ)) / 2,   l = μ / s,
//
// which moves both by √μ at most. μ is the square of what the new data break (after Yıldırım and
// Wright, "Warm-start strategies in interior-point methods", 2002: the farther the new solution, the
// earlier on the path its start must be). A start that does not pay is given up for the usual one.
#pragma once

#include "path.hpp"

namespace forewise::FOREWISE_ISA {

// √μ in units of the largest residual, and how large that residual may be.
constexpr double WARM_SHIFT = 0.5, TOO_FAR = 0.5;
constexpr double LEAST_WARM_MU = 1e-10;
// A warm path is given up where its residuals and μ together do not shrink to this share from one
// iteration to the next, all but the first taken together.
constexpr double WARM_PACE = 0.6;

// Passes iterations on, and stops a path that is slower than from a usual start.
struct Impatient {
    Listener outer;
    double expected = INFINITE;
    bool stopped = false;  // by the outer listener

    static bool stops(void* self, int context, int iteration, const double* progress) {
        Impatient& here = *static_cast<Impatient*>(self);
        if (here.outer.stops && here.outer.stops(here.outer.self, context, iteration, progress)) {
            return here.stopped = true;
        }
        const double level = progress[0] + larger(progress[1], progress[2]);
        if (iteration > 1) here.expected *= WARM_PACE;
        if (iteration == 0) here.expected = level;
        return !(level <= here.expected);
    }
};

// Put an inner point near the workspace's point into its place; false where that is too far from a
// solution, or not a number.
template <int W>
inline bool start_near(const Work& w) {
    inequality_rows<W>(w, w.point, w.Ax);
    double violation = 0.0;
    for (Size a = 0; a < w.of_rows; ++a) {
        w.slack[a] = w.bound[a] - w.Ax[a];
        violation = larger(violation, -w.slack[a] * w.inverse_norms[a]);
    }
    const Progress now = measure<W>(w, 0.0);
    const double broken = larger(larger(now.primal, now.dual), violation / now.size);
    // A comparison with NaN is false.
    if (!(broken <= TOO_FAR) || !(largest(w.point.rows, w.of_rows) < INFINITE)) return false;
    const double shift = WARM_SHIFT * broken;
    const double mu = larger(shift * shift, LEAST_WARM_MU);
    for (Size a = 0; a < w.of_rows; ++a) {
        const double unit = w.norms[a] / w.barrier[a];
        const double d = w.slack[a] * w.inverse_norms[a] - w.point.rows[a] * unit;
        const double root = std::sqrt(d * d + 4.0 * mu);
        const double most = 0.5 * (root + std::fabs(d)), least = mu / most;
        w.slack[a] = (d > 0.0 ? most : least) * w.norms[a];
        w.point.rows[a] = (d > 0.0 ? least : most) / unit;
    }
    return true;
}

// As `solve_context`, from the workspace's point.
template <int W>
inline Outcome solve_from_point(Work& w, const Options& options, double target) {
    if (!start_near<W>(w)) return solve_context<W>(w, options, target);
    Impatient listener{options.listener};
    Options brief = options;
    brief.listener = {&Impatient::stops, &listener};
    const Outcome outcome = follow<W>(w, brief, 0.0, target);
    const bool given_up = outcome.ended == STALLED || (outcome.ended == STOPPED && !listener.stopped);
    if (!given_up) return outcome;
    if (merit<W>(w, 0.0) <= ACCEPTED_MERIT || outcome.iterations >= options.max_iterations) {
        return {STALLED, outcome.iterations};
    }
    Options rest = options;
    rest.max_iterations -= outcome.iterations;
    w.passed = outcome.iterations;
    const Outcome cold = solve_context<W>(w, rest, target);
    return {cold.ended, outcome.iterations + cold.iterations};
}

}  // namespace forewise::FOREWISE_ISA
