"""HiGHS and Clarabel on the extensive form of one context.

Their tolerances are absolute: they want a form whose numbers are of size one (`scaled_form`).
"""

from __future__ import annotations

from typing import NamedTuple

import clarabel
import highspy
import numpy as np
import scipy.sparse as sp

from forewise.solvers.extensive import ExtensiveForm, ExtensivePoint
from forewise.solvers.solution import Status

Array = np.ndarray


class Answer(NamedTuple):
    """What a library claims of one extensive form; NaN where it found no point."""

    status: Status
    point: ExtensivePoint
    iterations: int
    bound: float = -np.inf  # no solution costs less


def run_highs(
    form: ExtensiveForm,
    tolerance: float,
    integer: Array | None = None,
    gap: float = 0.0,
    time_limit: float = float("inf"),
) -> Answer:
    """Solve min q'x, A x ≤ b, E x = e, with x integer in the columns of a mask."""
    highs = highspy.Highs()
    options = {"output_flag": False, "threads": 1, "mip_rel_gap": gap, "time_limit": time_limit}
    for kind in ("primal", "dual", "mip"):
        options[f"{kind}_feasibility_tolerance"] = max(tolerance, 1e-10)
    for option, value in options.items():
        highs.setOptionValue(option, value)
    highs.passModel(_model(form, integer))
    highs.run()
    found = highs.getModelStatus()
    if found == highspy.HighsModelStatus.kUnboundedOrInfeasible:
        highs.setOptionValue("presolve", "off")
        highs.run()
        found = highs.getModelStatus()
    known = {
        highspy.HighsModelStatus.kOptimal: Status.OPTIMAL,
        highspy.HighsModelStatus.kInfeasible: Status.INFEASIBLE,
        highspy.HighsModelStatus.kUnbounded: Status.UNBOUNDED,
    }
    answer, info, n_e = highs.getSolution(), highs.getInfo(), len(form.e)
    # HiGHS gives the rate at which the cost rises with a row's bound: our multiplier's minus.
    # Where it has no solution it may give nothing at all.
    duals = -np.array(answer.row_dual) if answer.dual_valid else np.full(n_e + len(form.b), np.nan)
    x = np.array(answer.col_value) if answer.value_valid else np.full(len(form.q), np.nan)
    return Answer(
        status=known.get(found, Status.INACCURATE),
        point=ExtensivePoint(x, duals[n_e:], duals[:n_e]),
        iterations=max(info.simplex_iteration_count, 0),
        bound=float(info.objective_function_value if integer is None else info.mip_dual_bound),
    )


def _model(form: ExtensiveForm, integer: Array | None) -> highspy.HighsLp:
    rows = sp.vstack([form.E, form.A], format="csc")
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = len(form.q), rows.shape[0]
    lp.col_cost_ = form.q
    lp.col_lower_ = np.full(len(form.q), -highspy.kHighsInf)
    lp.col_upper_ = np.full(len(form.q), highspy.kHighsInf)
    lp.row_lower_ = np.concatenate([form.e, np.full(len(form.b), -highspy.kHighsInf)])
    lp.row_upper_ = np.concatenate([form.e, form.b])
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_, lp.a_matrix_.index_ = rows.indptr, rows.indices
    lp.a_matrix_.value_ = rows.data
    if integer is not None:
        kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
        lp.integrality_ = [kinds[int(is_integer)] for is_integer in integer]
    return lp


def run_clarabel(form: ExtensiveForm, tolerance: float) -> Answer:
    """Solve min ½ x'P x + q'x, A x ≤ b, E x = e."""
    n_e = len(form.e)
    cones = [clarabel.ZeroConeT(n_e)] if n_e else []
    cones += [clarabel.NonnegativeConeT(len(form.b))] if len(form.b) else []
    A = sp.vstack([form.E, form.A], format="csc")
    b = np.concatenate([form.e, form.b])
    P = sp.triu(form.P, format="csc")
    settings = clarabel_settings(tolerance)
    answer = clarabel.DefaultSolver(P, form.q, A, b, cones, settings).solve()
    solved = answer.status == clarabel.SolverStatus.Solved
    duals = np.array(answer.z)
    point = ExtensivePoint(np.array(answer.x), duals[n_e:], duals[:n_e])
    return Answer(Status.OPTIMAL if solved else Status.INACCURATE, point, answer.iterations)


def clarabel_settings(tolerance: float) -> clarabel.DefaultSettings:
    """Clarabel's settings for one tolerance of feasibility and gap."""
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tolerance
    settings.tol_ktratio = 1e-3 * tolerance
    return settings
