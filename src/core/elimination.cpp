#include "elimination.hpp"

#include <algorithm>
#include <numeric>

#include "ordering.hpp"

namespace forewise {
namespace {

constexpr int WIDEST = 48;        // columns of a supernode
constexpr double PADDING = 0.15;  // share of zeros that a supernode may store
// How many times less work another choice must be: keeping rows with many variables, keeping all, and
// any order. The first choice is the most accurate one near the end of the path, the last the least.
constexpr double LONG_GAIN = 2.0, KEEPING_GAIN = 4.0, MIXING_GAIN = 20.0;
constexpr int LONG_ROW = 12;  // linking entries
// Multiplications per edge of the graph from which on other choices are looked at.
constexpr double WORTH_A_LOOK = 30.0;

// The columns of the factor: rows below, and first-stage variables reached; all by position.
struct Columns {
    std::vector<Indices> below, reach;
    Indices parent;
    Indices node;      // of each position
    Indices position;  // of each node
};

// Nodes: the linking variables, the equalities, the rows that are kept.
struct Nodes {
    int links, equalities;
    Indices kept;       // rows
    Indices kept_node;  // (r,), −1 if not kept
    int size() const { return links + equalities + int(kept.size()); }
    bool is_row(int node) const { return node >= links; }
};

bool is_eliminated(const Structure& s, const Nodes& nodes, int i) {
    return s.leads[i] == i && nodes.kept_node[i] < 0 && s.W.starts[i + 1] > s.W.starts[i];
}

Nodes make_nodes(const Program& p, const Structure& s, const std::vector<char>& keep) {
    Nodes nodes{int(s.linking.size()), p.s, {}, Indices(p.r, -1)};
    for (int i = 0; i < p.r; ++i) {
        if (keep[i]) {
            nodes.kept_node[i] = nodes.size();
            nodes.kept.push_back(i);
        }
    }
    return nodes;
}

// Neighbours of every node; first-stage variables follow the nodes.
std::vector<Indices> graph(const Program& p, const Structure& s, const Nodes& nodes) {
    std::vector<Indices> near(nodes.size() + p.n);
    auto tie = [&](int a, int b) {
        if (a != b) near[a].push_back(b), near[b].push_back(a);
    };
    const int z = nodes.size();
    for (int l = 0; l < s.off.rows; ++l) {
        for (int c = s.off.starts[l]; c < s.off.starts[l + 1]; ++c) tie(l, s.off.columns[c]);
    }
    for (int i = 0; i < p.s; ++i) {
        const int row = nodes.links + i;
        for (int c = s.V.starts[i]; c < s.V.starts[i + 1]; ++c) tie(row, s.V.columns[c]);
        for (int c = s.F.starts[i]; c < s.F.starts[i + 1]; ++c) tie(row, z + s.F.columns[c]);
    }
    for (int i = 0; i < p.r; ++i) {
        const int first = s.W.starts[i], end = s.W.starts[i + 1], row = nodes.kept_node[i];
        const int T_first = i < p.t ? s.T.starts[i] : 0, T_end = i < p.t ? s.T.starts[i + 1] : 0;
        if (row >= 0) {
            for (int c = first; c < end; ++c) tie(row, s.W.columns[c]);
            for (int c = T_first; c < T_end; ++c) tie(row, z + s.T.columns[c]);
        } else if (is_eliminated(s, nodes, i)) {
            for (int a = first; a < end; ++a) {
                for (int c = first; c < a; ++c) tie(s.W.columns[a], s.W.columns[c]);
                for (int c = T_first; c < T_end; ++c) tie(s.W.columns[a], z + s.T.columns[c]);
            }
        }
    }
    for (auto& of : near) {
        std::sort(of.begin(), of.end());
        of.erase(std::unique(of.begin(), of.end()), of.end());
    }
    return near;
}

// The factor's columns for an order of the nodes.
Columns fill_in(const std::vector<Indices>& near, const Indices& order, bool sorted) {
    const int n = int(order.size());
    Columns found;
    found.below.resize(n), found.reach.resize(n), found.parent.assign(n, -1);
    found.node = order;
    found.position.assign(n, 0);
    for (int j = 0; j < n; ++j) found.position[order[j]] = j;
    std::vector<Indices> children(n);
    Indices mark(near.size(), -1);
    for (int j = 0; j < n; ++j) {
        Indices &below = found.below[j], &reach = found.reach[j];
        mark[j] = j;
        auto add = [&](int position) {
            if (position > j && mark[position] != j) mark[position] = j, below.push_back(position);
        };
        auto add_first = [&](int z) {
            if (mark[n + z] != j) mark[n + z] = j, reach.push_back(z);
        };
        for (const int other : near[order[j]]) {
            if (other < n) {
                add(found.position[other]);
            } else {
                add_first(other - n);
            }
        }
        for (const int child : children[j]) {
            for (const int position : found.below[child]) add(position);
            for (const int z : found.reach[child]) add_first(z);
        }
        if (sorted) {
            std::sort(below.begin(), below.end());
            std::sort(reach.begin(), reach.end());
        }
        if (!below.empty()) {
            found.parent[j] = sorted ? below[0] : *std::min_element(below.begin(), below.end());
            children[found.parent[j]].push_back(j);
        }
    }
    return found;
}

// The same order, but for children standing right before their parents.
Indices postorder(const Columns& columns) {
    const int n = int(columns.parent.size());
    std::vector<Indices> children(n);
    Indices roots, order, stack;
    for (int j = 0; j < n; ++j) {
        (columns.parent[j] < 0 ? roots : children[columns.parent[j]]).push_back(j);
    }
    // The largest child last: it may join its parent.
    for (auto& of : children) {
        std::stable_sort(of.begin(), of.end(), [&](int a, int b) {
            return columns.below[a].size() < columns.below[b].size();
        });
    }
    for (const int root : roots) {
        // A node before its children, the last child first; turned around at the end.
        stack.push_back(root);
        Indices turned;
        while (!stack.empty()) {
            const int j = stack.back();
            stack.pop_back();
            turned.push_back(j);
            for (const int child : children[j]) stack.push_back(child);
        }
        for (auto j = turned.rbegin(); j != turned.rend(); ++j) order.push_back(columns.node[*j]);
    }
    return order;
}

void make_supernodes(const Columns& columns, const Nodes& nodes, Elimination& e) {
    const int n = int(columns.node.size());
    auto sign = [&](int j) { return nodes.is_row(columns.node[j]) ? -1 : 1; };
    int first = 0;
    double stored = 0.0;  // nonzeros of the columns since `first`
    for (int j = 0; j < n; ++j) {
        const double here = 1.0 + columns.below[j].size() + columns.reach[j].size();
        stored += here;
        bool joins = false;
        if (j + 1 < n && columns.parent[j] == j + 1 && sign(j) == sign(j + 1)) {
            const int width = j + 2 - first;
            const double rest = columns.below[j + 1].size() + columns.reach[j + 1].size();
            const double whole = width * (width + 1) / 2.0 + width * rest;
            const double zeros = whole - (stored + 1.0 + rest);
            joins = width <= WIDEST && zeros <= PADDING * whole;
        }
        if (joins) continue;
        Supernode node{};
        node.first = first, node.width = j + 1 - first, node.sign = sign(j);
        node.below = int(columns.below[j].size()), node.rows = int(e.rows.size());
        node.firsts = int(columns.reach[j].size()), node.reach = int(e.reach.size());
        node.panel = e.entries, node.reached = e.reached_entries;
        node.tree = -1;
        e.entries += (node.width + node.below) * node.width;
        e.reached_entries += node.firsts * node.width;
        for (const int position : columns.below[j]) {
            node.linking += !nodes.is_row(columns.node[position]);
            e.rows.push_back(position);
        }
        e.reach.insert(e.reach.end(), columns.reach[j].begin(), columns.reach[j].end());
        e.supernodes.push_back(node);
        first = j + 1, stored = 0.0;
    }
}

int index_in(const Indices& list, int first, int count, int value) {
    const auto begin = list.begin() + first;
    return int(std::lower_bound(begin, begin + count, value) - begin);
}

void make_updates(Elimination& e, const Indices& supernode_of) {
    const int count = int(e.supernodes.size());
    std::vector<std::vector<Update>> of(count);
    for (int K = 0; K < count; ++K) {
        const Supernode& source = e.supernodes[K];
        for (int i = 0; i < source.below;) {
            const int J = supernode_of[e.rows[source.rows + i]];
            const Supernode& target = e.supernodes[J];
            const int from = i;
            while (i < source.below && supernode_of[e.rows[source.rows + i]] == J) ++i;
            of[J].push_back({K, from, i - from, int(e.places.size())});
            for (int a = from; a < source.below; ++a) {
                const int position = e.rows[source.rows + a];
                const bool own = position < target.first + target.width;
                e.places.push_back(
                    own ? position - target.first
                        : target.width + index_in(e.rows, target.rows, target.below, position)
                );
            }
            for (int a = 0; a < source.firsts; ++a) {
                e.places.push_back(
                    index_in(e.reach, target.reach, target.firsts, e.reach[source.reach + a])
                );
            }
            const double rows = source.below - from - 0.5 * (i - from) + source.firsts;
            e.work += rows * (i - from) * source.width;
        }
    }
    for (int J = 0; J < count; ++J) {
        e.supernodes[J].updates = int(e.updates.size());
        e.updates.insert(e.updates.end(), of[J].begin(), of[J].end());
        e.supernodes[J].last_update = int(e.updates.size());
        const Supernode& node = e.supernodes[J];
        const double w = node.width;
        e.work += w * w * (w / 6.0 + 0.5 * (node.below + node.firsts)) + 8.0 * w;
        if (node.sign < 0 || !e.squares) e.work += 0.5 * w * node.firsts * node.firsts;
    }
}

// Where entries of the matrix stand in the panels.
struct Places {
    const Elimination& e;
    const Columns& columns;
    const Indices& supernode_of;

