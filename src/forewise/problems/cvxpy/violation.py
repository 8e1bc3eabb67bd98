"""Violations of constraints with cones, integers and auxiliary variables.

Auxiliary variables (|z_k| in a sum, a norm, a logarithm) take the values with which a decision
violates the least: one program per context finds them, and then every row and cone is evaluated.
A second-order cone is violated by |x| − t, an exponential one by how far (a, b, c) is from it along
(−1, 1, 1), both relative to the largest size of their rows. A product p q ≥ |x|², in CVXPY the cone
|(2x, p − q)| ≤ p + q, is violated by |x|² − p q relative to the larger of the two, because p may be
far from the size of q. An integer is missed by its distance to the nearest one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import torch

from forewise.exceptions import SolveError
from forewise.problems.cones import ConeKind, Cones
from forewise.problems.cvxpy.recourse import solve_recourse, typed_program
from forewise.problems.feasibility import (
    Constraints,
    Source,
    Violations,
    as_constant,
    is_negligible,
    largest_term,
    listed,
    ratio,
    row_sizes,
)
from forewise.problems.programs import ScenarioProgram, apply, joined

# What cones may be missed by; beyond that, auxiliary variables behind them are not known either.
_CONE_TOLERANCE = 1e-6
_INWARDS = (-1.0, 1.0, 1.0)  # the direction in which a point always enters an exponential cone
_BISECTIONS = 200
_SHOWN = 5  # contexts that an error message lists


Rows = tuple[torch.Tensor, torch.Tensor]  # a matrix, and its bounds


class Cone(NamedTuple):
    """The rows k − C x of one cone.

    Of a product, the first two rows are p and q instead of p + q and p − q: where one is much
    larger than the other, their sums lose it.
    """

    kind: ConeKind
    is_product: bool
    C: torch.Tensor  # (n_contexts | 1, n_rows, n_x)
    k: torch.Tensor  # (n_contexts | 1, n_rows)

    @classmethod
    def from_rows(cls, kind: ConeKind, C: torch.Tensor, k: torch.Tensor) -> Cone:
        """The cone of these rows; a product, where a row is the difference of two factors."""
        for row in range(1, C.shape[1] if kind is ConeKind.SECOND_ORDER else 0):
            head, other = [0, 0], [row, row]
            sign = k.new_tensor([-1.0, 1.0])
            factors = C[:, head] + sign.unsqueeze(-1) * C[:, other]
            bounds = k[:, head] + sign * k[:, other]
            varies = (factors != 0).any(0)
            shared = bool(varies.all(0).any()) or bool((bounds != 0).any(0).all())
            if bool(varies.any()) and (not bool(varies.any(-1).all()) or not shared):
                rest = [i for i in range(1, C.shape[1]) if i != row]
                C, k = torch.cat([factors, C[:, rest]], 1), torch.cat([bounds, k[:, rest]], 1)
                return cls(kind, True, C, k)
        return cls(kind, False, C, k)

    def bounds(self, t: int) -> int:
        """1 where it says t ≥ f of its other variables, −1 for t ≤ f, 0 for neither."""
        column = self.C[:, :, t]
        places = (column != 0).any(0).nonzero().squeeze(-1).tolist()
        if len(places) > 1 or not bool((column[:, places] < 0).all()):
            return 0
        if self.kind is ConeKind.EXPONENTIAL:
            return (-1, 0, 1)[places[0]]
        return int(places[0] <= self.is_product)

    @property
    def touched(self) -> torch.Tensor:
        """Mask ``(n_x,)`` of its variables."""
        return _touched(self.C)[0]

    def size(self, size: torch.Tensor, likely: torch.Tensor) -> torch.Tensor:
        """The largest size of its rows, ``(n_contexts,)``.

        Only a cone without bounds is measured by decisions that are not in it.
        """
        usual = largest_term(self.C, likely)
        own = torch.maximum(self.k.abs(), largest_term(self.C, size))
        unbounded = is_negligible(self.k, usual).all(-1, keepdim=True)
        return torch.where(unbounded, torch.maximum(own, usual), own).amax(-1)

    def room(self, sizes: torch.Tensor) -> torch.Tensor:
        """The size that each row is likely to have, from those of the variables, ``(n_contexts,
        n_rows)``: its own, or what |x| ≤ t and p q ≥ |x|² ask for.
        """
        own = torch.maximum(self.k.abs(), largest_term(self.C, sizes))
        if self.kind is ConeKind.EXPONENTIAL:
            return own
        if not self.is_product:
            return torch.cat([own.amax(-1, keepdim=True), own[:, 1:]], -1)
        p, q, x = own[:, :1], own[:, 1:2], own[:, 2:].norm(dim=-1, keepdim=True)
        left = torch.cat([x.square() / q, x.square() / p, (p * q).sqrt().expand_as(own[:, 2:])], -1)
        return torch.where((left > 0) & left.isfinite(), left, own)

    def violation(self, x: torch.Tensor, likely: torch.Tensor) -> torch.Tensor:
        """Violation at variables that are known, ``(n_contexts,)``."""
        values, size = self.k - apply(self.C, x), x.abs()
        if not self.is_product:
            return ratio(_excess(self.kind, values), self.size(size, likely))
        p, q, rest = values[:, 0], values[:, 1], values[:, 2:]
        square = rest.square().sum(-1)
        # The product of two negative factors is no room.
        excess = torch.where((p < 0) & (q < 0), p * q, square - p * q).clamp_min(0)
        product = row_sizes(self.C[:, :2], self.k[:, :2], size, likely).prod(-1)
        own = torch.maximum(self.k[:, 2:].abs(), largest_term(self.C[:, 2:], size))
        return ratio(excess, torch.maximum(product, own.square().sum(-1)))

    def scaled(self, size: torch.Tensor, likely: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """C and k of the same cone for solvers, with rows of size 1."""
        if not self.is_product:
            unit = _positive(self.size(size, likely)).unsqueeze(-1)
            return self.C / unit.unsqueeze(-1), self.k / unit
        factors = _positive(row_sizes(self.C[:, :2], self.k[:, :2], size, likely))
        root = factors.prod(-1, keepdim=True).sqrt() / 2
        unit = torch.cat([factors, root.expand(-1, self.k.shape[1] - 2)], -1)
        C, k = self.C / unit.unsqueeze(-1), self.k / unit
        C = torch.cat([C[:, :1] + C[:, 1:2], C[:, :1] - C[:, 1:2], C[:, 2:]], 1)
        return C, torch.cat([k[:, :1] + k[:, 1:2], k[:, :1] - k[:, 1:2], k[:, 2:]], 1)


@dataclass(frozen=True, eq=False, kw_only=True)
class CvxpyConstraints(Constraints):
    """Constraints G x ≤ h, E x = e, k − C x ∈ K, some x integers.

    x is the decision with auxiliary variables behind it, which may take any value.
    """

    cones: Cones
    C: torch.Tensor  # (n_contexts | 1, n_rows, n_x)
    k: torch.Tensor  # (n_contexts | 1, n_rows)
    integer: torch.Tensor  # mask (n_x,)

    def violations(self, decision: torch.Tensor, like: torch.Tensor | None = None) -> Violations:
        """As `Constraints.violations`, of all constraints."""
        n, own = len(self.variables), self._binding()
        z, likely = own._sized(decision, like)
        x, eased = z, torch.zeros(len(z), dtype=torch.bool)
        if own.G.shape[-1] > n:
            auxiliary, sizes, eased = own._auxiliary(z, likely)
            x, likely = torch.cat([z, auxiliary], 1), torch.cat([likely, sizes], 1)
        rows, sources = own._row_violations(x, likely)
        parts = [rows]
        for number, cone in enumerate(own._each_cone()):
            violation = cone.violation(x, likely)
            if cone.touched[n:].any():
                _require_solved((violation <= _CONE_TOLERANCE) | eased, violation)
            parts.append(violation.unsqueeze(-1))
            sources.append(("cone", number))
        integers = own.integer[:n].nonzero().squeeze(-1)
        parts.append((z - z.round()).abs()[:, integers])
        sources += [("integer", i) for i in integers.tolist()]
        return Violations(own, joined(parts, -1), sources)

    def _binding(self) -> CvxpyConstraints:
        """Without auxiliary variables that are bounded from one side only, and their constraints.

        Such a variable, of a cost say, can go as far as its rows and cones ask.
        """
        cones, (G, h), (E, e) = self._each_cone(), *self._bounded()
        C, k, of_row = as_constant(self.C), as_constant(self.k), torch.from_numpy(self.cones.of_row)
        in_cones = torch.stack([G.new_zeros(G.shape[2]) != 0, *(cone.touched for cone in cones)])[
            1:
        ]
        rows, kept = torch.ones(G.shape[1]) > 0, torch.ones(len(cones)) > 0
        n = len(self.variables)
        candidates = [t for t in range(n, G.shape[2]) if not E[:, :, t].any()]
        again = True
        while again:
            again = False
            for t in candidates:
                touched, held = rows & (G[:, :, t] != 0).any(0), kept & in_cones[:, t]
                signs = {int(s) for s in -G[:, touched, t].sign().unique()}
                signs |= {cones[j].bounds(t) for j in held.nonzero().squeeze(-1).tolist()}
                if signs in ({1}, {-1}):
                    rows, kept, again = rows & ~touched, kept & ~held, True
        G, h, C, k = G[:, rows], h[:, rows], C[:, kept[of_row]], k[:, kept[of_row]]
        columns = torch.cat([_touched(G), _touched(E), _touched(C)]).any(0)
        columns[:n] = True
        return replace(
            self, G=G[..., columns], h=h, E=E[..., columns], e=e, C=C[..., columns], k=k,
            cones=self.cones.where(kept.numpy()), integer=self.integer[columns],
        )  # fmt: skip

    def name(self, source: Source, context: int) -> str:
        """What a constraint is called in messages."""
        kind, number = source
        if kind == "integer":
            return f"{self.variables[number]} is an integer"
        if kind == "cone":
            behind = self._decisions_behind(self._each_cone()[number].touched)
            return f"a {self.cones.kinds[number]} cone constraint on {listed(behind)}"
        touched = ((self.G if kind == "G" else self.E)[:, number] != 0).any(0)
        if not touched[len(self.variables) :].any():
            return super().name(source, context)
        return f"a constraint on {listed(self._decisions_behind(touched))}"

    def _decisions_behind(self, touched: torch.Tensor) -> list[str]:
        """The decisions that variables of a mask ``(n_x,)`` depend on, through auxiliary ones."""
        n = len(self.variables)
        cones = [cone.touched[None] for cone in self._each_cone()]
        pattern = torch.cat([(self.G != 0).any(0), (self.E != 0).any(0), *cones])
        while True:
            wider = touched | pattern[pattern[:, n:][:, touched[n:]].any(1)].any(0)
            if torch.equal(wider, touched):
                return [self.variables[i] for i in touched[:n].nonzero().squeeze(-1).tolist()]
            touched = wider

    def _each_cone(self) -> list[Cone]:
        C, k = as_constant(self.C), as_constant(self.k)
        lead = max(len(C), len(k))
        C, k = C.expand(lead, -1, -1), k.expand(lead, -1)
        ends = torch.tensor(self.cones.sizes, dtype=torch.int64).cumsum(0).tolist()
        return [
            Cone.from_rows(kind, C[:, end - size : end], k[:, end - size : end])
            for kind, size, end in zip(self.cones.kinds, self.cones.sizes, ends, strict=True)
        ]

    def _auxiliary(
        self, z: torch.Tensor, likely: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """The auxiliary variables with the least violation, their likely sizes, and where cones
        had to give way.

        Cones define auxiliary variables, t ≥ |x| with a limit of t elsewhere: they give way only
        where no values that meet them were found.
        """
        found, guess = self._least_violation(z, likely)
        eased = found.isnan().any(-1)
        rows = eased.nonzero().squeeze(-1)
        if len(rows) and len(self.cones):
            blocks = {name: getattr(self, name) for name in ("G", "h", "E", "e", "C", "k")}
            some = {name: b if len(b) == 1 else b[rows] for name, b in blocks.items()}
            found[rows], _ = replace(self, **some)._least_violation(z[rows], likely[rows], True)
        _require_solved(~found.isnan().any(-1), found)
        return found, torch.maximum(found.abs(), guess), eased

    def _least_violation(
        self, z: torch.Tensor, likely: torch.Tensor, eased: bool = False
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The auxiliary variables with which all rows hold up to the least v times their sizes, NaN
        where they were not found, and their likely sizes.
        """
        n, n_x = z.shape[1], self.G.shape[-1]
        cones = [cone for cone in self._each_cone() if cone.touched[n:].any()]
        blocks = [
            (matrix[:, rows], bound[:, rows])
            for matrix, bound in self._bounded()
            for rows in [(matrix[:, :, n:] != 0).any(-1).any(0)]
        ]
        guess = _guesses(likely, blocks, cones, n_x)
        size = torch.cat([z.abs(), guess], 1)
        likely = torch.cat([likely, guess], 1)
        # Auxiliary variables in units of their likely sizes.
        unit = torch.where(self.integer[n:], 1.0, _positive(guess)).unsqueeze(1)

        def rows_in(matrix: torch.Tensor, bound: torch.Tensor, v: torch.Tensor) -> Rows:
            left = joined([matrix[:, :, n:] * unit, v.expand(1, matrix.shape[1], 1)], -1)
            return left, bound - apply(matrix[:, :, :n], z)

        v, nothing = -z.new_ones(1, 1, 1), (z.new_zeros(1, 0, n_x), z.new_zeros(1, 0))
        plain_rows = [rows_in(z.new_zeros(1, 1, n_x), z.new_zeros(1, 1), v)]  # v ≥ 0
        for (matrix, bound), signs in zip(blocks, ((1,), (1, -1)), strict=True):
            row = _positive(row_sizes(matrix, bound, size, likely))
            plain_rows += [
                rows_in(s * matrix / row.unsqueeze(-1), s * bound / row, v) for s in signs
            ]
        cone_rows = [rows_in(*nothing, 0 * v)]
        for cone in cones:
            inwards = _INWARDS if cone.kind is ConeKind.EXPONENTIAL else (1.0,)
            way = [*inwards, *[0.0] * (cone.C.shape[1] - len(inwards))]
            v = -float(eased) * z.new_tensor(way).reshape(1, -1, 1)
            cone_rows.append(rows_in(*cone.scaled(size, likely), v))
        (G, h), (C, k) = (
            (joined([left for left, _ in rows], -2), joined([right for _, right in rows], -1))
            for rows in (plain_rows, cone_rows)
        )
        q = z.new_zeros(1, G.shape[-1])
        q[:, -1] = 1
        plain = ScenarioProgram(weights=z.new_ones(len(z), 1), q=q, G=G, h=h)
        integer = torch.cat([self.integer[n:], self.integer.new_zeros(1)])
        kinds = Cones(tuple(c.kind for c in cones), tuple(c.C.shape[1] for c in cones))
        program = typed_program(plain, integer, kinds, C, k)
        return solve_recourse(program).x[:, :-1] * unit[:, 0], guess


