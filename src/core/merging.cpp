#include "merging.hpp"

#include <algorithm>
#include <cstring>

namespace forewise {
namespace {

constexpr double BARRIER_SHARE = 16.0;  // `loading` has the same
constexpr double SMALLEST_WEIGHT = 1e-8;
// Share of a dense matrix of z from which on it is not worth being taken for sparse.
constexpr double DENSE = 0.3;

// One of the blocks that make up a merged one.
struct Piece {
    const Block& block;
    int columns, shift;  // of its columns
    int first, rows;     // rows of the merged block
    bool weighed;        // by the scenario's weight

    bool is_there(std::ptrdiff_t place) const {
        for (int b = 0; b < block.contexts; ++b) {
            if (block.of(b)[place] != 0.0) return true;
        }
        return false;
    }
    // Calls f(column, place) for the entries of a row of the merged block.
    template <class Do>
    void each(int row, Do f) const {
        const int i = row - first;
        if (i < 0 || i >= rows) return;
        if (block.starts) {
            for (int a = block.starts[i]; a < block.starts[i + 1]; ++a) f(shift + block.columns[a], a);
            return;
        }
        for (int c = 0; c < columns; ++c) {
            const int place = i * columns + c;
            if (is_there(place)) f(shift + c, place);
        }
    }
};

struct Builder {
    const Program& p;
    Merged& merged;
    bool unweighed;  // whether the only scenario weighs one in all contexts

