"""By how much decisions break the constraints that they must meet before the outcome is seen.

Violations have no unit: the excess of a row a'z ≤ b or a'z = b is divided by the row's size,

    s = max(|b|, max_k |a_k z_k|)                    where b ≠ 0,
    s = max_k |a_k| max(|z_k|, min(max_i |z_i|, c_k))  where b = 0,

with c_k = min |b_r| / |a_rk| over the rows r with a bound other than 0, the most that they leave to
decision k. A row such as z_k ≥ 0 is thus measured by the other decisions of its context: −1e-12
beside 1 is a violation of 1e-12. Scaling decisions and bounds together, or a row with its bound,
changes nothing. A bound that is rounding beside its row (5.6e-17 in a balance of stocks) counts as
0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real

import torch

from forewise.exceptions import InfeasibleDecisionError, InvalidInputError
from forewise.problems.programs import apply, joined
from forewise.validation.arguments import WORKING_DTYPE

#: The largest violation of a decision that is called feasible.
FEASIBILITY_TOLERANCE = 1e-6

# A decision that is a smaller share of the outcome, or of other contexts' decisions, is zero up to
# the accuracy of solvers; where neither is known, so is one below 1e-10.
_ZERO = 1e-9
_UNITLESS_ZERO = 1e-10
# A bound is rounding where it is a smaller share of its row's terms.
_ROUNDING = 1e-12
_SHOWN = 5  # contexts that an error message lists
_TERMS = 6  # terms of a row that a name shows

NamedRow = tuple[str, torch.Tensor, torch.Tensor]  # name, a (n_decisions,), b ()
Source = tuple[str, int]  # a constraint: "G", "E", "cone" or "integer", and its number


@dataclass(frozen=True, eq=False)
class Constraints:
    """What decisions must meet, whatever the outcome: G z ≤ h, E z = e.

    Leading dimensions are n_contexts or 1, as in a `ScenarioProgram`.

    Attributes
    ----------
    variables : names of the decisions (n_decisions,)
    G, h, E, e : tensors (n_contexts | 1, n_rows, n_x), (n_contexts | 1, n_rows)
        Columns behind the decisions are auxiliary variables; rows with them are not checked here.
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
        inequalities: Sequence[NamedRow],
        equalities: Sequence[NamedRow] = (),
    ) -> Constraints:
        """Constraints of single rows (name, a, b): a'z ≤ b, and a'z = b."""
        # A row of zeros makes the blocks where there are no rows.
        zeros = ("", torch.zeros(len(variables)), torch.zeros(()))
        (G, h), (E, e) = (
            (
                torch.stack([as_constant(a) for _, a, _ in (zeros, *rows)])[None, 1:],
                torch.stack([as_constant(b) for *_, b in (zeros, *rows)])[None, 1:],
            )
            for rows in (inequalities, equalities)
        )
        return cls(variables, G, h, E, e, [name for name, *_ in (*inequalities, *equalities)])

    def violations(self, decision: torch.Tensor, like: torch.Tensor | None = None) -> Violations:
        """Violation of every constraint by finite decisions ``(n_contexts, n_decisions)``.

        `like` ``(n_contexts, ...)`` has the size of usual decisions, the outcome say. A decision
        that is zero beside it, and beside all decisions, counts as zero.
        """
        z, likely = self._sized(decision, like)
        return Violations(self, *self._row_violations(z, likely))

    def _bounded(self) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """The rows of G and of E with their bounds, on the CPU and without gradients."""
        G, h, E, e = (as_constant(block) for block in (self.G, self.h, self.E, self.e))
        return [(G, h), (E, e)]

    def _sized(
        self, decision: torch.Tensor, like: torch.Tensor | None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The decisions to check, and how large each may be taken to be in rows without a bound."""
        z = as_constant(decision)
        z = _zero_where_negligible(z, like, self._limits(z))
        reach = torch.minimum(_reach(z), self._limits(z))
        return z, torch.maximum(z.abs(), reach)

    def _limits(self, z: torch.Tensor) -> torch.Tensor:
        """c_k of the module's docstring, ``(n_contexts | 1, n_decisions)``; inf without bounds."""
        n = z.shape[-1]
        least = torch.full((1, n), torch.inf, dtype=WORKING_DTYPE)
        for matrix, bound in self._bounded():
            if matrix.shape[1] == 0:
                continue
            size = matrix[:, :, :n].abs()
            is_bound = bound.abs() > _ROUNDING * size.amax(-1) * _reach(z)
            columns = [
                torch.where(is_bound & (own > 0), bound.abs() / own, torch.inf).amin(1)
                for own in size.unbind(-1)
            ]
            least = torch.minimum(least, torch.stack(columns, 1))
        return least

    def _row_violations(
        self, x: torch.Tensor, likely: torch.Tensor
    ) -> tuple[torch.Tensor, list[Source]]:
        """Violations of the rows of variables that are known, ``(n_contexts, n_x)``."""
        n = x.shape[1]
        parts, sources = [x.new_zeros(len(x), 0)], []
        for kind, (matrix, bound) in zip("GE", self._bounded(), strict=True):
            rows = (~(matrix[:, :, n:] != 0).any(-1).any(0)).nonzero().squeeze(-1)
            matrix, bound = matrix[:, rows, :n], bound[:, rows]
            excess = apply(matrix, x) - bound
            excess = excess.abs() if kind == "E" else excess.clamp_min(0)
            parts.append(ratio(excess, row_sizes(matrix, bound, x.abs(), likely)))
            sources += [(kind, row) for row in rows.tolist()]
        return joined(parts, -1), sources

    def name(self, source: Source, context: int) -> str:
        """What a constraint is called in messages."""
        kind, number = source
        if self.names:
            return self.names[number + (self.G.shape[1] if kind == "E" else 0)]
        blocks = (self.G, self.h) if kind == "G" else (self.E, self.e)
        row, right = (b[context if len(b) > 1 else 0, number].detach() for b in blocks)
        return _printed(row, float(right), kind == "E", self.variables)


@dataclass(frozen=True, eq=False)
class Violations:
    """Violations ``(n_contexts, n_constraints)``, and the constraints that they belong to."""

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
        labels = listed([str(i if rows is None else rows[i]) for i in bad])
        raise InvalidInputError(
            f"{name} must be finite, but contains NaN or infinity in {len(bad)} of "
            f'{len(decision)} row(s): {labels}. Leave them out; decide(..., on_failure="return") '
            "has NaN where a context has no optimal decision"
        )


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

    Raises an `InfeasibleDecisionError` unless `on_infeasible` is "infinite" or all meet them.
    `like` is that of `Constraints.violations`; messages use `name` and the contexts' `rows`.
    """
    if on_infeasible not in ("raise", "infinite"):
        raise InvalidInputError(
            f'on_infeasible must be "raise" or "infinite", but is {on_infeasible!r}'
        )
    if isinstance(tolerance, bool) or not isinstance(tolerance, Real) or not tolerance >= 0:
        raise InvalidInputError(f"tolerance must be a number of at least 0, but is {tolerance!r}")
    require_finite_decisions(decision, name, rows)
    found = constraints.violations(decision, like)
    allowed = found.worst <= tolerance
    bad = (~allowed).nonzero().squeeze(-1).tolist()
    if bad and on_infeasible == "raise":
        labels = rows if rows is not None else range(len(allowed))
        shown = "; ".join(f"row {labels[i]} {found.describe(i)}" for i in bad[:_SHOWN])
        more = f"; and {len(bad) - _SHOWN} more" if len(bad) > _SHOWN else ""
        raise InfeasibleDecisionError(
            f"{name} must meet the constraints of the problem, but {len(bad)} of {len(allowed)} "
            f"do not, relative to the constraint's size: {shown}{more}. Correct them; or allow "
            f"more than tolerance={float(tolerance):g}, as for orders that were rounded; or count "
            'their cost as infinite with on_infeasible="infinite"'
        )
    return allowed


def as_constant(block: torch.Tensor) -> torch.Tensor:
    """The same in double precision on the CPU, without gradients."""
    return block.detach().to("cpu", WORKING_DTYPE)


def row_sizes(
    matrix: torch.Tensor, bound: torch.Tensor, size: torch.Tensor, likely: torch.Tensor
) -> torch.Tensor:
    """s of the module's docstring, ``(n_contexts, n_rows)``, of variables of these sizes."""
    own = torch.maximum(bound.abs(), largest_term(matrix, size))
    usual = largest_term(matrix, likely)
    return torch.where(is_negligible(bound, usual), torch.maximum(own, usual), own)


def is_negligible(bound: torch.Tensor, usual: torch.Tensor) -> torch.Tensor:
    """Mask of the bounds that are 0, or rounding of it, beside rows of a usual size."""
    return bound.abs() <= _ROUNDING * usual


def largest_term(matrix: torch.Tensor, amount: torch.Tensor) -> torch.Tensor:
    """max_k |a_rk| amount_k of nonnegative amounts, ``(n_contexts, n_rows)``."""
    largest = amount.new_zeros(len(amount), matrix.shape[1])
    # One column after the other: (n_contexts, n_rows, n_z) may be too much at once.
    for k in (matrix != 0).any(0).any(0).nonzero().squeeze(-1).tolist():
        largest = torch.maximum(largest, matrix[:, :, k].abs() * amount[:, k : k + 1])
    return largest


def ratio(excess: torch.Tensor, size: torch.Tensor) -> torch.Tensor:
    """excess / size; 0 where there is no excess, whatever the size."""
    return torch.where(excess > 0, excess / size, 0.0)


def listed(items: Sequence[str]) -> str:
    """The first few items, and how many more there are."""
    more = f" and {len(items) - _TERMS} more" if len(items) > _TERMS else ""
    return ", ".join(items[:_TERMS]) + more


def _reach(z: torch.Tensor) -> torch.Tensor:
    return z.abs().amax(-1, keepdim=True) if z.shape[-1] else z.new_zeros(len(z), 1)


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
        seen = as_constant(like).flatten(1).abs().amax(1)
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