    // Of the entry of two nodes, and the sign of its column.
    std::pair<int, int> of(int a, int b) const {
        int low = columns.position[a], high = columns.position[b];
        if (low > high) std::swap(low, high);
        const Supernode& node = e.supernodes[supernode_of[low]];
        const int row = high < node.first + node.width
                            ? high - node.first
                            : node.width + index_in(e.rows, node.rows, node.below, high);
        return {node.panel + row * node.width + low - node.first, node.sign};
    }
    // Of the entry of a node and a first-stage variable.
    std::pair<int, int> of_first(int a, int z) const {
        const int j = columns.position[a];
        const Supernode& node = e.supernodes[supernode_of[j]];
        const int row = index_in(e.reach, node.reach, node.firsts, z);
        return {node.reached + row * node.width + j - node.first, node.sign};
    }
};

struct Source {
    int place, a, b;
    bool operator<(const Source& other) const { return place < other.place; }
};

void gather(std::vector<Source> sources, std::vector<Target>& targets, std::vector<Pair>& pairs) {
    std::stable_sort(sources.begin(), sources.end());
    for (std::size_t i = 0; i < sources.size();) {
        Target target{sources[i].place, int(pairs.size()), 0};
        for (; i < sources.size() && sources[i].place == target.place; ++i) {
            pairs.push_back({sources[i].a, sources[i].b});
        }
        target.end = int(pairs.size());
        targets.push_back(target);
    }
}

void make_assembly(
    const Program& p, const Structure& s, const Nodes& nodes, const Places& places, Elimination& e
) {
    for (int j = 0; j < e.nodes; ++j) {
        const int node = places.columns.node[j];
        e.diagonal.push_back(places.of(node, node).first);
    }
    std::vector<Source> gram, coupling;
    for (int i = 0; i < p.r; ++i) {
        const int first = s.W.starts[i], end = s.W.starts[i + 1], row = nodes.kept_node[i];
        const int T_first = i < p.t ? s.T.starts[i] : 0, T_end = i < p.t ? s.T.starts[i + 1] : 0;
        if (row >= 0) {
            for (int a = first; a < end; ++a) {
                const auto [place, sign] = places.of(row, s.W.columns[a]);
                e.kept_W.push_back({a, place}), e.kept_W_sign.push_back(sign);
            }
            for (int c = T_first; c < T_end; ++c) {
                const auto [place, sign] = places.of_first(row, s.T.columns[c]);
                e.kept_T.push_back({c, place}), e.kept_T_sign.push_back(sign);
            }
        } else if (is_eliminated(s, nodes, i)) {
            for (int a = first; a < end; ++a) {
                for (int c = first; c <= a; ++c) {
                    gram.push_back({places.of(s.W.columns[a], s.W.columns[c]).first, a, c});
                }
                for (int c = T_first; c < T_end; ++c) {
                    coupling.push_back({places.of_first(s.W.columns[a], s.T.columns[c]).first, a, c});
                }
            }
        }
    }
    e.work += double(gram.size() + coupling.size());
    gather(std::move(gram), e.gram, e.pairs);
    gather(std::move(coupling), e.coupling, e.pairs);
    for (int l = 0; l < s.off.rows; ++l) {
        for (int i = s.off.starts[l]; i < s.off.starts[l + 1]; ++i) {
            if (s.off.columns[i] < l) {
                e.curvature.push_back({i, places.of(l, s.off.columns[i]).first});
            }
        }
    }
    for (int i = 0; i < p.s; ++i) {
        for (int a = s.V.starts[i]; a < s.V.starts[i + 1]; ++a) {
            const auto [place, sign] = places.of(nodes.links + i, s.V.columns[a]);
            e.equal_V.push_back({a, place}), e.equal_V_sign.push_back(sign);
        }
        for (int c = s.F.starts[i]; c < s.F.starts[i + 1]; ++c) {
            const auto [place, sign] = places.of_first(nodes.links + i, s.F.columns[c]);
            e.equal_F.push_back({c, place}), e.equal_F_sign.push_back(sign);
        }
    }
}

void make_trees(
    const Program& p, const Structure& s, const Nodes& nodes, const Columns& columns,
    const Indices& supernode_of, Elimination& e
) {
    const int n = e.nodes;
    Indices tree(n, -1);
    for (int j = n - 1; j >= 0; --j) {
        if (nodes.is_row(columns.node[j])) continue;
        const int parent = columns.parent[j];
        if (parent >= 0 && !nodes.is_row(columns.node[parent])) {
            tree[j] = tree[parent];
        } else {
            tree[j] = int(e.trees.size());
            const Supernode& node = e.supernodes[supernode_of[j]];
            e.trees.push_back({node.firsts, node.reach, 0, 0, 0, 0});
            e.widest_tree = std::max(e.widest_tree, node.firsts);
        }
    }
    e.solution.assign(n, -1);
    std::vector<Indices> rows(e.trees.size()), variables(e.trees.size());
    for (int j = 0; j < n; ++j) {
        if (tree[j] < 0) continue;
        e.solution[j] = e.solution_entries;
        e.solution_entries += e.trees[tree[j]].firsts;
        variables[tree[j]].push_back(columns.node[j]);
    }
    for (Supernode& node : e.supernodes) node.tree = tree[node.first];
    for (int i = 0; i < p.r; ++i) {
        if (is_eliminated(s, nodes, i)) {
            rows[tree[columns.position[s.W.columns[s.W.starts[i]]]]].push_back(i);
        }
    }
    for (std::size_t i = 0; i < e.trees.size(); ++i) {
        Tree& t = e.trees[i];
        t.rows = int(e.tree_rows.size());
        e.tree_rows.insert(e.tree_rows.end(), rows[i].begin(), rows[i].end());
        t.last_row = int(e.tree_rows.size());
        t.variables = int(e.tree_variables.size());
        e.tree_variables.insert(e.tree_variables.end(), variables[i].begin(), variables[i].end());
        t.last_variable = int(e.tree_variables.size());
        const double firsts = t.firsts, items = double(rows[i].size());
        e.work += items * firsts * (0.5 * firsts + 2.0);
    }
    for (const Supernode& node : e.supernodes) {
        if (node.tree >= 0) {
            const double below = node.linking + 0.5 * node.width;
            e.work += below * node.width * e.trees[node.tree].firsts;
        }
    }
}

// One way to eliminate: which rows are kept, and in which order.
struct Choice {
    Nodes nodes;
    std::vector<Indices> near;
    Order order;
    bool mixed;

