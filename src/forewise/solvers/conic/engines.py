"""Libraries that solve conic programs: all contexts at once, or one after the other.

What an engine claims is verified against the raw data by the solver. To add an engine: a frozen
dataclass with the method `run`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any, NamedTuple

import clarabel
import numpy as np
import scipy.sparse as sp
import torch

from forewise.exceptions import MissingDependencyError
from forewise.solvers.conic.form import ConicForm
from forewise.solvers.conic.sparse_batch import SparseBatch, one_where_zero
from forewise.solvers.libraries import clarabel_settings
from forewise.solvers.solution import Status

Array = np.ndarray

#: From gradients of x and y to those of q and b, all of shape (n_contexts, ...).
Adjoint = Callable[[torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]]


class Answers(NamedTuple):
    """What an engine found, context by context; NaN where it found nothing."""

    x: torch.Tensor
    y: torch.Tensor
    claims: list[Status]
    iterations: Array
    adjoint: Adjoint | None  # None: `differentiation` has one for every point

    def replaced(self, contexts: torch.Tensor, other: Answers) -> Answers:
        """With another engine's answers for some contexts; its adjoint is NaN for them."""
        new = dict(zip(contexts.tolist(), other.claims, strict=True))
        iterations = self.iterations.copy()
        iterations[contexts.numpy()] += other.iterations
        own = self.adjoint

        def adjoint(gx: torch.Tensor, gy: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            assert own is not None
            clean = (part.index_fill(0, contexts, 0.0) for part in (gx, gy))
            gq, gb = own(*clean)
            return gq.index_fill(0, contexts, torch.nan), gb.index_fill(0, contexts, torch.nan)

        return Answers(
            x=self.x.index_copy(0, contexts, other.x),
            y=self.y.index_copy(0, contexts, other.y),
            claims=[new.get(i, claim) for i, claim in enumerate(self.claims)],
            iterations=iterations,
            adjoint=None if own is None else adjoint,
        )


class ConicEngine(ABC):
    """A library that solves cone programs in the form of a `ConicForm`.

    Examples
    --------
    Which one a `ConicSolver` uses is a value; by default it is Moreau where that is installed.

    >>> import forewise as fw
    >>> issubclass(fw.solvers.ClarabelEngine, fw.solvers.ConicEngine)
    True
    """

    @abstractmethod
    def run(self, form: ConicForm, tolerance: float, differentiate: bool) -> Answers:
        """Solve a batch. Called with tensors of the processor, without gradients."""

    def run_scaled(self, form: ConicForm, tolerance: float, differentiate: bool) -> Answers:
        """`run` in units of each context's own size: engines have absolute tolerances.

        With bounds in units of β and costs in units of κ the program has q/κ, b/β, P β/κ and A as
        it is; its solution is x/β and its multipliers y/κ.
        """
        norm = form.A.row_maximum()
        beta = one_where_zero((form.b / one_where_zero(norm)).abs().amax(1, keepdim=True))
        linear = (form.q / form.column_weight).abs().amax(1, keepdim=True)
        bent = beta * form.P.row_maximum().amax(1, keepdim=True)
        kappa = one_where_zero(torch.where(linear > 0, linear, bent))
        scaled = replace(
            form,
            P=replace(form.P, values=form.P.values * (beta / kappa)),
            q=form.q / kappa,
            b=form.b / beta,
        )
        found = self.run(scaled, tolerance, differentiate)
        own = found.adjoint

        def adjoint(gx: torch.Tensor, gy: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            assert own is not None
            gq, gb = own(gx * beta, gy * kappa)
            return gq / kappa, gb / beta

        return found._replace(
            x=found.x * beta, y=found.y * kappa, adjoint=None if own is None else adjoint
        )


@dataclass(frozen=True)
class ClarabelEngine(ConicEngine):
    """Clarabel, one context after the other.

    Examples
    --------
    >>> import forewise as fw
    >>> solver = fw.solvers.ConicSolver(engine=fw.solvers.ClarabelEngine())
    >>> solver.engine
    ClarabelEngine()
    """

    def run(self, form: ConicForm, tolerance: float, differentiate: bool) -> Answers:
        """Solve the contexts in a loop."""
        B, n = form.q.shape
        x, y = np.full((B, n), np.nan), np.full((B, form.b.shape[1]), np.nan)
        claims, iterations = [], np.zeros(B, dtype=np.int64)
        settings = clarabel_settings(tolerance)
        cones = [
            *([clarabel.ZeroConeT(form.n_equalities)] if form.n_equalities else []),
            *([clarabel.NonnegativeConeT(form.n_inequalities)] if form.n_inequalities else []),
            *(clarabel.SecondOrderConeT(size) for size in form.second_order),
            *(clarabel.ExponentialConeT() for _ in range(form.n_exponential)),
        ]
        known = {
            clarabel.SolverStatus.PrimalInfeasible: Status.INFEASIBLE,
            clarabel.SolverStatus.AlmostPrimalInfeasible: Status.INFEASIBLE,
            clarabel.SolverStatus.DualInfeasible: Status.UNBOUNDED,
            clarabel.SolverStatus.AlmostDualInfeasible: Status.UNBOUNDED,
        }
        q, b = form.q.numpy(), form.b.numpy()
        for i in range(B):
            P = sp.triu(matrix_of(form.P, i), format="csc")
            A = sp.csc_matrix(matrix_of(form.A, i))
            found = clarabel.DefaultSolver(P, q[i], A, b[i], cones, settings).solve()
            x[i], y[i] = found.x, found.z
            claims.append(known.get(found.status, Status.OPTIMAL))
            iterations[i] = found.iterations
        return Answers(torch.from_numpy(x), torch.from_numpy(y), claims, iterations, None)


@dataclass(frozen=True)
class MoreauEngine(ConicEngine):
    """Moreau, all contexts in one batch, with its own derivatives.

    It takes as many threads as it may use cores.

    Examples
    --------
    >>> import forewise as fw
    >>> solver = fw.solvers.ConicSolver(engine=fw.solvers.MoreauEngine())
    >>> solver.engine
    MoreauEngine()
    """

    @staticmethod
    def installed() -> bool:
        """Whether the package is there."""
        return find_spec("moreau") is not None

    def run(self, form: ConicForm, tolerance: float, differentiate: bool) -> Answers:
        """Solve the batch."""
        moreau = _import_moreau()
        B, n = form.q.shape
        m = form.b.shape[1]
        cones = moreau.Cones(
            num_zero_cones=form.n_equalities,
            num_nonneg_cones=form.n_inequalities,
            so_cone_dims=list(form.second_order),
            num_exp_cones=form.n_exponential,
        )
        precise = moreau.IPMSettings(
            tol_gap_abs=tolerance, tol_gap_rel=tolerance, tol_feas=tolerance,
            tol_ktratio=1e-3 * tolerance, diff_method="exact",
        )  # fmt: skip
        settings = moreau.Settings(
            solver="ipm", device="cpu", batch_size=B, enable_grad=True, ipm_settings=precise
        )
        pattern = [
            torch.as_tensor(array)
            for matrix in (form.P, form.A)
            for array in (matrix.row_offsets, matrix.columns)
        ]
        solver = moreau.torch.Solver(n, m, *pattern, cones, settings)
        P, A = (part.values.expand(B, -1).contiguous() for part in (form.P, form.A))
        q, b = (part.detach().clone().requires_grad_(differentiate) for part in (form.q, form.b))
        with torch.set_grad_enabled(differentiate):
            found = solver.solve(P, A, q, b)
        iterations = np.broadcast_to(np.asarray(solver.info.iterations, dtype=np.int64), B).copy()

        def adjoint(gx: torch.Tensor, gy: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            gq, gb = torch.autograd.grad([found.x, found.z], [q, b], [gx, gy], retain_graph=True)
            return gq, gb

        return Answers(
            x=found.x.detach(),
            y=found.z.detach(),
            # Its claims of infeasibility are left to Clarabel, whose proofs are checked.
            claims=[Status.OPTIMAL] * B,
            iterations=iterations,
            adjoint=adjoint if differentiate else None,
        )


def matrix_of(batch: SparseBatch, context: int) -> sp.csr_array:
    """One context's matrix, without the zeros that it has in the others' pattern."""
    values = batch.values[context if len(batch.values) > 1 else 0].detach().numpy()
    matrix = sp.csr_array((values.copy(), batch.columns, batch.row_offsets), shape=batch.shape)
    matrix.eliminate_zeros()
    return matrix


def _import_moreau() -> Any:
    try:
        import moreau
        import moreau.torch
    except ImportError as error:
        raise MissingDependencyError(
            'the engine Moreau is not installed: pip install "forewise[conic]"; or use '
            "ConicSolver(engine=ClarabelEngine()), which solves one context after the other"
        ) from error
    return moreau
