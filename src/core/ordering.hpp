// A fill-reducing order: minimum degree on the quotient graph, with approximate degrees.
#pragma once

#include <vector>

namespace forewise {

struct Order {
    std::vector<int> nodes;
    double work;  // multiplications of a factorisation, what comes along of a negative class included
};

// The nodes of an undirected graph in the order of their elimination. A node of a lower class comes
// before all of a higher one; those of a negative class are never eliminated, but count as neighbours.
Order order_nodes(std::vector<std::vector<int>> neighbours, const std::vector<int>& classes);

}  // namespace forewise
