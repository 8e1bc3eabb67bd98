// What the optimality conditions say of given points, from a program's raw data.
//
// Nothing here uses the scaled program, the workspace or anything else that solving uses.
#pragma once

#include "program.hpp"

namespace forewise {

// Sizes of what the optimality conditions are made of, each (B,).
struct Evidence {
    double* violation;  // largest violation of a row, in units of its largest coefficient
    double* slope;      // violation of stationarity in z, and in u_j summed over the scenarios
    double* shadow;     // b'λ + e'ν over all stages
    double* curved;     // z'P z + Σ_j w_j u_j'D_j u_j
    double* linear;     // q'z + Σ_j w_j d_j'u_j
    double* length;     // a typical distance from the origin to a row's boundary
    double* size;       // of the variables
    double* cost_size;  // of the costs' gradients
    double* own_violation;  // largest violation of a first-stage row, relative to that stage's size
    double* own_gap;        // largest multiplier of one times its slack, relative to that size
};

// The evidence for or against the points of all contexts; NaN where a point is not finite.
// `scratch` has room for n + k numbers.
void weigh(const Program& p, const ConstPoints& x, const Evidence& found, double* scratch);

}  // namespace forewise
