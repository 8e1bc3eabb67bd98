// Scenarios of a forest: past outcomes, by how often their contexts share a leaf with a new one.
//
//     w_i(x) = (1/T) Σ_t 1{x_i and x fall into the same leaf of tree t} / (rows in that leaf)
//
// Outcomes stand in an order in which neighbours are alike. A context with no more than `width`
// outcomes of positive weight gets them all; any other gets `width` picks, evenly spread over the
// cumulated weight (systematic resampling).
#pragma once

#include <cstddef>
#include <cstdint>

namespace forewise {

// Nodes of all trees, one tree behind the other; children come after their parent, -1 in a leaf.
struct Forest {
    std::size_t n_nodes, n_trees, n_features;
    const std::int64_t *left, *right, *feature;  // (n_nodes,)
    const double* threshold;                     // (n_nodes,); left if the feature is at most it
    const std::int64_t* roots;                   // (n_trees,)
    const std::int64_t *leaf_rows, *leaf_starts; // rows of node v: [starts[v], starts[v + 1])
    std::size_t n_leaf_rows;
    const std::int64_t* row_of;                  // (n_outcomes,): the row of each outcome
    const double* share;                         // (n_outcomes,): of its row's weight
    std::size_t n_outcomes, n_rows;

    // Why it is no forest; null if it is one.
    const char* fault() const;
};

// Outcomes (n_contexts, width) and their weights, for contexts (n_contexts, n_features).
void pick_outcomes(
    const Forest& forest, const double* contexts, std::size_t n_contexts, std::size_t width,
    double start, std::int64_t* picks, double* weights
);

}  // namespace forewise
