// A short vector of numbers, one for each scenario of a tile.
//
// Compiled once for every instruction set, each in a namespace of its own; W is 1, 4 or 8.
#pragma once

#include <cstddef>

#ifndef FOREWISE_ISA
#error "FOREWISE_ISA names the instruction set that the kernels are compiled for"
#endif

namespace forewise::FOREWISE_ISA {

#if defined(__AVX512F__)
constexpr int NATIVE = 8;
#elif defined(__AVX__)
constexpr int NATIVE = 4;
#else
constexpr int NATIVE = 2;
#endif

template <int N>
struct Native;
template <>
struct Native<1> {
    using type = double;
    using loose = double;
};
template <>
struct Native<2> {
    typedef double type __attribute__((vector_size(16)));
    typedef double loose __attribute__((vector_size(16), aligned(8), may_alias));
};
template <>
struct Native<4> {
    typedef double type __attribute__((vector_size(32)));
    typedef double loose __attribute__((vector_size(32), aligned(8), may_alias));
};
template <>
struct Native<8> {
    typedef double type __attribute__((vector_size(64)));
    typedef double loose __attribute__((vector_size(64), aligned(8), may_alias));
};

#define LANES_INLINE inline __attribute__((always_inline))
// Between a lambda's parameters and its body: sums that it adds to stay in registers.
#define LANES_LAMBDA __attribute__((always_inline))

template <int W>
struct Lanes {
    static constexpr int PIECE = W < NATIVE ? W : NATIVE;
    static constexpr int PIECES = W / PIECE;
    using piece = typename Native<PIECE>::type;
    using loose = typename Native<PIECE>::loose;
    piece v[PIECES];

    LANES_INLINE Lanes() = default;
    LANES_INLINE Lanes(double x) {
        for (int i = 0; i < PIECES; ++i) v[i] = piece{} + x;
    }
    static LANES_INLINE Lanes load(const double* from) {
        Lanes out;
        for (int i = 0; i < PIECES; ++i) {
            out.v[i] = *reinterpret_cast<const loose*>(from + i * PIECE);
        }
        return out;
    }
    LANES_INLINE void store(double* to) const {
        for (int i = 0; i < PIECES; ++i) *reinterpret_cast<loose*>(to + i * PIECE) = v[i];
    }
};

#define LANES_OPERATOR(op)                                              \
    template <int W>                                                    \
    LANES_INLINE Lanes<W> operator op(Lanes<W> a, Lanes<W> b) {         \
        Lanes<W> out;                                                   \
        for (int i = 0; i < Lanes<W>::PIECES; ++i) out.v[i] = a.v[i] op b.v[i]; \
        return out;                                                     \
    }                                                                   \
    template <int W>                                                    \
    LANES_INLINE Lanes<W> operator op(Lanes<W> a, double b) {           \
        return a op Lanes<W>(b);                                        \
    }                                                                   \
    template <int W>                                                    \
    LANES_INLINE Lanes<W> operator op(double a, Lanes<W> b) {           \
        return Lanes<W>(a) op b;                                        \
    }
LANES_OPERATOR(+)
LANES_OPERATOR(-)
LANES_OPERATOR(*)
LANES_OPERATOR(/)
#undef LANES_OPERATOR

template <int W>
LANES_INLINE Lanes<W>& operator+=(Lanes<W>& a, Lanes<W> b) {
    return a = a + b;
}
template <int W>
LANES_INLINE Lanes<W>& operator-=(Lanes<W>& a, Lanes<W> b) {
    return a = a - b;
}

template <int W>
LANES_INLINE Lanes<W> largest_of(Lanes<W> a, Lanes<W> b) {
    Lanes<W> out;
    for (int i = 0; i < Lanes<W>::PIECES; ++i) out.v[i] = a.v[i] > b.v[i] ? a.v[i] : b.v[i];
    return out;
}
template <int W>
LANES_INLINE Lanes<W> smallest_of(Lanes<W> a, Lanes<W> b) {
    Lanes<W> out;
    for (int i = 0; i < Lanes<W>::PIECES; ++i) out.v[i] = a.v[i] < b.v[i] ? a.v[i] : b.v[i];
    return out;
}
template <int W>
LANES_INLINE Lanes<W> absolute(Lanes<W> a) {
    return largest_of(a, 0.0 - a);
}
// a where test ≤ bound, else b.
template <int W>
LANES_INLINE Lanes<W> where_at_most(Lanes<W> test, Lanes<W> bound, Lanes<W> a, Lanes<W> b) {
    Lanes<W> out;
    for (int i = 0; i < Lanes<W>::PIECES; ++i) {
        out.v[i] = test.v[i] <= bound.v[i] ? a.v[i] : b.v[i];
    }
    return out;
}

// The sum of the first `count` lanes.
template <int W>
LANES_INLINE double sum(Lanes<W> a, int count = W) {
    double values[W];
    a.store(values);
    if (count == W) {
        for (int half = W / 2; half > 0; half /= 2) {
            for (int i = 0; i < half; ++i) values[i] += values[i + half];
        }
        return values[0];
    }
    double total = 0.0;
    for (int i = 0; i < count; ++i) total += values[i];
    return total;
}
template <int W>
LANES_INLINE double top(Lanes<W> a) {
    double values[W];
    a.store(values);
    double found = values[0];
    for (int i = 1; i < W; ++i) found = values[i] > found ? values[i] : found;
    return found;
}

}  // namespace forewise::FOREWISE_ISA
