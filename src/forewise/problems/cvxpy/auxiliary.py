"""The violation of constraints that auxiliary variables are in: the least one over them.

What `definitions` has no formula for may take any value, so that the decision is judged by the best
one: a program. May import: exceptions, its siblings `cone_formulas`, `cones`,
`constraint_sizes`, `integers`, `program`, `recourse`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

from forewise.exceptions import SolveError
from forewise.problems.cones import ConeKind, Cones
from forewise.problems.constraint_sizes import Point, cone_sizes, row_sizes
from forewise.problems.cvxpy.cone_formulas import INWARDS, cone_violation
from forewise.problems.cvxpy.recourse import solve_recourse
from forewise.problems.programs import ConicProgram, IntegerProgram, ScenarioProgram, apply, joined

if TYPE_CHECKING:
    from forewise.problems.cvxpy.feasibility import CvxpyConstraints

_SHOWN = 5  # contexts that an error message lists
# What cones may be missed by; beyond that, what stands behind them is not known either.
_CONE_TOLERANCE = 1e-6


class SharedConstraints(NamedTuple):
    """The constraints that unknown variables share with the known ones and with each other."""

    constraints: CvxpyConstraints  # its "decisions" are all variables that are known
    G: torch.Tensor  # numbers of rows
    E: torch.Tensor
    cones: list[int]

    @property
    def columns(self) -> torch.Tensor:
        """The unknown variables that are in them."""
        return self._touched[self.constraints.n_decisions :].nonzero().squeeze(-1)

    @property
    def touched(self) -> list[int]:
        """The known variables that are in them."""
        return self._touched[: self.constraints.n_decisions].nonzero().squeeze(-1).tolist()

    @property
    def _touched(self) -> torch.Tensor:
        own = self.constraints
        found = (own.G[:, self.G] != 0).any(0).any(0) | (own.E[:, self.E] != 0).any(0).any(0)
        for j in self.cones:
            found = found | (own.cone_rows(j)[0] != 0).any(0).any(0)
        return found

    def least_violation(self, point: Point) -> torch.Tensor:
        """The least v with which all rows hold up to v times their sizes, ``(n_contexts,)``.

        Cones are definitions, t ≥ |x| with a limit of t elsewhere: they give way only where it is
        proved that nothing meets them.

        Raises
        ------
        SolveError
            Where the program was not solved well enough to tell.
        """
        every = torch.arange(len(point.values))
        least, impossible = self._solved(point, every, eased=False)
        rows = every[impossible]
        if len(rows) and self.cones:
            least[rows], _ = self._solved(point.take(rows), rows, eased=True)
        failed = least.isnan().nonzero().squeeze(-1).tolist()
        if failed:
            listed = ", ".join(map(str, failed[:_SHOWN]))
            raise SolveError(
                "the violation of constraints with auxiliary variables could not be found for "
                f"{len(failed)} context(s), such as {listed}: write them in other units, in which "
                "bounds are near 1 (unchecked_cost does without)",
                least,
            )
        return least

    def _solved(
        self, point: Point, contexts: torch.Tensor, eased: bool
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The violations, NaN where they were not found, and where there cannot be any."""
        own, n = self.constraints, self.constraints.n_decisions
        z = point.values[:, :n]
        columns = self.columns

        def of(block: torch.Tensor) -> torch.Tensor:
            return block if len(block) == 1 else block[contexts]

        blocks = [(of(m)[:, rows], of(b)[:, rows]) for m, b, rows in
                  ((own.G, own.h, self.G), (own.E, own.e, self.E))]  # fmt: skip
        whole = torch.zeros(len(columns), dtype=torch.bool)
        if own.whole is not None:
            whole = own.whole[n:][columns]
        # Unknown variables in units of what they are likely to be.
        unit = point.guesses[:, n:][:, columns]
        unit = torch.where((unit > 0) & ~whole, unit, 1.0)
        ones = z.new_ones(1, 1, 1)
        A, b = [], []
        for (matrix, bound), signs in zip(blocks, ((1,), (1, -1)), strict=True):
            size = row_sizes(matrix, bound, point)
            size = torch.where(size > 0, size, 1.0)
            left = matrix[:, :, n:][:, :, columns] * unit.unsqueeze(1) / size.unsqueeze(-1)
            room = (bound - apply(matrix[:, :, :n], z)) / size
            for sign in signs:
                A.append(joined([sign * left, -ones.expand(1, left.shape[1], 1)], -1))
                b.append(sign * room)
        A.append(torch.nn.functional.pad(-ones, (len(columns), 0)))
        b.append(z.new_zeros(1, 1))
        G, h = joined(A, -2), joined(b, -1)
        q = z.new_zeros(1, G.shape[-1])
        q[:, -1] = 1
        program: ScenarioProgram | ConicProgram | IntegerProgram
        program = ScenarioProgram(weights=z.new_ones(len(z), 1), q=q, G=G, h=h)
        if whole.any():
            mask = torch.cat([whole, whole.new_zeros(1)])
            program = IntegerProgram(program, mask, mask[:0])
        elif self.cones:
            rows = self._cone_rows(point, of, unit, eased)
            program = ConicProgram.of_first_stage(program, *rows)
        answer = solve_recourse(program)
        x = answer.x
        # What the auxiliary variables that were found leave to v, and not the solver's own v.
        least = (apply(G[..., :-1], x[:, :-1]) - h).amax(-1).clamp_min(0)
        if eased:
            return torch.maximum(least, x[:, -1]), answer.infeasible
        values = point.values.clone()
        values[:, n + columns] = x[:, :-1] * unit
        missed = self._cones_missed(Point(values, values.abs(), values.abs(), point.guesses), of)
        return torch.where(missed <= _CONE_TOLERANCE, least, torch.nan), answer.infeasible

    def _cones_missed(
        self, point: Point, of: Callable[[torch.Tensor], torch.Tensor]
    ) -> torch.Tensor:
        """The largest violation of a cone, ``(n_contexts,)``, in its own sense of size."""
        own, worst = self.constraints, torch.zeros_like(point.values[:, 0])
        for j in self.cones:
            C, k = (of(part) for part in own.cone_rows(j))
            worst = torch.maximum(worst, cone_violation(own.cones.kinds[j], C, k, point))
        return worst

    def _cone_rows(
        self,
        point: Point,
        of: Callable[[torch.Tensor], torch.Tensor],
        unit: torch.Tensor,
        eased: bool,
    ) -> tuple[Cones, torch.Tensor, torch.Tensor]:
        own, n = self.constraints, self.constraints.n_decisions
        z = point.values[:, :n]
        columns = self.columns
        assert own.C is not None
        assert own.k is not None
        C, k = of(own.C), of(own.k)
        matrices, bounds = [], []
        for j in self.cones:
            rows = np.flatnonzero(own.cones.of_row == j)
            matrix, bound = C[:, rows], k[:, rows]
            size = cone_sizes(matrix, bound, point)
            size = torch.where(size > 0, size, 1.0).unsqueeze(-1)
            left = matrix[:, :, n:][:, :, columns] * unit.unsqueeze(1) / size.unsqueeze(-1)
            way = z.new_zeros(1, len(rows), 1)
            if eased:
                inwards = INWARDS if own.cones.kinds[j] is ConeKind.EXPONENTIAL else (1.0,)
                way[0, : len(inwards), 0] = -torch.tensor(inwards, dtype=z.dtype)
            matrices.append(joined([left, way], -1))
            bounds.append((bound - apply(matrix[:, :, :n], z)) / size)
        cones = own.cones.where(np.isin(np.arange(len(own.cones)), self.cones))
        return cones, joined(matrices, -2), joined(bounds, -1)
