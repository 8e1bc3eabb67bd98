// After Amestoy, Davis and Duff, "An approximate minimum degree ordering algorithm" (1996), without
// its supervariables: the graphs here have some thousand nodes.
#include "ordering.hpp"

#include <algorithm>
#include <set>
#include <tuple>

namespace forewise {

std::vector<int> order_nodes(
    std::vector<std::vector<int>> neighbours, const std::vector<int>& classes
) {
    const int n = int(neighbours.size());
    // An eliminated node is an element: the clique of those that it reached.
    std::vector<std::vector<int>> elements(n), clique(n);
    std::vector<int> degree(n), order, mark(n, -1), outside(n, 0), stamp(n, -1);
    std::vector<char> absorbed(n, 0);
    std::set<std::tuple<int, int, int>> waiting;
    for (int i = 0; i < n; ++i) {
        degree[i] = int(neighbours[i].size());
        if (classes[i] >= 0) waiting.emplace(classes[i], degree[i], i);
    }
    while (!waiting.empty()) {
        const int p = std::get<2>(*waiting.begin());
        waiting.erase(waiting.begin());
        order.push_back(p);
        std::vector<int>& reached = clique[p];
        mark[p] = p;
        auto reach = [&](const std::vector<int>& nodes) {
            for (const int i : nodes) {
                if (mark[i] != p) mark[i] = p, reached.push_back(i);
            }
        };
        reach(neighbours[p]);
        for (const int e : elements[p]) {
            if (absorbed[e]) continue;
            reach(clique[e]);
            absorbed[e] = 1;
            std::vector<int>().swap(clique[e]);
        }
        std::vector<int>().swap(neighbours[p]);
        std::vector<int>().swap(elements[p]);
        // How much of every other element lies outside of the new one.
        for (const int i : reached) {
            auto& of = elements[i];
            of.erase(std::remove_if(of.begin(), of.end(), [&](int e) { return absorbed[e]; }), of.end());
            for (const int e : of) {
                if (stamp[e] != p) stamp[e] = p, outside[e] = int(clique[e].size());
                --outside[e];
            }
        }
        for (const int i : reached) {
            auto& near = neighbours[i];
            near.erase(
                std::remove_if(near.begin(), near.end(), [&](int j) { return mark[j] == p; }), near.end()
            );
            auto& of = elements[i];
            int far = int(near.size()) + int(reached.size()) - 1;
            for (const int e : of) far += outside[e];
            // An element that lies inside of the new one says nothing more.
            of.erase(
                std::remove_if(of.begin(), of.end(), [&](int e) { return outside[e] == 0; }), of.end()
            );
            of.push_back(p);
            if (classes[i] < 0) continue;
            waiting.erase({classes[i], degree[i], i});
            degree[i] = std::min(far, degree[i] + int(reached.size()) - 1);
            waiting.emplace(classes[i], degree[i], i);
        }
    }
    return order;
}

}  // namespace forewise
