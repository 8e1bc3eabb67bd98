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
// A step is refined once a row is nearly active; before, the next step takes back what rounding left. How
// often at most, and above which share of the residuals its errors are not left to the next step; those of
// rows are relative to their slacks.
constexpr int REFINEMENTS = 3;
constexpr double SHARE_LEFT = 0.1, ROWS_LEFT = 0.1;
constexpr double ACCURATE = 1e-11;  // residuals below which no error is too large,
constexpr double EXACT = 1e-14;     // and errors that are left on the way to a centre

// The longest step, at most `cap`, that keeps every position nonnegative, by its least rate.
struct LongestStep {
    Least rate;

    explicit LongestStep(double cap) : rate(-1.0 / cap) {}
    template <int N>
    LANES_INLINE void add(Lanes<N> change, Lanes<N> inverse_position) {
        rate.add(change * inverse_position);
    }
    double value() const { return -1.0 / rate.value(); }
};

// A direction: variables and multipliers, A x, and the change of the slacks.
struct Direction {
    const Point& point;
    double *Ax, *change;
};

inline Direction step_of(const Work& w) { return {w.step, w.step_Ax, w.change}; }
// Where the predictor's goes: it is kept where correctors are blended with it.
inline Direction predictor_of(const Work& w) {
    return w.linking ? Direction{w.kept, w.kept_Ax, w.kept_change} : step_of(w);
}

// What a corrector asks for: μ to shrink to a share of itself or to the target `aim`, residuals to the
// same share, products to move by what the predictor leaves out, `second_order` of it.
struct Wish {
    double mu, centring, aim, second_order;

    double target() const { return larger(centring * mu, aim); }
    double share() const { return aim > 0.0 ? 1.0 : 1.0 - centring; }
};

