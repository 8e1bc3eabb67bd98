#include "balance.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace forewise {
namespace {

constexpr double SPREAD = 10.0;  // powers of two between the units from which on they are used
constexpr int ROUNDS = 40;       // of fitting rows and columns in turn,
constexpr double FITTED = 1e-3;  // or until no exponent moves by more
constexpr double LARGE_COUNTS = 4.0;  // times as much as a small one does an entry larger than others
const double SMALLEST = std::exp2(-50.0);  // of a row's top: below, an entry may be rounding noise
constexpr double NOISE_BITS = 30.0;  // below the longest distance to a row: shorter ones may be noise

// Largest sizes of one context's rows over its scenarios; the roots of the quadratic costs' diagonals,
// which bound all of a convex cost's entries, are the last row.
struct Rows {
    int columns;
    std::vector<int> starts{0}, names;
    std::vector<double> sizes, right;

    std::vector<double> largest(const Block& block, int b) const {
        std::vector<double> top(block.size, 0.0);
        for (int j = 0; j < block.scenarios; ++j) {
            const double* of = block.of(b) + j * block.size;
            for (std::ptrdiff_t a = 0; a < block.size; ++a) top[a] = std::max(top[a], std::fabs(of[a]));
        }
        return top;
    }
    void add_entries(const Block& block, const std::vector<double>& top, int i, int width, int shift) {
        const int first = block.starts ? block.starts[i] : i * width;
        const int end = block.starts ? block.starts[i + 1] : first + width;
        for (int a = first; a < end; ++a) {
            if (top[a] == 0.0) continue;
            names.push_back(shift + (block.starts ? block.columns[a] : a - first));
            sizes.push_back(top[a]);
        }
    }
    void add_rows(const Block& A, int rows_A, int n, const Block* W, int k, const Block& bound, int rows, int b) {
        const auto top = largest(A, b), top_W = W ? largest(*W, b) : std::vector<double>();
        const auto of_bound = largest(bound, b);
        for (int i = 0; i < rows; ++i) {
            if (i < rows_A) add_entries(A, top, i, n, 0);
            if (W) add_entries(*W, top_W, i, k, n);
            starts.push_back(int(names.size())), right.push_back(of_bound[i]);
        }
    }
    void add_diagonal(const Block& block, int b, int size, int shift) {
        const auto top = largest(block, b);
        for (int v = 0; v < size; ++v) {
            double found = block.starts ? 0.0 : top[std::ptrdiff_t(v) * size + v];
            for (int a = block.starts ? block.starts[v] : 0; block.starts && a < block.starts[v + 1]; ++a) {
                if (block.columns[a] == v) found = top[a];
            }
            if (found > 0.0) names.push_back(shift + v), sizes.push_back(std::sqrt(found));
        }
    }
    Rows(const Program& p, int b) : columns(p.n + p.k) {
        add_rows(p.G, p.g, p.n, nullptr, 0, p.h, p.g, b);
        add_rows(p.E, p.e, p.n, nullptr, 0, p.ee, p.e, b);
        add_rows(p.T, p.t, p.n, &p.W, p.k, p.rr, p.r, b);
        add_rows(p.F, p.s, p.n, &p.V, p.k, p.ss, p.s, b);
        add_diagonal(p.P, b, p.n, 0), add_diagonal(p.D, b, p.k, p.n);
        starts.push_back(int(names.size())), right.push_back(0.0);
    }
    int count() const { return int(right.size()); }
};

// Of the finite values, the lower one in the middle; NaN if there are none.
double median(std::vector<double>& values) {
    if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
    const auto middle = values.begin() + (values.size() - 1) / 2;
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

// Of every row, entries that link columns: where to go from a column to its neighbours in other rows.
struct Links {
    std::vector<int> starts, entries, rows;  // of each column: its entries, and the rows they are in

    Links(const Rows& rows_of, const std::vector<char>& linking) : starts(rows_of.columns + 1, 0) {
        for (std::size_t a = 0; a < linking.size(); ++a) starts[rows_of.names[a] + 1] += linking[a];
        std::partial_sum(starts.begin(), starts.end(), starts.begin());
        entries.resize(starts.back()), rows.resize(starts.back());
        std::vector<int> next(starts.begin(), starts.end() - 1);
        for (int i = 0; i < rows_of.count(); ++i) {
            for (int a = rows_of.starts[i]; a < rows_of.starts[i + 1]; ++a) {
                if (!linking[a]) continue;
                const int place = next[rows_of.names[a]]++;
                entries[place] = a, rows[place] = i;
            }
        }
    }
};

// What to add to the columns so that each is alike with the neighbour from which a breadth-first search
// reaches it; 0 on average in what rows link. Where all rows can be even, they are.
std::vector<double> along_trees(const Rows& rows, const std::vector<char>& linking, const std::vector<double>& logs) {
    const Links links(rows, linking);
    std::vector<double> found(rows.columns, 0.0);
    std::vector<char> seen_column(rows.columns, 0), seen_row(rows.count(), 0);
    std::vector<int> queue;
    for (int root = 0; root < rows.columns; ++root) {
        if (seen_column[root]) continue;
        queue.assign(1, root), seen_column[root] = 1;
        double total = 0.0;
        for (std::size_t at = 0; at < queue.size(); ++at) {
            const int c = queue[at];
            total += found[c];
            for (int link = links.starts[c]; link < links.starts[c + 1]; ++link) {
                const int i = links.rows[link];
                if (seen_row[i]) continue;
                seen_row[i] = 1;
                const double level = logs[links.entries[link]] + found[c];
                for (int a = rows.starts[i]; a < rows.starts[i + 1]; ++a) {
                    const int other = rows.names[a];
                    if (!linking[a] || seen_column[other]) continue;
                    seen_column[other] = 1, found[other] = level - logs[a], queue.push_back(other);
                }
            }
        }
        for (int c : queue) found[c] -= total / double(queue.size());
    }
    return found;
}

// Rows and columns, fitted in turn so that the entries of each row are alike. Absolute deviations
// count, and those of large entries more: a small one may as well be missing.
struct Fit {
    const Rows& rows;
    const std::vector<char>& linking;
    const std::vector<double>& logs;
    std::vector<double> columns, level, sum, weights;

    Fit(const Rows& rows, const std::vector<char>& linking, const std::vector<double>& logs,
        std::vector<double> start)
        : rows(rows), linking(linking), logs(logs), columns(std::move(start)), level(rows.count(), 0.0),
          sum(rows.columns), weights(rows.columns) {}

    // Each entry that counts: how far it is above its row's level.
    template <class F>
    void each(int i, F f) const {
        for (int a = rows.starts[i]; a < rows.starts[i + 1]; ++a) {
            if (linking[a]) f(rows.names[a], logs[a] + columns[rows.names[a]] - level[i]);
        }
    }
    static double count(double off) { return (off > 0.0 ? LARGE_COUNTS : 1.0) / (std::fabs(off) + 1.0); }

    double fit_rows() {
        double moved = 0.0;
        for (int i = 0; i < rows.count(); ++i) {
            double total = 0.0, weight = 0.0;
            each(i, [&](int, double off) { total += count(off) * off, weight += count(off); });
            const double step = total / std::max(weight, 1e-9);
            level[i] += step, moved = std::max(moved, std::fabs(step));
        }
        return moved;
    }
    double fit_columns() {
        double moved = 0.0;
        std::fill(sum.begin(), sum.end(), 0.0), std::fill(weights.begin(), weights.end(), 0.0);
        for (int i = 0; i < rows.count(); ++i) {
            each(i, [&](int c, double off) { sum[c] += count(off) * off, weights[c] += count(off); });
        }
        for (int c = 0; c < rows.columns; ++c) {
            const double step = sum[c] / std::max(weights[c], 1e-9);
            columns[c] -= step, moved = std::max(moved, std::fabs(step));
        }
        return moved;
    }
    double unevenness() const {
        double total = 0.0;
        for (int i = 0; i < rows.count(); ++i) {
            each(i, [&](int, double off) { total += count(off) * off * off; });
        }
        return total;
    }
};

// What to add to the columns so that the entries of each row are alike. From nothing, fitting in turn
// takes as many rounds as orders of magnitude have to pass through a row that links two columns.
std::vector<double> fit(const Rows& rows, const std::vector<char>& linking, const std::vector<double>& logs) {
    Fit best(rows, linking, logs, std::vector<double>(rows.columns, 0.0));
    Fit tree(rows, linking, logs, along_trees(rows, linking, logs));
    best.fit_rows(), tree.fit_rows();
    if (tree.unevenness() < best.unevenness()) std::swap(best.columns, tree.columns), std::swap(best.level, tree.level);
    for (int round = 0; round < ROUNDS; ++round) {
        const double moved = best.fit_columns();
        if (std::max(moved, best.fit_rows()) < FITTED) break;
    }
    return best.columns;
}

// Which entries of a context's rows count.
struct Entries {
    std::vector<char> present;  // those that are not noise
    std::vector<char> linking;  // those in a row with another one
    bool wide = false;          // whether those of a row are far apart
    bool whole = false;         // whether a row, not of the costs, has all variables

    explicit Entries(const Rows& rows) : present(rows.names.size()), linking(rows.names.size()) {
        for (int i = 0; i < rows.count(); ++i) {
            const int first = rows.starts[i], end = rows.starts[i + 1];
            double top = 0.0, least = std::numeric_limits<double>::infinity();
            int number = 0;
            for (int a = first; a < end; ++a) top = std::max(top, rows.sizes[a]);
            for (int a = first; a < end; ++a) {
                present[a] = rows.sizes[a] > SMALLEST * top;
                if (present[a]) least = std::min(least, rows.sizes[a]), ++number;
            }
            for (int a = first; a < end; ++a) linking[a] = present[a] && number > 1;
            wide = wide || top > std::exp2(SPREAD) * least;
            whole = whole || (i + 1 < rows.count() && number > 1 && number == rows.columns);
        }
    }
};

// Round; all 0 where they are not far apart.
void settle(std::vector<double>& exponents) {
    for (double& x : exponents) x = std::nearbyint(x);
    if (exponents.empty()) return;
    const auto [low, high] = std::minmax_element(exponents.begin(), exponents.end());
    if (!(*high - *low >= SPREAD)) std::fill(exponents.begin(), exponents.end(), 0.0);
}

std::vector<double> fitted_exponents(
    const Rows& rows, const Entries& entries, const std::vector<double>& logs
) {
    std::vector<double> found = fit(rows, entries.linking, logs), linked;
    std::vector<char> alone(rows.columns, 1);
    for (std::size_t a = 0; a < logs.size(); ++a) {
        if (entries.linking[a]) alone[rows.names[a]] = 0;
    }
    for (int c = 0; c < rows.columns; ++c) {
        if (!alone[c]) linked.push_back(found[c]);
    }
    const double usual = median(linked);
    for (int c = 0; c < rows.columns; ++c) {
        if (alone[c]) found[c] = std::isnan(usual) ? 0.0 : usual;
    }
    settle(found);
    return found;
}

int root(std::vector<int>& parent, int c) {
    while (parent[c] != c) c = parent[c] = parent[parent[c]];
    return c;
}

// What makes |b| / |a| alike in all groups of variables that rows link. A group all of whose rows pass
// through the origin gets the unit of the others.
std::vector<double> placed_exponents(
    const Rows& rows, const Entries& entries, const std::vector<double>& logs,
    const std::vector<double>& fitted
) {
    std::vector<int> group(rows.columns);
    std::iota(group.begin(), group.end(), 0);
    std::vector<std::vector<double>> lengths(rows.columns);
    for (int i = 0; i + 1 < rows.count(); ++i) {
        int first = -1;
        for (int a = rows.starts[i]; a < rows.starts[i + 1]; ++a) {
            if (!entries.linking[a]) continue;
            if (first < 0) first = rows.names[a];
            group[root(group, rows.names[a])] = root(group, first);
        }
    }
    for (int i = 0; i < rows.count(); ++i) {
        if (!(rows.right[i] > 0.0) || !std::isfinite(rows.right[i])) continue;
        const double bound = std::log2(rows.right[i]);
        for (int a = rows.starts[i]; a < rows.starts[i + 1]; ++a) {
            const int c = rows.names[a];
            if (entries.present[a]) lengths[root(group, c)].push_back(bound - logs[a] - fitted[c]);
        }
    }
    std::vector<double> offsets(rows.columns), known;
    for (int c = 0; c < rows.columns; ++c) {
        auto& of = lengths[c];
        if (of.empty()) continue;
        const double least = *std::max_element(of.begin(), of.end()) - NOISE_BITS;
        of.erase(std::remove_if(of.begin(), of.end(), [&](double x) { return !(x > least); }), of.end());
    }
    std::vector<double> medians(rows.columns);
    for (int c = 0; c < rows.columns; ++c) medians[c] = median(lengths[c]);
    for (int c = 0; c < rows.columns; ++c) {
        offsets[c] = medians[root(group, c)];
        if (!std::isnan(offsets[c])) known.push_back(offsets[c]);
    }
    const double usual = median(known);
    for (double& x : offsets) x = std::isnan(x) ? 0.0 : x - usual;
    settle(offsets);
    return offsets;
}

}  // namespace

int balanced_contexts(const Program& p) {
    int lead = 1;
    for (const Block* block : {&p.P, &p.G, &p.E, &p.D, &p.T, &p.W, &p.F, &p.V, &p.h, &p.ee, &p.rr, &p.ss}) {
        lead = std::max(lead, block->contexts);
    }
    return lead;
}

void balance(const Program& p, double* fitted, double* placed) {
    for (int b = 0; b < balanced_contexts(p); ++b) {
        const Rows rows(p, b);
        const Entries entries(rows);
        const std::ptrdiff_t first = std::ptrdiff_t(b) * rows.columns;
        std::fill_n(fitted + first, rows.columns, 0.0), std::fill_n(placed + first, rows.columns, 0.0);
        if (entries.whole && !entries.wide) continue;
        std::vector<double> logs(rows.sizes.size()), of_rows(rows.columns, 0.0);
        for (std::size_t a = 0; a < logs.size(); ++a) logs[a] = std::log2(rows.sizes[a]);
        if (entries.wide) of_rows = fitted_exponents(rows, entries, logs);
        std::copy(of_rows.begin(), of_rows.end(), fitted + first);
        if (entries.whole) continue;
        const auto added = placed_exponents(rows, entries, logs, of_rows);
        std::copy(added.begin(), added.end(), placed + first);
    }
}

}  // namespace forewise
