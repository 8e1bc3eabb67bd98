"""HiGHS, one context after the other: the trusted solver for linear programs."""

from __future__ import annotations

from dataclasses import dataclass

import highspy
import numpy as np
import scipy.sparse as sp

from forewise.problems import ScenarioProgram
from forewise.solvers.extensive import ExtensiveForm, extensive_form
from forewise_lab.bench.instances import Instance
from forewise_lab.bench.peers.base import Answer, Array, PeerFailedError, Prepared, split_solution


@dataclass(frozen=True)
class HighsLoop:
    """HiGHS on each context's extensive form; linear programs, forward only.

    Rows with a single entry, such as −u ≤ 0, are given as bounds of columns, and models as
    arrays. Presolve is off, because on these programs HiGHS is faster without it.
    """

    name: str = "HiGHS loop"

    def missing(self) -> str | None:
        """Never: forewise depends on it."""
        return None

    def supports(self, program: ScenarioProgram) -> str | None:
        """Linear programs only."""
        return None if program.is_linear else "linear programs only"

    def prepare(self, instance: Instance) -> Prepared:
        """The arrays of every context's model, and one solver that is given each in turn."""
        program = instance.program
        models = [_model(extensive_form(program, i)) for i in range(instance.n_contexts)]
        solver = highspy.Highs()
        for option, value in (("output_flag", False), ("threads", 1), ("presolve", "off")):
            solver.setOptionValue(option, value)

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


@dataclass(frozen=True, eq=False)
class Bounded:
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


def _model(form: ExtensiveForm) -> tuple[object, ...]:
    """The positional arguments of `Highs.passModel`."""
    rows = with_column_bounds(form.A, form.b)
    A = sp.vstack([form.E, rows.A], format="csc")
    n_rows, n_columns = A.shape
    column_wise, minimise = 1, 1
    return (
        n_columns,
        n_rows,
        A.nnz,
        column_wise,
        minimise,
        form.c,
        form.q,
        rows.lower,
        rows.upper,
        np.concatenate([form.e, np.full(len(rows.b), -highspy.kHighsInf)]),
        np.concatenate([form.e, rows.b]),
        A.indptr,
        A.indices,
        A.data,
        np.zeros(n_columns, dtype=np.int32),
    )
