#include "structure.hpp"

#include <algorithm>
#include <numeric>
#include <string>
#include <unordered_map>
#include <utility>

namespace forewise {
namespace {

using Mask = std::vector<unsigned char>;

// Makes patterns, and keeps their memory.
struct Patterns {
    std::vector<Indices>& memory;

    Pattern keep(int rows, Indices starts, Indices columns, Indices places) {
        const std::size_t first = memory.size();
        memory.push_back(std::move(starts));
        memory.push_back(std::move(columns));
        memory.push_back(std::move(places));
        return {rows, memory[first].data(), memory[first + 1].data(), memory[first + 2].data()};
    }
    // The entries of a sparse block, or those of a dense one that are not zero in any context and
    // scenario; with `diagonal`, all of that too.
    Pattern of(const Block& block, int rows, int columns, bool diagonal = false) {
        Mask mask(block.starts ? 0 : block.size, 0);
        const std::ptrdiff_t parts = std::ptrdiff_t(block.contexts) * block.scenarios;
        for (std::ptrdiff_t i = 0; i < parts && !block.starts; ++i) {
            const double* part = block.data + i * block.size;
            for (std::ptrdiff_t a = 0; a < block.size; ++a) mask[a] |= part[a] != 0.0;
        }
        Indices starts{0}, names, places;
        auto add = [&](int column, int place) { names.push_back(column), places.push_back(place); };
        for (int i = 0; i < rows; ++i) {
            if (!block.starts) {
                for (int c = 0; c < columns; ++c) {
                    if (mask[i * columns + c] || (diagonal && i == c)) add(c, i * columns + c);
                }
            } else {
                bool missing = diagonal;
                for (int a = block.starts[i]; a < block.starts[i + 1]; ++a) {
                    if (missing && block.columns[a] > i) add(i, -1);
                    missing = missing && block.columns[a] < i;
                    add(block.columns[a], a);
                }
                if (missing) add(i, -1);
            }
            starts.push_back(int(names.size()));
        }
        return keep(rows, std::move(starts), std::move(names), std::move(places));
    }
    // Some rows and columns of a pattern: `number` renames columns, −1 leaves them out.
    Pattern part(const Pattern& whole, const Indices& rows, const Indices& number) {
        Indices starts{0}, names, places;
        for (const int i : rows) {
            for (int c = whole.starts[i]; c < whole.starts[i + 1]; ++c) {
                const int name = number[whole.columns[c]];
                if (name >= 0) names.push_back(name), places.push_back(whole.places[c]);
            }
            starts.push_back(int(names.size()));
        }
        return keep(int(rows.size()), std::move(starts), std::move(names), std::move(places));
    }
};

// Which variables are simple, (k,).
Mask simple_variables(const Program& p, const Pattern& W, const Pattern& D, const Pattern& V) {
    const int k = p.k;
    Mask tied(k, 0), shared(p.r, 0);
    Indices times(k, 0);
    for (int i = 0; i < p.r; ++i) {
        shared[i] = i < p.t || W.starts[i + 1] - W.starts[i] > 1;
        for (int c = W.starts[i]; c < W.starts[i + 1] && shared[i]; ++c) ++times[W.columns[c]];
    }
    for (int v = 0; v < k; ++v) {
        for (int c = D.starts[v]; c < D.starts[v + 1]; ++c) {
            if (D.columns[c] != v) tied[v] = tied[D.columns[c]] = 1;
        }
    }
    for (int c = 0; c < V.entries(); ++c) tied[V.columns[c]] = 1;
    Mask simple(k);
    for (int v = 0; v < k; ++v) simple[v] = !tied[v] && times[v] <= 1;
    // Two in one shared row: the first keeps it, the others link.
    Mask kept = simple;
    for (int i = 0; i < p.r; ++i) {
        bool found = !shared[i];
        if (found) continue;
        for (int c = W.starts[i]; c < W.starts[i + 1]; ++c) {
            const int v = W.columns[c];
            if (!simple[v]) continue;
            if (found) kept[v] = 0;
            found = true;
        }
    }
    return kept;
}

// The first row that each shared row repeats, but for its sign. Only where all contexts and
// scenarios have the same rows; |x| has its two rows there, and so have the bounds of a sum.
void find_leads(const Program& p, const Mask& is_shared, Structure& found) {
    found.leads.resize(p.r);
    for (int i = 0; i < p.r; ++i) found.leads[i] = i;
    const bool same = p.T.contexts == 1 && p.T.scenarios == 1 && p.W.contexts == 1 &&
                      p.W.scenarios == 1;
    if (found.linking.empty() || !same) return;
    std::unordered_map<std::string, int> known;
    std::vector<std::pair<double, int>> row;
    auto add = [&](const Block& block, const Pattern& pattern, int i, int shift) {
        for (int c = pattern.starts[i]; c < pattern.starts[i + 1]; ++c) {
            const double value = block.data[pattern.places[c]];
            if (value != 0.0) row.emplace_back(value, shift + pattern.columns[c]);
        }
    };
    for (int i = 0; i < p.r; ++i) {
        if (!is_shared[i]) continue;
        row.clear();
        if (i < p.t) add(p.T, found.T, i, 0);
        add(p.W, found.W, i, p.n);
        const double sign = !row.empty() && row[0].first < 0.0 ? -1.0 : 1.0;
        std::string key;
        for (auto& [value, column] : row) {
            value *= sign;
            key.append(reinterpret_cast<const char*>(&value), sizeof value);
            key.append(reinterpret_cast<const char*>(&column), sizeof column);
        }
        found.leads[i] = known.try_emplace(std::move(key), i).first->second;
    }
}

}  // namespace

Structure find_structure(const Program& p) {
    Structure found;
    found.memory.reserve(48);
    Patterns patterns{found.memory};
    const Pattern W = patterns.of(p.W, p.r, p.k), V = patterns.of(p.V, p.s, p.k);
    const Pattern D = patterns.of(p.D, p.k, p.k, true);
    const Mask is_simple = simple_variables(p, W, D, V);
    Indices number(p.k, -1), all_r(p.r), all_s(p.s);
    std::iota(all_r.begin(), all_r.end(), 0), std::iota(all_s.begin(), all_s.end(), 0);
    for (int v = 0; v < p.k; ++v) {
        if (is_simple[v]) {
            found.simple.push_back(v);
        } else {
            number[v] = int(found.linking.size());
            found.linking.push_back(v);
        }
    }
    found.P = patterns.of(p.P, p.n, p.n, true);
    found.G = patterns.of(p.G, p.g, p.n);
    found.E = patterns.of(p.E, p.e, p.n);
    found.T = patterns.of(p.T, p.t, p.n);
    found.F = patterns.of(p.F, p.s, p.n);
    found.V = patterns.part(V, all_s, number);
    found.W = patterns.part(W, all_r, number);
    Indices starts{0}, names, places;  // of D's entries off the diagonal
    for (int v = 0; v < p.k; ++v) {
        for (int c = D.starts[v]; c < D.starts[v + 1]; ++c) {
            if (D.columns[c] == v) {
                found.diagonal.push_back(D.places[c]);
            } else {
                names.push_back(number[D.columns[c]]), places.push_back(D.places[c]);
            }
        }
        if (number[v] >= 0) starts.push_back(int(names.size()));
    }
    found.off = patterns.keep(
        int(found.linking.size()), std::move(starts), std::move(names), std::move(places)
    );
    found.own.assign(p.r, -1);
    found.own_place.assign(p.r, -1);
    Mask is_shared(p.r, 0);
    for (int i = 0; i < p.r; ++i) {
        for (int c = W.starts[i]; c < W.starts[i + 1]; ++c) {
            if (is_simple[W.columns[c]]) found.own[i] = W.columns[c], found.own_place[i] = W.places[c];
        }
        is_shared[i] = i < p.t || found.W.starts[i + 1] > found.W.starts[i];
        (is_shared[i] ? found.shared : found.bounds).push_back(i);
    }
    Mask has_shared(p.k, 0);
    for (const int i : found.shared) {
        if (found.own[i] >= 0) has_shared[found.own[i]] = 1;
    }
    for (const int v : found.simple) {
        if (!has_shared[v]) found.unshared.push_back(v);
    }
    find_leads(p, is_shared, found);
    return found;
}

}  // namespace forewise
