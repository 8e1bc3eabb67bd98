"""By how much decisions break the constraints that they must meet before the outcome is seen.

`constraint_sizes` has the formula, which is relative to a constraint's size; a whole number is
missed by its distance to the nearest one, undivided. Auxiliary variables (|z_k| in a sum) take
their best values: by formulas (`definitions`), and by a program where there is none (`auxiliary`).
May import: exceptions, arguments, its siblings `auxiliary`, `cone_formulas`, `cones`,
`constraint_sizes`, `definitions`, `program`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import NamedTuple

import numpy as np
import torch

from forewise.exceptions import InfeasibleDecisionError, InvalidInputError
from forewise.problems.cones import Cones
from forewise.problems.constraint_sizes import Point, limits, ratio, row_sizes
from forewise.problems.cvxpy.auxiliary import SharedConstraints
from forewise.problems.cvxpy.cone_formulas import cone_violation
from forewise.problems.cvxpy.definitions import Definitions
from forewise.problems.programs import apply, joined
from forewise.validation.arguments import WORKING_DTYPE

#: What a decision may break its constraints by, and still be called feasible.
FEASIBILITY_TOLERANCE = 1e-6

# A decision that is a smaller share of the outcome, or of other contexts' decisions, is zero up to
# the accuracy of solvers; where neither is known, so is one below 1e-10.
_ZERO = 1e-9
_UNITLESS_ZERO = 1e-10
_SHOWN = 5  # contexts that an error message lists
_TERMS = 6  # terms of a row that a name shows


@dataclass(frozen=True, eq=False)
class Constraints:
    """What decisions must meet, whatever the outcome:

        G x ≤ h,    E x = e,    k − C x ∈ K,    some x whole numbers

    x is the decision with auxiliary variables behind it, which may take any value. Leading
    dimensions are n_contexts or 1, as in a `ScenarioProgram`.

    Attributes
    ----------
    variables : names of the decisions (n_decisions,)
    G, h, E, e : tensors (n_contexts | 1, n_rows, n_x), (n_contexts | 1, n_rows)
    names : names of the rows of G and of E, in this order; made from the rows where it is empty
    cones, C, k : the cones of further rows, and these
    whole : mask (n_x,), or None where there are no whole numbers
    """

    variables: Sequence[str]
    G: torch.Tensor
    h: torch.Tensor
    E: torch.Tensor
    e: torch.Tensor
    names: Sequence[str] = ()
    cones: Cones = field(default_factory=Cones)
    C: torch.Tensor | None = None
    k: torch.Tensor | None = None
    whole: torch.Tensor | None = None

    @classmethod
    def of_rows(
        cls,
        variables: Sequence[str],
        inequalities: Sequence[tuple[str, torch.Tensor, torch.Tensor]],
        equalities: Sequence[tuple[str, torch.Tensor, torch.Tensor]] = (),
    ) -> Constraints:
        """Constraints of single rows (name, a, b): a'z ≤ b, and a'z = b."""
        n = len(variables)

        def stacked(
            rows: Sequence[tuple[str, torch.Tensor, torch.Tensor]],
        ) -> tuple[torch.Tensor, torch.Tensor]:
            if not rows:
                nothing = torch.zeros(1, 0, n, dtype=WORKING_DTYPE)
                return nothing, nothing[..., 0]
            return torch.stack([a for _, a, _ in rows])[None], torch.stack([b for *_, b in rows])[
                None
            ]

        G, h = stacked(inequalities)
        E, e = stacked(equalities)
        names = [name for name, *_ in (*inequalities, *equalities)]
        return cls(variables, G, h, E, e, names)

    @property
    def n_decisions(self) -> int:
        """Number of decisions."""
        return len(self.variables)

    def violations(self, decision: torch.Tensor, like: torch.Tensor | None = None) -> Violations:
        """Violation of every constraint by finite decisions ``(n_contexts, n_decisions)``.

        `like` ``(n_contexts, ...)`` is of the size that decisions have, the outcome say. A decision
        that is zero beside it, and beside all decisions, is judged as zero: it has no size of its
        own.
        """
        own, n = self._constant(), self.n_decisions
        z = decision.detach().to("cpu", WORKING_DTYPE)
        bounded = [(own.G, own.h), (own.E, own.e)]
        z = _zero_where_negligible(z, like, limits(bounded, z))
        found = Definitions.of(own, Point.of(z, limits(bounded, z)))
        # Variables that are known stand first from here on.
        places = np.argsort(~found.known, kind="stable")
        order = torch.from_numpy(places)
        n_known = int(found.known.sum())
        point, own = found.point.columns(order[:n_known]), own._reordered(order, n_known)
        origin = found.stands_on[places]
        parts, open_rows = [z.new_zeros(len(z), 0)], {}
        sources: list[_Source] = []
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
                _Source(kind, int(row), _standing_on(origin, matrix[:, i]))
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
            sources.append(_Source("cone", number, _standing_on(origin, matrix.flatten(0, 1))))
        if own.whole is not None and own.whole[:n].any():
            parts.append((z - z.round()).abs()[:, own.whole[:n]])
            sources += [_Source("whole", int(i)) for i in own.whole[:n].nonzero()]
        if len(open_rows["G"]) + len(open_rows["E"]) + len(open_cones):
            shared = SharedConstraints(own, open_rows["G"], open_rows["E"], open_cones)
            parts.append(shared.least_violation(found.point.columns(order)).unsqueeze(-1))
            touched = tuple(np.flatnonzero(origin[shared.touched].any(0)).tolist())
            sources.append(_Source("shared", 0, touched))
        return Violations(self, joined(parts, -1), sources)

    def cone_rows(self, number: int) -> tuple[torch.Tensor, torch.Tensor]:
        """The rows of C and k of one cone."""
        assert self.C is not None
        assert self.k is not None
        rows = torch.from_numpy((self.cones.of_row == number).nonzero()[0])
        return self.C[:, rows], self.k[:, rows]

    def name(self, source: _Source, context: int) -> str:
        """What a constraint is called in messages."""
        if source.kind == "whole":
            return f"{self.variables[source.number]} is a whole number"
        listed = _listed([self.variables[i] for i in source.touched])
        if source.kind == "cone":
            return f"a {self.cones.kinds[source.number]} cone constraint on {listed}"
        if source.kind == "shared":
            return f"a constraint on {listed}"
        if self.names:
            place = source.number + (self.G.shape[1] if source.kind == "E" else 0)
            return self.names[place]
        matrix, bound = (self.G, self.h) if source.kind == "G" else (self.E, self.e)
        row, right = (part[context if len(part) > 1 else 0, source.number].detach()
                      for part in (matrix, bound))  # fmt: skip
        if row[self.n_decisions :].any():
            return f"a constraint on {listed}"
        return _printed(row[: self.n_decisions], float(right), source.kind == "E", self.variables)

    def _reordered(self, order: torch.Tensor, n_known: int) -> Constraints:
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

    def _constant(self) -> Constraints:
        """The same on the processor, without gradients."""

        def constant(block: torch.Tensor) -> torch.Tensor:
            return block.detach().to("cpu", WORKING_DTYPE)

        return replace(
            self,
            G=constant(self.G), h=constant(self.h), E=constant(self.E), e=constant(self.e),
            C=None if self.C is None else constant(self.C),
            k=None if self.k is None else constant(self.k),
        )  # fmt: skip


class _Source(NamedTuple):
    """Where a column of violations comes from."""

    kind: str  # "G", "E", "cone", "whole" or "shared"
    number: int
    touched: tuple[int, ...] = ()  # decisions


@dataclass(frozen=True, eq=False)
class Violations:
    """Violations ``(n_contexts, n_constraints)``, and what the constraints are called."""

    constraints: Constraints
    values: torch.Tensor
    sources: Sequence[_Source]

    @property
    def worst(self) -> torch.Tensor:
        """The largest of each context, ``(n_contexts,)``."""
        if self.values.shape[1] == 0:
            return self.values.new_zeros(len(self.values))
        return self.values.amax(-1)

    def told(self, context: int) -> str:
        """The worst constraint of a context, and by how much it is broken."""
        at = int(self.values[context].argmax())
        name = self.constraints.name(self.sources[at], context)
        return f"breaks {name} by {self.values[context, at].item():.3g}"


def require_finite_decisions(
    decision: torch.Tensor, name: str = "decision", rows: Sequence[object] | None = None
) -> None:
    """Raise with the rows of decisions ``(n_contexts, n_decisions)`` that have NaN or infinity."""
    bad = (~decision.detach().isfinite().all(-1)).nonzero().squeeze(-1).tolist()
    if bad:
        called = _listed([str(i if rows is None else rows[i]) for i in bad])
        raise InvalidInputError(
            f"{name} must be finite, but contains NaN or infinity in {len(bad)} of "
            f'{len(decision)} row(s): {called}. Leave them out; decide(..., on_failure="return") '
            "has NaN where a context has no optimal decision"
        )


def as_on_infeasible(value: str) -> str:
    """`value`, if it is one of the two."""
    if value not in ("raise", "infinite"):
        raise InvalidInputError(f'on_infeasible must be "raise" or "infinite", but is {value!r}')
    return value


def feasible_contexts(
    constraints: Constraints,
    decision: torch.Tensor,
    like: torch.Tensor | None = None,
    on_infeasible: str = "raise",
    tolerance: float = FEASIBILITY_TOLERANCE,
    *,
    name: str = "decision",
    rows: Sequence[object] | None = None,
) -> torch.Tensor:
    """Mask ``(n_contexts,)`` of the decisions that meet the constraints.

    `like` is that of `Constraints.violations`; `name` and `rows` are what messages call the
    decisions and their contexts.

    Raises
    ------
    InfeasibleDecisionError
        Unless `on_infeasible` is "infinite" or all meet them.
    """
    as_on_infeasible(on_infeasible)
    if isinstance(tolerance, bool) or not isinstance(tolerance, Real) or not tolerance >= 0:
        raise InvalidInputError(f"tolerance must be a number of at least 0, but is {tolerance!r}")
    require_finite_decisions(decision, name, rows)
    found = constraints.violations(decision, like)
    allowed = found.worst <= tolerance
    bad = (~allowed).nonzero().squeeze(-1).tolist()
    if bad and on_infeasible == "raise":
        called = rows if rows is not None else range(len(allowed))
        listed = "; ".join(f"row {called[i]} {found.told(i)}" for i in bad[:_SHOWN])
        more = f"; and {len(bad) - _SHOWN} more" if len(bad) > _SHOWN else ""
        raise InfeasibleDecisionError(
            f"{name} must meet the constraints of the problem, but {len(bad)} of {len(allowed)} "
            f"do not, relative to the constraint's size: {listed}{more}. Correct them; or allow "
            f"more than tolerance={float(tolerance):g}, as for orders that were rounded; or count "
            'their cost as infinite with on_infeasible="infinite"'
        )
    return allowed


def _zero_where_negligible(
    z: torch.Tensor, like: torch.Tensor | None, limit: torch.Tensor
) -> torch.Tensor:
    """0 for contexts whose decision is zero beside everything that tells its size."""
    if z.numel() == 0:
        return z
    reach = z.abs().amax(1)
    if like is None:
        small = reach <= torch.maximum(_ZERO * reach.max(), reach.new_tensor(_UNITLESS_ZERO))
    else:
        seen = like.detach().to("cpu", WORKING_DTYPE).flatten(1).abs().amax(1)
        small = reach <= _ZERO * torch.maximum(reach.max(), seen)
    # A bound may be as small as the decision.
    small = small & (reach <= _ZERO * limit.amin(1))
    return torch.where(small.unsqueeze(-1), 0.0, z)


def _standing_on(origin: np.ndarray, rows: torch.Tensor) -> tuple[int, ...]:
    """The decisions that the variables of some rows ``(..., n_known)`` depend on."""
    touched = (rows != 0).any(0).numpy()
    return tuple(np.flatnonzero(origin[: len(touched)][touched].any(0)).tolist())


def _printed(row: torch.Tensor, bound: float, equal: bool, variables: Sequence[str]) -> str:
    """A row as one would write it: order[0] + 2 order[1] ≤ 20."""
    places = row.nonzero().squeeze(-1).tolist()
    sign = " = " if equal else " ≤ "
    if not equal and places and bool((row[places] < 0).all()):
        row, bound, sign = -row, -bound, " ≥ "
    terms: list[str] = []
    for i in places[:_TERMS]:
        value = float(row[i])
        amount = "" if abs(value) == 1 else f"{abs(value):.6g} "
        lead = ("" if value > 0 else "−") if not terms else ("+ " if value > 0 else "− ")
        terms.append(f"{lead}{amount}{variables[i]}")
    more = f" + … ({len(places)} terms)" if len(places) > _TERMS else ""
    return f"{' '.join(terms) or '0'}{more}{sign}{bound + 0.0:.6g}"


def _listed(items: Sequence[str]) -> str:
    more = f" and {len(items) - _TERMS} more" if len(items) > _TERMS else ""
    return ", ".join(items[:_TERMS]) + more
