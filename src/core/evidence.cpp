#include "evidence.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace forewise {
namespace {

// What rows add up to: multiplied with the point, and by how much they are off.
struct Sums {
    double violation = 0.0;
    double wrong = 0.0;  // the largest multiplier of the wrong sign, in units of its row
    double shadow = 0.0;
    double slackness = 0.0;  // the largest multiplier times the slack of its row
    double farthest = 0.0;  // the largest distance from the origin to a boundary
    double logs = 0.0;  // of the distances from the origin to the boundaries that do not pass it
    std::int64_t number = 0;  // of those
};

struct Row {
    double bound, multiplier;
    bool equal, kept;  // whether it is an equality, whether it is there at all
};

// A part of a row: coefficients, the variables they multiply, and the gradient that they add to. With
// `columns`, the coefficients are those of these variables alone.
struct Part {
    const double* coefficients;
    const int* columns;
    const double* x;
    double* gradient;
    int size;
};

// The rows of a context's block, which skip zeros where it is sparse or the scenarios share it.
struct Rows {
    const Block& block;
    int b, columns;
    const int *starts, *names;
    std::vector<int> own_starts, own_names;
    std::vector<double> values;

    Rows(const Block& block, int b, int rows, int columns)
        : block(block), b(b), columns(columns), starts(block.starts), names(block.columns) {
        if (block.scenarios > 1 || starts) return;
        const double* of = block.of(b);
        own_starts.push_back(0);
        for (int i = 0; i < rows; ++i) {
            for (int c = 0; c < columns; ++c) {
                const double value = of[std::ptrdiff_t(i) * columns + c];
                if (value != 0.0) own_names.push_back(c), values.push_back(value);
            }
            own_starts.push_back(int(own_names.size()));
        }
        starts = own_starts.data(), names = own_names.data();
    }
    Part part(int j, int i, const double* x, double* gradient) const {
        if (!starts) {
            const double* row = block.of(b, j) + std::ptrdiff_t(i) * columns;
            return {row, nullptr, x, gradient, columns};
        }
        const double* all = block.starts ? block.of(b, j) : values.data();
        const int first = starts[i], size = starts[i + 1] - first;
        return {all + first, names + first, x, gradient, size};
    }
};

double largest(const double* values, int size) {
    double top = 0.0;
    for (int i = 0; i < size; ++i) top = std::max(top, std::fabs(values[i]));
    return top;
}

void weigh_part(const Part& part, double multiplier, double& product, double& norm) {
    const double *a = part.coefficients, *x = part.x;
    double* gradient = part.gradient;
    double total = 0.0, top = 0.0;
    if (part.columns) {
        for (int c = 0; c < part.size; ++c) {
            const int name = part.columns[c];
            total += a[c] * x[name];
            top = std::max(top, std::fabs(a[c]));
            gradient[name] += a[c] * multiplier;
        }
        product += total;
        norm = std::max(norm, top);
        return;
    }
    if (multiplier != 0.0) {
        for (int c = 0; c < part.size; ++c) gradient[c] += a[c] * multiplier;
    }
    for (int c = 0; c < part.size; ++c) {
        const double size = std::fabs(a[c]);
        total += a[c] * x[c];
        top = size > top ? size : top;
    }
    product += total;
    norm = std::max(norm, top);
}

void weigh_row(const Part& in_z, const Part& in_u, const Row& row, Sums& sums) {
    double product = -row.bound, norm = 0.0;
    weigh_part(in_z, row.multiplier, product, norm);
    weigh_part(in_u, row.multiplier, product, norm);
    if (!(norm > 0.0)) norm = 1.0;
    sums.shadow += row.bound * row.multiplier;
    if (!row.equal) sums.wrong = std::max(sums.wrong, -row.multiplier * norm);
    if (row.kept) {
        sums.violation = std::max(sums.violation, (row.equal ? std::fabs(product) : product) / norm);
        if (!row.equal) sums.slackness = std::max(sums.slackness, std::fabs(row.multiplier * product));
        sums.farthest = std::max(sums.farthest, std::fabs(row.bound) / norm);
        if (row.bound != 0.0) {
            sums.logs += std::log(std::fabs(row.bound) / norm);
            ++sums.number;
        }
    }
}

// ½ x'H x + g'x of one block: the gradient weight (H x + g), and what it adds to the evidence.
void weigh_cost(
    const Rows& H, int j, const double* g, double weight, const double* x, int size,
    double* gradient, const Evidence& found, int b
) {
    for (int a = 0; a < size; ++a) {
        const Part row = H.part(j, a, x, gradient);
        double Hx = 0.0;
        for (int c = 0; c < row.size; ++c) {
            Hx += row.coefficients[c] * x[row.columns ? row.columns[c] : c];
        }
        gradient[a] = weight * (Hx + g[a]);
        found.curved[b] += weight * x[a] * Hx;
        found.linear[b] += weight * g[a] * x[a];
        found.cost_size[b] = std::max({found.cost_size[b], std::fabs(g[a]), std::fabs(Hx)});
    }
}

bool is_finite(const Program& p, const ConstPoints& x, std::ptrdiff_t b) {
    double total = 0.0;
    auto add = [&](const double* values, std::ptrdiff_t size) {
        for (std::ptrdiff_t i = 0; i < size; ++i) total += values[b * size + i];
    };
    const std::ptrdiff_t M = p.M;
    add(x.z, p.n), add(x.first, p.g), add(x.nu, p.e);
    add(x.u, M * p.k), add(x.scenario, M * p.r), add(x.nus, M * p.s);
    return std::isfinite(total);
}

void weigh_scenarios(
    const Program& p, int b, const ConstPoints& x, const Evidence& found, Sums& sums, double* of_z,
    double* of_u
) {
    const double* z = x.z + std::ptrdiff_t(b) * p.n;
    double steep = 0.0, wrong = 0.0;
    const Rows D(p.D, b, p.k, p.k), T(p.T, b, p.t, p.n), W(p.W, b, p.r, p.k), F(p.F, b, p.s, p.n),
        V(p.V, b, p.s, p.k);
    const Part none{nullptr, nullptr, nullptr, nullptr, 0};
    for (int j = 0; j < p.M; ++j) {
        const std::ptrdiff_t place = std::ptrdiff_t(b) * p.M + j;
        const double *u = x.u + place * p.k, weight = p.weights.data[place];
        weigh_cost(D, j, p.d.of(b, j), weight, u, p.k, of_u, found, b);
        const double *r = p.rr.of(b, j), *s = p.ss.of(b, j);
        sums.wrong = 0.0;
        for (int i = 0; i < p.r; ++i) {
            const Row row{r[i], x.scenario[place * p.r + i], false, weight > 0.0};
            weigh_row(i < p.t ? T.part(j, i, z, of_z) : none, W.part(j, i, u, of_u), row, sums);
        }
        for (int i = 0; i < p.s; ++i) {
            const Row row{s[i], x.nus[place * p.s + i], true, weight > 0.0};
            weigh_row(F.part(j, i, z, of_z), V.part(j, i, u, of_u), row, sums);
        }
        steep += largest(of_u, p.k);
        wrong += sums.wrong;
    }
    found.slope[b] = std::max({found.slope[b], steep, wrong});
}

// The rows of the first stage in its own size: beside recourse that is many orders larger, neither the
// largest variable nor the objective says anything of a decision. The first stage is as large as its
// variables are, or as its rows let them be; all pass through the origin, they do not say.
void weigh_first_stage(const Program& p, int b, const ConstPoints& x, const Sums& sums, const Evidence& found) {
    if (!(sums.farthest > 0.0)) return;
    const double size = std::max(largest(x.z + std::ptrdiff_t(b) * p.n, p.n), sums.farthest);
    found.own_violation[b] = sums.violation / size;
    found.own_gap[b] = sums.slackness / size;
}

}  // namespace

