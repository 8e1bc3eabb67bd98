// Following the central path of one context: a primal–dual interior-point method.
//
// The path is that of a *weighted* barrier, in which a scenario counts by its weight,
//
//     slack_i λ_i = ω_i μ,   ω_i = 1 for a first-stage row, 16 w_j for a row of scenario j,
//
// so that the path, and the centre of a face of optima where it ends, do not depend on how many
// scenarios describe the same distribution.
#pragma once

#include "loading.hpp"
#include "starting.hpp"
#include "stepping.hpp"

namespace forewise::FOREWISE_ISA {

// How a path ended; `interior_point/core.py` has the same numbers.
enum Ended : int {
    CONVERGED = 1,
    STALLED = 2,
    PRIMAL_RAY = 3,  // the variables diverge along a ray of falling cost: unbounded
    DUAL_RAY = 4,    // the multipliers diverge along a proof that nothing is feasible
    LOST = 5,        // the centre that was looked for is far away, or nowhere
    STOPPED = 6,     // the listener wanted no more
};

constexpr double CENTRED = 1e-11;  // residuals and relative deviation of a point that is on the path
constexpr double NEARLY_CENTRED = 1e-6;  // the same of a point that is as good as there
constexpr double GAP = 1e-3;  // tolerance of the relative gap, against that of the residuals
// Where many bases are optimal, the gap of a linear program may fall slowly to the end: a step that leaves
// more of it than this is the last one, if it is below the tolerance of the residuals.
constexpr double SLOW = 0.1;
constexpr double ACCEPTED_MERIT = 1e-9;  // of a stalled path, to be kept without a second try
constexpr double FIRST_SHIFT = 0.03, SECOND_SHIFT = 1.0;  // smallest slack at the two starts
constexpr int PATIENCE = 8;  // iterations without progress before a context is given up
constexpr double VANISHED = 1e-12;   // μ below which its fall says nothing
constexpr double FAR_AWAY = 1e2;     // size of variables from which a centre is not looked for
constexpr double DIVERGING = 1e3;    // size of variables or multipliers from which rays are looked for

struct Outcome {
    int ended, iterations;
};

inline void copy_point(
    const Work& w, const Point& from, const double* slack, const Point& to, double* to_slack
) {
    copy(to.z, from.z, w.n, 1.0), copy(to.u, from.u, w.of_u, 1.0);
    copy(to.rows, from.rows, w.of_rows, 1.0);
    copy(to.nu, from.nu, w.e, 1.0), copy(to.nus, from.nus, w.of_nus, 1.0);
    copy(to_slack, slack, w.of_rows, 1.0);
}

// Add to the costs what keeps a centre from going to infinity. Where decisions as large as one likes
// are optimal, the barrier drives them there. ½ target |x|², weighed as all rows together are, holds
// them at the distance of the rows.
template <int W>
inline void hold(Work& w, double target) {
    w.hold += target * w.barrier_sum;
    const Pattern& P = w.structure().P;
    for (int a = 0; a < w.n; ++a) {
        for (int c = P.starts[a]; c < P.starts[a + 1]; ++c) {
            if (P.columns[c] == a) w.P[c] += target * w.barrier_sum;
        }
    }
}

// The largest of the residuals and the relative gap, or deviation from the centre.
template <int W>
inline double merit(const Work& w, double target) {
    inequality_rows<W>(w, w.point, w.Ax);
    const Progress now = measure<W>(w, target);
    return larger(larger(now.primal, now.dual), now.gap);
}

// Follow the path from the workspace's point. With a positive `target` it ends at the point where
// slack·λ = ω·target exactly, else at the solution. The first point whose μ is not above twice
// `early` is put aside: the next one may be off the centre by far.
template <int W>
inline Outcome follow(Work& w, const Options& options, double target, double early) {
    const bool linear = w.curved == 0.0 && w.hold == 0.0;
    double best = INFINITE, lowest = INFINITE, last_gap = 0.0;
    int waited = 0, iteration = 0, ended = STALLED;
    bool is_best = false;
    inequality_rows<W>(w, w.point, w.Ax);
    for (; iteration <= options.max_iterations; ++iteration) {
        const Progress now = measure<W>(w, target);
        const double residual = larger(now.primal, now.dual);
        const double small = target > 0.0 ? CENTRED : options.tolerance;
        const bool slow = linear && target == 0.0 && now.gap > SLOW * last_gap;
        const double small_gap =
            target > 0.0 ? CENTRED : (slow && iteration > 0 ? 1.0 : GAP) * options.tolerance;
        last_gap = now.gap;
        // The start is a least-squares point, and may pass without having been refined.
        if (iteration > 0 && residual <= small && now.gap <= small_gap) return {CONVERGED, iteration};
        if (now.multipliers > DIVERGING && is_dual_ray<W>(w)) return {DUAL_RAY, iteration};
        if (now.size > DIVERGING && is_primal_ray<W>(w)) return {PRIMAL_RAY, iteration};
        if (target > 0.0 && FAR_AWAY < now.size && now.size < INFINITE) return {LOST, iteration};
        if (now.mu <= 2.0 * early) {
            copy_point(w, w.point, w.slack, w.early, w.early_slack);
            early = 0.0;
        }
        const double worst = residual > now.gap || residual != residual ? residual : now.gap;
        // A falling μ is progress, whatever the gap is relative to; it may take several steps.
        const bool falling = now.mu < 0.9 * lowest && now.mu > VANISHED;
        waited = worst < 0.9 * best || falling ? 0 : waited + 1;
        if (falling) lowest = now.mu;
        is_best = worst < best;
        if (is_best) best = worst;
        if (waited >= (best > ACCEPTED_MERIT ? PATIENCE : 2) || !std::isfinite(worst)) break;
        const Listener& listener = options.listener;
        const double progress[] = {now.mu, now.primal, now.dual, now.gap};
        if (listener.stops && listener.stops(listener.self, w.context, w.passed + iteration, progress)) {
            ended = STOPPED;
            break;
        }
        take_step<W>(w, now, linear, waited >= 2, target, is_best);
        is_best = false;
    }
    if (iteration > options.max_iterations) iteration = options.max_iterations;
    if (best < INFINITE && !is_best) copy_point(w, w.best, w.best_slack, w.point, w.slack);
    if (early > 0.0) copy_point(w, w.point, w.slack, w.early, w.early_slack);
    return {ended, iteration};
}

// Follow the path from its start to the solution, twice if need be. The point where μ falls below
// twice the `target` is put aside for `find_centre`.
//
// Where more rows are active than there are variables, the floor freezes their multipliers. Where
// the start lies too close to the boundary, steps are short. Both are started again without the floor
// and farther away, and the better end is kept.
template <int W>
inline Outcome solve_context(Work& w, const Options& options, double target) {
    start<W>(w, FIRST_SHIFT);
    Outcome outcome = follow<W>(w, options, 0.0, target);
    if (outcome.ended != STALLED) return outcome;
    const double first = merit<W>(w, 0.0);
    if (!(first > ACCEPTED_MERIT)) return outcome;
    copy_point(w, w.point, w.slack, w.first, w.first_slack);
    w.floor = 0.0;
    w.passed = outcome.iterations;
    start<W>(w, SECOND_SHIFT);
    Options rest = options;
    rest.max_iterations -= outcome.iterations;
    const Outcome second = follow<W>(w, rest, 0.0, target);
    if ((second.ended == STALLED || second.ended == STOPPED) && merit<W>(w, 0.0) > first) {
        copy_point(w, w.first, w.first_slack, w.point, w.slack);
    }
    return {second.ended, outcome.iterations + second.iterations};
}

// Go from the workspace's point to the centre at `target`; returns how that ended.
template <int W>
inline int seek_centre(Work& w, const Options& options, double target) {
    const Outcome outcome = follow<W>(w, options, target, 0.0);
    if (outcome.ended == STALLED && merit<W>(w, target) <= NEARLY_CENTRED) return CONVERGED;
    return outcome.ended;
}

// Put the point of the central path at `target` into the workspace; returns how it is held. Solving
// comes first, and this goes back: so the solution does not depend on the target.
template <int W>
inline double find_centre(Work& w, const Options& options, double target) {
    copy_point(w, w.early, w.early_slack, w.point, w.slack);
    int ended = seek_centre<W>(w, options, target);
    if (ended == STALLED) {
        // The path went by far from its centre, and the way back was along the boundary.
        start<W>(w, SECOND_SHIFT);
        ended = seek_centre<W>(w, options, target);
    }
    if (ended == CONVERGED) return 0.0;
    hold<W>(w, target);
    copy_point(w, w.early, w.early_slack, w.point, w.slack);
    if (seek_centre<W>(w, options, target) != CONVERGED) {
        start<W>(w, SECOND_SHIFT);
        seek_centre<W>(w, options, target);
    }
    return target;
}

}  // namespace forewise::FOREWISE_ISA
