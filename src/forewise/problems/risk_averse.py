"""Another problem's cost, and a risk of it in the place of the mean.

May import: exceptions, arguments, scenarios, its siblings `base`, `feasibility`, `kinds`,
`program`, `risk`, `tail`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from forewise.exceptions import UnsupportedProblemError
from forewise.problems.base import Problem
from forewise.problems.feasibility import Constraints
from forewise.problems.programs import ScenarioProgram
from forewise.problems.risk import Expectation, Risk
from forewise.problems.tail import tail_program
from forewise.scenarios import Scenarios
from forewise.validation.arguments import require_instance


@dataclass(frozen=True, eq=False, repr=False)
class RiskAverseProblem(Problem):
    """A problem whose decisions minimise a risk of the cost; made by `Problem.with_risk`.

    The cost of a decision and an outcome is the problem's own. Programs have one more first-stage
    variable behind the decision, where the tail begins.

    Parameters
    ----------
    problem : Problem
    risk : Risk
    """

    problem: Problem
    risk: Risk

    def __post_init__(self) -> None:
        require_instance("problem", self.problem, Problem, "Newsvendor(shortage=3, excess=1)")
        require_instance("risk", self.risk, Risk, "CVaR(0.9)")
        kind = self.problem.program_type
        if kind is not ScenarioProgram:
            raise UnsupportedProblemError(
                f"with_risk takes problems that become linear or quadratic programs, and this one "
                f"becomes {kind.title}: write the risk into the objective, as t + "
                "cp.pos(cost - t) / (1 - level) with a variable t among the decisions for "
                "CVaR(level)"
            )

    @property
    def n_outcomes(self) -> int | None:
        """The problem's own."""
        return self.problem.n_outcomes

    def n_decisions(self, n_outcomes: int) -> int:
        """The problem's own."""
        return self.problem.n_decisions(n_outcomes)

    def constraints(self, n_decisions: int) -> Constraints:
        """The problem's own."""
        return self.problem.constraints(n_decisions)

    def _cost(self, decision: torch.Tensor, outcome: torch.Tensor) -> torch.Tensor:
        return self.problem._cost(decision, outcome)

    def _program(self, scenarios: Scenarios) -> ScenarioProgram:
        program = self.problem.recourse_program(scenarios)
        if program.D.any():
            raise UnsupportedProblemError(
                f"{self.risk} of a cost that is quadratic in the recourse has no linear or "
                "quadratic program: solve it with AutoSolver() or RiskSolver()"
            )
        return tail_program(program, self.risk)

    def recourse_program(self, scenarios: Scenarios) -> ScenarioProgram:
        """The problem's own: costs by scenario, before the risk of them is taken."""
        return self.problem.recourse_program(scenarios)

    def training_cost(self, first_stage: torch.Tensor, outcome: torch.Tensor) -> torch.Tensor:
        """What an outcome says of the risk of a decision and of where its tail begins."""
        decision = first_stage[:, : self.n_decisions(outcome.shape[1])]
        return self.risk.realised(self.unchecked_cost(decision, outcome), first_stage[:, -1])

    def gradient_unsupported_reason(self) -> str | None:
        """The problem's own, and that of the worst case."""
        if self.risk.level == 1:
            return (
                "the worst case cannot be learned from one outcome per context: train with "
                "CVaR(0.95), say, and decide with WorstCase()"
            )
        return self.problem.gradient_unsupported_reason()

    def direct_unsupported_reason(self) -> str | None:
        """A risk is about a distribution."""
        return (
            f"{self.risk} is about the distribution of the cost, and a direct rule has no "
            "distribution: use a CombinedLearner or a DecoupledLearner"
        )

    def summary(self, costs: torch.Tensor) -> torch.Tensor:
        """The risk of the costs."""
        return self.risk(costs)

    def with_risk(self, risk: Risk) -> Problem:
        """The same problem with another risk in the place of this one."""
        return self.problem.with_risk(risk)

    @property
    def needs_given(self) -> bool:
        """The problem's own."""
        return self.problem.needs_given

    @property
    def n_contexts(self) -> int | None:
        """The problem's own."""
        return self.problem.n_contexts

    def bound(self, given: Any) -> Problem:
        """The problem bound, with the same risk."""
        return self.problem.bound(given).with_risk(self.risk)

    def for_contexts(self, contexts: slice | torch.Tensor) -> Problem:
        """The problem of some contexts, with the same risk."""
        return self.problem.for_contexts(contexts).with_risk(self.risk)

    def decision_names(self, n_outcomes: int) -> list[str] | None:
        """The problem's own."""
        return self.problem.decision_names(n_outcomes)

    def split_decision(self, decision: Any) -> dict[str, Any]:
        """As the problem does."""
        return self.problem.split_decision(decision)


def without_risk(problem: Problem) -> Problem:
    """The problem by itself: what a risk-averse one comes to where there is one scenario."""
    return problem.problem if isinstance(problem, RiskAverseProblem) else problem


def with_risk(problem: Problem, risk: Risk) -> Problem:
    """The problem itself where the risk is the mean."""
    if isinstance(risk, Expectation):
        return problem
    return RiskAverseProblem(problem, risk)
