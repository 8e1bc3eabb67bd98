// Whether a symmetric sparse matrix is positive semidefinite, up to rounding.
#pragma once

#include "program.hpp"

namespace forewise {

enum class Convexity { yes, no, unknown };

// Of all parts of a sparse square block; unknown where a dense factorisation is faster.
Convexity convexity(const Block& block, int b, int size);

}  // namespace forewise
