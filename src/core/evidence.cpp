#include "evidence.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace forewise {
namespace {

// What rows add up to: multiplied with the point, and by how much they are off.
struct Sums {
    double violation = 0.0;
    double wrong = 0.0;  // the largest multiplier of the wrong sign, in units of its row
    double shadow = 0.0;
    double logs = 0.0;  // of the distances from the origin to the boundaries that do not pass it
    std::int64_t number = 0;  // of those
};

struct Row {
    double bound, multiplier;
    bool equal, kept;  // whether it is an equality, whether it is there at all
};

// A part of a row: coefficients, the variables they multiply, and the gradient that they add to.
struct Part {
    const double* coefficients;
    const double* x;
    double* gradient;
    int size;
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
        if (row.bound != 0.0) {
            sums.logs += std::log(std::fabs(row.bound) / norm);
            ++sums.number;
        }
    }
}

// ½ x'H x + g'x of one block: the gradient weight (H x + g), and what it adds to the evidence.
void weigh_cost(
    const double* H, const double* g, double weight, const double* x, int size, double* gradient,
    const Evidence& found, int b
) {
    for (int a = 0; a < size; ++a) {
        double Hx = 0.0;
        for (int c = 0; c < size; ++c) Hx += H[std::ptrdiff_t(a) * size + c] * x[c];
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
    for (int j = 0; j < p.M; ++j) {
        const std::ptrdiff_t place = std::ptrdiff_t(b) * p.M + j;
        const double *u = x.u + place * p.k, weight = p.weights.data[place];
        weigh_cost(p.D.of(b, j), p.d.of(b, j), weight, u, p.k, of_u, found, b);
        const double *T = p.T.of(b, j), *W = p.W.of(b, j), *r = p.rr.of(b, j);
        sums.wrong = 0.0;
        for (int i = 0; i < p.r; ++i) {
            const Row row{r[i], x.scenario[place * p.r + i], false, weight > 0.0};
            const Part in_z{T + std::ptrdiff_t(i) * p.n, z, of_z, i < p.t ? p.n : 0};
            weigh_row(in_z, {W + std::ptrdiff_t(i) * p.k, u, of_u, p.k}, row, sums);
        }
        const double *F = p.F.of(b, j), *V = p.V.of(b, j), *s = p.ss.of(b, j);
        for (int i = 0; i < p.s; ++i) {
            const Row row{s[i], x.nus[place * p.s + i], true, weight > 0.0};
            const Part in_z{F + std::ptrdiff_t(i) * p.n, z, of_z, p.n};
            weigh_row(in_z, {V + std::ptrdiff_t(i) * p.k, u, of_u, p.k}, row, sums);
        }
        steep += largest(of_u, p.k);
        wrong += sums.wrong;
    }
    found.slope[b] = std::max({found.slope[b], steep, wrong});
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
        weigh_cost(p.P.of(b), p.q.of(b), 1.0, z, p.n, of_z, found, b);
        Sums sums;
        const Part none{nullptr, nullptr, nullptr, 0};
        auto weigh_rows = [&](const Block& A, const Block& bounds, const double* of, int count,
                              bool equal) {
            for (int i = 0; i < count; ++i) {
                const Row row{bounds.of(b)[i], of[std::ptrdiff_t(b) * count + i], equal, true};
                weigh_row({A.of(b) + std::ptrdiff_t(i) * p.n, z, of_z, p.n}, none, row, sums);
            }
        };
        weigh_rows(p.G, p.h, x.first, p.g, false);
        weigh_rows(p.E, p.ee, x.nu, p.e, true);
        found.slope[b] = sums.wrong;
        weigh_scenarios(p, b, x, found, sums, of_z, of_u);
        found.violation[b] = sums.violation;
        found.shadow[b] = sums.shadow;
        found.slope[b] = std::max(found.slope[b], largest(of_z, p.n));
        found.length[b] = sums.number ? std::exp(sums.logs / double(sums.number)) : 0.0;
    }
}

}  // namespace forewise
