// A range of contexts, one after the other: compiled once for every instruction set.
#include "kernels.hpp"

#include "path.hpp"
#include "warm.hpp"

namespace forewise::FOREWISE_ISA {
namespace {

// A gradient is taken as if no row were more active than this, in units of the row: close enough to
// the limit for seven digits, and far enough from it to solve the system accurately.
constexpr double ACTIVE = 1e-9;
constexpr int ADJOINT_REFINEMENTS = 4;
constexpr double ADJOINT_REFINED = 1e-10;  // relative correction after which it is not refined again

// (tiles, size, W) to (M, size).
template <int W>
void unload(const Work& w, const double* source, Size size, double factor, double* out) {
    for (int j = 0; j < w.M; ++j) {
        const double* from = source + (j / W) * size * W + j % W;
        double* to = out + w.scenario[j] * size;
        for (Size a = 0; a < size; ++a) to[a] = factor * from[a * W];
    }
}

// (M, size) to (tiles, size, W).
template <int W>
void load_points(const Work& w, const double* source, Size size, double factor, double* out) {
    for (int j = 0; j < w.tiles * W; ++j) {
        const double* from = source + w.scenario[j] * size;
        double* to = out + (j / W) * size * W + j % W;
        for (Size a = 0; a < size; ++a) to[a * W] = factor * from[a];
    }
}

// Write a point of the scaled program to the batch, in the user's units.
template <int W>
void unload_point(
    const Work& w, const Program& p, Size b, const Point& point, const Units& units, const Points& out
) {
    copy(out.z + b * w.n, point.z, w.n, units.length);
    copy(out.nu + b * w.e, point.nu, w.e, units.cost);
    copy(out.first + b * w.g, point.rows + w.scenario_rows, w.g, units.cost);
    unload<W>(w, point.u, w.k, units.length, out.u + b * p.M * w.k);
    unload<W>(w, point.nus, w.s, units.cost, out.nus + b * p.M * w.s);
    unload<W>(w, point.rows, w.r, units.cost, out.scenario + b * p.M * w.r);
}

template <int W>
void unload_end(const Work& w, const Program& p, Size b, const Units& units, const Ends& out) {
    unload_point<W>(w, p, b, w.point, units, out.points);
    copy(out.slack_first + b * w.g, w.slack + w.scenario_rows, w.g, units.length);
    unload<W>(w, w.slack, w.r, units.length, out.slack_scenario + b * p.M * w.r);
}

// Put a point of the batch, in the user's units, into the workspace.
template <int W>
void load_start(const Work& w, const Program& p, Size b, const Units& units, const ConstPoints& from) {
    const double length = 1.0 / units.length, cost = 1.0 / units.cost;
    copy(w.point.z, from.z + b * w.n, w.n, length);
    copy(w.point.nu, from.nu + b * w.e, w.e, cost);
    copy(w.point.rows + w.scenario_rows, from.first + b * w.g, w.g, cost);
    load_points<W>(w, from.u + b * p.M * w.k, w.k, length, w.point.u);
    load_points<W>(w, from.nus + b * p.M * w.s, w.s, cost, w.point.nus);
    load_points<W>(w, from.scenario + b * p.M * w.r, w.r, cost, w.point.rows);
}

template <int W>
void follow_range(
    const Program& p, const Plan& plan, double* memory, int low, int high, const Options& options,
    const double* targets, const Ends& solutions, const Ends& centres, std::int64_t* ended,
    std::int64_t* iterations
) {
    Work w;
    lay_out<W>(w, p, plan, memory);
    for (int b = low; b < high; ++b) {
        const Units units = load<W>(w, p, b);
        if (options.start) load_start<W>(w, p, b, units, *options.start);
        const Outcome outcome = options.start ? solve_from_point<W>(w, options, targets[b])
                                              : solve_context<W>(w, options, targets[b]);
        ended[b] = outcome.ended, iterations[b] = outcome.iterations;
        unload_end<W>(w, p, b, units, solutions);
        if (targets[b] > 0.0 && outcome.ended != STOPPED) centres.holds[b] = find_centre<W>(w, options, targets[b]);
        if (centres.holds != solutions.holds) unload_end<W>(w, p, b, units, centres);
    }
}

template <int W>
void adjoint_range(
    const Program& p, const Plan& plan, double* memory, int low, int high, const ConstEnds& ends,
    const ConstPoints& right, const bool* wanted, const Points& out, double* corrections
) {
    Work w;
    lay_out<W>(w, p, plan, memory);
    for (Size b = low; b < high; ++b) {
        if (!wanted[b]) continue;
        const Units units = load<W>(w, p, int(b));
        if (ends.holds[b] > 0.0) hold<W>(w, ends.holds[b]);
        // In the scaled program slack/λ and the x-part change their units, the rest does not.
        const double ratio = units.length / units.cost;
        const Size M = p.M, first = w.scenario_rows;
        copy(w.right.z, right.z + b * w.n, w.n, ratio);
        copy(w.right.nu, right.nu + b * w.e, w.e, 1.0);
        load_points<W>(w, right.u + b * M * w.k, w.k, ratio, w.right.u);
        load_points<W>(w, right.nus + b * M * w.s, w.s, 1.0, w.right.nus);
        load_points<W>(w, right.scenario + b * M * w.r, w.r, 1.0, w.right.rows);
        load_points<W>(w, ends.slack_scenario + b * M * w.r, w.r, 1.0, w.slack);
        load_points<W>(w, ends.points.scenario + b * M * w.r, w.r, 1.0, w.point.rows);
        copy(w.right.rows + first, right.first + b * w.g, w.g, 1.0);
        copy(w.slack + first, ends.slack_first + b * w.g, w.g, 1.0);
        copy(w.point.rows + first, ends.points.first + b * w.g, w.g, 1.0);
        for (Size a = 0; a < w.of_rows; ++a) {
            w.inverse_theta[a] = larger(w.slack[a] / (w.point.rows[a] * ratio), ACTIVE * w.unit[a]);
        }
        factor<W>(w);
        solve<W>(w, w.right, w.right.rows, w.step, w.step_Ax);
        for (int i = 0; i < ADJOINT_REFINEMENTS; ++i) {
            corrections[b] = refine<W>(w, w.right, w.right.rows, w.step, w.step_Ax);
            if (corrections[b] <= ADJOINT_REFINED) break;
        }
        unload_point<W>(w, p, b, w.step, {1.0, 1.0 / ratio}, out);
    }
}

// Lanes of a tile: no more than there are scenarios to fill them.
template <class Do>
auto with_width(const Program& p, Do f) {
    if (p.M == 1) return f.template operator()<1>();
    if (p.M <= 4) return f.template operator()<4>();
    return f.template operator()<8>();
}

std::size_t room(const Program& p, const Plan& plan) {
    Work w;
    return with_width(p, [&]<int W>() { return std::size_t(lay_out<W>(w, p, plan, nullptr)); });
}

void follow_any(
    const Program& p, const Plan& plan, double* memory, int low, int high, const Options& options,
    const double* targets, const Ends& solutions, const Ends& centres, std::int64_t* ended,
    std::int64_t* iterations
) {
    with_width(p, [&]<int W>() {
        follow_range<W>(
            p, plan, memory, low, high, options, targets, solutions, centres, ended, iterations
        );
    });
}

void adjoint_any(
    const Program& p, const Plan& plan, double* memory, int low, int high, const ConstEnds& ends,
    const ConstPoints& right, const bool* wanted, const Points& out, double* corrections
) {
    with_width(p, [&]<int W>() {
        adjoint_range<W>(p, plan, memory, low, high, ends, right, wanted, out, corrections);
    });
}

void units_any(const Program& p, const Plan& plan, double* memory, double* out) {
    with_width(p, [&]<int W>() {
        Work w;
        lay_out<W>(w, p, plan, memory);
        for (int b = 0; b < p.B; ++b) {
            const Units units = load<W>(w, p, b);
            out[2 * b] = units.length, out[2 * b + 1] = units.cost;
        }
    });
}

#define FOREWISE_TEXT(name) #name
#define FOREWISE_NAME(name) FOREWISE_TEXT(name)

}  // namespace

extern const Kernels kernels;
const Kernels kernels{FOREWISE_NAME(FOREWISE_ISA), room, follow_any, adjoint_any, units_any};

}  // namespace forewise::FOREWISE_ISA
