"""By how much decisions break the constraints that they must meet before the outcome is seen.

Violations are relative to a constraint's size (`constraint_sizes`), so that units do not matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import NamedTuple

import torch

from forewise.exceptions import InfeasibleDecisionError, InvalidInputError
from forewise.problems.constraint_sizes import Point, limits, ratio, row_sizes
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

        G z ≤ h,    E z = e

    Leading dimensions are n_contexts or 1, as in a `ScenarioProgram`.

    Attributes
    ----------
    variables : names of the decisions (n_decisions,)
    G, h, E, e : tensors (n_contexts | 1, n_rows, n_x), (n_contexts | 1, n_rows)
    names : names of the rows of G and of E, in this order; made from the rows where it is empty
    """

    variables: Sequence[str]
    G: torch.Tensor
    h: torch.Tensor
    E: torch.Tensor
    e: torch.Tensor
    names: Sequence[str] = ()

    @classmethod
    def from_rows(
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
        own. Rows with variables behind the decision are left out: they may take any value.
        """
        n = self.n_decisions
        z = decision.detach().to("cpu", WORKING_DTYPE)
        bounded = [
            (matrix.detach().to("cpu", WORKING_DTYPE), bound.detach().to("cpu", WORKING_DTYPE))
            for matrix, bound in ((self.G, self.h), (self.E, self.e))
        ]
        z = zero_where_negligible(z, like, limits(bounded, z))
        point = Point.of(z, limits(bounded, z))
        parts: list[torch.Tensor] = [z.new_zeros(len(z), 0)]
        sources: list[Source] = []
        for kind, (matrix, bound) in zip("GE", bounded, strict=True):
            rows = (~(matrix[:, :, n:] != 0).any(-1).any(0)).nonzero().squeeze(-1)
            matrix, bound = matrix[:, rows, :n], bound[:, rows]
            excess = apply(matrix, z) - bound
            excess = excess.abs() if kind == "E" else excess.clamp_min(0)
            parts.append(ratio(excess, row_sizes(matrix, bound, point)))
            sources += [Source(kind, row) for row in rows.tolist()]
        return Violations(self, joined(parts, -1), sources)

    def name(self, source: Source, context: int) -> str:
        """What a constraint is called in messages."""
        if self.names:
            place = source.number + (self.G.shape[1] if source.kind == "E" else 0)
            return self.names[place]
        matrix, bound = (self.G, self.h) if source.kind == "G" else (self.E, self.e)
        row, right = (part[context if len(part) > 1 else 0, source.number].detach()
                      for part in (matrix, bound))  # fmt: skip
        if row[self.n_decisions :].any():
            return f"a constraint on {listed([self.variables[i] for i in source.touched])}"
        return _printed(row[: self.n_decisions], float(right), source.kind == "E", self.variables)


class Source(NamedTuple):
    """Where a column of violations comes from."""

    kind: str  # "G", "E", "cone", "whole" or "shared"
    number: int
    touched: tuple[int, ...] = ()  # decisions


@dataclass(frozen=True, eq=False)
class Violations:
    """Violations ``(n_contexts, n_constraints)``, and what the constraints are called."""

    constraints: Constraints
    values: torch.Tensor
    sources: Sequence[Source]

    @property
    def worst(self) -> torch.Tensor:
        """The largest of each context, ``(n_contexts,)``."""
        if self.values.shape[1] == 0:
            return self.values.new_zeros(len(self.values))
        return self.values.amax(-1)

    def describe(self, context: int) -> str:
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
        called = listed([str(i if rows is None else rows[i]) for i in bad])
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
        shown = "; ".join(f"row {called[i]} {found.describe(i)}" for i in bad[:_SHOWN])
        more = f"; and {len(bad) - _SHOWN} more" if len(bad) > _SHOWN else ""
        raise InfeasibleDecisionError(
            f"{name} must meet the constraints of the problem, but {len(bad)} of {len(allowed)} "
            f"do not, relative to the constraint's size: {shown}{more}. Correct them; or allow "
            f"more than tolerance={float(tolerance):g}, as for orders that were rounded; or count "
            'their cost as infinite with on_infeasible="infinite"'
        )
    return allowed


def zero_where_negligible(
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


def listed(items: Sequence[str]) -> str:
    more = f" and {len(items) - _TERMS} more" if len(items) > _TERMS else ""
    return ", ".join(items[:_TERMS]) + more
