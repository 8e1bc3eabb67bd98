"""The solver of conic programs: norms, logarithms, exponentials.

May import: problems, and its siblings with `conic` or `cone` in their names, `base`, `screening`,
`optimality`, `solution`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch

from forewise.exceptions import InvalidInputError
from forewise.problems.base import Problem
from forewise.problems.programs import ConicProgram
from forewise.scenarios import Scenarios
from forewise.solvers.base import Solver
from forewise.solvers.conic.batches import Batch, spread
from forewise.solvers.conic.differentiation import solve_with_gradients
from forewise.solvers.conic.engines import Answers, ClarabelEngine, ConicEngine, MoreauEngine
from forewise.solvers.conic.form import ConicForm
from forewise.solvers.conic.optimality import (
    ACCEPTED,
    PROVEN,
    conic_residuals,
    infeasibility_residual,
    unboundedness_residual,
)
from forewise.solvers.conic.scaling import run_scaled
from forewise.solvers.interior_point.screening import screen
from forewise.solvers.solution import Certificate, Duals, Solution, Status


@dataclass(frozen=True, repr=False)
class ConicSolver(Solver):
    """Solves problems with second-order and exponential cones through an existing library.

    `AutoSolver` takes it for problems with norms, logarithms or exponentials. The extensive form
    is solved, so that work grows with the number of scenarios as sparse factors do. A context is
    optimal only if its residuals, recomputed from the raw data, are at most 1e-7; what the engine
    leaves above that is solved again by Clarabel. Where several decisions are optimal, or one is
    at a kink, gradients are those of the least-squares solution of the optimality conditions.

    Solving happens on the processor.

    Parameters
    ----------
    tolerance : float
        Feasibility and gap tolerance given to the library.
    engine : ConicEngine, optional
        `MoreauEngine()` by default where it is installed (``pip install "forewise[conic]"``): all
        contexts in one batch. `ClarabelEngine()` elsewhere: one after the other.
    """

    tolerance: float = 1e-10
    engine: ConicEngine | None = None

    def __post_init__(self) -> None:
        if not 0 < self.tolerance <= ACCEPTED:
            raise InvalidInputError(
                f"tolerance must be positive and at most {ACCEPTED:g}, but is {self.tolerance!r}"
            )

    def unsupported_reason(self, problem: Problem) -> str | None:
        """What is no conic program is refused."""
        if problem.program_type is ConicProgram:
            return None
        return f"it becomes {problem.program_type.title}, without cones: use AutoSolver()"

    def solve(self, problem: Problem, scenarios: Scenarios) -> Solution:
        """Solve the problem's conic program."""
        program = problem.program(scenarios)
        assert isinstance(program, ConicProgram)  # by `unsupported_reason`
        return self.solve_program(program)

    def solve_program(self, program: ConicProgram) -> Solution:
        """Solve every context of a program; failures are statuses, not exceptions."""
        status = _screen(program)
        # A scenario of weight zero is not there. Contexts that have the same ones are a batch.
        present = program.plain.weights.detach() > 0
        good = torch.tensor([told is None for told in status], device=present.device)
        batches = []
        for mask in present[good].unique(dim=0):
            contexts = (good & (present == mask).all(1)).nonzero().squeeze(1)
            kept = mask.nonzero().squeeze(1)
            part = program.take(contexts).take_scenarios(kept)
            batches.append(Batch(contexts, kept, self._solve_batch(part)))
        return spread(program, batches, status)

    def _solve_batch(self, program: ConicProgram) -> Solution:
        form = ConicForm.of(program)
        plain = form.detached()
        needed = (form.P.values, form.q, form.A.values, form.b)
        differentiate = torch.is_grad_enabled() and any(part.requires_grad for part in needed)
        found: list[Answers] = []

        def find() -> Answers:
            found.append(self._find(plain, differentiate))
            return found[0]

        x, y = solve_with_gradients(form, plain, find)
        answers = found[0]
        checked = conic_residuals(plain, answers.x, answers.y)
        good = checked.worst <= ACCEPTED
        certificates = _certificates(plain, answers, good)
        status = [
            Status.OPTIMAL if ok else certificates[i].status if i in certificates
            else Status.INACCURATE
            for i, ok in enumerate(good.tolist())
        ]  # fmt: skip
        optimal = good.to(x.device).unsqueeze(1)
        x, y = torch.where(optimal, x, torch.nan), torch.where(optimal, y, torch.nan)
        z, u = form.split_point(x)
        duals, cone_duals = form.split_multipliers(y)
        return Solution(
            decision=z,
            recourse=u,
            objective=program.plain.objective(z, u),
            duals=duals,
            status=tuple(status),
            primal_residual=checked.primal.to(x.device),
            dual_residual=checked.dual.to(x.device),
            gap=checked.gap.to(x.device),
            iterations=torch.from_numpy(answers.iterations).to(x.device),
            certificates=certificates,
            cone_duals=cone_duals,
        )

    def _find(self, form: ConicForm, differentiate: bool) -> Answers:
        engine = self.engine or (MoreauEngine() if MoreauEngine.installed() else ClarabelEngine())
        first = run_scaled(engine, form, self.tolerance, differentiate)
        if isinstance(engine, ClarabelEngine):
            return first
        failed = (conic_residuals(form, first.x, first.y).worst > ACCEPTED).nonzero().squeeze(1)
        if len(failed) == 0:
            return first
        second = run_scaled(ClarabelEngine(), form.take(failed), self.tolerance, differentiate)
        return first.replaced(failed, second)


def _screen(program: ConicProgram) -> list[Status | None]:
    """Status of the contexts that need no solving."""
    status = screen(program.plain)
    for block in program.cone_blocks().values():
        finite = block.detach().flatten(1).isfinite().all(1).expand(len(status)).tolist()
        for i, ok in enumerate(finite):
            status[i] = status[i] if ok else Status.INVALID
    return status


def _certificates(form: ConicForm, answers: Answers, good: torch.Tensor) -> dict[int, Certificate]:
    """Proofs, for the contexts that have one, that there is no optimum."""
    infeasible = infeasibility_residual(form, answers.y)
    unbounded = unboundedness_residual(form, answers.x)
    duals, _ = form.split_multipliers(answers.y)
    z, u = form.split_point(answers.x)
    proofs = {}
    for i, claim in enumerate(answers.claims):
        if good[i] or claim is Status.OPTIMAL:
            continue
        residual = float((infeasible if claim is Status.INFEASIBLE else unbounded)[i])
        if residual > PROVEN:
            continue
        if claim is Status.INFEASIBLE:
            parts = (getattr(duals, field.name)[i] for field in fields(duals))
            proofs[i] = Certificate(claim, residual, multipliers=Duals(*parts))
        else:
            proofs[i] = Certificate(claim, residual, decision_ray=z[i], recourse_ray=u[i])
    return proofs
