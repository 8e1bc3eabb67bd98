"""The extensive form with its bounds, as one sparse linear program: what other solvers are given.

    min cost'x + constant   s.t.   row_lower ≤ A x ≤ row_upper,   lower ≤ x ≤ upper

with x = (z, u of every scenario). It is made from the numbers that the files give, not from the
blocks that forewise solves, so that it checks these too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

import forewise as fw

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class ExtensiveLp:
    """The program of one context."""

    cost: Array
    constant: float
    A: sp.csc_matrix
    row_lower: Array
    row_upper: Array
    lower: Array
    upper: Array

    def objective(self, x: Array) -> float:
        """The cost of a point."""
        return float(self.cost @ x + self.constant)

    def violation(self, x: Array) -> float:
        """The largest violated row or bound, relative to 1 + its size."""
        rows = self.A @ x
        pairs = (
            *((self.row_lower, self.row_lower - rows), (self.row_upper, rows - self.row_upper)),
            *((self.lower, self.lower - x), (self.upper, x - self.upper)),
        )
        kept = [(end[np.isfinite(end)], excess[np.isfinite(end)]) for end, excess in pairs]
        return max(float((over / (1 + np.abs(end))).max(initial=0.0)) for end, over in kept)


def extensive_lp(program: fw.smps.TwoStageProgram, scenarios: fw.Scenarios) -> ExtensiveLp:
    """The extensive form of the first context."""
    core, n, M = program.core, program.n_decisions, scenarios.n_scenarios
    weights = scenarios.weights[0].numpy()[:, None]
    cost, constant, entries, rhs, lower, upper = (
        np.broadcast_to(part[0].numpy(), (M, part.shape[2])) for part in program.realised(scenarios)
    )
    k, second = len(core.columns) - n, program.second_stage
    n_first, n_second = int((~second).sum()), int(second.sum())
    own = np.where(second, np.cumsum(second) - 1, np.cumsum(~second) - 1)
    coo = core.matrix.tocoo()
    late = second[coo.row]
    step = np.arange(M)[:, None]
    rows = n_first + step * n_second + own[coo.row[late]]
    columns = np.where(coo.col[late] < n, coo.col[late], coo.col[late] + step * k)
    A = sp.coo_matrix(
        (
            np.concatenate([entries[0, ~late], entries[:, late].ravel()]),
            (
                np.concatenate([own[coo.row[~late]], rows.ravel()]),
                np.concatenate([coo.col[~late], columns.ravel()]),
            ),
        ),
        shape=(n_first + M * n_second, n + M * k),
    ).tocsc()
    A.eliminate_zeros()

    def joined(first: Array, rest: Array) -> Array:
        return np.concatenate([first, rest.ravel()])

    ends = [rhs + core.below, rhs + core.above]
    return ExtensiveLp(
        cost=joined((weights * cost[:, :n]).sum(0), weights * cost[:, n:]),
        constant=float((weights * constant).sum()),
        A=A,
        row_lower=joined(ends[0][0, ~second], ends[0][:, second]),
        row_upper=joined(ends[1][0, ~second], ends[1][:, second]),
        # A random bound of a decision holds in every scenario.
        lower=joined(lower[:, :n].max(0), lower[:, n:]),
        upper=joined(upper[:, :n].min(0), upper[:, n:]),
    )
