"""From a canonical form to scenario programs of any number of contexts and scenarios.

Variables are sorted into stages once: the decision; auxiliary variables of the first stage, which
depend on nothing uncertain; and recourse, one set per scenario. Rows without recourse and outcome
belong to the first stage. The rows of a cone stay together. Each block is an affine map of outcome
and given, evaluated for a batch by a few tensor operations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
from scipy.sparse.csgraph import connected_components

from forewise.exceptions import ModelError
from forewise.problems.cones import Cones
from forewise.problems.cvxpy.chance import Chance, with_chances
from forewise.problems.cvxpy.form import Array, CanonicalForm, Terms
from forewise.problems.programs import (
    BOUNDS,
    FIRST_STAGE,
    ConicProgram,
    IntegerProgram,
    Program,
    ScenarioProgram,
    joined,
)  # fmt: skip
from forewise.scenarios import Scenarios
from forewise.validation.arguments import WORKING_DTYPE


@dataclass(frozen=True, eq=False)
class LinearPart:
    """entry[e] += Σ_p coefficient · θ[p], for the entries that depend on θ and no others."""

    entry: torch.Tensor
    #: Where each entry depends on one parameter: that one, and its coefficient.
    parameter: torch.Tensor | None
    coefficient: torch.Tensor | None
    #: Otherwise the whole matrix, ``(n_parameters, n_entries)``.
    matrix: torch.Tensor | None

    @classmethod
    def from_terms(
        cls, entry: Array, parameter: Array, coefficient: Array, n_parameters: int
    ) -> LinearPart | None:
        """The part with these terms; None if there are none."""
        if len(entry) == 0:
            return None
        entries, place = np.unique(entry, return_inverse=True)
        index = torch.from_numpy(entries)
        if len(entries) == len(entry):
            order = np.argsort(entry)
            single, factor = (torch.from_numpy(part[order]) for part in (parameter, coefficient))
            return cls(index, single, factor, None)
        matrix = np.zeros((n_parameters, len(entries)))
        np.add.at(matrix, (parameter, place), coefficient)
        return cls(index, None, None, torch.from_numpy(matrix))

    def added_to(self, value: torch.Tensor, theta: torch.Tensor) -> torch.Tensor:
        """Entries ``(..., n)`` with this part of θ ``(..., n_parameters)`` added."""
        device = theta.device
        if self.matrix is not None:
            more = theta @ self.matrix.to(device)
        else:
            assert self.parameter is not None
            assert self.coefficient is not None
            more = theta[..., self.parameter.to(device)] * self.coefficient.to(device)
        if len(self.entry) == value.shape[-1]:
            return value + more
        lead = torch.broadcast_shapes(value.shape[:-1], more.shape[:-1])
        more = more.expand(*lead, more.shape[-1])
        value = value.expand(*lead, value.shape[-1])
        return value.index_add(-1, self.entry.to(device), more)


@dataclass(frozen=True, eq=False)
class AffineBlock:
    """constant + linear in outcome + linear in given, as a tensor of a fixed shape."""

    constant: torch.Tensor
    outcome: LinearPart | None
    given: LinearPart | None

    @classmethod
    def from_terms(
        cls, constant: Array, entry: Array, parameter: Array, coefficient: Array, n_outcomes: int,
        n_given: int,
    ) -> AffineBlock:  # fmt: skip
        """The block with these terms; `entry` counts through `constant` row by row."""
        uncertain = parameter < n_outcomes
        of_outcome = (entry[uncertain], parameter[uncertain], coefficient[uncertain])
        of_given = (entry[~uncertain], parameter[~uncertain] - n_outcomes, coefficient[~uncertain])
        return cls(
            torch.from_numpy(np.ascontiguousarray(constant)).to(WORKING_DTYPE),
            LinearPart.from_terms(*of_outcome, n_outcomes),
            LinearPart.from_terms(*of_given, n_given),
        )

    @classmethod
    def from_rows(cls, maps: Array, n_outcomes: int) -> AffineBlock:
        """The vector whose entries are rows of dense affine maps, the constant last."""
        entry, parameter = np.nonzero(maps[:, :-1])
        n_given = maps.shape[1] - 1 - n_outcomes
        values = maps[entry, parameter]
        return cls.from_terms(maps[:, -1], entry, parameter, values, n_outcomes, n_given)

    @classmethod
    def from_matrix(
        cls, matrix: Array, terms: Terms, rows: Array, columns: Array, form: CanonicalForm
    ) -> AffineBlock:
        """Some rows and columns of a matrix of a form."""
        row_place, column_place = (np.full(size, -1) for size in matrix.shape)
        row_place[rows], column_place[columns] = np.arange(len(rows)), np.arange(len(columns))
        row, column = row_place[terms.row], column_place[terms.column]
        inside = (row >= 0) & (column >= 0)
        return cls.from_terms(
            matrix[rows].take(columns, axis=1),
            (row * len(columns) + column)[inside],
            terms.parameter[inside],
            terms.coefficient[inside],
            form.n_outcomes,
            len(form.c) - 1 - form.n_outcomes,
        )

    def __call__(self, outcome: torch.Tensor, given: torch.Tensor | None) -> torch.Tensor:
        """The block ``(..., *shape)`` of every context and scenario.

        `outcome` is ``(..., n_outcomes)``, `given` broadcasts with it, ``(..., n_given)``. Leading
        dimensions are 1 where nothing depends on them.
        """
        lead = (1,) * (outcome.ndim - 1)
        value = self.constant.to(outcome.device).reshape(*lead, -1)
        for part, theta in ((self.given, given), (self.outcome, outcome)):
            if part is not None and theta is not None:
                value = part.added_to(value, theta)
        return value.reshape(*value.shape[:-1], *self.constant.shape)


class Stages(NamedTuple):
    """Which columns and rows belong where, by their numbers in the canonical form."""

    n_decisions: int
    first: Array  # columns: the decision, and then the auxiliary variables
    recourse: Array
    G: Array  # rows, those of cones not among them
    E: Array
    T: Array  # the first n_coupled touch the first stage
    n_coupled: int
    F: Array
    first_cone_rows: Array
    scenario_cone_rows: Array

    @classmethod
    def from_form(cls, form: CanonicalForm) -> Stages:
        """Sort the columns and rows of a form."""
        pattern = form.pattern()
        uncertain_row = np.asarray(form.b[:, : form.n_outcomes].any(1))
        uncertain_row[form.A_terms.row[form.is_outcome(form.A_terms.parameter)]] = True
        in_cone = form.cone >= 0
        for cone in np.unique(form.cone[in_cone]):
            together = form.cone == cone
            pattern[together] = pattern[together].any(0)
            uncertain_row[together] = uncertain_row[together].any()
        uncertain = np.asarray(form.q[:, : form.n_outcomes].any(1))
        uncertain |= pattern[uncertain_row].any(0)
        free = np.ones(len(form.q), dtype=bool)
        early = np.concatenate([form.decision, form.threshold])
        free[early] = False
        # Variables that meet in a row or a product belong to one stage: they are connected in a
        # graph with a node for every variable and for every row.
        meet = sp.csr_array(pattern[:, free])
        product = form.products()[free][:, free]
        graph = sp.block_array([[product, meet.T], [meet, None]], format="csr")
        count, label = connected_components(graph, directed=False)
        label = label[: free.sum()]
        waits = np.bincount(label, uncertain[free], count) > 0
        columns = np.flatnonzero(free)
        recourse = columns[waits[label]]
        first = np.concatenate([early, columns[~waits[label]]])
        scenario = uncertain_row | pattern[:, recourse].any(1)
        touches = pattern[:, first].any(1)
        inequality = ~form.equality & ~in_cone
        rows = np.arange(len(pattern))
        coupled = rows[scenario & inequality & touches]
        return cls(
            n_decisions=len(form.decision),
            first=first,
            recourse=recourse,
            G=rows[~scenario & inequality],
            E=rows[~scenario & form.equality],
            T=np.concatenate([coupled, rows[scenario & inequality & ~touches]]),
            n_coupled=len(coupled),
            F=rows[scenario & form.equality],
            first_cone_rows=rows[~scenario & in_cone],
            scenario_cone_rows=rows[scenario & in_cone],
        )


@dataclass(frozen=True, eq=False)
class LiftedForm:
    """The blocks of the scenario program as affine maps of outcome and given.

    P, q and c may depend on the outcome although scenarios share them: a cost that is linear in
    the decision has a weighted mean over the scenarios, which is its value at their mean.
    """

    stages: Stages
    blocks: dict[str, AffineBlock]  # with bounds as rows of G and W
    bounded: dict[str, AffineBlock]  # what programs have: bounds apart
    cones: Cones  # of the first stage
    scenario_cones: Cones
    cone_blocks: dict[str, AffineBlock]  # G, h, T, W, r of a `ConicProgram`
    integer_first: torch.Tensor  # masks of the variables that are integers
    integer_recourse: torch.Tensor
    alpha: AffineBlock  # whose products with β are part of the cost
    beta: AffineBlock
    chances: list[Chance]

    @property
    def program_type(self) -> type[Program]:
        """The type of its programs."""
        if self.integer_first.any() or self.integer_recourse.any():
            return IntegerProgram
        return ConicProgram if len(self.cones) + len(self.scenario_cones) else ScenarioProgram

    def program(self, scenarios: Scenarios, given: torch.Tensor | None) -> Program:
        """The program of scenarios and of given data ``(n_contexts | 1, n_given)``."""
        plain = with_chances(self._plain_program(scenarios, given), self.chances)
        if self.program_type is IntegerProgram:
            return IntegerProgram(plain, self.integer_first, self.integer_recourse)
        if self.program_type is ScenarioProgram:
            return plain
        outcome = scenarios.values.to(WORKING_DTYPE)
        made = {
            name: block(outcome[:, 0], given) if name in "Gh" else block(outcome, _spread(given))
            for name, block in self.cone_blocks.items()
        }
        return ConicProgram(
            plain=plain, cones=self.cones, scenario_cones=self.scenario_cones, **made
        )

    def _plain_program(self, scenarios: Scenarios, given: torch.Tensor | None) -> ScenarioProgram:
        outcome, weights = scenarios.values.to(WORKING_DTYPE), scenarios.weights
        mean: torch.Tensor | None = None
        made: dict[str, torch.Tensor] = {}
        for name, block in self.bounded.items():
            if name not in FIRST_STAGE and name not in ("lower", "upper"):
                made[name] = block(outcome, _spread(given))
                continue
            if block.outcome is not None and mean is None:
                mean = (weights.unsqueeze(1) @ outcome).squeeze(1)
            made[name] = block(outcome[:, 0] if mean is None else mean, given)
        for name in BOUNDS:
            bound = self.bounded.get(name)
            if bound is not None and (bound.outcome is not None or bound.given is not None):
                # Infinite data are no data, and must not be taken for no bound.
                wrong = bound.constant.isfinite().to(made[name].device) & ~made[name].isfinite()
                made[name] = torch.where(wrong, torch.nan, made[name])
        products = self.products(outcome, _spread(given))
        shared = products.shape[1] == 1
        products = products[:, 0] if shared else (weights * products).sum(1)
        made["c"] = made["c"].squeeze(-1) + products
        return ScenarioProgram(weights=weights, **made)

    def recourse_program(self, scenarios: Scenarios, given: torch.Tensor | None) -> ScenarioProgram:
        """As `program`, but costs that depend on the outcome are recourse: e_j ≥ q_j'z + c_j."""
        program = self._plain_program(scenarios, given)
        uncertain = [self.blocks["q"], self.blocks["c"], self.alpha, self.beta]
        if any(block.outcome is not None for block in uncertain):
            outcome = scenarios.values.to(WORKING_DTYPE)
            q, c = (self.blocks[name](outcome, _spread(given)) for name in "qc")
            c = c.squeeze(-1) + self.products(outcome, _spread(given))
            program = _with_cost_variable(program, q, c)
        return with_chances(program, self.chances)

    def products(self, outcome: torch.Tensor, given: torch.Tensor | None) -> torch.Tensor:
        """Σ_k α_k β_k: ``(...)`` from ``(..., n_outcomes)``, 1 where nothing depends on it."""
        return (self.alpha(outcome, given) * self.beta(outcome, given)).sum(-1)