def _guesses(likely: torch.Tensor, blocks: list[Rows], cones: list[Cone], n_x: int) -> torch.Tensor:
    """Likely sizes of auxiliary variables, ``(n_contexts, n_x − n_decisions)``; 0 if none is known.

    The least that a row leaves to them: first by rows with decisions or bounds, then by rows with
    other auxiliary variables.
    """
    n = likely.shape[1]
    sizes = torch.nn.functional.pad(likely, (0, n_x - n))
    while True:
        rows = [(A, torch.maximum(b.abs(), largest_term(A, sizes))) for A, b in blocks]
        rows += [(cone.C, cone.room(sizes)) for cone in cones]
        least = torch.full_like(sizes[:, n:], torch.inf)
        for matrix, room in rows:
            for t in _touched(matrix)[0, n:].nonzero().squeeze(-1).tolist():
                own = matrix[:, :, n + t].abs()
                left = torch.where((own > 0) & (room > 0), room / own, torch.inf)
                least[:, t] = torch.minimum(least[:, t], left.amin(-1))
        new = torch.where((sizes[:, n:] == 0) & least.isfinite(), least, sizes[:, n:])
        if torch.equal(new, sizes[:, n:]):
            return new
        sizes = torch.cat([likely, new], 1)


def _touched(matrix: torch.Tensor) -> torch.Tensor:
    """Mask ``(1, n_x)`` of the columns that are not zero."""
    return (matrix != 0).any(0).any(0, keepdim=True)


