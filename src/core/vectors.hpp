// What is done to the elements of an array one by one, and what small numbers mean.
#pragma once

#include <cmath>
#include <limits>

#include "workspace.hpp"

namespace forewise::FOREWISE_ISA {

constexpr double ROUNDING = 1e-15;  // what a sum of products is off by, relative to its terms
constexpr double TINY = 1e-300;     // keeps zero from being divided by zero
constexpr double INFINITE = std::numeric_limits<double>::infinity();

inline double larger(double a, double b) { return b > a ? b : a; }
inline double smaller(double a, double b) { return b < a ? b : a; }

// Calls f with a place and the number of neighbours that are done there at once.
template <class Do>
inline __attribute__((always_inline)) void each(Size size, Do f) {
    Size i = 0;
    for (; i + 8 <= size; i += 8) f.template operator()<8>(i);
    for (; i < size; ++i) f.template operator()<1>(i);
}

// Sums, least and largest values of what comes in lanes.
struct Sum {
    Lanes<8> wide{0.0};
    double narrow = 0.0;

    template <int N>
    LANES_INLINE void add(Lanes<N> x) {
        if constexpr (N == 8) {
            wide += x;
        } else {
            narrow += sum(x);
        }
    }
    double value() const { return narrow + sum(wide); }
};

struct Least {
    Lanes<8> wide;
    double narrow;

    explicit Least(double known) : wide(known), narrow(known) {}
    template <int N>
    LANES_INLINE void add(Lanes<N> x) {
        if constexpr (N == 8) {
            wide = smallest_of(x, wide);
        } else {
            narrow = smaller(narrow, -top(0.0 - x));
        }
    }
    double value() const { return smaller(narrow, -top(0.0 - wide)); }
};

// Of absolute values; infinity if there is a NaN.
struct Largest {
    Lanes<8> wide{0.0}, broken{0.0};
    double narrow = 0.0;

    template <int N>
    LANES_INLINE void add(Lanes<N> x) {
        if constexpr (N == 8) {
            wide = largest_of(wide, absolute(x));
            broken += x - x;
        } else {
            narrow = larger(narrow, top(absolute(x)));
            broken += Lanes<8>(sum(x - x));
        }
    }
    double value() const {
        return sum(broken) == 0.0 ? larger(narrow, top(wide)) : INFINITE;
    }
};

// Largest absolute value; infinity if there is a NaN.
inline double largest(const double* values, Size size) {
    Lanes<8> tops(0.0), broken(0.0);
    Size i = 0;
    for (; i + 8 <= size; i += 8) {
        const auto x = Lanes<8>::load(values + i);
        tops = largest_of(tops, absolute(x));
        broken += x - x;
    }
    double found = top(tops), wrong = sum(broken);
    for (; i < size; ++i) {
        found = larger(found, std::fabs(values[i]));
        wrong += values[i] - values[i];
    }
    return wrong == 0.0 ? found : INFINITE;
}

inline void fill(double* out, Size size, double value) {
    for (Size i = 0; i < size; ++i) out[i] = value;
}

// out := factor source.
inline void copy(double* __restrict out, const double* __restrict source, Size size, double factor) {
    for (Size i = 0; i < size; ++i) out[i] = factor * source[i];
}

inline void scale(double* out, Size size, double factor) {
    for (Size i = 0; i < size; ++i) out[i] *= factor;
}

// out := out + factor source.
inline void add(double* __restrict out, const double* __restrict source, Size size, double factor) {
    for (Size i = 0; i < size; ++i) out[i] += factor * source[i];
}

// Σ f over a vector of all scenarios, (tiles, per_tile, W), and `more` numbers after it.
template <int W, class Term>
inline __attribute__((always_inline)) double sum_over(
    const Work& w, Size per_tile, Size more, Term f
) {
    const Size whole = per_tile * W * (w.tiles > 0 ? w.tiles - 1 : 0), end = per_tile * W * w.tiles;
    Lanes<W> totals(0.0), others(0.0);
    Size i = 0;
    for (; i + 2 * W <= whole; i += 2 * W) {
        totals += f.template operator()<W>(i);
        others += f.template operator()<W>(i + W);
    }
    for (; i < whole; i += W) totals += f.template operator()<W>(i);
    double total = sum(totals + others);
    totals = Lanes<W>(0.0);
    for (i = whole; i < end; i += W) totals += f.template operator()<W>(i);
    total += sum(totals, w.valid);
    Lanes<8> rest(0.0);
    for (i = end; i + 8 <= end + more; i += 8) rest += f.template operator()<8>(i);
    total += sum(rest);
    for (; i < end + more; ++i) total += sum(f.template operator()<1>(i));
    return total;
}

// a·b of vectors of all scenarios, and `more` numbers after them.
template <int W>
inline double inner_over(const Work& w, Size per_tile, Size more, const double* a, const double* b) {
    return sum_over<W>(w, per_tile, more, [&]<int N>(Size i) {
        return Lanes<N>::load(a + i) * Lanes<N>::load(b + i);
    });
}

// The same of a few.
inline double short_inner(const double* a, const double* b, Size size) {
    double total = 0.0;
    for (Size i = 0; i < size; ++i) total += a[i] * b[i];
    return total;
}

inline double inner(const double* a, const double* b, Size size) {
    Lanes<8> totals(0.0), others(0.0);
    Size i = 0;
    for (; i + 16 <= size; i += 16) {
        totals += Lanes<8>::load(a + i) * Lanes<8>::load(b + i);
        others += Lanes<8>::load(a + i + 8) * Lanes<8>::load(b + i + 8);
    }
    for (; i + 8 <= size; i += 8) totals += Lanes<8>::load(a + i) * Lanes<8>::load(b + i);
    double total = sum(totals + others);
    for (; i < size; ++i) total += a[i] * b[i];
    return total;
}

}  // namespace forewise::FOREWISE_ISA
