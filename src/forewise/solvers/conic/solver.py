"""The solver of conic programs: norms, logarithms, exponentials."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from forewise.exceptions import InvalidInputError
from forewise.problems.programs import ConicProgram
from forewise.solvers.base import TypedSolver
from forewise.solvers.bounds import solve_with_bounds
from forewise.solvers.conic.differentiation import attach_gradients
from forewise.solvers.conic.engines import Answers, ClarabelEngine, ConicEngine, MoreauEngine
from forewise.solvers.conic.form import ConicForm
from forewise.solvers.conic.optimality import (
    ACCEPTED,
    PROVEN,
    conic_residuals,
    infeasibility_residual,
    unboundedness_residual,
)
from forewise.solvers.interior_point.core import as_arrays
from forewise.solvers.interior_point.verification import screen
from forewise.solvers.solution import Certificate, ConeDuals, Duals, Solution, Status, only


@dataclass(frozen=True, repr=False)
class ConicSolver(TypedSolver[ConicProgram]):
    """Solves programs with second-order and exponential cones through an existing library.

    The extensive form is solved, so that work grows with the number of scenarios as sparse factors
    do. A context is optimal only if its residuals, recomputed from the raw data, are at most 1e-7;
    what the engine leaves above that is solved again by Clarabel. Where several decisions are
    optimal, or one is at a kink, gradients are those of the least-squares solution of the
    optimality conditions. Solving happens on the processor.

    Parameters
    ----------
    tolerance : float
        Feasibility and gap tolerance given to the library.
    engine : ConicEngine, optional
        `MoreauEngine()` by default where it is installed (``pip install "forewise[conic]"``): all
        contexts in one batch. `ClarabelEngine()` elsewhere: one after the other.

    Examples
    --------
    A warehouse near uncertain customers: the cost is a norm.

    >>> import cvxpy as cp
    >>> import forewise as fw
    >>> z, y = cp.Variable(2, name="place"), cp.Parameter(2, name="customer")
    >>> problem = fw.CvxpyProblem(cp.Minimize(cp.norm(z - y)), [], decision=z, outcome=y)
    >>> customers = fw.Scenarios([[[0.0, 0.0], [2.0, 0.0], [1.0, 0.5]]])
    >>> solver = fw.solvers.ConicSolver(engine=fw.solvers.ClarabelEngine())
    >>> fw.solve(problem, customers, solver).decision.round(decimals=3)
    tensor([[1.0000, 0.5000]], dtype=torch.float64)
    """

    program_type = ConicProgram

    tolerance: float = 1e-10
    engine: ConicEngine | None = None

    def __post_init__(self) -> None:
        if not 0 < self.tolerance <= ACCEPTED:
            raise InvalidInputError(
                f"tolerance must be positive and at most {ACCEPTED:g}, but is {self.tolerance!r}"
            )

    def solve_program(self, program: ConicProgram) -> Solution:
        """Solve every context of a program; failures are statuses, not exceptions."""
        if program.plain.bounds:
            return solve_with_bounds(program, self.solve_program)
        screened = _screen(program)
        solution = Solution.unsolved(program, screened)
        # A scenario of weight zero is not there. Contexts that have the same ones are a batch.
        present = program.plain.weights.detach() > 0
        good = torch.tensor([status is None for status in screened], device=present.device)
        for mask in present[good].unique(dim=0):
            chosen = (good & (present == mask).all(1)).nonzero().squeeze(1)
            kept = mask.nonzero().squeeze(1)
            part = self._solve_batch(program.take(chosen).take_scenarios(kept))
            part = _with_all_scenarios(part, kept, len(mask))
            solution = solution.with_contexts(chosen.tolist(), part)
        return solution

    def _solve_batch(self, program: ConicProgram) -> Solution:
        form = ConicForm.from_program(program)
        plain = form.detached()
        needed = (form.P.values, form.q, form.A.values, form.b)
        differentiate = torch.is_grad_enabled() and any(part.requires_grad for part in needed)
        answers = self._find(plain, differentiate)
        residuals = conic_residuals(plain, answers.x, answers.y)
        accepted = residuals.worst <= ACCEPTED
        certificates = _certificates(plain, answers, accepted)
        status = [Status.OPTIMAL if ok else Status.INACCURATE for ok in accepted.tolist()]
        for i, certificate in certificates.items():
            status[i] = certificate.status
        x, y = attach_gradients(form, plain, answers)
        optimal = accepted.to(x.device)
        z, u = form.split_point(only(optimal, x))
        duals, cone_duals = form.split_multipliers(only(optimal, y))
        return Solution(
            decision=z,
            recourse=u,
            objective=program.plain.objective(z, u),
            duals=duals,
            status=tuple(status),
            primal_residual=residuals.primal.to(x.device),
            dual_residual=residuals.dual.to(x.device),
            gap=residuals.gap.to(x.device),
            iterations=torch.from_numpy(answers.iterations).to(x.device),
            certificates=certificates,
            cone_duals=cone_duals,
        )

    def _find(self, form: ConicForm, differentiate: bool) -> Answers:
        """The engine's answers, and Clarabel's where these are not accepted."""
        engine = self.engine or (MoreauEngine() if MoreauEngine.installed() else ClarabelEngine())
        first = engine.run_scaled(form, self.tolerance, differentiate)
        if isinstance(engine, ClarabelEngine):
            return first
        failed = (conic_residuals(form, first.x, first.y).worst > ACCEPTED).nonzero().squeeze(1)
        if len(failed) == 0:
            return first
        again = ClarabelEngine().run_scaled(form.take(failed), self.tolerance, differentiate)
        return first.replaced(failed, again)


def _with_all_scenarios(solution: Solution, kept: torch.Tensor, n_scenarios: int) -> Solution:
    """The solution with zeros for the scenarios that are not there."""

    def spread(part: torch.Tensor) -> torch.Tensor:
        zeros = part.new_zeros(len(part), n_scenarios, part.shape[2])
        return zeros.index_copy(1, kept, part)

    duals, cones = solution.duals, solution.cone_duals
    assert cones is not None
    return replace(
        solution,
        recourse=spread(solution.recourse),
        duals=replace(
            duals,
            scenario_inequality=spread(duals.scenario_inequality),
            scenario_equality=spread(duals.scenario_equality),
        ),
        cone_duals=ConeDuals(cones.first, spread(cones.scenario)),
    )


def _screen(program: ConicProgram) -> list[Status | None]:
    """Status of the contexts that need no solving."""
    status = screen(as_arrays(program.plain))
    for block in program.cone_blocks().values():
        finite = block.detach().flatten(1).isfinite().all(1).expand(len(status)).tolist()
        for i, ok in enumerate(finite):
            status[i] = status[i] if ok else Status.INVALID
    return status


def _certificates(
    form: ConicForm, answers: Answers, accepted: torch.Tensor
) -> dict[int, Certificate]:
    """Proofs, for the contexts that have one, that there is no optimum."""
    infeasible = infeasibility_residual(form, answers.y)
    unbounded = unboundedness_residual(form, answers.x)
    duals, _ = form.split_multipliers(answers.y)
    z, u = form.split_point(answers.x)
    proofs = {}
    for i, claim in enumerate(answers.claims):
        if accepted[i] or claim is Status.OPTIMAL:
            continue
        residual = float((infeasible if claim is Status.INFEASIBLE else unbounded)[i])
        if residual > PROVEN:
            continue
        if claim is Status.INFEASIBLE:
            parts = (part[i] for part in vars(duals).values() if part is not None)
            proofs[i] = Certificate(claim, residual, multipliers=Duals(*parts))
        else:
            proofs[i] = Certificate(claim, residual, decision_ray=z[i], recourse_ray=u[i])
    return proofs
