"""Bounds of the optimal cost where scenarios cannot be listed: multiple replications.

The optimal cost of a program of sampled scenarios is, in the mean, below the true one; the cost of
any decision, evaluated on other samples, is above. Replications give both a standard error (Mak,
Morton and Wood, 1999).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from scipy.stats import t as student

from forewise.exceptions import InvalidInputError, SolveError
from forewise.problems.programs import ScenarioProgram
from forewise.scenarios import Scenarios
from forewise.solvers.aggregation.solver import AggregatedSolver
from forewise.solvers.base import ProgramSolver
from forewise.solvers.solution import Solution, Status
from forewise.validation.parameters import as_random_state, require_count

_SCREENED = 3  # candidates that are compared by evaluation


class Sampled(Protocol):
    """A stochastic program that can draw scenarios, such as `forewise.smps.TwoStageProgram`."""

    def sample(self, n_scenarios: int, random_state: Any = 0) -> Scenarios:
        """Independent draws of equal weight, of one context."""

    def program(self, scenarios: Scenarios) -> ScenarioProgram:
        """The program of these scenarios."""


class Estimate(NamedTuple):
    """A mean with the ends of its confidence interval."""

    mean: float
    lower: float
    upper: float


@dataclass(frozen=True, eq=False)
class SampledBounds:
    """A decision, and what is known of its cost and of the best there is.

    Examples
    --------
    >>> import forewise as fw
    >>> class Shop:
    ...     def sample(self, n_scenarios, random_state):
    ...         return fw.datasets.nv1(1, random_state=0).true_scenarios(n_scenarios, random_state)
    ...
    ...     def program(self, scenarios):
    ...         return fw.Newsvendor(shortage=3.0, excess=1.0).program(scenarios)
    >>> bounds = fw.solvers.sampled_bounds(Shop(), 100, 4, n_evaluation=2_000, random_state=0)
    >>> bounds.n_scenarios, bounds.confidence, bounds.decision.shape
    (100, 0.95, torch.Size([1]))
    """

    decision: torch.Tensor  # (n_decisions,)
    optimal: Estimate  # of the mean optimal cost of samples, which is at most the true one
    cost: Estimate  # of the decision
    gap: float  # with this confidence, the decision costs at most so much more than the best
    confidence: float
    n_scenarios: int
    n_replications: int
    optima: np.ndarray = field(repr=False)  # optimal cost of each replication

    def __repr__(self) -> str:
        return (
            f"SampledBounds(cost {self.cost.mean:.6g} ({self.cost.lower:.6g} to "
            f"{self.cost.upper:.6g}), at most {self.gap:.3g} above the optimum, "
            f"{self.confidence:.0%} confidence, {self.n_replications} replications of "
            f"{self.n_scenarios} scenarios)"
        )


def sampled_bounds(
    program: Sampled,
    n_scenarios: int = 1000,
    n_replications: int = 10,
    *,
    n_evaluation: int = 100_000,
    confidence: float = 0.95,
    decision: Any = None,
    solver: ProgramSolver | None = None,
    random_state: Any = 0,
) -> SampledBounds:
    """Bounds of the optimal cost of a program whose scenarios cannot be listed.

    Parameters
    ----------
    program : object with `sample(n_scenarios, random_state)` and `program(scenarios)`
        `forewise.smps.TwoStageProgram`, say.
    n_scenarios : int
        Scenarios of each replication. More of them bring the lower bound nearer.
    n_replications : int
        Programs that are sampled and solved; at least 2.
    n_evaluation : int
        Scenarios, others than these, on which decisions are evaluated.
    confidence : float
        Of each interval, and of the gap.
    decision : array (n_decisions,), optional
        A decision to evaluate; else the best of some replications' decisions is.
    solver : ProgramSolver, optional
        `AggregatedSolver()` by default; `InteriorPointSolver()` where costs are random.
    random_state : int, RandomState or None

    Examples
    --------
    Demand has a density: nobody can list its scenarios, but they can be drawn.

    >>> import forewise as fw
    >>> class Shop:
    ...     problem = fw.Newsvendor(shortage=3.0, excess=1.0)
    ...
    ...     def sample(self, n_scenarios, random_state):
    ...         data = fw.datasets.nv1(1, random_state=0)
    ...         return data.true_scenarios(n_scenarios, random_state)
    ...
    ...     def program(self, scenarios):
    ...         return self.problem.program(scenarios)
    >>> bounds = fw.solvers.sampled_bounds(Shop(), 200, 4, n_evaluation=2_000, random_state=0)
    >>> bounds.gap < 0.05 * bounds.cost.mean
    True
    """
    require_count("n_scenarios", n_scenarios)
    require_count("n_replications", n_replications, at_least=2)
    require_count("n_evaluation", n_evaluation, at_least=2)
    if not 0 < confidence < 1:
        raise InvalidInputError(f"confidence must lie between 0 and 1, but is {confidence!r}")
    solver = AggregatedSolver() if solver is None else solver
    seeds = as_random_state(random_state).randint(2**31, size=n_replications + 3)
    samples = [program.program(program.sample(n_scenarios, int(s))) for s in seeds[3:]]
    solved = [_solved(solver, sample, "a sampled program") for sample in samples]
    if decision is None:
        screen = program.program(program.sample(n_evaluation, int(seeds[0])))
        some = [found.decision[0] for found in solved[:_SCREENED]]
        chosen = min(some, key=lambda z: float(np.mean(_costs(solver, screen, z))))
    else:
        chosen = torch.as_tensor(decision, dtype=torch.float64)
        if chosen.shape != solved[0].decision.shape[1:]:
            raise InvalidInputError(
                f"decision must have shape {tuple(solved[0].decision.shape[1:])}, but has shape "
                f"{tuple(chosen.shape)}"
            )
    optima = np.array([float(found.objective[0]) for found in solved])
    own = np.array([float(np.mean(_costs(solver, sample, chosen))) for sample in samples])
    costs = _costs(solver, program.program(program.sample(n_evaluation, int(seeds[1]))), chosen)
    excess = own - optima
    quantile = float(student.ppf(confidence, n_replications - 1))
    margin = quantile * float(excess.std(ddof=1)) / n_replications**0.5
    return SampledBounds(
        decision=chosen,
        optimal=_estimate(optima, confidence),
        cost=_estimate(costs, confidence),
        gap=max(0.0, float(excess.mean())) + margin,
        confidence=confidence,
        n_scenarios=n_scenarios,
        n_replications=n_replications,
        optima=optima,
    )


def _estimate(draws: np.ndarray, confidence: float) -> Estimate:
    mean, n = float(draws.mean()), len(draws)
    margin = float(student.ppf(0.5 + confidence / 2, n - 1)) * float(draws.std(ddof=1)) / n**0.5
    return Estimate(mean, mean - margin, mean + margin)


def _solved(solver: ProgramSolver, program: ScenarioProgram, what: str) -> Solution:
    solution = solver.solve_program(program)
    if program.n_contexts != 1:
        raise InvalidInputError(f"program must be of one context, but has {program.n_contexts}")
    if solution.status[0] is not Status.OPTIMAL:
        status = solution.status[0]
        raise SolveError(f"{what} is {status} ({status.advice})", solution)
    return solution


def _costs(solver: ProgramSolver, program: ScenarioProgram, decision: torch.Tensor) -> np.ndarray:
    """The cost of a decision in every scenario, (n_scenarios,)."""
    fixed = program.with_blocks(lower=decision[None], upper=decision[None])
    solution = _solved(
        solver, fixed, "a decision's recourse, in scenarios that it was not made from,"
    )
    late = program.recourse_cost(solution.recourse)
    found: np.ndarray = (program.first_stage_cost(decision[None])[:, None] + late)[0].numpy()
    return found
