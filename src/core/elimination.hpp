// In which order, and where, a scenario's linking variables and rows are eliminated.
//
// What `simple_recourse` leaves of a scenario is, in the linking variables u and the multipliers ν of
// its equalities and of those inequalities that are kept (with the weight κ in the place of Θ),
//
//     [ H    V' ] [u]   [b − C z]      H = w D + W'κW,   C = W'κT   over the rows that are not kept
//     [ V  −κ⁻¹ ] [ν] = [s − F z]      κ⁻¹ = 0 for an equality
//
// a quasi-definite matrix: it has a factorisation L diag(±1) L' in any order. Variables before rows
// make the Schur complement of z a sum of squares; so that order is taken unless it costs far more.
// A row is not kept unless its W'κW costs more than it saves.
#pragma once

#include "plan.hpp"
#include "program.hpp"

namespace forewise {

Elimination plan_elimination(const Program& p, const Structure& s);

}  // namespace forewise
