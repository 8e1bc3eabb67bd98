// The binding: check shapes, release the interpreter's lock, call.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "batch.hpp"
#include "evidence.hpp"

namespace nb = nanobind;

namespace forewise {
namespace {

using Array = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;
using Out = nb::ndarray<double, nb::c_contig, nb::device::cpu>;
using Whole = nb::ndarray<std::int64_t, nb::c_contig, nb::device::cpu>;
using Mask = nb::ndarray<const bool, nb::c_contig, nb::device::cpu>;

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

// A block (contexts | 1, [scenarios | 1,] rows, columns).
Block block(const Array& array, const char* name, int B, int M, std::vector<int> sizes) {
    const std::size_t leading = M > 0 ? 2 : 1;
    bool right = array.ndim() == leading + sizes.size();
    Block found;
    found.data = array.data();
    found.size = 1;
    if (right) {
        found.contexts = int(array.shape(0));
        found.scenarios = M > 0 ? int(array.shape(1)) : 1;
        right = (found.contexts == B || found.contexts == 1) &&
                (M == 0 || found.scenarios == M || found.scenarios == 1);
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            right = right && int(array.shape(leading + i)) == sizes[i];
            found.size *= sizes[i];
        }
    }
    if (!right) {
        std::string expected = "(";
        expected += std::to_string(B) += " | 1";
        if (M > 0) (expected += ", ") += std::to_string(M) += " | 1";
        for (const int size : sizes) (expected += ", ") += std::to_string(size);
        refuse(name, expected + ")");
    }
    return found;
}

int last_size(const Array& array, const char* name, std::size_t ndim, std::size_t axis) {
    if (array.ndim() != ndim) refuse(name, "with " + std::to_string(ndim) + " dimensions");
    return int(array.shape(axis));
}

// The arrays of a ProgramArrays, kept alive while its numbers are used.
struct Given {
    std::vector<Array> arrays;
    Program program;

    explicit Given(const nb::tuple& blocks) {
        if (blocks.size() != 15) throw std::invalid_argument("a program has 15 blocks");
        for (std::size_t i = 0; i < 15; ++i) arrays.push_back(nb::cast<Array>(blocks[i]));
        enum { weights, q, P, G, h, E, e, d, D, T, W, r, F, V, s };
        const auto& a = arrays;
        Program& p = program;
        if (a[weights].ndim() != 2) refuse("weights", "(contexts, scenarios)");
        p.B = int(a[weights].shape(0)), p.M = int(a[weights].shape(1));
        if (p.M < 1) refuse("weights", "(contexts, scenarios), with at least one scenario");
        p.n = last_size(a[q], "q", 2, 1), p.g = last_size(a[h], "h", 2, 1);
        p.e = last_size(a[e], "e", 2, 1), p.k = last_size(a[d], "d", 3, 2);
        p.t = last_size(a[T], "T", 4, 2), p.r = last_size(a[r], "r", 3, 2);
        p.s = last_size(a[s], "s", 3, 2);
        if (p.t > p.r) refuse("T", "(..., rows, n_z) with no more rows than W");
        p.weights = {a[weights].data(), p.B, 1, p.M};
        p.q = block(a[q], "q", p.B, 0, {p.n}), p.P = block(a[P], "P", p.B, 0, {p.n, p.n});
        p.G = block(a[G], "G", p.B, 0, {p.g, p.n}), p.h = block(a[h], "h", p.B, 0, {p.g});
        p.E = block(a[E], "E", p.B, 0, {p.e, p.n}), p.ee = block(a[e], "e", p.B, 0, {p.e});
        p.d = block(a[d], "d", p.B, p.M, {p.k}), p.D = block(a[D], "D", p.B, p.M, {p.k, p.k});
        p.T = block(a[T], "T", p.B, p.M, {p.t, p.n}), p.W = block(a[W], "W", p.B, p.M, {p.r, p.k});
        p.rr = block(a[r], "r", p.B, p.M, {p.r}), p.F = block(a[F], "F", p.B, p.M, {p.s, p.n});
        p.V = block(a[V], "V", p.B, p.M, {p.s, p.k}), p.ss = block(a[s], "s", p.B, p.M, {p.s});
        const double most = 1LL << 31;
        for (const Block* dense : {&p.P, &p.G, &p.E, &p.D, &p.T, &p.W, &p.F, &p.V}) {
            if (double(dense->size) >= most) throw std::invalid_argument("a block is too large");
        }
    }
};

// Six arrays of points, checked.
template <class Number, class Any>
struct GivenPoints {
    std::vector<Any> arrays;
    PointsOf<Number> points;