def lift(form: CanonicalForm) -> LiftedForm:
    """Sort a form into stages and blocks."""
    stages = Stages.from_form(form)
    first, recourse = stages.first, stages.recourse
    known, seen = stages.first_cone_rows, stages.scenario_cone_rows
    if not form.pattern()[np.ix_(stages.F, recourse)].any(1).all():
        raise ModelError(
            "an equality constraint ties the decision alone to the outcome, which no decision "
            "meets in two scenarios: let a variable that is not a decision take the difference"
        )

    def rows(rows: Array, columns: Array) -> AffineBlock:
        return AffineBlock.from_matrix(form.A, form.A_terms, rows, columns, form)

    def curvature(columns: Array) -> AffineBlock:
        return AffineBlock.from_matrix(form.P, form.P_terms, columns, columns, form)

    def vector(maps: Array) -> AffineBlock:
        return AffineBlock.from_rows(maps, form.n_outcomes)

    blocks = {
        "P": curvature(first),
        "q": vector(form.q[first]),
        "c": vector(form.c[None]),
        "G": rows(stages.G, first),
        "h": vector(form.b[stages.G]),
        "E": rows(stages.E, first),
        "e": vector(form.b[stages.E]),
        "D": curvature(recourse),
        "d": vector(form.q[recourse]),
        "T": rows(stages.T[: stages.n_coupled], first),
        "W": rows(stages.T, recourse),
        "r": vector(form.b[stages.T]),
        "F": rows(stages.F, first),
        "V": rows(stages.F, recourse),
        "s": vector(form.b[stages.F]),
    }
    G, of_first = _bounds(form, stages.G, first)
    late, of_recourse = _bounds(form, stages.T[stages.n_coupled :], recourse)
    T = np.concatenate([stages.T[: stages.n_coupled], late])
    apart = {
        "G": rows(G, first),
        "h": vector(form.b[G]),
        "W": rows(T, recourse),
        "r": vector(form.b[T]),
        **{name: vector(maps) for name, maps in of_first.items()},
        **{f"recourse_{name}": vector(maps) for name, maps in of_recourse.items()},
    }
    return LiftedForm(
        stages=stages,
        blocks=blocks,
        bounded=blocks | apart,
        cones=form.cones_of(known),
        scenario_cones=form.cones_of(seen),
        cone_blocks={
            "G": rows(known, first),
            "h": vector(form.b[known]),
            "T": rows(seen, first),
            "W": rows(seen, recourse),
            "r": vector(form.b[seen]),
        },
        integer_first=torch.from_numpy(form.integer[first]),
        integer_recourse=torch.from_numpy(form.integer[recourse]),
        alpha=vector(form.alpha),
        beta=vector(form.beta),
        chances=[
            Chance(int((first == t).argmax()), int((recourse == v).argmax()), float(level))
            for t, v, level in zip(form.threshold, form.excess, form.level, strict=True)
        ],
    )


