// The scratch memory in which one context is solved.
//
// Scenarios of weight zero are left out when a context is loaded. The others stand in tiles of W,
// which are the lanes of every number: blocks of all scenarios are (tiles, entries, W), and one that
// the scenarios share is (1, entries, W). The last tile is filled up with copies of the last
// scenario: they do exactly what that one does, so that they change no largest or smallest value;
// sums leave them out.
//
// Inequality rows stand in one flat vector: those of the scenarios, tile by tile, then those of the
// first stage, so that elementwise work is one loop.
#pragma once

#include "kernels.hpp"
#include "lanes.hpp"

namespace forewise::FOREWISE_ISA {

using Size = std::ptrdiff_t;

// Variables, inequality rows and equality rows.
struct Point {
    double *z, *u, *rows, *nu, *nus;
};

// Entries of a block of all scenarios.
struct Entries {
    double* data;
    Size stride;  // from tile to tile
    bool shared;  // whether the scenarios share them; the stride is 0 then

    const double* of(int tile) const { return data + tile * stride; }
};

struct Work {
    const Plan* plan;
    int context, passed;  // which one is loaded, and iterations of its paths before this one
    int correctors;       // that a step may have beside Mehrotra's
    int n, k, g, e, t, r, s, links;
    // Of the context that is loaded.
    int M, tiles, valid;  // scenarios, their tiles, and how many of the last one's lanes count
    Size of_u, of_rows, of_nus, scenario_rows;  // lengths of vectors
    double barrier_sum;  // of all rows' ω
    double hold;   // curvature that keeps a centre from going to infinity
    double floor;  // of Θ⁻¹
    double reach;  // the largest distance to a row's boundary
    double curved;  // the largest curvature
    bool linking;
    bool near;  // whether a row of the factored system is nearly active

    // The iterate, the best one so far, the end of a first try, one near a centre that is wanted
    // later, the right-hand side of the predictor, a direction, and what refinement needs.
    Point point, best, first, early, right, step, error, correction;
    Point kept;  // the predictor's direction, or one that a corrector is given back for
    double *kept_Ax, *kept_change;
    double *slack, *best_slack, *first_slack, *early_slack, *inverse_slack, *inverse_dual;
    double *Ax, *step_Ax, *correction_Ax, *change;
    double* corrected;  // rows of the corrector's right-hand side
    // The scaled program.
    int* scenario;  // (tiles W,) where each lane's scenario is
    double *weight, *mask;  // (tiles W,): mask is 1, and 0 for copies
    double *P, *G, *E, *q, *h_equal;  // entries of P, G, E; q; e
    double *cost, *bound, *equals;
    Entries T, W, own, F, V, D, off;
    // Of every row: its largest coefficient, one over that, its weight ω in the barrier, and
    // norm²/ω, the unit of its Θ⁻¹.
    double *norms, *inverse_norms, *barrier, *unit, *equal_norms, *equals_norms;
    // The factored system.
    double *inverse_theta, *theta, *S, *scale, *bridge, *N;
    double *H, *kappa, *coupling, *shared;
    double *factor;   // (tiles, entries of L, W)
    double *given;    // (tiles, nodes, W) right sides of the linking systems
    // Of one tile.
    double *solved, *reached, *scales, *solution, *items, *scaled_items, *scaled_W;
    // Sums over tiles, lane by lane.
    double *S_lanes, *sums_T, *sums_F, *times_T, *times_F;
    bool lanes_of_S;

    const Structure& structure() const { return plan->structure; }
    const Elimination& elimination() const { return plan->elimination; }
};

constexpr int BATCH = 16;  // rows whose squares are added together
constexpr int LARGEST_LANES = 256;  // first-stage variables up to which S is kept lane by lane

// Gives out parts of a buffer, each at the beginning of a line of the cache; counts if there is none.
struct Arena {
    double* memory;
    Size used = 0;

