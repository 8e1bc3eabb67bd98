"""Violations of constraints with cones, integers and auxiliary variables.

Auxiliary variables (|z_k| in a sum) take their best values: by formulas (`definitions`), and by a
program where there is none (`auxiliary`). An integer is missed by its distance to the nearest one.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import torch

from forewise.problems.cones import Cones
from forewise.problems.constraint_sizes import Point, limits, ratio, row_sizes
from forewise.problems.cvxpy.auxiliary import SharedConstraints
from forewise.problems.cvxpy.cone_formulas import cone_violation
from forewise.problems.cvxpy.definitions import Definitions
from forewise.problems.feasibility import (
    Constraints,
    Source,
    Violations,
    listed,
    zero_where_negligible,
)
from forewise.problems.programs import apply, joined
from forewise.validation.arguments import WORKING_DTYPE


@dataclass(frozen=True, eq=False)
class CvxpyConstraints(Constraints):
    """Constraints G x ≤ h, E x = e, k − C x ∈ K, some x integers.

    x is the decision with auxiliary variables behind it, which may take any value.

    Attributes
    ----------
    cones, C, k : the cones of further rows, and these
    whole : mask (n_x,), or None where there are no integers
    """

    cones: Cones = field(default_factory=Cones)
    C: torch.Tensor | None = None
    k: torch.Tensor | None = None
    whole: torch.Tensor | None = None

    def violations(self, decision: torch.Tensor, like: torch.Tensor | None = None) -> Violations:
        """Violation of every constraint by finite decisions ``(n_contexts, n_decisions)``.

        `like` ``(n_contexts, ...)`` is of the size that decisions have, the outcome say. A decision
        that is zero beside it, and beside all decisions, is judged as zero: it has no size of its
        own.
        """
        own, n = self._constant(), self.n_decisions
        z = decision.detach().to("cpu", WORKING_DTYPE)
        bounded = [(own.G, own.h), (own.E, own.e)]
        z = zero_where_negligible(z, like, limits(bounded, z))
        found = Definitions.of(own, Point.of(z, limits(bounded, z)))
        # Variables that are known stand first from here on.
        places = np.argsort(~found.known, kind="stable")
        order = torch.from_numpy(places)
        n_known = int(found.known.sum())
        point, own = found.point.columns(order[:n_known]), own._reordered(order, n_known)
        origin = found.stands_on[places]
        parts, open_rows = [z.new_zeros(len(z), 0)], {}
        sources: list[Source] = []
        kept = {"G": found.G, "E": np.ones(own.E.shape[1], dtype=bool)}
        for kind, matrix, bound in (("G", own.G, own.h), ("E", own.E, own.e)):
            counts = torch.from_numpy(kept[kind])
            alone = ~(matrix[:, :, n_known:] != 0).any(-1).any(0)
            open_rows[kind] = (counts & ~alone).nonzero().squeeze(-1)
            rows = (counts & alone).nonzero().squeeze(-1)
            matrix, bound = matrix[:, rows, :n_known], bound[:, rows]
            excess = apply(matrix, point.values) - bound
            excess = excess.abs() if kind == "E" else excess.clamp_min(0)
            parts.append(ratio(excess, row_sizes(matrix, bound, point)))
            sources += [
                Source(kind, int(row), _standing_on(origin, matrix[:, i]))
                for i, row in enumerate(rows)
            ]
        open_cones = []
        for number in np.flatnonzero(found.cones).tolist():
            matrix, bound = own.cone_rows(number)
            if (matrix[:, :, n_known:] != 0).any():
                open_cones.append(number)
                continue
            matrix = matrix[:, :, :n_known]
            violation = cone_violation(own.cones.kinds[number], matrix, bound, point)
            parts.append(violation.unsqueeze(-1))
            sources.append(Source("cone", number, _standing_on(origin, matrix.flatten(0, 1))))
        if own.whole is not None and own.whole[:n].any():
            parts.append((z - z.round()).abs()[:, own.whole[:n]])
            sources += [Source("whole", int(i)) for i in own.whole[:n].nonzero()]
        if len(open_rows["G"]) + len(open_rows["E"]) + len(open_cones):
            shared = SharedConstraints(own, open_rows["G"], open_rows["E"], open_cones)
            parts.append(shared.least_violation(found.point.columns(order)).unsqueeze(-1))
            touched = tuple(np.flatnonzero(origin[shared.touched].any(0)).tolist())
            sources.append(Source("shared", 0, touched))
        return Violations(self, joined(parts, -1), sources)

    def cone_rows(self, number: int) -> tuple[torch.Tensor, torch.Tensor]:
        """The rows of C and k of one cone."""
        assert self.C is not None
        assert self.k is not None
        rows = torch.from_numpy((self.cones.of_row == number).nonzero()[0])
        return self.C[:, rows], self.k[:, rows]

    def name(self, source: Source, context: int) -> str:
        """What a constraint is called in messages."""
        if source.kind == "whole":
            return f"{self.variables[source.number]} is an integer"
        on = listed([self.variables[i] for i in source.touched])
        if source.kind == "cone":
            return f"a {self.cones.kinds[source.number]} cone constraint on {on}"
        if source.kind == "shared":
            return f"a constraint on {on}"
        return super().name(source, context)

    def _reordered(self, order: torch.Tensor, n_known: int) -> CvxpyConstraints:
        """With the variables in another order, of which so many count as decisions."""
        hidden = [f"auxiliary variable {i}" for i in range(n_known - self.n_decisions)]
        return replace(
            self,
            variables=[*self.variables, *hidden],
            G=self.G[:, :, order],
            E=self.E[:, :, order],
            C=None if self.C is None else self.C[:, :, order],
            whole=None if self.whole is None else self.whole[order],
        )

    def _constant(self) -> CvxpyConstraints:
        """The same on the processor, without gradients."""

        def constant(block: torch.Tensor) -> torch.Tensor:
            return block.detach().to("cpu", WORKING_DTYPE)

        return replace(
            self,
            G=constant(self.G), h=constant(self.h), E=constant(self.E), e=constant(self.e),
            C=None if self.C is None else constant(self.C),
            k=None if self.k is None else constant(self.k),
        )  # fmt: skip


def _standing_on(origin: np.ndarray, rows: torch.Tensor) -> tuple[int, ...]:
    """The decisions that the variables of some rows ``(..., n_known)`` depend on."""
    touched = (rows != 0).any(0).numpy()
    return tuple(np.flatnonzero(origin[: len(touched)][touched].any(0)).tolist())