def _bounds(form: CanonicalForm, rows: Array, columns: Array) -> tuple[Array, dict[str, Array]]:
    """The rows that stay rows, and the affine maps of the others as bounds of some columns.

    A row with one variable, whose coefficient is known, is a bound. A second one on the same side
    of a variable stays a row.
    """
    pattern, known = form.pattern()[rows], ~np.isin(rows, form.A_terms.row)
    maps = {}
    for name, infinite in (("lower", -np.inf), ("upper", np.inf)):
        maps[name] = np.zeros((len(columns), form.b.shape[1]))
        maps[name][:, -1] = infinite
    stays = np.ones(len(rows), dtype=bool)
    place = {column: i for i, column in enumerate(columns.tolist())}
    for i in np.flatnonzero(known & (pattern.sum(1) == 1)):
        column = int(np.flatnonzero(pattern[i])[0])
        coefficient = form.A[rows[i], column]
        own = maps["upper" if coefficient > 0 else "lower"][place[column]]
        if np.isinf(own[-1]):
            own[:], stays[i] = form.b[rows[i]] / coefficient, False
    found = {name: own for name, own in maps.items() if np.isfinite(own[:, -1]).any()}
    return rows[stays], found


def _spread(given: torch.Tensor | None) -> torch.Tensor | None:
    """Given data for every scenario."""
    return None if given is None else given.unsqueeze(1)


