"""From a canonical form to scenario programs of any number of contexts and scenarios.

Variables are sorted into stages once: the decision; what can be known with it, because nothing
it depends on is uncertain (the first stage has these behind the decision); and recourse, one set
per scenario. Rows follow: those that know neither recourse nor outcome belong to the first stage.
The rows of a cone stay together. What remains for each batch of scenarios are a few tensor
operations per block. May import: exceptions, scenarios, its siblings `affine`, `canonical`,
`cones`, `integers`, `program`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch
from scipy.sparse.csgraph import connected_components

from forewise.problems.cones import Cones
from forewise.problems.cvxpy.affine import AffineBlock
from forewise.problems.cvxpy.canonical import Array, CanonicalForm, Terms
from forewise.problems.cvxpy.chance import Chances, with_chances
from forewise.problems.programs import ConicProgram, IntegerProgram, ScenarioProgram, joined
from forewise.scenarios import Scenarios
from forewise.validation.arguments import WORKING_DTYPE


@dataclass(frozen=True, eq=False)
class Stages:
    """Which columns and rows belong where, by their numbers in the canonical form.

    `first` has the decision and then what is known with it. Scenario inequalities that touch
    the first stage come before those that do not. Rows of cones are not among the others.
    """

    n_decisions: int
    first: Array
    recourse: Array
    G: Array
    E: Array
    coupled: Array
    uncoupled: Array
    F: Array
    first_cone_rows: Array
    scenario_cone_rows: Array

    @property
    def T(self) -> Array:
        """All scenario inequalities."""
        return np.concatenate([self.coupled, self.uncoupled])


def stages_of(form: CanonicalForm) -> Stages:
    """Sort the columns and rows of a form."""
    n = len(form.q)
    pattern = form.A != 0
    pattern[form.A_terms.row, form.A_terms.column] = True
    uncertain_row = np.asarray(form.b[:, : form.n_outcomes].any(1))
    uncertain_row[form.A_terms.row[form.is_outcome(form.A_terms.parameter)]] = True
    in_cone = form.cone >= 0
    for cone in np.unique(form.cone[in_cone]):
        # What one row of a cone knows, all of them do.
        together = form.cone == cone
        pattern[together] = pattern[together].any(0)
        uncertain_row[together] = uncertain_row[together].any()
    uncertain = form.q[:, : form.n_outcomes].any(1)
    uncertain |= pattern[uncertain_row].any(0)
    free = np.ones(n, dtype=bool)
    early = np.concatenate([form.decision, form.threshold])
    free[early] = False
    # Variables that meet in a row or a product are known together or not at all: they are
    # connected in a graph with a node for every variable and for every row.
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
    return Stages(
        n_decisions=len(form.decision),
        first=first,
        recourse=recourse,
        G=rows[~scenario & inequality],
        E=rows[~scenario & form.equality],
        coupled=rows[scenario & inequality & touches],
        uncoupled=rows[scenario & inequality & ~touches],
        F=rows[scenario & form.equality],
        first_cone_rows=rows[~scenario & in_cone],
        scenario_cone_rows=rows[scenario & in_cone],
    )


@dataclass(frozen=True, eq=False)
class LiftedCones:
    """The rows of a `ConicProgram` that lie in cones, as affine maps of outcome and given."""

    first: Cones
    scenario: Cones
    blocks: dict[str, AffineBlock]


@dataclass(frozen=True, eq=False)
class LiftedForm:
    """The blocks of the scenario program as affine maps of outcome and given.

    P, q and c may depend on the outcome although scenarios share them: a cost that is linear in
    the decision has a weighted mean over the scenarios, which is its value at their mean.
    """

    stages: Stages
    blocks: dict[str, AffineBlock]
    cones: LiftedCones
    integer_first: torch.Tensor  # masks of the variables that are whole numbers
    integer_recourse: torch.Tensor
    alpha: AffineBlock  # whose products with β are part of the cost
    beta: AffineBlock
    chances: Chances

    @classmethod
    def of(cls, form: CanonicalForm) -> LiftedForm:
        """Lift a form."""
        stages = stages_of(form)
        first, recourse, n_outcomes = stages.first, stages.recourse, form.n_outcomes

        def matrix(rows: Array, columns: Array, quadratic: bool = False) -> AffineBlock:
            whole, terms = (form.P, form.P_terms) if quadratic else (form.A, form.A_terms)
            return _submatrix(whole, terms, rows, columns, n_outcomes, form.n_parameters)

        def vector(maps: Array) -> AffineBlock:
            return AffineBlock.of_rows(maps, n_outcomes)

        blocks = {
            "P": matrix(first, first, quadratic=True),
            "q": vector(form.q[first]),
            "c": vector(form.c[None]),
            "G": matrix(stages.G, first),
            "h": vector(form.b[stages.G]),
            "E": matrix(stages.E, first),
            "e": vector(form.b[stages.E]),
            "D": matrix(recourse, recourse, quadratic=True),
            "d": vector(form.q[recourse]),
            "T": matrix(stages.coupled, first),
            "W": matrix(stages.T, recourse),
            "r": vector(form.b[stages.T]),
            "F": matrix(stages.F, first),
            "V": matrix(stages.F, recourse),
            "s": vector(form.b[stages.F]),
        }
        known, seen = stages.first_cone_rows, stages.scenario_cone_rows
        cones = LiftedCones(
            first=form.cones_of(known),
            scenario=form.cones_of(seen),
            blocks={
                "G": matrix(known, first),
                "h": vector(form.b[known]),
                "T": matrix(seen, first),
                "W": matrix(seen, recourse),
                "r": vector(form.b[seen]),
            },
        )
        return cls(
            stages=stages,
            blocks=blocks,
            cones=cones,
            integer_first=torch.from_numpy(form.integer[first]),
            integer_recourse=torch.from_numpy(form.integer[recourse]),
            alpha=vector(form.alpha),
            beta=vector(form.beta),
            chances=Chances(
                threshold=[int(np.flatnonzero(first == t)[0]) for t in form.threshold],
                excess=[int(np.flatnonzero(recourse == v)[0]) for v in form.excess],
                level=[float(level) for level in form.level],
            ),
        )

    def conic_program(self, scenarios: Scenarios, given: torch.Tensor | None) -> ConicProgram:
        """The program of scenarios with its cones."""
        outcome = scenarios.values.to(WORKING_DTYPE)
        of_scenario = None if given is None else given.unsqueeze(1)
        made = {
            name: block(outcome[:, 0], given) if name in "Gh" else block(outcome, of_scenario)
            for name, block in self.cones.blocks.items()
        }
        return ConicProgram(
            plain=self.program(scenarios, given),
            cones=self.cones.first,
            scenario_cones=self.cones.scenario,
            **made,
        )

    def integer_program(self, scenarios: Scenarios, given: torch.Tensor | None) -> IntegerProgram:
        """The program of scenarios with its whole numbers."""
        plain = self.program(scenarios, given)
        return IntegerProgram(plain, self.integer_first, self.integer_recourse)

    def program(self, scenarios: Scenarios, given: torch.Tensor | None) -> ScenarioProgram:
        """The program of scenarios, and of what is given, without cones and whole numbers.

        What is given is ``(n_contexts | 1, n_given)``.
        """
        return self._with_chances(self._plain_program(scenarios, given))

    def _plain_program(self, scenarios: Scenarios, given: torch.Tensor | None) -> ScenarioProgram:
        outcome = scenarios.values.to(WORKING_DTYPE)
        weights = scenarios.weights
        mean: torch.Tensor | None = None
        made: dict[str, torch.Tensor] = {}
        for name, block in self.blocks.items():
            if name not in "PqcGhEe":
                made[name] = block(outcome, None if given is None else given.unsqueeze(1))
                continue
            if block.outcome is not None and mean is None:
                mean = (weights.unsqueeze(1) @ outcome).squeeze(1)
            made[name] = block(outcome[:, 0] if mean is None else mean, given)
        made["c"] = made["c"].squeeze(-1) + self._mean_products(outcome, weights, given)
        return ScenarioProgram(weights=weights, **made)

    def recourse_program(self, scenarios: Scenarios, given: torch.Tensor | None) -> ScenarioProgram:
        """As `program`, but costs that depend on the outcome are recourse: e_j ≥ q_j'z + c_j."""
        program = self._plain_program(scenarios, given)
        uncertain = [self.blocks["q"], self.blocks["c"], self.alpha, self.beta]
        if all(block.outcome is None for block in uncertain):
            return self._with_chances(program)
        outcome = scenarios.values.to(WORKING_DTYPE)
        per_scenario = None if given is None else given.unsqueeze(1)
        q = self.blocks["q"](outcome, per_scenario)
        c = self.blocks["c"](outcome, per_scenario).squeeze(-1)
        c = c + self.products(outcome, per_scenario)
        return self._with_chances(_with_cost_variable(program, q, c))

    def _with_chances(self, program: ScenarioProgram) -> ScenarioProgram:
        return with_chances(program, self.chances) if self.chances.level else program

    def products(self, outcome: torch.Tensor, given: torch.Tensor | None) -> torch.Tensor:
        """Σ_k α_k β_k: ``(...)`` from ``(..., n_outcomes)``, 1 where nothing depends on it."""
        return (self.alpha(outcome, given) * self.beta(outcome, given)).sum(-1)

    def _mean_products(
        self, outcome: torch.Tensor, weights: torch.Tensor, given: torch.Tensor | None
    ) -> torch.Tensor:
        """Weighted mean of the products over the scenarios, ``(n_contexts | 1,)``."""
        total = self.products(outcome, None if given is None else given.unsqueeze(1))
        return total[:, 0] if total.shape[1] == 1 else (weights * total).sum(1)


