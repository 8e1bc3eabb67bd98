// The binding: check shapes, release the interpreter's lock, call.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "balance.hpp"
#include "batch.hpp"
#include "convexity.hpp"
#include "evidence.hpp"
#include "forest.hpp"

namespace nb = nanobind;

namespace forewise {
namespace {

using Array = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;
using Out = nb::ndarray<double, nb::c_contig, nb::device::cpu>;
using Whole = nb::ndarray<std::int64_t, nb::c_contig, nb::device::cpu>;
using Numbers = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Names = nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Mask = nb::ndarray<const bool, nb::c_contig, nb::device::cpu>;

// Inputs may be converted; what is written to must be the caller's own.
template <class Any>
constexpr bool is_input = std::is_same_v<Any, Array>;

[[noreturn]] void refuse(const std::string& name, const std::string& expected) {
    throw std::invalid_argument(name + " must be a contiguous array of shape " + expected);
}

template <class Any>
void require(const Any& array, const char* name, std::vector<std::size_t> shape) {
    bool same = array.ndim() == shape.size();
    std::string expected = "(";
    for (std::size_t i = 0; i < shape.size(); ++i) {
        same = same && array.shape(i) == shape[i];
        expected += (i ? ", " : "") + std::to_string(shape[i]);
    }
    if (!same) refuse(name, expected + ")");
}

int last_size(const Array& array, const char* name, std::size_t ndim, std::size_t axis) {
    if (array.ndim() != ndim) refuse(name, "with " + std::to_string(ndim) + " dimensions");
    return int(array.shape(axis));
}

// Arrays of a batch's blocks, kept alive while their numbers are used.
struct Blocks {
    int B = 0, M = 0;
    std::vector<Array> arrays;
    std::vector<Names> patterns;

    // (contexts | 1, [scenarios | 1,] sizes): the scenarios' where `each`.
    Block dense(nb::handle given, const char* name, bool each, std::vector<int> sizes) {
        const Array array = nb::cast<Array>(given);
        const std::size_t leading = each ? 2 : 1;
        bool right = array.ndim() == leading + sizes.size();
        Block found;
        found.data = array.data();
        found.size = 1;
        if (right) {
            found.contexts = int(array.shape(0));
            found.scenarios = each ? int(array.shape(1)) : 1;
            right = (found.contexts == B || found.contexts == 1) &&
                    (!each || found.scenarios == M || found.scenarios == 1);
            for (std::size_t i = 0; i < sizes.size(); ++i) {
                right = right && array.shape(leading + i) == std::size_t(sizes[i]);
                found.size *= sizes[i];
            }
        }
        if (!right) {
            std::string expected = "(" + std::to_string(B) + " | 1";
            if (each) expected += ", " + std::to_string(M) + " | 1";
            for (const int size : sizes) expected += ", " + std::to_string(size);
            refuse(name, expected + ")");
        }
        if (found.size >= (std::ptrdiff_t(1) << 31)) {
            throw std::invalid_argument(std::string(name) + " is too large: give it as a sparse matrix");
        }
        arrays.push_back(array);
        return found;
    }
    // A matrix: dense, or (starts, columns, entries).
    Block matrix(nb::handle given, const char* name, bool each, int rows, int columns) {
        if (!nb::isinstance<nb::tuple>(given)) return dense(given, name, each, {rows, columns});
        const auto parts = nb::cast<nb::tuple>(given);
        if (parts.size() != 3) refuse(name, "(starts, columns, entries)");
        const Names starts = nb::cast<Names>(parts[0]), names = nb::cast<Names>(parts[1]);
        require(starts, "the starts of a sparse block", {std::size_t(rows) + 1});
        const int count = starts.data()[rows];
        bool right = starts.data()[0] == 0 && count >= 0;
        for (int i = 0; i < rows; ++i) right = right && starts.data()[i] <= starts.data()[i + 1];
        if (right) require(names, "the columns of a sparse block", {std::size_t(count)});
        for (int i = 0; i < rows && right; ++i) {
            for (int a = starts.data()[i]; a < starts.data()[i + 1]; ++a) {
                const int low = a > starts.data()[i] ? names.data()[a - 1] : -1;
                right = right && low < names.data()[a] && names.data()[a] < columns;
            }
        }
        if (!right) refuse(name, "whose pattern has ascending columns");
        Block found = dense(parts[2], name, each, {count});
        found.starts = starts.data(), found.columns = names.data();
        patterns.push_back(starts), patterns.push_back(names);
        return found;
    }
};

// Rows of a matrix, which may be sparse.
int rows_of(nb::handle given, const char* name, std::size_t axis) {
    if (nb::isinstance<nb::tuple>(given)) {
        return int(nb::cast<Names>(nb::cast<nb::tuple>(given)[0]).size()) - 1;
    }
    return last_size(nb::cast<Array>(given), name, axis + 2, axis);
}

// The blocks of a ProgramArrays.
struct Given {
    Blocks of;
    Program program;