def _with_cost_variable(
    program: ScenarioProgram, q: torch.Tensor, c: torch.Tensor
) -> ScenarioProgram:
    """The program with q_j'z + c_j as the value of one more recourse variable, the last."""
    pad = torch.nn.functional.pad
    n_coupled = program.T.shape[-2]
    W, r = pad(program.W, (0, 1)), program.r
    row = W.new_zeros(1, 1, 1, W.shape[-1])
    row[..., -1] = -1
    blocks = program.blocks() | {
        "q": torch.zeros_like(program.q[:1]),
        "c": None,
        "d": pad(program.d, (0, 1), value=1.0),
        "D": pad(program.D, (0, 1, 0, 1)),
        "T": joined([program.T, q.unsqueeze(-2)], -2),
        "W": joined([W[:, :, :n_coupled], row, W[:, :, n_coupled:]], -2),
        "r": joined([r[:, :, :n_coupled], -c.unsqueeze(-1), r[:, :, n_coupled:]], -1),
        "V": pad(program.V, (0, 1)),
    }
    for name, bound in program.bounds.items():
        infinite = -torch.inf if name.endswith("lower") else torch.inf
        blocks[name] = pad(bound, (0, 1), value=infinite) if "recourse" in name else bound
    return ScenarioProgram(**blocks)
