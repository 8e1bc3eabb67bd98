#include "structure.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>

namespace forewise {
namespace {

using Mask = std::vector<unsigned char>;

// Where a block is not zero, in any context and scenario.
Mask mask_of(const Block& block) {
    Mask mask(block.size, 0);
    const std::ptrdiff_t parts = std::ptrdiff_t(block.contexts) * block.scenarios;
    for (std::ptrdiff_t i = 0; i < parts; ++i) {
        const double* part = block.data + i * block.size;
        for (std::ptrdiff_t a = 0; a < block.size; ++a) mask[a] |= part[a] != 0.0;
    }
    return mask;
}

// Makes patterns, and keeps their memory.
struct Patterns {
    std::vector<Indices>& memory;

    // Entries of a mask (rows, columns); `number` renames columns, −1 leaves them out.
    Pattern make(const Mask& mask, int rows, int columns, const Indices* number = nullptr) {
        Indices starts{0}, names, places;
        for (int i = 0; i < rows; ++i) {
            for (int c = 0; c < columns; ++c) {
                const int place = i * columns + c;
                const int name = number ? (*number)[c] : c;
                if (mask[place] && name >= 0) names.push_back(name), places.push_back(place);
            }
            starts.push_back(int(names.size()));
        }
        const std::size_t first = memory.size();
        memory.push_back(std::move(starts));
        memory.push_back(std::move(names));
        memory.push_back(std::move(places));
        return {rows, memory[first].data(), memory[first + 1].data(), memory[first + 2].data()};
    }
};

// Which variables are simple, (k,).
Mask simple_variables(const Program& p, const Mask& W, const Mask& D, const Mask& V) {
    const int k = p.k;
    Mask simple(k, 1), shared(p.r, 0);
    Indices times(k, 0);
    for (int i = 0; i < p.r; ++i) {
        const int count = int(std::count(W.data() + i * k, W.data() + (i + 1) * k, 1));
        shared[i] = i < p.t || count > 1;
        if (shared[i]) {
            for (int v = 0; v < k; ++v) times[v] += W[i * k + v];
        }
    }
    for (int v = 0; v < k; ++v) {
        bool tied = times[v] > 1;
        for (int c = 0; c < k; ++c) tied |= c != v && D[c * k + v];
        for (int i = 0; i < p.s; ++i) tied |= V[i * k + v] != 0;
        simple[v] = !tied;
    }
    // Two in one shared row: the first keeps it, the others link.
    Mask kept = simple;
    for (int i = 0; i < p.r; ++i) {
        bool found = !shared[i];
        if (found) continue;
        for (int v = 0; v < k; ++v) {
            if (W[i * k + v] && simple[v]) {
                if (found) kept[v] = 0;
                found = true;
            }
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
    std::map<std::string, int> known;
    std::vector<double> row(p.n + found.linking.size());
    for (int i = 0; i < p.r; ++i) {
        if (!is_shared[i]) continue;
        for (int c = 0; c < p.n; ++c) row[c] = i < p.t ? p.T.data[std::ptrdiff_t(i) * p.n + c] : 0.0;
        for (std::size_t l = 0; l < found.linking.size(); ++l) {
            row[p.n + l] = p.W.data[std::ptrdiff_t(i) * p.k + found.linking[l]];
        }
        int sign = 1;
        for (const double x : row) {
            if (x != 0.0) {
                sign = x < 0.0 ? -1 : 1;
                break;
            }
        }
        for (double& x : row) x = sign * x + 0.0;  // no −0, which is other bytes than 0
        std::string key(row.size() * sizeof(double), '\0');
        if (!row.empty()) std::memcpy(key.data(), row.data(), key.size());
        found.leads[i] = known.try_emplace(std::move(key), i).first->second;
    }
}

}  // namespace

Structure find_structure(const Program& p) {
    Structure found;
    found.memory.reserve(32);
    Patterns patterns{found.memory};
    const Mask W = mask_of(p.W), V = mask_of(p.V);
    Mask D = mask_of(p.D);
    const Mask is_simple = simple_variables(p, W, D, V);
    Indices number(p.k, -1);
    for (int v = 0; v < p.k; ++v) found.diagonal.push_back(v * p.k + v);
    for (int v = 0; v < p.k; ++v) {
        if (is_simple[v]) {
            found.simple.push_back(v);
        } else {
            number[v] = int(found.linking.size());
            found.linking.push_back(v);
        }
    }
    Mask P = mask_of(p.P);
    for (int a = 0; a < p.n; ++a) P[a * p.n + a] = 1;
    found.P = patterns.make(P, p.n, p.n);
    found.G = patterns.make(mask_of(p.G), p.g, p.n);
    found.E = patterns.make(mask_of(p.E), p.e, p.n);
    found.T = patterns.make(mask_of(p.T), p.t, p.n);
    found.F = patterns.make(mask_of(p.F), p.s, p.n);
    found.V = patterns.make(V, p.s, p.k, &number);
    found.W = patterns.make(W, p.r, p.k, &number);
    Mask off(found.linking.size() * p.k, 0);
    for (std::size_t l = 0; l < found.linking.size(); ++l) {
        const int v = found.linking[l];
        for (int c = 0; c < p.k; ++c) off[l * p.k + c] = c != v && D[v * p.k + c];
    }
    found.off = patterns.make(off, int(found.linking.size()), p.k, &number);
    // Its places are in D, whose rows are all variables'.
    Indices& places = found.memory.back();
    for (int l = 0; l < found.off.rows; ++l) {
        for (int i = found.off.starts[l]; i < found.off.starts[l + 1]; ++i) {
            places[i] = found.linking[l] * p.k + found.linking[found.off.columns[i]];
        }
    }
    found.own.assign(p.r, -1);
    found.own_place.assign(p.r, 0);
    Mask is_shared(p.r, 0);
    for (int i = 0; i < p.r; ++i) {
        for (int v = 0; v < p.k; ++v) {
            if (W[i * p.k + v] && is_simple[v]) found.own[i] = v, found.own_place[i] = i * p.k + v;
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