    explicit Given(const nb::tuple& blocks) {
        if (blocks.size() != 15) throw std::invalid_argument("a program has 15 blocks");
        enum : int { weights, q, P, G, h, E, e, d, D, T, W, r, F, V, s };
        auto at = [&](int i) { return nb::object(blocks[i]); };
        auto last = [&](int i, const char* name, std::size_t ndim) {
            return last_size(nb::cast<Array>(at(i)), name, ndim, ndim - 1);
        };
        Program& p = program;
        const Array of_weights = nb::cast<Array>(at(weights));
        if (of_weights.ndim() != 2) refuse("weights", "(contexts, scenarios)");
        p.B = of.B = int(of_weights.shape(0)), p.M = of.M = int(of_weights.shape(1));
        if (p.M < 1) refuse("weights", "(contexts, scenarios), with at least one scenario");
        p.n = last(q, "q", 2), p.g = last(h, "h", 2), p.e = last(e, "e", 2), p.k = last(d, "d", 3);
        p.r = last(r, "r", 3), p.s = last(s, "s", 3), p.t = rows_of(at(T), "T", 2);
        if (p.t > p.r) refuse("T", "(..., rows, n_z) with no more rows than W");
        p.weights = {of_weights.data(), p.B, 1, p.M};
        of.arrays.push_back(of_weights);
        p.q = of.dense(at(q), "q", false, {p.n}), p.P = of.matrix(at(P), "P", false, p.n, p.n);
        p.G = of.matrix(at(G), "G", false, p.g, p.n), p.h = of.dense(at(h), "h", false, {p.g});
        p.E = of.matrix(at(E), "E", false, p.e, p.n), p.ee = of.dense(at(e), "e", false, {p.e});
        p.d = of.dense(at(d), "d", true, {p.k}), p.D = of.matrix(at(D), "D", true, p.k, p.k);
        p.T = of.matrix(at(T), "T", true, p.t, p.n), p.W = of.matrix(at(W), "W", true, p.r, p.k);
        p.rr = of.dense(at(r), "r", true, {p.r}), p.F = of.matrix(at(F), "F", true, p.s, p.n);
        p.V = of.matrix(at(V), "V", true, p.s, p.k), p.ss = of.dense(at(s), "s", true, {p.s});
    }
};

// Six arrays of points, checked.
template <class Number, class Any>
struct GivenPoints {
    std::vector<Any> arrays;
    PointsOf<Number> points;

    GivenPoints(const nb::tuple& parts, const Program& p) {
        if (parts.size() != 6) throw std::invalid_argument("points have 6 parts");
        for (std::size_t i = 0; i < 6; ++i) arrays.push_back(nb::cast<Any>(parts[i], is_input<Any>));
        const std::size_t B = p.B, M = p.M;
        require(arrays[0], "z", {B, std::size_t(p.n)});
        require(arrays[1], "u", {B, M, std::size_t(p.k)});
        require(arrays[2], "first", {B, std::size_t(p.g)});
        require(arrays[3], "scenario", {B, M, std::size_t(p.r)});
        require(arrays[4], "nu", {B, std::size_t(p.e)});
        require(arrays[5], "nus", {B, M, std::size_t(p.s)});
        points = {arrays[0].data(), arrays[1].data(), arrays[2].data(),
                  arrays[3].data(), arrays[4].data(), arrays[5].data()};
    }
};

// A PathEnds: points, slacks, holds.
template <class Number, class Any>
struct GivenEnds {
    GivenPoints<Number, Any> given;
    std::vector<Any> arrays;
    EndsOf<Number> ends;

