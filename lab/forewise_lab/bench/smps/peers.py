"""The solvers that take turns; each is given the whole problem anew in every solve.

To add one: a function from a program and its scenarios to a call that solves it, and a line in
`PEERS`. Packages that forewise does not depend on are imported inside.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import clarabel
import highspy
import numpy as np
import scipy.sparse as sp
import torch

from forewise.problems import Problem, ScenarioProgram
from forewise.scenarios import Scenarios
from forewise.smps import TwoStageProgram
from forewise.solvers import AutoSolver, InteriorPointSolver, Solution, Status
from forewise.solvers.base import ProgramSolver
from forewise_lab.bench.smps.extensive import ExtensiveLp, extensive_lp

Array = np.ndarray
SOLVED = "solved"


@dataclass(frozen=True)
class Outcome:
    """What a solver says, and how good its point is by the extensive form."""

    verdict: str
    objective: float
    violation: float
    seconds: float
    iterations: int = 0


#: A built problem: each call solves it anew and gives the verdict, the point and the iterations.
Call = Callable[[], tuple[str, Array, int]]


@dataclass(frozen=True)
class SmpsPeer:
    """A solver; `prepare` builds what it is given, which is not counted as solving."""

    name: str
    prepare: Callable[[TwoStageProgram, Scenarios, ExtensiveLp, float], Call]
    package: str = ""  # beyond those of forewise


def timed(call: Call, lp: ExtensiveLp) -> Outcome:
    """Solve once."""
    start = time.perf_counter()
    verdict, x, iterations = call()
    taken = time.perf_counter() - start
    x = np.asarray(x, dtype=float)
    if x.shape != lp.cost.shape or not np.isfinite(x).all():
        return Outcome(verdict, float("nan"), float("nan"), taken, iterations)
    return Outcome(verdict, lp.objective(x), lp.violation(x), taken, iterations)


def built(
    peer: SmpsPeer, program: TwoStageProgram, scenarios: Scenarios, limit: float
) -> tuple[Call, ExtensiveLp, float]:
    """A call that solves, the program by which it is checked, and the seconds of building."""
    lp = extensive_lp(program, scenarios)
    start = time.perf_counter()
    call = peer.prepare(program, scenarios, lp, limit)
    return call, lp, time.perf_counter() - start


@dataclass(frozen=True, repr=False)
class InteriorPointAlone(ProgramSolver):
    """forewise without what `AutoSolver` does next, which is to ask HiGHS, a peer."""

    def unsupported_reason(self, problem: Problem) -> str | None:
        """That of the interior point."""
        return InteriorPointSolver().unsupported_reason(problem)

    def solve_program(self, program: ScenarioProgram) -> Solution:
        """The interior point's solution, whatever its status."""
        return InteriorPointSolver().solve_program(program)


def _forewise(
    program: TwoStageProgram, scenarios: Scenarios, lp: ExtensiveLp, limit: float
) -> Call:
    blocks, solver = program.program(scenarios), AutoSolver(general=InteriorPointAlone())

    def call() -> tuple[str, Array, int]:
        solution = solver.solve_program(blocks)
        status = solution.status[0]
        x = torch.cat([solution.decision[0], solution.recourse[0].flatten()])
        verdict = SOLVED if status is Status.OPTIMAL else str(status)
        return verdict, x.numpy(), int(solution.iterations[0])

    return call


def _highs(options: dict[str, object]) -> Callable[..., Call]:
    def prepare(
        program: TwoStageProgram, scenarios: Scenarios, lp: ExtensiveLp, limit: float
    ) -> Call:
        n_rows, n_columns = lp.A.shape
        column_wise, minimise = 1, 1
        model = (
            *(n_columns, n_rows, lp.A.nnz, column_wise, minimise, lp.constant, lp.cost),
            *(lp.lower, lp.upper, lp.row_lower, lp.row_upper),
            *(lp.A.indptr, lp.A.indices, lp.A.data, np.zeros(n_columns, dtype=np.int32)),
        )

        def call() -> tuple[str, Array, int]:
            solver = highspy.Highs()
            given = {"output_flag": False, "threads": 1, "time_limit": limit, **options}
            for option, value in given.items():
                solver.setOptionValue(option, value)
            solver.passModel(*model)
            solver.run()
            status, info = solver.getModelStatus(), solver.getInfo()
            solved = status == highspy.HighsModelStatus.kOptimal
            count = max(info.simplex_iteration_count, 0) + max(info.ipm_iteration_count, 0)
            verdict = SOLVED if solved else solver.modelStatusToString(status).lower()
            return verdict, np.array(solver.getSolution().col_value), count

        return call

    return prepare


@dataclass(frozen=True, eq=False)
class _Rows:
    """E x = e, H x ≤ h, and the variables that are only kept nonnegative apart from it."""

    E: sp.csr_matrix
    e: Array
    H: sp.csr_matrix
    h: Array
    positive: Array


