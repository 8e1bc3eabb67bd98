// After Davis, "Algorithm 849: a concise sparse Cholesky factorization package" (2005): row k of the
// factor is a sparse triangular solution whose pattern is a walk up the elimination tree.
#include "convexity.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "ordering.hpp"

namespace forewise {
namespace {

constexpr double NEGATIVE = 1e-9;  // of the largest entry: what curvature below zero may be rounding
constexpr double WORK = 1e7;       // multiplications from which on a dense factorisation is faster

struct Symmetric {
    std::vector<int> starts, columns, order, tree;  // by position in the order; columns to the left
    std::vector<int> places;

    Symmetric(const Block& block, const std::vector<int>& order) : starts{0}, order(order), tree(order.size(), -1) {
        const int n = int(order.size());
        std::vector<int> position(n), ancestor(n, -1);
        for (int k = 0; k < n; ++k) position[order[k]] = k;
        for (int k = 0; k < n; ++k) {
            const int v = order[k];
            for (int a = block.starts[v]; a < block.starts[v + 1]; ++a) {
                const int column = position[block.columns[a]];
                if (column > k) continue;
                columns.push_back(column), places.push_back(a);
                for (int i = column; i != k && i >= 0;) {
                    const int up = ancestor[i];
                    ancestor[i] = k;
                    if (up < 0) tree[i] = k;
                    i = up;
                }
            }
            starts.push_back(int(columns.size()));
        }
    }

    // Whether all pivots of the matrix, shifted, are positive.
    bool factors(const double* entries, double shift) const {
        const int n = int(order.size());
        std::vector<std::vector<int>> rows(n);
        std::vector<std::vector<double>> values(n);
        std::vector<double> pivot(n), x(n, 0.0);
        std::vector<int> mark(n, -1), path, pattern;
        for (int k = 0; k < n; ++k) {
            mark[k] = k;
            pattern.clear();
            for (int a = starts[k]; a < starts[k + 1]; ++a) {
                x[columns[a]] += entries[places[a]];
                path.clear();
                for (int i = columns[a]; mark[i] != k; i = tree[i]) path.push_back(i), mark[i] = k;
                pattern.insert(pattern.end(), path.rbegin(), path.rend());
            }
            std::sort(pattern.begin(), pattern.end());
            double rest = x[k] + shift;
            x[k] = 0.0;
            for (const int i : pattern) {
                const double of = x[i];
                x[i] = 0.0;
                for (std::size_t a = 0; a < rows[i].size(); ++a) x[rows[i][a]] -= values[i][a] * of;
                const double factor = of / pivot[i];
                rest -= factor * of;
                rows[i].push_back(k), values[i].push_back(factor);
            }
            if (!(rest > 0.0)) return false;
            pivot[k] = rest;
        }
        return true;
    }
};

}  // namespace

Convexity convexity(const Block& block, int b, int size) {
    std::vector<std::vector<int>> near(size);
    for (int i = 0; i < size; ++i) {
        for (int a = block.starts[i]; a < block.starts[i + 1]; ++a) {
            const int c = block.columns[a];
            if (c != i) near[i].push_back(c), near[c].push_back(i);
        }
    }
    bool diagonal = true;
    for (auto& of : near) {
        std::sort(of.begin(), of.end());
        of.erase(std::unique(of.begin(), of.end()), of.end());
        diagonal = diagonal && of.empty();
    }
    const Order order = order_nodes(near, std::vector<int>(size, 0));
    if (!diagonal && order.work > WORK) return Convexity::unknown;
    const Symmetric matrix(block, order.nodes);
    for (int j = 0; j < block.scenarios; ++j) {
        const double* entries = block.of(b, j);
        double top = 0.0;
        for (std::ptrdiff_t a = 0; a < block.size; ++a) top = std::max(top, std::fabs(entries[a]));
        if (top > 0.0 && !matrix.factors(entries, NEGATIVE * top)) return Convexity::no;
    }
    return Convexity::yes;
}

}  // namespace forewise