    GivenEnds(const nb::tuple& parts, const Program& p)
        : given(nb::cast<nb::tuple>(parts[0]), p) {
        const auto slack = nb::cast<nb::tuple>(parts[1]);
        for (const nb::handle part : {slack[0], slack[1], parts[2]}) {
            arrays.push_back(nb::cast<Any>(part, is_input<Any>));
        }
        const std::size_t B = p.B;
        require(arrays[0], "slack.first", {B, std::size_t(p.g)});
        require(arrays[1], "slack.scenario", {B, std::size_t(p.M), std::size_t(p.r)});
        require(arrays[2], "holds", {B});
        ends = {given.points, arrays[0].data(), arrays[1].data(), arrays[2].data()};
    }
};

[[noreturn]] void refuse_memory(const Shortage& shortage) {
    char text[160];
    std::snprintf(
        text, sizeof text, "solving needs %.3g GB of working memory, but %.3g GB are free",
        shortage.needed / 1e9, shortage.available / 1e9
    );
    PyErr_SetString(PyExc_MemoryError, text);
    throw nb::python_error();
}

// Watches the clock and signals, and passes iterations on to a callable.
struct Watch {
    using Clock = std::chrono::steady_clock;

    nb::object log;
    Clock::time_point deadline = Clock::time_point::max(), asked = Clock::now();
    std::thread::id caller = std::this_thread::get_id();
    std::atomic<bool> stopped{false};
    std::exception_ptr error;  // written with the lock held

    Watch(double seconds, nb::object log) : log(std::move(log)) {
        if (seconds < 1e9) {
            deadline = asked + std::chrono::duration_cast<Clock::duration>(
                                   std::chrono::duration<double>(seconds));
        }
    }
    bool stops(int context, int iteration, const double* progress) {
        const auto now = Clock::now();
        if (stopped || now > deadline) return true;
        const bool asks = std::this_thread::get_id() == caller &&
                          now - asked > std::chrono::milliseconds(50);
        if (!asks && log.is_none()) return false;
        nb::gil_scoped_acquire held;
        try {
            if (asks) {
                asked = now;
                if (PyErr_CheckSignals() != 0) throw nb::python_error();
            }
            if (!log.is_none()) {
                log(context, iteration, progress[0], progress[1], progress[2], progress[3]);
            }
        } catch (...) {
            if (!error) error = std::current_exception();
            stopped = true;
        }
        return stopped;
    }
    static bool stops_of(void* self, int context, int iteration, const double* progress) {
        return static_cast<Watch*>(self)->stops(context, iteration, progress);
    }
};

void follow(
    const nb::tuple& blocks, int n_threads, double tolerance, int max_iterations, double seconds,
    const nb::object& log, const Array& targets, const nb::object& start,
    const nb::tuple& solutions, const nb::tuple& centres, const Whole& ended, const Whole& iterations
) {
    const Given given(blocks);
    const Program& p = given.program;
    const GivenEnds<double, Out> of_solutions(solutions, p), of_centres(centres, p);
    require(targets, "targets", {std::size_t(p.B)});
    require(ended, "ended", {std::size_t(p.B)});
    require(iterations, "iterations", {std::size_t(p.B)});
    std::optional<GivenPoints<const double, Array>> of_start;
    if (!start.is_none()) of_start.emplace(nb::cast<nb::tuple>(start), p);
    Watch watch(seconds, log);
    const Options options{
        tolerance, max_iterations, {&Watch::stops_of, &watch}, of_start ? &of_start->points : nullptr
    };
    Shortage shortage;
    {
        nb::gil_scoped_release released;
        shortage = follow_paths(
            p, n_threads, options, targets.data(), of_solutions.ends, of_centres.ends,
            ended.data(), iterations.data()
        );
    }
    if (watch.error) std::rethrow_exception(watch.error);
    if (shortage) refuse_memory(shortage);
}

void adjoint(
    const nb::tuple& blocks, int n_threads, const nb::tuple& ends, const nb::tuple& right,
    const Mask& wanted, const nb::tuple& out, const Out& corrections
) {
    const Given given(blocks);
    const Program& p = given.program;
    const GivenEnds<const double, Array> of_ends(ends, p);
    const GivenPoints<const double, Array> of_right(right, p);
    const GivenPoints<double, Out> of_out(out, p);
    require(wanted, "wanted", {std::size_t(p.B)});
    require(corrections, "corrections", {std::size_t(p.B)});
    Shortage shortage;
    {
        nb::gil_scoped_release released;
        shortage = solve_adjoints(
            p, n_threads, of_ends.ends, of_right.points, wanted.data(), of_out.points,
            corrections.data()
        );
    }
    if (shortage) refuse_memory(shortage);
}

void weigh_points(const nb::tuple& blocks, const nb::tuple& points, const nb::tuple& found) {
    const Given given(blocks);
    const Program& p = given.program;
    const GivenPoints<const double, Array> of_points(points, p);
    std::vector<Out> out;
    for (std::size_t i = 0; i < 10; ++i) {
        out.push_back(nb::cast<Out>(found[i], false));
        require(out[i], "evidence", {std::size_t(p.B)});
    }
    std::vector<double> scratch(std::size_t(p.n) + p.k);
    nb::gil_scoped_release released;
    weigh(
        p, of_points.points,
        {out[0].data(), out[1].data(), out[2].data(), out[3].data(), out[4].data(), out[5].data(),
         out[6].data(), out[7].data(), out[8].data(), out[9].data()},
        scratch.data()
    );
}

void units(const nb::tuple& blocks, const Out& out) {
    const Given given(blocks);
    require(out, "out", {std::size_t(given.program.B), 2});
    Shortage shortage;
    {
        nb::gil_scoped_release released;
        shortage = find_units(given.program, out.data());
    }
    if (shortage) refuse_memory(shortage);
}

template <class Number>
nb::object owned(std::vector<Number> values, std::vector<std::size_t> shape) {
    auto* kept = new std::vector<Number>(std::move(values));
    nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<Number>*>(p); });
    return nb::cast(nb::ndarray<nb::numpy, Number>(kept->data(), shape.size(), shape.data(), owner));
}