    Choice(const Program& p, const Structure& s, const std::vector<char>& keep, bool mixed)
        : nodes(make_nodes(p, s, keep)), near(graph(p, s, nodes)), mixed(mixed) {
        Indices classes(near.size(), -1);
        for (int i = 0; i < nodes.size(); ++i) classes[i] = nodes.is_row(i) && !mixed ? 1 : 0;
        order = order_nodes(near, classes);
    }
    // Of a factorisation, where there is no first stage.
    double work(const Structure& s) const {
        double total = order.work + 8.0 * nodes.size();
        for (int i = 0; i < s.W.rows; ++i) {
            const double entries = s.W.starts[i + 1] - s.W.starts[i];
            if (nodes.kept_node[i] < 0) total += 0.5 * entries * (entries + 1.0);
        }
        return total;
    }
    double edges() const {
        double total = nodes.size();
        for (const Indices& of : near) total += of.size();
        return total;
    }
};

Elimination make_elimination(const Program& p, const Structure& s, const Choice& choice) {
    const Nodes& nodes = choice.nodes;
    const auto& near = choice.near;
    const bool mixed = choice.mixed;
    const Indices order = postorder(fill_in(near, choice.order.nodes, false));
    const Columns columns = fill_in(near, order, true);

    Elimination e;
    e.nodes = nodes.size();
    make_supernodes(columns, nodes, e);
    Indices supernode_of(e.nodes);
    for (std::size_t i = 0; i < e.supernodes.size(); ++i) {
        const Supernode& node = e.supernodes[i];
        for (int j = 0; j < node.width; ++j) supernode_of[node.first + j] = int(i);
        e.squares |= !mixed && node.sign > 0 && node.firsts > 0;
    }
    make_updates(e, supernode_of);
    e.position_of_linking.assign(columns.position.begin(), columns.position.begin() + nodes.links);
    e.position_of_equality.assign(
        columns.position.begin() + nodes.links,
        columns.position.begin() + nodes.links + nodes.equalities
    );
    e.position_of_kept.assign(p.r, -1);
    for (const int i : nodes.kept) {
        e.position_of_kept[i] = columns.position[nodes.kept_node[i]];
        e.kept.push_back({i, e.position_of_kept[i]});
    }
    for (int j = 0; j < e.nodes; ++j) e.sign.push_back(nodes.is_row(columns.node[j]) ? -1 : 1);
    make_assembly(p, s, nodes, {e, columns, supernode_of}, e);
    if (e.squares) make_trees(p, s, nodes, columns, supernode_of, e);
    return e;
}

}  // namespace

Elimination plan_elimination(const Program& p, const Structure& s) {
    std::vector<char> none(p.r, 0), all(p.r, 0), lengthy(p.r, 0);
    bool any = false, any_long = false;
    for (int i = 0; i < p.r; ++i) {
        const int linking = s.W.starts[i + 1] - s.W.starts[i];
        const bool touches = i < p.t && s.T.starts[i + 1] > s.T.starts[i];
        all[i] = linking > 1 || (linking == 1 && touches);
        lengthy[i] = linking > LONG_ROW;
        any |= all[i], any_long |= lengthy[i];
    }
    // W'κW of a row with all variables of a large scenario is not worth being looked at.
    double pairs = 0.0;
    for (int i = 0; i < p.r; ++i) {
        const double linking = s.W.starts[i + 1] - s.W.starts[i];
        pairs += 0.5 * linking * linking;
    }
    const bool large = pairs > 4e6;
    if (!p.n) {
        // Without a first stage an order says what its factorisation costs.
        Choice best(p, s, large ? lengthy : none, false);
        auto consider = [&](const std::vector<char>& keep, bool mixed, double gain) {
            Choice other(p, s, keep, mixed);
            if (gain * other.work(s) < best.work(s)) best = std::move(other);
        };
        if (best.work(s) > WORTH_A_LOOK * best.edges()) {
            if (any_long && !large) consider(lengthy, false, LONG_GAIN);
            if (any) consider(all, false, KEEPING_GAIN);
            consider(all, true, MIXING_GAIN);
        }
        return make_elimination(p, s, best);
    }
    Elimination best = make_elimination(p, s, Choice(p, s, large ? lengthy : none, false));
    auto consider = [&](const std::vector<char>& keep, bool mixed, double gain) {
        Elimination other = make_elimination(p, s, Choice(p, s, keep, mixed));
        if (gain * other.work < best.work) best = std::move(other);
    };
    // Small ones cost more to look at than they can save.
    if (best.work > 2000.0) {
        if (any_long && !large) consider(lengthy, false, LONG_GAIN);
        if (any) consider(all, false, KEEPING_GAIN);
        consider(all, true, MIXING_GAIN);
    }
    return best;
}

}  // namespace forewise