// Put the corrector's right-hand side, rows of a tile, into the workspace, from the predictor's direction.
template <int W>
inline void put_corrected(const Work& w, int tile, const Wish& wish, const Direction& predictor) {
    const double target = wish.target(), share = wish.share();
    each_row<W>(w, tile, [&]<int N>(Size a, Lanes<N>) LANES_LAMBDA {
        using L = Lanes<N>;
        const L slack = L::load(w.slack + a);
        L product = (-target) * L::load(w.barrier + a);
        if (wish.second_order != 0.0) {
            product += wish.second_order * L::load(predictor.change + a) * L::load(predictor.point.rows + a);
        }
        const L residual = slack - L::load(w.right.rows + a);
        (slack - share * residual + product * L::load(w.inverse_dual + a)).store(w.corrected + a);
        // From here on, the part of the slack's change that does not depend on the direction.
        ((-share) * residual).store(w.change + a);
    });
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

// Solve for a corrector's direction; returns how far variables and multipliers may go. `before` puts the
// right-hand side of every tile into the workspace.
template <int W, class Before>
inline Steps corrector_steps(
    const Work& w, const Progress& now, const Wish& wish, double fraction, Before before
) {
    const Right right{w.right, wish.share(), w.corrected};
    const double cap = 1.0 / fraction;
    Steps steps{};
    auto walk = [&](const double* Ax, auto solve_it) {
        LongestStep primal(cap), dual(cap);
        const double done = solve_it([&](int tile) LANES_LAMBDA {
            each_row<W>(w, tile, [&]<int N>(Size a, Lanes<N>) LANES_LAMBDA {
                using L = Lanes<N>;
                const L change = L::load(w.change + a) - L::load(Ax + a);
                change.store(w.change + a);
                primal.add(change, L::load(w.inverse_slack + a));
                dual.add(L::load(w.step.rows + a), L::load(w.inverse_dual + a));
            });
        });
        if (done != 0.0) steps = {fraction * primal.value(), fraction * dual.value()};
        return done;
    };
    walk(w.step_Ax, [&](auto then) {
        solve<W>(w, right, w.step, w.step_Ax, before, then);
        return 1.0;
    });
    if (!w.near && (wish.aim == 0.0 || !w.linking)) return steps;
    Errors small{
        SHARE_LEFT * larger(now.dual, ACCURATE), SHARE_LEFT * larger(now.primal, ACCURATE) * now.size,
        ROWS_LEFT
    };
    if (wish.aim > 0.0) small = {EXACT, EXACT, EXACT};
    // Simple recourse cannot afford more than one on the way to a centre, nor does it need more.
    const int most = wish.aim > 0.0 && !w.linking ? 1 : REFINEMENTS;
    for (int i = 0; i < most; ++i) {
        const double done = walk(w.correction_Ax, [&](auto then) {
            return refine<W>(w, right, w.step, w.step_Ax, small, then);
        });
        if (done == 0.0) break;
    }
    return steps;
}

template <int W>
inline Steps corrector_steps(
    const Work& w, const Progress& now, const Wish& wish, double fraction, const Direction& predictor
) {
    return corrector_steps<W>(w, now, wish, fraction, [&](int tile) LANES_LAMBDA {
        put_corrected<W>(w, tile, wish, predictor);
    });
}

// What the affine direction says: the share of μ to centre on, and how far it gets.
struct Prediction {
    double centring;
    Steps steps;
};

// Factor the system, and solve it for the affine direction.
template <int W>
inline Prediction predict(Work& w, double mu) {
    const Right right{w.right, 1.0, w.right.rows};
    const Direction to = predictor_of(w);
    begin<W>(w);
    factor<W>(w, [&](int tile) LANES_LAMBDA { reduce<W>(w, tile, right, to.point); });
    LongestStep primal(1.0), dual(1.0);
    Sum of_change, of_multiplier, of_both;  // what the products slack·λ gain
    finish<W>(w, right, to.point, to.Ax, [&](int tile) LANES_LAMBDA {
        each_row<W>(w, tile, [&]<int N>(Size a, Lanes<N> mask) LANES_LAMBDA {
            using L = Lanes<N>;
            const L slack = L::load(w.slack + a), step = L::load(to.point.rows + a);
            const L change = L::load(w.right.rows + a) - slack - L::load(to.Ax + a);
            change.store(to.change + a);
            primal.add(change, L::load(w.inverse_slack + a));
            dual.add(step, L::load(w.inverse_dual + a));
            const L counted = mask * step;
            of_change.add(mask * change * L::load(w.point.rows + a));
            of_multiplier.add(counted * slack);
            of_both.add(counted * change);
        });
    });
    const double primal_step = primal.value(), dual_step = dual.value();
    const double total = mu * w.barrier_sum;
    const double reached = total + primal_step * of_change.value() + dual_step * of_multiplier.value() +
                           primal_step * dual_step * of_both.value();
    const double share = smaller(larger(reached / larger(total, TINY), 0.0), 1.0);
    return {share * share * share, {primal_step, dual_step}};
}

// After Gondzio, "Multiple centrality correctors in a primal–dual method" (1996): products slack·λ that
// a somewhat longer step would leave far from the centre are brought nearer to it. A corrector that
// does not make the steps longer is given back.
template <int W>
inline Steps correct_centrality(
    const Work& w, const Progress& now, const Wish& wish, double fraction, bool linear, Steps steps
) {
    const double target = wish.target(), share = wish.share();
    for (int i = 0; i < w.correctors && smaller(steps.primal, steps.dual) < LONG_STEP; ++i) {
        copy_direction(w, w.step, w.step_Ax, w.change, w.kept, w.kept_Ax, w.kept_change);
        const double primal = smaller(1.0, LONGER * steps.primal + MORE);
        const double dual = smaller(1.0, LONGER * steps.dual + MORE);
        Steps longer = corrector_steps<W>(w, now, wish, fraction, [&](int tile) {
            each_row<W>(w, tile, [&]<int N>(Size a, Lanes<N>) LANES_LAMBDA {
                using L = Lanes<N>;
                const L slack = L::load(w.slack + a), centre = target * L::load(w.barrier + a);
                const L product = (slack + primal * L::load(w.change + a)) *
                                  (L::load(w.point.rows + a) + dual * L::load(w.step.rows + a));
                const L wanted = smallest_of(largest_of(product, NEAREST * centre), FARTHEST * centre);
                const L moved = largest_of(wanted - product, (-FARTHEST) * centre);
                const L rows = L::load(w.corrected + a);
                (rows - moved * L::load(w.inverse_dual + a)).store(w.corrected + a);
                (share * (L::load(w.right.rows + a) - slack)).store(w.change + a);
            });
        });
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

template <class Any>
inline void exchange(Any& a, Any& b) {
    const Any c = a;
    a = b, b = c;
}

// to := from + factor step
inline void move(double* to, const double* from, const double* step, Size size, double factor) {
    for (Size a = 0; a < size; ++a) to[a] = from[a] + factor * step[a];
}

// One predictor–corrector step (Mehrotra's) from the point that was measured; `is_best` says to put that
// point aside.
template <int W>
inline void take_step(
    Work& w, const Progress& now, bool linear, bool careful, double aim, bool is_best
) {
    const double mu = now.mu;
    // Far from the solution μ can be small beside costs that are smaller still.
    const double fraction = fraction_of(w.linking ? larger(mu, now.gap) : mu, linear);
    const Direction predictor = predictor_of(w);
    Wish wish{mu, 0.0, aim, 0.0};
    Steps affine{};
    // Close to the centre that is aimed at, plain Newton steps converge fastest. And the second-order term
    // can send a path in circles: then centre instead.
    const bool close = mu <= 2.0 * aim, predicted = !close && !careful;
    if (predicted) {
        // Predictor: straight at the solution. How far it gets says how much to centre.
        const Prediction prediction = predict<W>(w, mu);
        affine = prediction.steps;
        // Corrector: towards the centre, minus the predictor's second-order error.
        wish.centring = prediction.centring, wish.second_order = 1.0;
    } else {
        factor<W>(w, nothing);
        if (!close) wish.centring = CAREFUL_CENTRING;
    }
    Steps steps = corrector_steps<W>(w, now, wish, fraction, predictor);
    const bool blended = w.linking && predicted;
    if (blended && smaller(steps.primal, steps.dual) < LONG_STEP) {
        steps = blend(w, affine.primal * affine.dual, linear, fraction, steps);
    }
    if (w.correctors && predicted && aim == 0.0) {
        steps = correct_centrality<W>(w, now, wish, fraction, linear, steps);
    }
    if (close && now.gap <= NEARLY_CENTRED_STEP) {
        // Each correction with the same factor leaves about a quarter of the deviation of what there
        // was, and together they cost less than the step that they save.
        wish.second_order = 1.0;
        double left = (0.25 * now.gap) * (0.25 * now.gap);
        while (left > EXACTLY_CENTRED) {
            steps = corrector_steps<W>(w, now, wish, fraction, step_of(w));
            left *= 0.25 * now.gap;
        }
    }
    if (smaller(steps.primal, steps.dual) < (blended ? SHORT_BLENDED : SHORT_STEP)) {
        // Off the centre, the second-order term misleads: go back towards the centre first.
        steps = corrector_steps<W>(w, now, {mu, RECENTRING, aim, 0.0}, fraction, step_of(w));
    }
    // Quadratic costs tie the multipliers to the variables: both take the shorter step.
    if (!linear) steps.primal = steps.dual = smaller(steps.primal, steps.dual);
    if (is_best) exchange(w.point, w.best), exchange(w.slack, w.best_slack);
    const Point& from = is_best ? w.best : w.point;
    move(w.slack, is_best ? w.best_slack : w.slack, w.change, w.of_rows, steps.primal);
    add(w.Ax, w.step_Ax, w.of_rows, steps.primal);
    move(w.point.z, from.z, w.step.z, w.n, steps.primal);
    move(w.point.u, from.u, w.step.u, w.of_u, steps.primal);
    move(w.point.rows, from.rows, w.step.rows, w.of_rows, steps.dual);
    move(w.point.nu, from.nu, w.step.nu, w.e, steps.dual);
    move(w.point.nus, from.nus, w.step.nus, w.of_nus, steps.dual);
}

}  // namespace forewise::FOREWISE_ISA