    int contexts_of(const std::vector<Piece>& pieces) const {
        int contexts = 1;
        for (const Piece& piece : pieces) {
            contexts = std::max(contexts, piece.block.contexts);
            if (piece.weighed && !unweighed) contexts = p.B;
        }
        return contexts;
    }
    double factor(const Piece& piece, int b) const {
        return piece.weighed ? p.weights.of(b)[0] : 1.0;
    }
    Block matrix(int rows, const std::vector<Piece>& pieces) {
        Indices starts{0}, columns, places, sources;
        for (int row = 0; row < rows; ++row) {
            for (std::size_t i = 0; i < pieces.size(); ++i) {
                pieces[i].each(row, [&](int column, int place) {
                    columns.push_back(column), places.push_back(place), sources.push_back(int(i));
                });
            }
            starts.push_back(int(columns.size()));
        }
        const int contexts = contexts_of(pieces);
        std::vector<double> values(columns.size() * contexts);
        double* to = values.data();
        for (int b = 0; b < contexts; ++b) {
            for (std::size_t a = 0; a < columns.size(); ++a) {
                const Piece& piece = pieces[sources[a]];
                *to++ = factor(piece, b) * piece.block.of(b)[places[a]];
            }
        }
        Block found{nullptr, contexts, 1, std::ptrdiff_t(columns.size())};
        merged.numbers.push_back(std::move(values));
        merged.patterns.push_back(std::move(starts)), merged.patterns.push_back(std::move(columns));
        found.data = merged.numbers.back().data();
        found.starts = merged.patterns[merged.patterns.size() - 2].data();
        found.columns = merged.patterns.back().data();
        return found;
    }
    Block vector(const std::vector<Piece>& pieces) {
        const int contexts = contexts_of(pieces);
        std::vector<double> values;
        for (int b = 0; b < contexts; ++b) {
            for (const Piece& piece : pieces) {
                const double* of = piece.block.of(b);
                for (int i = 0; i < piece.rows; ++i) values.push_back(factor(piece, b) * of[i]);
            }
        }
        return keep(contexts, std::move(values));
    }
    Block keep(int contexts, std::vector<double> values) {
        const std::ptrdiff_t size = values.size() / contexts;
        merged.numbers.push_back(std::move(values));
        return {merged.numbers.back().data(), contexts, 1, size};
    }
};

// An estimate of how full the matrix of z is before it is factored.
double filled(const Program& p) {
    const double whole = 0.5 * double(p.n) * p.n + 1.0;
    double entries = 0.0;
    auto add = [&](const Block& block, int rows, bool pairs) {
        const Piece piece{block, p.n, 0, 0, rows, false};
        for (int i = 0; i < rows && entries < whole; ++i) {
            double count = 0.0;
            piece.each(i, [&](int, int) { count += 1.0; });
            entries += pairs ? 0.5 * count * count : 0.5 * count;
        }
    };
    add(p.P, p.n, false), add(p.G, p.g, true), add(p.T, p.t, true);
    return entries / whole;
}

void join(double* out, const double* a, std::ptrdiff_t of_a, const double* b, std::ptrdiff_t of_b, int B) {
    for (int i = 0; i < B; ++i) {
        std::copy_n(a + i * of_a, of_a, out), out += of_a;
        std::copy_n(b + i * of_b, of_b, out), out += of_b;
    }
}

void part(const double* from, double* a, std::ptrdiff_t of_a, double* b, std::ptrdiff_t of_b, int B) {
    for (int i = 0; i < B; ++i) {
        std::copy_n(from, of_a, a + i * of_a), from += of_a;
        std::copy_n(from, of_b, b + i * of_b), from += of_b;
    }
}

}  // namespace

MergedPoints::MergedPoints(const Program& p, const ConstPoints* from)
    : u(std::size_t(p.B) * (p.n + p.k)), rows(std::size_t(p.B) * (p.g + p.r)),
      nus(std::size_t(p.B) * (p.e + p.s)) {
    points = {nullptr, u.data(), nullptr, rows.data(), nullptr, nus.data()};
    if (!from) return;
    join(u.data(), from->z, p.n, from->u, p.k, p.B);
    join(rows.data(), from->first, p.g, from->scenario, p.r, p.B);
    join(nus.data(), from->nu, p.e, from->nus, p.s, p.B);
}

void MergedPoints::split(const Program& p, const Points& to) const {
    part(u.data(), to.z, p.n, to.u, p.k, p.B);
    part(rows.data(), to.first, p.g, to.scenario, p.r, p.B);
    part(nus.data(), to.nu, p.e, to.nus, p.s, p.B);
}

MergedEnds::MergedEnds(const Program& p, const ConstEnds* from, double* holds)
    : of(p, from ? &from->points : nullptr), slack(std::size_t(p.B) * (p.g + p.r)) {
    if (from) join(slack.data(), from->slack_first, p.g, from->slack_scenario, p.r, p.B);
    ends = {of.points, nullptr, slack.data(), holds};
}

void MergedEnds::split(const Program& p, const Ends& to) const {
    of.split(p, to.points);
    part(slack.data(), to.slack_first, p.g, to.slack_scenario, p.r, p.B);
}

std::optional<Merged> merge(const Program& p) {
    if (p.M > 1 || !p.n || filled(p) > DENSE) return std::nullopt;
    std::optional<Merged> made(std::in_place);
    Merged& merged = *made;
    merged.numbers.reserve(16), merged.patterns.reserve(32);
    bool unweighed = true;
    for (int b = 0; b < p.B; ++b) unweighed = unweighed && p.weights.of(b)[0] == 1.0;
    Builder build{p, merged, unweighed};
    const int n = p.n, k = p.k, g = p.g, e = p.e, r = p.r, s = p.s;
    Program& q = merged.program;
    q = Program{};
    q.B = p.B, q.M = 1, q.k = n + k, q.r = g + r, q.s = e + s;
    q.weights = build.keep(p.B, std::vector<double>(p.B, 1.0));
    q.W = build.matrix(q.r, {{p.G, n, 0, 0, g, false}, {p.T, n, 0, g, p.t, false}, {p.W, k, n, g, r, false}});
    q.V = build.matrix(q.s, {{p.E, n, 0, 0, e, false}, {p.F, n, 0, e, s, false}, {p.V, k, n, e, s, false}});
    q.D = build.matrix(q.k, {{p.P, n, 0, 0, n, false}, {p.D, k, n, n, k, true}});
    q.d = build.vector({{p.q, 1, 0, 0, n, false}, {p.d, 1, 0, 0, k, true}});
    q.rr = build.vector({{p.h, 1, 0, 0, g, false}, {p.rr, 1, 0, 0, r, false}});
    q.ss = build.vector({{p.ee, 1, 0, 0, e, false}, {p.ss, 1, 0, 0, s, false}});
    std::vector<double> barrier;
    for (int b = 0; b < (unweighed ? 1 : p.B); ++b) {
        const double share = BARRIER_SHARE * std::max(p.weights.of(b)[0], SMALLEST_WEIGHT);
        barrier.insert(barrier.end(), g, 1.0), barrier.insert(barrier.end(), r, share);
    }
    q.barrier = build.keep(unweighed ? 1 : p.B, std::move(barrier));
    // Blocks without a size, which kernels may ask for their data.
    for (Block* none : {&q.q, &q.P, &q.G, &q.h, &q.E, &q.ee, &q.T, &q.F}) *none = {nullptr, 1, 1, 0};
    return made;
}

}  // namespace forewise
