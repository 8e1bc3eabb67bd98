"""forewise itself, and the trusted solvers that take one context after the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import clarabel
import highspy
import numpy as np
import scipy.sparse as sp
import torch

import forewise as fw
from forewise.solvers.extensive import ExtensiveForm, extensive_form
from forewise_lab.bench.instances import Instance
from forewise_lab.bench.peers.base import (
    Answer,
    Array,
    Gradient,
    Peer,
    PeerFailedError,
    Prepared,
    gradient,
    split_solution,
)


@dataclass(frozen=True)
class ForewisePeer(Peer):
    """`solve` of a problem's scenarios, or `solve_program` where there is no problem.

    Nothing is built ahead: every solve starts from the scenarios.
    """

    name: str = "forewise"

    def prepare(self, instance: Instance) -> Prepared:
        leaves = instance.leaves()
        constants = {name: leaf.detach() for name, leaf in leaves.items()}
        direction = instance.direction()

        def forward() -> Answer:
            solution = _solve(instance, constants)
            if instance.problem is not None:
                return Answer(solution.decision.numpy())
            return Answer(solution.decision.numpy(), solution.recourse.numpy())

        def forward_backward() -> Gradient:
            return gradient((_solve(instance, leaves).decision * direction).sum(), leaves)

        return Prepared(forward, forward_backward)


def _solve(instance: Instance, leaves: dict[str, torch.Tensor]) -> fw.Solution:
    if instance.problem is not None:
        return fw.solve(instance.problem, fw.Scenarios(leaves["scenarios"]))
    return fw.solve_program(instance.program_of(leaves))


@dataclass(frozen=True)
class ClarabelLoop(Peer):
    """Clarabel on each context's extensive form; forward only. Building makes the matrices."""

    name: str = "Clarabel loop"
    tolerance: float = 1e-8

    def prepare(self, instance: Instance) -> Prepared:
        program = instance.program
        models = [_clarabel_model(extensive_form(program, i)) for i in range(instance.n_contexts)]
        settings = clarabel.DefaultSettings()
        settings.verbose, settings.max_threads = False, 1
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = self.tolerance

        def forward() -> Answer:
            solutions = [clarabel.DefaultSolver(*model, settings).solve() for model in models]
            unsolved = sum(s.status != clarabel.SolverStatus.Solved for s in solutions)
            return split_solution(np.array([s.x for s in solutions]), program, unsolved)

        return Prepared(forward)


def _clarabel_model(
    form: ExtensiveForm,
) -> tuple[sp.csc_matrix, Array, sp.csc_matrix, Array, list[object]]:
    return (
        sp.triu(form.P, format="csc"),
        form.q,
        sp.vstack([form.E, form.A], format="csc"),
        np.concatenate([form.e, form.b]),
        [clarabel.ZeroConeT(len(form.e)), clarabel.NonnegativeConeT(len(form.b))],
    )


@dataclass(frozen=True)
class HighsLoop(Peer):
    """HiGHS on each context's extensive form; linear programs, forward only.

    Rows with a single entry, such as −u ≤ 0, are given as bounds of columns, and models as
    arrays. Presolve is off, because on these programs HiGHS is faster without it.
    """

    name: str = "HiGHS loop"

    def supports(self, program: fw.ScenarioProgram) -> str | None:
        return None if program.is_linear else "linear programs only"

    def prepare(self, instance: Instance) -> Prepared:
        program = instance.program
        models = [_bounded_model(extensive_form(program, i)) for i in range(instance.n_contexts)]
        solver = highs({"presolve": "off"})

        def forward() -> Answer:
            solutions, unsolved = [], 0
            for model in models:
                if solver.passModel(*model) == highspy.HighsStatus.kError:
                    raise PeerFailedError("HiGHS rejected a model")
                solver.run()
                unsolved += solver.getModelStatus() != highspy.HighsModelStatus.kOptimal
                solutions.append(solver.getSolution().col_value)
            return split_solution(np.array(solutions), program, unsolved)

        return Prepared(forward)


class Bounded(NamedTuple):
    """A x ≤ b with its single-entry rows turned into lower ≤ x ≤ upper."""

    A: sp.csr_matrix
    b: Array
    lower: Array
    upper: Array


def with_column_bounds(A: sp.spmatrix, b: Array) -> Bounded:
    """Turn the single-entry rows of A x ≤ b into bounds of their columns."""
    A = sp.csr_matrix(A)
    single = np.diff(A.indptr) == 1
    at = A.indptr[:-1][single]
    column, slope = A.indices[at], A.data[at]
    bound = b[single] / slope
    lower = np.full(A.shape[1], -highspy.kHighsInf)
    upper = np.full(A.shape[1], highspy.kHighsInf)
    np.maximum.at(lower, column[slope < 0], bound[slope < 0])
    np.minimum.at(upper, column[slope > 0], bound[slope > 0])
    return Bounded(A[~single], b[~single], lower, upper)


def _bounded_model(form: ExtensiveForm) -> tuple[object, ...]:
    rows = with_column_bounds(form.A, form.b)
    lower = np.concatenate([form.e, np.full(len(rows.b), -highspy.kHighsInf)])
    bounds = (rows.lower, rows.upper, lower, np.concatenate([form.e, rows.b]))
    return highs_model(sp.vstack([form.E, rows.A], format="csc"), form.q, form.c, bounds)


def highs_model(
    A: sp.csc_matrix, cost: Array, constant: float, bounds: tuple[Array, Array, Array, Array]
) -> tuple[object, ...]:
    """The positional arguments of `Highs.passModel`; `bounds` of the columns, then of the rows."""
    n_rows, n_columns = A.shape
    column_wise, minimise = 1, 1
    sizes = (n_columns, n_rows, A.nnz, column_wise, minimise)
    integrality = np.zeros(n_columns, dtype=np.int32)
    return (*sizes, constant, cost, *bounds, A.indptr, A.indices, A.data, integrality)


def highs(options: dict[str, object]) -> highspy.Highs:
    """HiGHS with one thread, silent."""
    solver = highspy.Highs()
    for option, value in {"output_flag": False, "threads": 1, **options}.items():
        solver.setOptionValue(option, value)
    return solver
