// One step along a path: Mehrotra's predictor and corrector, and Gondzio's correctors.
#pragma once

#include "blending.hpp"
#include "measuring.hpp"

namespace forewise::FOREWISE_ISA {

// Of the way to the boundary: far from the solution, near it, and near that of a linear program,
// where nothing but this fraction limits how fast the gap falls.
constexpr double FAR_FRACTION = 0.995, NEAR_FRACTION = 0.9995, LINEAR_FRACTION = 0.9999999;
// Below which a step is taken back and the point recentred, and where it was blended before.
constexpr double SHORT_STEP = 0.1, SHORT_BLENDED = 0.01;
constexpr double CAREFUL_CENTRING = 0.2;  // what a step leaves of μ after two that brought nothing
// Relative deviation from the centre below which steps to it are full ones.
constexpr double NEARLY_CENTRED_STEP = 0.1;
// Expected deviation after which such a step is not corrected again.
constexpr double EXACTLY_CENTRED = 1e-12;
constexpr double RECENTRING = 0.8;  // what recentring leaves of μ and the residuals
// How often a step is refined, with simple and with linking recourse: before any row's Θ⁻¹ is nearly
// that of an active row, in units of the row, and from then on.
constexpr double NEARLY_ACTIVE = 1e-8;
constexpr int SIMPLE_REFINEMENTS[] = {0, 1}, LINKING_REFINEMENTS[] = {1, 3};
// Linking recourse may need so many more, until a correction is as small as this beside the step.
constexpr int MORE_REFINEMENTS = 5;
constexpr double REFINED = 1e-8;

// The longest step, at most `cap`, that keeps every position nonnegative.
inline double longest_step(const double* change, const double* inverse_position, Size size, double cap) {
    Lanes<8> fastest(-1.0 / cap);
    double last = -1.0 / cap;
    each(size, [&]<int N>(Size a) {
        const auto rate = Lanes<N>::load(change + a) * Lanes<N>::load(inverse_position + a);
        if constexpr (N == 8) {
            fastest = smallest_of(rate, fastest);
        } else {
            last = smaller(last, sum(rate));
        }
    });
    return -1.0 / smaller(last, -top(0.0 - fastest));
}

// Put the corrector's right-hand side into the workspace, from the predictor's step. What it asks of
// the residuals is what it asks of μ: to shrink to the share `centring`.
inline void correct(const Work& w, double mu, double centring, double aim, double second_order) {
    const double target = larger(centring * mu, aim);
    const double share = aim > 0.0 ? 1.0 : 1.0 - centring;
    copy(w.corrected.z, w.right.z, w.n, share);
    copy(w.corrected.u, w.right.u, w.of_u, share);
    copy(w.corrected.nu, w.right.nu, w.e, share);
    copy(w.corrected.nus, w.right.nus, w.of_nus, share);
    if (second_order == 0.0) {
        fill(w.change, w.of_rows, 0.0);  // a step that went to infinity may have left anything there
        fill(w.step.rows, w.of_rows, 0.0);
    }
    each(w.of_rows, [&]<int N>(Size a) {
        using L = Lanes<N>;
        const L slack = L::load(w.slack + a), change = L::load(w.change + a);
        const L product = second_order * change * L::load(w.step.rows + a) -
                          target * L::load(w.barrier + a);
        const L residual = slack - L::load(w.right.rows + a);
        (slack - share * residual + product * L::load(w.inverse_dual + a)).store(w.corrected.rows + a);
        // From here on, the part of the slack's change that does not depend on the direction.
        ((-share) * residual).store(w.change + a);
    });
}

// Refine the corrector's direction as often as it needs.
template <int W>
inline void refine_step(const Work& w, bool near) {
    const int usual = (w.linking ? LINKING_REFINEMENTS : SIMPLE_REFINEMENTS)[near];
    const int most = usual + (near && w.linking ? MORE_REFINEMENTS : 0);
    double left = 0.0;
    for (int i = 0; i < most; ++i) {
        if (i >= usual && left <= REFINED) break;
        left = refine<W>(w, w.corrected, w.corrected.rows, w.step, w.step_Ax);
    }
}

// Of centrality correctors: how much longer a step is aimed at, between which multiples of the centre
// products are to be, what share of the wanted gain a corrector must bring, and when none is needed.
constexpr double LONGER = 1.5, MORE = 0.3, NEAREST = 0.1, FARTHEST = 10.0, GAINED = 0.1;
constexpr double LONG_STEP = 0.9;
constexpr double LEAST_BLENDED = 0.1;  // share of a centrality corrector that is taken

// Of the way to the boundary, how much to go.
inline double fraction_of(double distance, bool linear) {
    const double longest = linear ? LINEAR_FRACTION : NEAR_FRACTION;
    return smaller(larger(FAR_FRACTION, 1.0 - distance), longest);
}

// Solve for the corrector's direction; returns how far variables and multipliers may go.
template <int W>
inline Steps corrector_steps(const Work& w, double fraction, bool near) {
    solve<W>(w, w.corrected, w.corrected.rows, w.step, w.step_Ax);
    refine_step<W>(w, near);
    add(w.change, w.step_Ax, w.of_rows, -1.0);
    const double cap = 1.0 / fraction;
    return {
        fraction * longest_step(w.change, w.inverse_slack, w.of_rows, cap),
        fraction * longest_step(w.step.rows, w.inverse_dual, w.of_rows, cap),
    };
}

// What the affine direction says: the share of μ to centre on, and how far it gets.
struct Prediction {
    double centring;
    Steps steps;
};

template <int W>
inline Prediction predict(const Work& w) {
    solve<W>(w, w.right, w.right.rows, w.step, w.step_Ax);
    const double *slack = w.slack, *dual = w.point.rows;
    each(w.of_rows, [&]<int N>(Size a) {
        using L = Lanes<N>;
        (L::load(w.right.rows + a) - L::load(slack + a) - L::load(w.step_Ax + a)).store(w.change + a);
    });
    const double primal_step = longest_step(w.change, w.inverse_slack, w.of_rows, 1.0);
    const double dual_step = longest_step(w.step.rows, w.inverse_dual, w.of_rows, 1.0);
    const double reached = sum_over<W>(w, w.r, w.g, [&]<int N>(Size a) {
        using L = Lanes<N>;
        return (L::load(slack + a) + primal_step * L::load(w.change + a)) *
               (L::load(dual + a) + dual_step * L::load(w.step.rows + a));
    });
    const double total = inner_over<W>(w, w.r, w.g, slack, dual);
    const double share = smaller(larger(reached / larger(total, TINY), 0.0), 1.0);
    return {share * share * share, {primal_step, dual_step}};
}

// Put Θ⁻¹ and the reciprocals into the workspace; tells whether a row is nearly active.
inline bool put_ratios(const Work& w) {
    Lanes<8> least(1.0);
    double last = 1.0;
    each(w.of_rows, [&]<int N>(Size a) {
        using L = Lanes<N>;
        const L slack = L::load(w.slack + a), dual = L::load(w.point.rows + a);
        const L both = 1.0 / (slack * dual), inverse_dual = slack * both;
        const L inverse_theta = slack * inverse_dual;
        (dual * both).store(w.inverse_slack + a);
        inverse_dual.store(w.inverse_dual + a);
        inverse_theta.store(w.inverse_theta + a);
        const L apart = inverse_theta - NEARLY_ACTIVE * L::load(w.unit + a);
        if constexpr (N == 8) {
            least = smallest_of(apart, least);
        } else {
            last = smaller(last, sum(apart));
        }
    });
    return smaller(last, -top(0.0 - least)) < 0.0;
}

// After Gondzio, "Multiple centrality correctors in a primal–dual method" (1996): products slack·λ that
// a somewhat longer step would leave far from the centre are brought nearer to it. A corrector that
// does not make the steps longer is given back.
template <int W>
inline Steps correct_centrality(
    const Work& w, double target, double share, double fraction, bool linear, bool near, Steps steps
) {
    for (int i = 0; i < w.correctors && smaller(steps.primal, steps.dual) < LONG_STEP; ++i) {
        copy_direction(w, w.step, w.step_Ax, w.change, w.kept, w.kept_Ax, w.kept_change);
        const double primal = smaller(1.0, LONGER * steps.primal + MORE);
        const double dual = smaller(1.0, LONGER * steps.dual + MORE);
        each(w.of_rows, [&]<int N>(Size a) {
            using L = Lanes<N>;
            const L slack = L::load(w.slack + a), centre = target * L::load(w.barrier + a);
            const L product = (slack + primal * L::load(w.change + a)) *
                              (L::load(w.point.rows + a) + dual * L::load(w.step.rows + a));
            const L wanted = smallest_of(largest_of(product, NEAREST * centre), FARTHEST * centre);
            const L moved = largest_of(wanted - product, (-FARTHEST) * centre);
            const L rows = L::load(w.corrected.rows + a);
            (rows - moved * L::load(w.inverse_dual + a)).store(w.corrected.rows + a);
            (share * (L::load(w.right.rows + a) - slack)).store(w.change + a);
        });
        Steps longer = corrector_steps<W>(w, fraction, near);
        longer = blend(w, LEAST_BLENDED, linear, fraction, longer);
        const double before = steps.primal + steps.dual;
        if (!(longer.primal + longer.dual >= before + GAINED * MORE) ||
            smaller(longer.primal, longer.dual) < 0.9 * smaller(steps.primal, steps.dual)) {
            copy_direction(w, w.kept, w.kept_Ax, w.kept_change, w.step, w.step_Ax, w.change);
            return steps;
        }
        steps = longer;
    }
    return steps;
}

// One predictor–corrector step (Mehrotra's) from the point that was measured.
template <int W>
inline void take_step(const Work& w, const Progress& now, bool linear, bool careful, double aim) {
    const double mu = now.mu;
    // Far from the solution μ can be small beside costs that are smaller still.
    const double fraction = fraction_of(w.linking ? larger(mu, now.gap) : mu, linear);
    const bool near = put_ratios(w);
    factor<W>(w);

    double centring = -1.0;  // of a step that may be corrected again
    Steps affine{};
    if (mu <= 2.0 * aim) {
        // Close to the centre that is aimed at, plain Newton steps converge fastest.
        correct(w, mu, 0.0, aim, 0.0);
    } else if (careful) {
        // The second-order term can send a path in circles: centre instead.
        correct(w, mu, CAREFUL_CENTRING, aim, 0.0);
    } else {
        // Predictor: straight at the solution. How far it gets says how much to centre.
        const Prediction prediction = predict<W>(w);
        centring = prediction.centring, affine = prediction.steps;
        if (w.linking) copy_direction(w, w.step, w.step_Ax, w.change, w.kept, w.kept_Ax, w.kept_change);
        // Corrector: towards the centre, minus the predictor's second-order error.
        correct(w, mu, centring, aim, 1.0);
    }
    Steps steps = corrector_steps<W>(w, fraction, near);
    const bool blended = w.linking && centring >= 0.0;
    if (blended && smaller(steps.primal, steps.dual) < LONG_STEP) {
        steps = blend(w, affine.primal * affine.dual, linear, fraction, steps);
    }
    if (w.correctors && centring >= 0.0 && aim == 0.0) {
        steps = correct_centrality<W>(w, centring * mu, 1.0 - centring, fraction, linear, near, steps);
    }
    if (mu <= 2.0 * aim && now.gap <= NEARLY_CENTRED_STEP) {
        // Each correction with the same factor leaves about a quarter of the deviation of what there
        // was, and together they cost less than the step that they save.
        double left = (0.25 * now.gap) * (0.25 * now.gap);
        while (left > EXACTLY_CENTRED) {
            correct(w, mu, 0.0, aim, 1.0);
            steps = corrector_steps<W>(w, fraction, near);
            left *= 0.25 * now.gap;
        }
    }
    if (smaller(steps.primal, steps.dual) < (blended ? SHORT_BLENDED : SHORT_STEP)) {
        // Off the centre, the second-order term misleads: go back towards the centre first.
        correct(w, mu, RECENTRING, aim, 0.0);
        steps = corrector_steps<W>(w, fraction, near);
    }
    // Quadratic costs tie the multipliers to the variables: both take the shorter step.
    if (!linear) steps.primal = steps.dual = smaller(steps.primal, steps.dual);
    add(w.slack, w.change, w.of_rows, steps.primal);
    add(w.Ax, w.step_Ax, w.of_rows, steps.primal);
    add(w.point.z, w.step.z, w.n, steps.primal);
    add(w.point.u, w.step.u, w.of_u, steps.primal);
    add(w.point.rows, w.step.rows, w.of_rows, steps.dual);
    add(w.point.nu, w.step.nu, w.e, steps.dual);
    add(w.point.nus, w.step.nus, w.of_nus, steps.dual);
}

}  // namespace forewise::FOREWISE_ISA
