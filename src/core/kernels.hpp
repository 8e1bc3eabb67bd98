// The kernels of one instruction set, as `batch` calls them: everything that happens to a range of
// contexts, one after the other, in memory that is given.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plan.hpp"
#include "program.hpp"

namespace forewise {

// Is told every iteration of a path (mu, primal, dual, gap), and whether it is to end there.
struct Listener {
    bool (*stops)(void* self, int context, int iteration, const double* progress) = nullptr;
    void* self = nullptr;
};

struct Options {
    double tolerance;
    int max_iterations;  // of all that is tried for a context
    Listener listener;
    const ConstPoints* start = nullptr;  // points near the solutions; NaN where there is none
};

struct Kernels {
    const char* name;
    // Numbers of scratch memory that a thread needs; it must begin at a multiple of 64 bytes.
    std::size_t (*room)(const Program& p, const Plan& plan);
    void (*follow)(
        const Program& p, const Plan& plan, double* memory, int low, int high,
        const Options& options, const double* targets, const Ends& solutions, const Ends& centres,
        std::int64_t* ended, std::int64_t* iterations
    );
    void (*adjoint)(
        const Program& p, const Plan& plan, double* memory, int low, int high,
        const ConstEnds& ends, const ConstPoints& right, const bool* wanted, const Points& out,
        double* corrections
    );
    // What one unit of length and of cost is in the scaled program of each context, (B, 2).
    void (*units)(const Program& p, const Plan& plan, double* memory, double* out);
};

}  // namespace forewise