void weigh(const Program& p, const ConstPoints& x, const Evidence& found, double* scratch) {
    double *of_z = scratch, *of_u = scratch + p.n;
    for (int b = 0; b < p.B; ++b) {
        if (!is_finite(p, x, b)) {
            found.violation[b] = std::numeric_limits<double>::quiet_NaN();
            continue;
        }
        const double* z = x.z + std::ptrdiff_t(b) * p.n;
        found.size[b] = std::max(
            largest(z, p.n), largest(x.u + std::ptrdiff_t(b) * p.M * p.k, p.M * p.k)
        );
        weigh_cost(Rows(p.P, b, p.n, p.n), 0, p.q.of(b), 1.0, z, p.n, of_z, found, b);
        Sums sums;
        const Part none{nullptr, nullptr, nullptr, nullptr, 0};
        auto weigh_rows = [&](const Block& A, const Block& bounds, const double* of, int count,
                              bool equal) {
            const Rows of_A(A, b, count, p.n);
            for (int i = 0; i < count; ++i) {
                const Row row{bounds.of(b)[i], of[std::ptrdiff_t(b) * count + i], equal, true};
                weigh_row(of_A.part(0, i, z, of_z), none, row, sums);
            }
        };
        weigh_rows(p.G, p.h, x.first, p.g, false);
        weigh_rows(p.E, p.ee, x.nu, p.e, true);
        found.slope[b] = sums.wrong;
        weigh_first_stage(p, b, x, sums, found);
        weigh_scenarios(p, b, x, found, sums, of_z, of_u);
        found.violation[b] = sums.violation;
        found.shadow[b] = sums.shadow;
        found.slope[b] = std::max(found.slope[b], largest(of_z, p.n));
        found.length[b] = sums.number ? std::exp(sums.logs / double(sums.number)) : 0.0;
    }
}

}  // namespace forewise