    double* take(Size count) {
        double* part = memory ? memory + used : nullptr;
        used += (count + 7) / 8 * 8;
        return part;
    }
};

// A corrector costs a solution and its refinements, about five reads of the factor each.
inline int correctors_worth(const Elimination& e) {
    const double ratio = e.work / (5.0 * e.entries + 1.0);
    return ratio > 60.0 ? 2 : ratio > 20.0 ? 1 : 0;
}

template <int W>
inline Size lay_out(Work& w, const Program& p, const Plan& plan, double* memory) {
    Arena arena{memory};
    const Structure& s = plan.structure;
    const Elimination& el = plan.elimination;
    w = Work{};
    w.plan = &plan;
    w.n = p.n, w.k = p.k, w.g = p.g, w.e = p.e, w.t = p.t, w.r = p.r, w.s = p.s;
    w.links = int(s.linking.size());
    w.linking = s.is_linking();
    const Size tiles = (p.M + W - 1) / W, lanes = tiles * W;
    const Size n = p.n, rows = lanes * p.r + p.g;
    for (Point* point : {&w.point, &w.best, &w.first, &w.early, &w.right, &w.step, &w.error,
                         &w.correction}) {
        point->z = arena.take(n), point->u = arena.take(lanes * p.k);
        point->rows = arena.take(rows), point->nu = arena.take(p.e);
        point->nus = arena.take(lanes * p.s);
    }
    for (double** part :
         {&w.slack, &w.best_slack, &w.first_slack, &w.early_slack, &w.inverse_slack,
          &w.inverse_dual, &w.Ax, &w.step_Ax, &w.correction_Ax, &w.change, &w.corrected, &w.bound,
          &w.norms, &w.inverse_norms, &w.barrier, &w.unit, &w.inverse_theta, &w.theta}) {
        *part = arena.take(rows);
    }
    w.correctors = w.linking ? correctors_worth(el) : 0;
    if (w.linking) {
        w.kept.z = arena.take(n), w.kept.u = arena.take(lanes * p.k), w.kept.rows = arena.take(rows);
        w.kept.nu = arena.take(p.e), w.kept.nus = arena.take(lanes * p.s);
        w.kept_Ax = arena.take(rows), w.kept_change = arena.take(rows);
    }
    w.scenario = reinterpret_cast<int*>(arena.take(lanes));
    w.weight = arena.take(lanes), w.mask = arena.take(lanes);
    w.P = arena.take(s.P.entries()), w.G = arena.take(s.G.entries());
    w.E = arena.take(s.E.entries()), w.q = arena.take(n), w.h_equal = arena.take(p.e);
    w.cost = arena.take(lanes * p.k), w.equals = arena.take(lanes * p.s);
    auto entries = [&](Size count, const Block& block) {
        const bool shared = block.scenarios == 1;
        return Entries{arena.take(count * (shared ? W : lanes)), shared ? 0 : count * W, shared};
    };
    w.T = entries(s.T.entries(), p.T), w.F = entries(s.F.entries(), p.F);
    w.W = entries(s.W.entries(), p.W), w.own = entries(p.r, p.W);
    w.V = entries(s.V.entries(), p.V);
    w.D = entries(p.k, p.D), w.off = entries(s.off.entries(), p.D);
    w.equal_norms = arena.take(p.e), w.equals_norms = arena.take(lanes * p.s);
    w.S = arena.take(n * n), w.scale = arena.take(n > p.e ? n : p.e);
    w.bridge = arena.take(n * p.e), w.N = arena.take(Size(p.e) * p.e);
    w.H = arena.take(lanes * p.k);
    w.kappa = arena.take(lanes * p.r), w.coupling = arena.take(lanes * p.r);
    w.shared = arena.take(lanes * p.r);
    w.factor = arena.take(lanes * el.entries), w.given = arena.take(lanes * el.nodes);
    w.solved = arena.take(Size(W) * el.nodes), w.scales = arena.take(Size(W) * el.nodes);
    w.reached = arena.take(Size(W) * el.reached_entries);
    w.solution = arena.take(Size(W) * el.solution_entries);
    w.items = arena.take(Size(W) * BATCH * el.widest_tree);
    w.scaled_items = arena.take(Size(W) * BATCH * el.widest_tree);
    w.scaled_W = arena.take(Size(W) * s.W.entries());
    w.lanes_of_S = w.linking && p.n <= LARGEST_LANES;
    w.S_lanes = arena.take(w.lanes_of_S ? W * n * (n + 1) / 2 : 0);
    w.sums_T = arena.take(W * (p.T.scenarios == 1 ? Size(p.t) : n));
    w.sums_F = arena.take(W * (p.F.scenarios == 1 ? Size(p.s) : n));
    w.times_T = arena.take(p.t), w.times_F = arena.take(p.s);
    return arena.used;
}

}  // namespace forewise::FOREWISE_ISA