    GivenPoints(const nb::tuple& parts, const Program& p) {
        if (parts.size() != 6) throw std::invalid_argument("points have 6 parts");
        for (std::size_t i = 0; i < 6; ++i) arrays.push_back(nb::cast<Any>(parts[i]));
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
        arrays.push_back(nb::cast<Any>(slack[0]));
        arrays.push_back(nb::cast<Any>(slack[1]));
        arrays.push_back(nb::cast<Any>(parts[2]));
        const std::size_t B = p.B;
        require(arrays[0], "slack.first", {B, std::size_t(p.g)});
        require(arrays[1], "slack.scenario", {B, std::size_t(p.M), std::size_t(p.r)});
        require(arrays[2], "holds", {B});
        ends = {given.points, arrays[0].data(), arrays[1].data(), arrays[2].data()};
    }
};

void follow(
    const nb::tuple& blocks, int n_threads, double tolerance, int max_iterations,
    const Array& targets, const nb::tuple& solutions, const nb::tuple& centres, const Whole& ended,
    const Whole& iterations
) {
    const Given given(blocks);
    const Program& p = given.program;
    const GivenEnds<double, Out> of_solutions(solutions, p), of_centres(centres, p);
    require(targets, "targets", {std::size_t(p.B)});
    require(ended, "ended", {std::size_t(p.B)});
    require(iterations, "iterations", {std::size_t(p.B)});
    bool enough;
    {
        nb::gil_scoped_release released;
        enough = follow_paths(
            p, n_threads, {tolerance, max_iterations}, targets.data(), of_solutions.ends,
            of_centres.ends, ended.data(), iterations.data()
        );
    }
    if (!enough) throw std::bad_alloc();
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
    bool enough;
    {
        nb::gil_scoped_release released;
        enough = solve_adjoints(
            p, n_threads, of_ends.ends, of_right.points, wanted.data(), of_out.points,
            corrections.data()
        );
    }
    if (!enough) throw std::bad_alloc();
}

void weigh_points(const nb::tuple& blocks, const nb::tuple& points, const nb::tuple& found) {
    const Given given(blocks);
    const Program& p = given.program;
    const GivenPoints<const double, Array> of_points(points, p);
    std::vector<Out> out;
    for (std::size_t i = 0; i < 8; ++i) {
        out.push_back(nb::cast<Out>(found[i]));
        require(out[i], "evidence", {std::size_t(p.B)});
    }
    std::vector<double> scratch(std::size_t(p.n) + p.k);
    nb::gil_scoped_release released;
    weigh(
        p, of_points.points,
        {out[0].data(), out[1].data(), out[2].data(), out[3].data(), out[4].data(), out[5].data(),
         out[6].data(), out[7].data()},
        scratch.data()
    );
}

void units(const nb::tuple& blocks, const Out& out) {
    const Given given(blocks);
    require(out, "out", {std::size_t(given.program.B), 2});
    bool enough;
    {
        nb::gil_scoped_release released;
        enough = find_units(given.program, out.data());
    }
    if (!enough) throw std::bad_alloc();
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
    m.doc() = "The compiled kernels of the interior-point solver.";
    m.def("follow", &follow);
    m.def("adjoint", &adjoint);
    m.def("weigh", &weigh_points);
    m.def("units", &units);
    m.def("describe", &describe);
    m.def("instructions", [] { return std::string(chosen_kernels().name); });
}
