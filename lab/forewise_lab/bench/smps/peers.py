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

import forewise as fw
from forewise_lab.bench.peers.moreau_batch import moreau_solver
from forewise_lab.bench.peers.solvers import highs, highs_model
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
    prepare: Callable[[fw.smps.TwoStageProgram, fw.Scenarios, ExtensiveLp, float], Call]
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
    peer: SmpsPeer, program: fw.smps.TwoStageProgram, scenarios: fw.Scenarios, limit: float
) -> tuple[Call, ExtensiveLp, float]:
    """A call that solves, the program by which it is checked, and the seconds of building."""
    lp = extensive_lp(program, scenarios)
    start = time.perf_counter()
    call = peer.prepare(program, scenarios, lp, limit)
    return call, lp, time.perf_counter() - start


def _forewise(
    program: fw.smps.TwoStageProgram, scenarios: fw.Scenarios, lp: ExtensiveLp, limit: float
) -> Call:
    # Not `AutoSolver`, which asks HiGHS, a peer, where the interior point fails.
    blocks, solver = program.program(scenarios), fw.InteriorPointSolver()

    def call() -> tuple[str, Array, int]:
        solution = solver.solve_program(blocks)
        status = solution.status[0]
        x = torch.cat([solution.decision[0], solution.recourse[0].flatten()])
        verdict = SOLVED if status is fw.Status.OPTIMAL else str(status)
        return verdict, x.numpy(), int(solution.iterations[0])

    return call


def _highs(options: dict[str, object]) -> Callable[..., Call]:
    def prepare(
        program: fw.smps.TwoStageProgram, scenarios: fw.Scenarios, lp: ExtensiveLp, limit: float
    ) -> Call:
        bounds = (lp.lower, lp.upper, lp.row_lower, lp.row_upper)
        model = highs_model(lp.A, lp.cost, lp.constant, bounds)

        def call() -> tuple[str, Array, int]:
            solver = highs({"time_limit": limit, **options})
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
    program: fw.smps.TwoStageProgram, scenarios: fw.Scenarios, lp: ExtensiveLp, limit: float
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


def _piqp(
    program: fw.smps.TwoStageProgram, scenarios: fw.Scenarios, lp: ExtensiveLp, limit: float
) -> Call:
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


def _moreau(
    program: fw.smps.TwoStageProgram, scenarios: fw.Scenarios, lp: ExtensiveLp, limit: float
) -> Call:
    rows, n = _rows(lp, signs_apart=True), len(lp.cost)
    A = sp.vstack([rows.E, rows.H], format="csr")
    A.sort_indices()
    pattern = [np.zeros(n + 1, np.int64), np.zeros(0, np.int64), A.indptr, A.indices]
    values = torch.zeros(0, dtype=torch.float64), torch.from_numpy(A.data)
    sides = (
        torch.from_numpy(lp.cost)[None],
        torch.from_numpy(np.concatenate([rows.e, rows.h]))[None],
    )

    def call() -> tuple[str, Array, int]:
        solver = moreau_solver(A.shape, pattern, len(rows.e), rows.positive.tolist(), 1, False)
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