def _positive(size: torch.Tensor) -> torch.Tensor:
    return torch.where(size > 0, size, 1.0)


def _require_solved(solved: torch.Tensor, values: torch.Tensor) -> None:
    failed = (~solved).nonzero().squeeze(-1).tolist()
    if failed:
        raise SolveError(
            "the violation of constraints with auxiliary variables could not be found for "
            f"{len(failed)} context(s), such as {', '.join(map(str, failed[:_SHOWN]))}: write them "
            "in other units, in which bounds are near 1 (unchecked_cost does without)",
            values,
        )


def _excess(kind: ConeKind, values: torch.Tensor) -> torch.Tensor:
    """How far points ``(n_contexts, size)`` must go to enter the cone, ``(n_contexts,)``."""
    if kind is ConeKind.SECOND_ORDER:
        return (values[:, 1:].norm(dim=-1) - values[:, 0]).clamp_min(0)
    inwards = values.new_tensor(_INWARDS)
    low, high = torch.zeros_like(values[:, 0]), values.abs().amax(-1) * 2
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        enters = _in_exponential_cone(values + middle.unsqueeze(-1) * inwards)
        low, high = torch.where(enters, low, middle), torch.where(enters, middle, high)
    return torch.where(_in_exponential_cone(values), 0.0, high)


def _in_exponential_cone(values: torch.Tensor) -> torch.Tensor:
    a, b, c = values.unbind(-1)
    # b exp(a / b) ≤ c, with logarithms so that nothing overflows.
    safe = torch.where((b > 0) & (c > 0), b, 1.0)
    curved = (b > 0) & (c > 0) & (a <= safe * (torch.where(c > 0, c, 1.0) / safe).log())
    return curved | ((b == 0) & (a <= 0) & (c >= 0))
