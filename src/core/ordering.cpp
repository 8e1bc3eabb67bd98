// After Amestoy, Davis and Duff, "An approximate minimum degree ordering algorithm" (1996): eliminated
// nodes are elements of a quotient graph, nodes that cannot be told apart are one of some weight.
#include "ordering.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace forewise {
namespace {

using Lists = std::vector<std::vector<int>>;

// Nodes by class and degree, the last that came in first.
struct Buckets {
    int n;
    std::vector<int> head, next, before, lowest;

    Buckets(int n, int classes) : n(n), head(std::size_t(n) * classes, -1), next(n), before(n), lowest(classes, n) {}
    void insert(int i, int of_class, int degree) {
        int& first = head[std::size_t(of_class) * n + degree];
        next[i] = first, before[i] = -1;
        if (first >= 0) before[first] = i;
        first = i;
        lowest[of_class] = std::min(lowest[of_class], degree);
    }
    void erase(int i, int of_class, int degree) {
        if (next[i] >= 0) before[next[i]] = before[i];
        (before[i] >= 0 ? next[before[i]] : head[std::size_t(of_class) * n + degree]) = next[i];
    }
    // A node of the first class that has one, of the lowest degree; −1 if there is none.
    int first() {
        for (std::size_t c = 0; c < lowest.size(); ++c) {
            for (int& d = lowest[c]; d < n; ++d) {
                if (head[c * n + d] >= 0) return head[c * n + d];
            }
        }
        return -1;
    }
};

struct Quotient {
    int n;
    Lists neighbours, elements, clique;
    const std::vector<int>& classes;
    std::vector<int> weight;  // of nodes; 0 if eliminated or one with another
    std::vector<int> size;    // of elements
    std::vector<int> degree, mark, outside, stamp, seen;
    std::vector<char> absorbed;
    Lists same;  // nodes that are one with this one
    Buckets buckets;
    std::vector<int> order;
    double work = 0.0;
    int stamps = 0;

    Quotient(Lists near, const std::vector<int>& classes)
        : n(int(near.size())), neighbours(std::move(near)), elements(n), clique(n), classes(classes),
          weight(n, 1), size(n, 0), degree(n), mark(n, -1), outside(n, 0), stamp(n, -1), seen(n, -1),
          absorbed(n, 0), same(n), buckets(n, 2) {
        for (int i = 0; i < n; ++i) {
            degree[i] = int(neighbours[i].size());
            if (classes[i] >= 0) buckets.insert(i, classes[i], degree[i]);
        }
    }

    void append(int i) {
        order.push_back(i);
        for (const int j : same[i]) append(j);
    }

    // The clique that eliminating p leaves; nodes of it are marked with p.
    int reach(int p) {
        int total = 0;
        mark[p] = p;
        auto add = [&](const std::vector<int>& nodes) {
            for (const int i : nodes) {
                if (weight[i] > 0 && mark[i] != p) mark[i] = p, clique[p].push_back(i), total += weight[i];
            }
        };
        add(neighbours[p]);
        for (const int e : elements[p]) {
            if (absorbed[e]) continue;
            add(clique[e]);
            absorbed[e] = 1;
            std::vector<int>().swap(clique[e]);
        }
        std::vector<int>().swap(neighbours[p]);
        std::vector<int>().swap(elements[p]);
        return total;
    }

    // How much of every other element lies outside of the new one; one that has nothing there goes.
    void look_outside(int p) {
        for (const int i : clique[p]) {
            for (const int e : elements[i]) {
                if (absorbed[e]) continue;
                if (stamp[e] != p) stamp[e] = p, outside[e] = size[e];
                outside[e] -= weight[i];
                absorbed[e] = outside[e] == 0;
            }
        }
    }

    // Update a node of the new clique; returns a hash of what it is tied to.
    std::uint32_t update(int i, int p, int total) {
        std::uint32_t hash = 0;
        int far = total - weight[i];
        auto &near = neighbours[i], &of = elements[i];
        std::size_t kept = 0;
        for (const int e : of) {
            if (absorbed[e]) continue;
            of[kept++] = e, far += outside[e], hash += std::uint32_t(e) * 2654435761u;
        }
        of.resize(kept);
        kept = 0;
        for (const int j : near) {
            if (mark[j] == p || weight[j] == 0) continue;
            near[kept++] = j, far += weight[j], hash += std::uint32_t(j) * 2654435761u;
        }
        near.resize(kept);
        degree[i] = std::max(0, std::min(far, degree[i] + total - weight[i]));
        of.push_back(p);
        return hash;
    }

    bool are_same(int i, int j) {
        if (classes[i] != classes[j] || neighbours[i].size() != neighbours[j].size() ||
            elements[i].size() != elements[j].size()) {
            return false;
        }
        ++stamps;
        for (const int a : neighbours[i]) seen[a] = stamps;
        for (const int a : neighbours[j]) {
            if (seen[a] != stamps) return false;
        }
        ++stamps;
        for (const int e : elements[i]) seen[e] = stamps;
        for (const int e : elements[j]) {
            if (seen[e] != stamps) return false;
        }
        return true;
    }

    void eliminate(int p) {
        buckets.erase(p, classes[p], degree[p]);
        int total = reach(p);
        double pivots = weight[p];
        append(p);
        weight[p] = 0;
        look_outside(p);
        std::vector<std::pair<std::uint32_t, int>> hashes;
        for (const int i : clique[p]) {
            if (classes[i] >= 0) buckets.erase(i, classes[i], degree[i]);
        }
        for (const int i : clique[p]) hashes.emplace_back(update(i, p, total), i);
        for (const auto& [hash, i] : hashes) {
            // Tied to nothing but the clique: eliminating it now fills nothing in.
            if (classes[i] == classes[p] && elements[i].size() == 1 && neighbours[i].empty()) {
                append(i);
                pivots += weight[i], total -= weight[i];
                weight[i] = 0;
            }
        }
        std::sort(hashes.begin(), hashes.end());
        for (std::size_t a = 0; a < hashes.size(); ++a) {
            const int i = hashes[a].second;
            if (weight[i] == 0 || classes[i] < 0) continue;
            for (std::size_t b = a + 1; b < hashes.size() && hashes[b].first == hashes[a].first; ++b) {
                const int j = hashes[b].second;
                if (weight[j] == 0 || !are_same(i, j)) continue;
                same[i].push_back(j);
                degree[i] = std::max(0, degree[i] - weight[j]);
                weight[i] += weight[j], weight[j] = 0;
            }
        }
        auto& left = clique[p];
        left.erase(std::remove_if(left.begin(), left.end(), [&](int i) { return weight[i] == 0; }), left.end());
        for (const int i : left) {
            degree[i] = std::min(degree[i], n - 1);
            if (classes[i] >= 0) buckets.insert(i, classes[i], degree[i]);
        }
        size[p] = total;
        const double below = total;
        work += pivots * (below * below + below * pivots + pivots * pivots / 3.0) / 2.0;
    }
};

}  // namespace

Order order_nodes(Lists neighbours, const std::vector<int>& classes) {
    Quotient graph(std::move(neighbours), classes);
    for (int p = graph.buckets.first(); p >= 0; p = graph.buckets.first()) graph.eliminate(p);
    return {std::move(graph.order), graph.work};
}

}  // namespace forewise
