// All contexts of a program, on a number of threads.
#pragma once

#include "kernels.hpp"

namespace forewise {

// The kernels of the best instruction set that this computer has, or of the one that the environment
// variable FOREWISE_INSTRUCTIONS names (baseline, avx2, avx512) if it has that.
const Kernels& chosen_kernels();

Plan make_plan(const Program& p);

// Bytes that are needed, and how many there are, where that is less.
struct Shortage {
    double needed = 0.0, available = 0.0;

    explicit operator bool() const { return needed > available; }
};

Shortage follow_paths(
    const Program& p, int n_threads, const Options& options, const double* targets,
    const Ends& solutions, const Ends& centres, std::int64_t* ended, std::int64_t* iterations
);
Shortage solve_adjoints(
    const Program& p, int n_threads, const ConstEnds& ends, const ConstPoints& right,
    const bool* wanted, const Points& out, double* corrections
);
Shortage find_units(const Program& p, double* out);

}  // namespace forewise
