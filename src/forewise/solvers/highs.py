"""HiGHS on the extensive form of one context, with or without whole numbers.

May import: its siblings `extensive`, `solution`.
"""

from __future__ import annotations

from typing import NamedTuple

import highspy
import numpy as np
import scipy.sparse as sp

from forewise.solvers.extensive import ExtensiveForm
from forewise.solvers.solution import Status

Array = np.ndarray


class HighsAnswer(NamedTuple):
    """What HiGHS said of one extensive form."""

    status: Status
    x: Array
    inequality: Array
    equality: Array
    iterations: int
    bound: float  # no solution costs less; the optimal cost itself where nothing is whole


def run_highs(
    form: ExtensiveForm,
    tolerance: float,
    whole: Array | None = None,
    gap: float = 0.0,
    time_limit: float = float("inf"),
) -> HighsAnswer:
    """Solve min q'x, A x ≤ b, E x = e, with x whole numbers in the columns of a mask."""
    highs = highspy.Highs()
    options = {"output_flag": False, "threads": 1, "mip_rel_gap": gap, "time_limit": time_limit}
    for option in ("primal_feasibility_tolerance", "dual_feasibility_tolerance"):
        options[option] = max(tolerance, 1e-10)
    options["mip_feasibility_tolerance"] = max(tolerance, 1e-10)
    for option, value in options.items():
        highs.setOptionValue(option, value)
    highs.passModel(_model(form, whole))
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
    return HighsAnswer(
        status=known.get(found, Status.INACCURATE),
        x=np.array(answer.col_value) if answer.value_valid else np.full(len(form.q), np.nan),
        inequality=duals[n_e:],
        equality=duals[:n_e],
        iterations=max(info.simplex_iteration_count, 0),
        bound=float(info.objective_function_value if whole is None else info.mip_dual_bound),
    )


def _model(form: ExtensiveForm, whole: Array | None) -> highspy.HighsLp:
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
    if whole is not None:
        kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
        lp.integrality_ = [kinds[int(is_whole)] for is_whole in whole]
    return lp