// The pattern and the entries of a dense block (…, rows, columns); nothing if it is fuller than a share.
nb::object find_entries(const Array& block, double share) {
    const std::size_t ndim = block.ndim();
    if (ndim < 3) refuse("a block", "(..., rows, columns)");
    const std::size_t rows = block.shape(ndim - 2), columns = block.shape(ndim - 1);
    const std::size_t size = rows * columns, parts = size ? block.size() / size : 0;
    if (size >= (std::size_t(1) << 31)) throw std::invalid_argument("a block is too large");
    std::vector<std::int32_t> starts{0}, names, places;
    std::vector<double> values;
    std::vector<std::size_t> shape;
    bool full = false;
    {
        nb::gil_scoped_release released;
        const double* data = block.data();
        std::vector<unsigned char> mask(parts > 1 ? size : 0, 0);
        for (std::size_t i = 0; i < parts && parts > 1; ++i) {
            for (std::size_t a = 0; a < size; ++a) mask[a] |= data[i * size + a] != 0.0;
        }
        const double most = share * double(size);
        for (std::size_t i = 0; i < rows && !full; ++i) {
            for (std::size_t c = 0; c < columns; ++c) {
                const std::size_t a = i * columns + c;
                if (parts > 1 ? mask[a] : data[a] != 0.0) {
                    names.push_back(int(c)), places.push_back(int(a));
                }
            }
            starts.push_back(int(names.size()));
            full = double(names.size()) > most;
        }
        values.resize(full ? 0 : places.size() * parts);
        double* to = values.data();
        for (std::size_t i = 0; i < parts && !full; ++i) {
            for (const int place : places) *to++ = data[i * size + place];
        }
    }
    if (full) return nb::none();
    for (std::size_t i = 0; i + 2 < ndim; ++i) shape.push_back(block.shape(i));
    const std::size_t count = names.size();
    shape.push_back(count);
    return nb::make_tuple(
        owned(std::move(starts), {rows + 1}), owned(std::move(names), {count}),
        owned(std::move(values), std::move(shape))
    );
}

// Exponents of the units of all variables, and what right-hand sides add to them.
nb::tuple balanced_units(const nb::tuple& blocks) {
    const Given given(blocks);
    const Program& p = given.program;
    const std::size_t lead = balanced_contexts(p), columns = std::size_t(p.n) + p.k;
    std::vector<double> fitted(lead * columns), placed(lead * columns);
    {
        nb::gil_scoped_release released;
        balance(p, fitted.data(), placed.data());
    }
    return nb::make_tuple(owned(std::move(fitted), {lead, columns}), owned(std::move(placed), {lead, columns}));
}

// Of the contexts of a sparse block (contexts, [scenarios,] size, size): 1 convex, 0 not, −1 unknown.
std::vector<int> convex_contexts(const nb::tuple& given, int size, int contexts, int scenarios) {
    Blocks of;
    of.B = contexts, of.M = scenarios;
    const Block block = of.matrix(given, "a curvature", scenarios > 0, size, size);
    std::vector<int> found;
    nb::gil_scoped_release released;
    for (int b = 0; b < block.contexts; ++b) {
        const Convexity known = convexity(block, b, size);
        found.push_back(known == Convexity::unknown ? -1 : known == Convexity::yes);
    }
    return found;
}

