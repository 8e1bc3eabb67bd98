"""How a path ended (`src/core/path.hpp` has the same numbers), and what the core calls noise."""

from __future__ import annotations

CONVERGED = 1
STALLED = 2
PRIMAL_RAY = 3  # the variables diverge along a ray of falling cost: unbounded
DUAL_RAY = 4  # the multipliers diverge along a proof that nothing is feasible
LOST = 5  # the centre that was looked for is far away, or nowhere

#: Share of the largest distance below which a right-hand side may be rounding noise.
NOISE = 1e-9