def _with_cost_variable(
    program: ScenarioProgram, q: torch.Tensor, c: torch.Tensor
) -> ScenarioProgram:
    """The program with q_j'z + c_j as the value of one more recourse variable, the last."""
    pad = torch.nn.functional.pad
    n_coupled = program.T.shape[-2]
    W = pad(program.W, (0, 1))
    row = W.new_zeros(1, 1, 1, W.shape[-1])
    row[..., -1] = -1
    blocks = {
        name: block for name, block in program.blocks().items() if name not in ("weights", "q", "c")
    }
    blocks |= {
        "d": pad(program.d, (0, 1), value=1.0),
        "D": pad(program.D, (0, 1, 0, 1)),
        "T": joined([program.T, q.unsqueeze(-2)], -2),
        "W": joined([W[:, :, :n_coupled], row, W[:, :, n_coupled:]], -2),
        "r": joined([program.r[:, :, :n_coupled], -c.unsqueeze(-1), program.r[:, :, n_coupled:]],
                     -1),
        "V": pad(program.V, (0, 1)),
    }  # fmt: skip
    return ScenarioProgram(program.weights, torch.zeros_like(program.q[:1]), **blocks)


def _submatrix(
    whole: Array, terms: Terms, rows: Array, columns: Array, n_outcomes: int, n_parameters: int
) -> AffineBlock:
    """Some rows and columns of a matrix, as a block."""
    row_place, column_place = (np.full(size, -1) for size in whole.shape)
    row_place[rows], column_place[columns] = np.arange(len(rows)), np.arange(len(columns))
    row, column = row_place[terms.row], column_place[terms.column]
    inside = (row >= 0) & (column >= 0)
    return AffineBlock.of(
        whole[rows].take(columns, axis=1),
        (row * len(columns) + column)[inside],
        terms.parameter[inside],
        terms.coefficient[inside],
        n_outcomes,
        n_parameters - n_outcomes,
    )
