// Which entries of a batch's blocks are there at all, in any context and scenario.
#pragma once

#include "plan.hpp"
#include "program.hpp"

namespace forewise {

Structure find_structure(const Program& p);

}  // namespace forewise
