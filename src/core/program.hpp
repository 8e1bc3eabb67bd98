// The blocks of a batch of scenario programs, and points of it, as the interpreter hands them over.
//
// The legend, used in every file that does the algebra (B contexts, M scenarios):
//
//     min   ½ z'P z + q'z + Σ_j w_j ( ½ u_j'D_j u_j + d_j'u_j )
//     s.t.  G z ≤ h                                 λ   first-stage inequalities
//           E z = e                                 ν   first-stage equalities
//           T_j z + W_j u_j ≤ r_j                   λ_j scenario inequalities
//           F_j z + V_j u_j = s_j                   ν_j scenario equalities
//
// Sizes: n first-stage variables, k recourse variables, g and e first-stage rows, t scenario
// inequalities that touch z (the first of r), s scenario equalities.
#pragma once

#include <cstddef>
#include <cstdint>

namespace forewise {

// A block (contexts | 1, scenarios | 1, size): one that all contexts or scenarios share is there once.
// A matrix is dense, or the entries of a pattern, row by row.
struct Block {
    const double* data = nullptr;
    int contexts = 1;
    int scenarios = 1;
    std::ptrdiff_t size = 0;       // of one scenario's part
    const int* starts = nullptr;   // (rows + 1,) of a sparse block
    const int* columns = nullptr;  // (size,) ascending in a row

    const double* of(int b) const { return data + (contexts > 1 ? b : 0) * scenarios * size; }
    const double* of(int b, int j) const { return of(b) + (scenarios > 1 ? j : 0) * size; }
};

struct Program {
    int B, M;                 // contexts, scenarios
    int n, k, g, e, t, r, s;  // as in the legend
    Block weights, q, P, G, h, E, ee, d, D, T, W, rr, F, V, ss;
    Block barrier;  // (contexts, 1, r) weights of the rows in the barrier, where they are given
};

// Points of all contexts, in the user's units; scenarios of weight zero hold zeros.
template <class Number>
struct PointsOf {
    Number* z;         // (B, n)
    Number* u;         // (B, M, k)
    Number* first;     // (B, g)
    Number* scenario;  // (B, M, r)
    Number* nu;        // (B, e)
    Number* nus;       // (B, M, s)
};
using Points = PointsOf<double>;
using ConstPoints = PointsOf<const double>;

// Where the paths of all contexts ended.
template <class Number>
struct EndsOf {
    PointsOf<Number> points;
    Number* slack_first;     // (B, g)
    Number* slack_scenario;  // (B, M, r)
    Number* holds;           // (B,) with which points of the central path are held, or 0
};
using Ends = EndsOf<double>;
using ConstEnds = EndsOf<const double>;

}  // namespace forewise
