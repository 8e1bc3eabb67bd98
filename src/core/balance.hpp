// Units of the variables in which the coefficients of each row are alike.
#pragma once

#include "program.hpp"

namespace forewise {

// Exponents of two of the units of (z, u) in each context, (lead, n + k): those that the coefficients
// of rows ask for, and what the right-hand sides add to them where no row links variables. All are 0
// where they are not far apart. lead is 1 where all contexts share their matrices and right-hand
// sides (`balanced_contexts`), else B. `equilibration.py` says what for.
int balanced_contexts(const Program& p);
void balance(const Program& p, double* fitted, double* placed);

}  // namespace forewise