// Past outcomes of a forest for contexts (n_contexts, n_features): fills picks and weights, both
// (n_contexts, width).
void pick_from_forest(
    const nb::tuple& given, const Array& contexts, double start, const Whole& picks,
    const Out& weights
) {
    if (given.size() != 10) throw std::invalid_argument("a forest must have 10 parts");
    const auto numbers = [&](std::size_t i) { return nb::cast<Numbers>(given[i]); };
    const Numbers left = numbers(0), right = numbers(1), feature = numbers(2), roots = numbers(4),
                  leaf_rows = numbers(5), leaf_starts = numbers(6), row_of = numbers(7);
    const Array threshold = nb::cast<Array>(given[3]), share = nb::cast<Array>(given[8]);
    const std::size_t n_nodes = left.shape(0);
    if (contexts.ndim() != 2) refuse("contexts", "(n_contexts, n_features)");
    if (picks.ndim() != 2) refuse("picks", "(n_contexts, width)");
    require(right, "right", {n_nodes});
    require(feature, "feature", {n_nodes});
    require(threshold, "threshold", {n_nodes});
    require(leaf_starts, "leaf_starts", {n_nodes + 1});
    require(share, "share", {row_of.shape(0)});
    require(picks, "picks", {contexts.shape(0), picks.shape(1)});
    require(weights, "weights", {contexts.shape(0), picks.shape(1)});
    const Forest forest{
        n_nodes, roots.shape(0), contexts.shape(1), left.data(), right.data(), feature.data(),
        threshold.data(), roots.data(), leaf_rows.data(), leaf_starts.data(), leaf_rows.shape(0),
        row_of.data(), share.data(), row_of.shape(0), nb::cast<std::size_t>(given[9])
    };
    if (const char* fault = forest.fault()) throw std::invalid_argument(fault);
    nb::gil_scoped_release released;
    pick_outcomes(
        forest, contexts.data(), contexts.shape(0), picks.shape(1), start, picks.data(),
        weights.data()
    );
}

// What is known of a batch before it is solved.
nb::dict describe(const nb::tuple& blocks) {
    const Given given(blocks);
    const Plan plan = make_plan(given.program);
    const Structure& s = plan.structure;
    const Elimination& e = plan.elimination;
    int kept = 0;
    for (const int position : e.position_of_kept) kept += position >= 0;
    nb::dict found;
    found["own"] = s.own;
    found["linking"] = s.linking;
    found["starts"] = Indices(s.W.starts, s.W.starts + s.W.rows + 1);
    found["leads"] = s.leads;
    found["kept"] = kept;
    found["nodes"] = e.nodes;
    found["supernodes"] = e.supernodes.size();
    found["entries"] = e.entries;
    found["reached"] = e.reached_entries;
    found["squares"] = e.squares;
    found["work"] = e.work;
    found["bytes"] = chosen_kernels().room(given.program, plan) * sizeof(double);
    return found;
}

}  // namespace
}  // namespace forewise

NB_MODULE(_core, m) {
    using namespace forewise;
    m.doc() = "The compiled kernels of the interior-point solver and of forests.";
    using nb::arg;
    m.def(
        "follow", &follow, arg("program"), arg("n_threads"), arg("tolerance"), arg("max_iterations"),
        arg("seconds"), arg("log").none(), arg("targets"), arg("start").none(), arg("solutions"),
        arg("centres"),
        arg("ended").noconvert(), arg("iterations").noconvert()
    );
    m.def(
        "adjoint", &adjoint, arg("program"), arg("n_threads"), arg("ends"), arg("right"),
        arg("wanted"), arg("out"), arg("corrections").noconvert()
    );
    m.def("weigh", &weigh_points);
    m.def("units", &units, arg("program"), arg("out").noconvert());
    m.def("describe", &describe);
    m.def("entries", &find_entries);
    m.def("balance", &balanced_units);
    m.def("convex", &convex_contexts);
    m.def(
        "pick_from_forest", &pick_from_forest, arg("forest"), arg("contexts"), arg("start"),
        arg("picks").noconvert(), arg("weights").noconvert()
    );
    m.def("instructions", [] { return std::string(chosen_kernels().name); });
}
