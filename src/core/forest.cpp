#include "forest.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace forewise {
namespace {

// The leaf of a tree that a context falls into.
std::int64_t leaf_of(const Forest& f, std::int64_t node, const double* x) {
    while (f.left[node] >= 0) {
        const bool goes_left = x[f.feature[node]] <= f.threshold[node];
        node = goes_left ? f.left[node] : f.right[node];
    }
    return node;
}

// As many picks as `width`: an outcome is picked as often as the cumulated weight passes
// (i + start) / width within its own.
void pick_evenly(
    const std::vector<double>& weight, std::size_t width, double start, std::int64_t* picks
) {
    double total = 0;
    for (const double w : weight) total += w;
    double reached = 0;
    std::size_t done = 0;
    for (std::size_t i = 0; i < weight.size() && done < width; ++i) {
        if (weight[i] == 0) continue;
        reached += weight[i];
        const double places = std::ceil(double(width) * (reached / total) - start);
        // Rounding must not lose the last pick.
        const double passed = reached >= total ? double(width) : std::clamp(places, 0.0, double(width));
        for (; double(done) < passed; ++done) picks[done] = std::int64_t(i);
    }
}

}  // namespace

const char* Forest::fault() const {
    const auto nodes = std::int64_t(n_nodes), rows = std::int64_t(n_rows);
    for (std::int64_t v = 0; v < nodes; ++v) {
        if ((left[v] < 0) != (right[v] < 0)) return "a node must have two children or none";
        if (left[v] < 0) continue;
        if (left[v] <= v || right[v] <= v) return "children must come after their parent";
        if (left[v] >= nodes || right[v] >= nodes) return "children must be nodes";
        if (feature[v] < 0 || feature[v] >= std::int64_t(n_features)) return "features must be columns";
    }
    for (std::size_t t = 0; t < n_trees; ++t) {
        if (roots[t] < 0 || roots[t] >= nodes) return "roots must be nodes";
    }
    if (leaf_starts[0] != 0) return "rows of leaves must start at 0";
    for (std::size_t v = 0; v < n_nodes; ++v) {
        if (leaf_starts[v] > leaf_starts[v + 1]) return "rows of leaves must follow each other";
    }
    if (leaf_starts[n_nodes] != std::int64_t(n_leaf_rows)) return "every row of a leaf must have one";
    for (std::size_t i = 0; i < n_leaf_rows; ++i) {
        if (leaf_rows[i] < 0 || leaf_rows[i] >= rows) return "rows of leaves must be rows";
    }
    for (std::size_t i = 0; i < n_outcomes; ++i) {
        if (row_of[i] < 0 || row_of[i] >= rows) return "outcomes must have rows";
    }
    return nullptr;
}

void pick_outcomes(
    const Forest& f, const double* contexts, std::size_t n_contexts, std::size_t width,
    double start, std::int64_t* picks, double* weights
) {
    std::vector<double> of_row(f.n_rows), weight(f.n_outcomes);
    for (std::size_t c = 0; c < n_contexts; ++c) {
        std::fill(of_row.begin(), of_row.end(), 0.0);
        for (std::size_t t = 0; t < f.n_trees; ++t) {
            const auto leaf = leaf_of(f, f.roots[t], contexts + c * f.n_features);
            const auto first = f.leaf_starts[leaf], last = f.leaf_starts[leaf + 1];
            const double share = 1.0 / double(std::int64_t(f.n_trees) * (last - first));
            for (auto i = first; i < last; ++i) of_row[f.leaf_rows[i]] += share;
        }
        std::size_t n_positive = 0;
        for (std::size_t i = 0; i < f.n_outcomes; ++i) {
            weight[i] = of_row[f.row_of[i]] * f.share[i];
            n_positive += weight[i] > 0;
        }
        std::int64_t* own_picks = picks + c * width;
        double* own = weights + c * width;
        if (n_positive > width) {
            pick_evenly(weight, width, start, own_picks);
            std::fill(own, own + width, 1.0 / double(width));
            continue;
        }
        std::size_t k = 0;
        for (std::size_t i = 0; i < f.n_outcomes; ++i) {
            if (weight[i] > 0) own_picks[k] = std::int64_t(i), own[k++] = weight[i];
        }
        const std::int64_t last = k ? own_picks[k - 1] : 0;
        for (; k < width; ++k) own_picks[k] = last, own[k] = 0;
    }
}

}  // namespace forewise
