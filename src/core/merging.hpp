// A program of one scenario as a program of recourse alone.
//
// With one scenario there is nothing that a first stage could hold together, and eliminating it as
// one dense matrix wastes what is sparse in it. So z joins the recourse,
//
//     u' = (z, u),  W' = [G 0; T W],  V' = [E 0; F V],  D' = [P 0; 0 w D],  d' = (q, w d),
//
// and rows keep their weights in the barrier: the central path is the same.
#pragma once

#include <optional>
#include <vector>

#include "plan.hpp"
#include "program.hpp"

namespace forewise {

// Points of the merged program, in memory of their own.
struct MergedPoints {
    std::vector<double> u, rows, nus;
    Points points;

    MergedPoints(const Program& p, const ConstPoints* from);
    void split(const Program& p, const Points& to) const;
};

struct MergedEnds {
    MergedPoints of;
    std::vector<double> slack;
    Ends ends;

    MergedEnds(const Program& p, const ConstEnds* from, double* holds);
    void split(const Program& p, const Ends& to) const;
};

struct Merged {
    Program program;
    std::vector<std::vector<double>> numbers;
    std::vector<Indices> patterns;
};

// The merged program, if there is one scenario and the first stage is sparse.
std::optional<Merged> merge(const Program& p);

}  // namespace forewise