def _rows(lp: ExtensiveLp, signs_apart: bool) -> _Rows:
    """Rows and bounds as equalities and one-sided inequalities."""
    A, eye = lp.A.tocsr(), sp.eye(len(lp.cost), format="csr")
    equal, fixed = lp.row_lower == lp.row_upper, lp.lower == lp.upper
    positive = ~fixed & (lp.lower == 0) if signs_apart else np.zeros_like(fixed)
    parts = []
    for matrix, lower, upper, skip in (
        (A, lp.row_lower, lp.row_upper, equal),
        (eye, np.where(positive, -np.inf, lp.lower), lp.upper, fixed),
    ):
        for sign, end in ((1, upper), (-1, lower)):
            kept = ~skip & np.isfinite(end)
            parts.append((sign * matrix[kept], sign * end[kept]))
    return _Rows(
        E=sp.vstack([A[equal], eye[fixed]], format="csr"),
        e=np.concatenate([lp.row_lower[equal], lp.lower[fixed]]),
        H=sp.vstack([part[0] for part in parts], format="csr"),
        h=np.concatenate([part[1] for part in parts]),
        positive=np.flatnonzero(positive),
    )


def _clarabel(
    program: TwoStageProgram, scenarios: Scenarios, lp: ExtensiveLp, limit: float
) -> Call:
    rows, n = _rows(lp, signs_apart=False), len(lp.cost)
    P, A = sp.csc_matrix((n, n)), sp.vstack([rows.E, rows.H], format="csc")
    b = np.concatenate([rows.e, rows.h])
    cones = [clarabel.ZeroConeT(len(rows.e)), clarabel.NonnegativeConeT(len(rows.h))]
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.max_threads, settings.time_limit = False, 1, limit

    def call() -> tuple[str, Array, int]:
        found = clarabel.DefaultSolver(P, lp.cost, A, b, cones, settings).solve()
        solved = found.status == clarabel.SolverStatus.Solved
        return SOLVED if solved else str(found.status), np.array(found.x), found.iterations

    return call


def _piqp(program: TwoStageProgram, scenarios: Scenarios, lp: ExtensiveLp, limit: float) -> Call:
    import piqp

    n, A = len(lp.cost), lp.A.tocsr()
    equal = lp.row_lower == lp.row_upper
    E, H = A[equal].tocsc(), A[~equal].tocsc()
    e, low, high = lp.row_lower[equal], lp.row_lower[~equal], lp.row_upper[~equal]
    P = sp.csc_matrix((n, n))

    def call() -> tuple[str, Array, int]:
        solver = piqp.SparseSolver()
        solver.settings.verbose = False
        solver.setup(P, lp.cost, E, e, H, low, high, lp.lower, lp.upper)
        status = solver.solve()
        solved = status == piqp.PIQP_SOLVED
        verdict = SOLVED if solved else str(status).rpartition("PIQP_")[2].lower()
        return verdict, np.array(solver.result.x), int(solver.result.info.iter)

    return call


def _moreau(program: TwoStageProgram, scenarios: Scenarios, lp: ExtensiveLp, limit: float) -> Call:
    import moreau.torch

    rows, n = _rows(lp, signs_apart=True), len(lp.cost)
    A = sp.vstack([rows.E, rows.H], format="csr")
    A.sort_indices()
    direct = [moreau.DirectConeSpec(kind="nonneg", indices=rows.positive.tolist())]
    cones = moreau.Cones(
        num_zero_cones=len(rows.e),
        num_nonneg_cones=len(rows.h),
        dir_cones=direct if len(rows.positive) else [],
    )
    settings = moreau.Settings(solver="ipm", device="cpu", batch_size=1, enable_grad=False)
    empty = torch.zeros(n + 1, dtype=torch.int64), torch.zeros(0, dtype=torch.int64)
    pattern = [torch.as_tensor(part.astype(np.int64)) for part in (A.indptr, A.indices)]
    values = torch.zeros(0, dtype=torch.float64), torch.from_numpy(A.data)
    sides = (
        torch.from_numpy(lp.cost)[None],
        torch.from_numpy(np.concatenate([rows.e, rows.h]))[None],
    )

    def call() -> tuple[str, Array, int]:
        solver = moreau.torch.Solver(n, A.shape[0], *empty, *pattern, cones, settings)
        with torch.no_grad():
            x = solver.solve(*values, *sides).x
        status = solver.info.status[0].name
        return SOLVED if status == "Solved" else status, x[0].numpy(), 0

    return call


FOREWISE = "forewise"
PEERS = {
    peer.name: peer
    for peer in (
        SmpsPeer(FOREWISE, _forewise),
        SmpsPeer("HiGHS simplex", _highs({"solver": "simplex"})),
        SmpsPeer("HiGHS interior point", _highs({"solver": "ipm", "run_crossover": "off"})),
        SmpsPeer("Clarabel", _clarabel),
        SmpsPeer("PIQP", _piqp, "piqp"),
        SmpsPeer("Moreau", _moreau, "moreau"),
    )
}
