"""Clarabel, one context after the other: the trusted solver for quadratic programs."""

from __future__ import annotations

from dataclasses import dataclass

import clarabel
import numpy as np
import scipy.sparse as sp

from forewise.problems import ScenarioProgram
from forewise.solvers.extensive import ExtensiveForm, extensive_form
from forewise_lab.bench.instances import Instance
from forewise_lab.bench.peers.base import Answer, Array, Prepared, split_solution


@dataclass(frozen=True)
class ClarabelLoop:
    """Clarabel on each context's extensive form; forward only.

    Building is making the sparse matrices. Solving is constructing the solver, which orders
    and factors, and running it.
    """

    name: str = "Clarabel loop"
    tolerance: float = 1e-8

    def missing(self) -> str | None:
        """Never: forewise depends on it."""
        return None

    def supports(self, program: ScenarioProgram) -> str | None:
        """Every scenario program."""
        return None

    def prepare(self, instance: Instance) -> Prepared:
        """The upper triangle of P and the stacked constraints of every context."""
        program = instance.program
        models = [_model(extensive_form(program, i)) for i in range(instance.n_contexts)]
        settings = self._settings()

        def forward() -> Answer:
            solutions = [clarabel.DefaultSolver(*model, settings).solve() for model in models]
            unsolved = sum(s.status != clarabel.SolverStatus.Solved for s in solutions)
            return split_solution(np.array([s.x for s in solutions]), program, unsolved)

        return Prepared(forward)

    def _settings(self) -> clarabel.DefaultSettings:
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.max_threads = 1
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = self.tolerance
        return settings


def _model(form: ExtensiveForm) -> tuple[sp.csc_matrix, Array, sp.csc_matrix, Array, list[object]]:
    return (
        sp.triu(form.P, format="csc"),
        form.q,
        sp.vstack([form.E, form.A], format="csc"),
        np.concatenate([form.e, form.b]),
        [clarabel.ZeroConeT(len(form.e)), clarabel.NonnegativeConeT(len(form.b))],
    )
