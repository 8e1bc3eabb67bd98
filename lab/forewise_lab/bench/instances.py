"""The programs that are measured, each drawn with a seed of its own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

import forewise as fw
from forewise.problems.bounds import with_bounds_as_rows

NEWSVENDOR_COSTS = {
    "quadratic": [6.0, 4.0, 6.0, 6.0, 8.0, 8.0],
    "linear": [37.0, 40.0, 32.0, 50.0, 56.0, 32.0],
    "shortage_quadratic": [24.0, 28.0, 17.0, 15.0, 21.0, 24.0],
    "shortage": [1644.0, 687.0, 1369.0, 1784.0, 1682.0, 1246.0],
    "excess_quadratic": [17.0, 13.0, 14.0, 8.0, 15.0, 20.0],
    "excess": [172.0, 186.0, 157.0, 127.0, 84.0, 90.0],
    "price": [53.0, 109.0, 64.0, 50.0, 54.0, 73.0],
}
NEWSVENDOR_BUDGET = 6000.0

# What a gradient is taken with respect to where there is no outcome, only a program.
SCENARIO_DATA = ("T", "W", "r", "q", "d")


@dataclass(frozen=True, eq=False)
class Instance:
    """One program to solve for a batch of contexts, and what its gradients are taken for.

    `problem` and `scenarios` are None where the program is not that of a problem; bounds of
    `program` are rows.
    """

    name: str
    title: str
    n_contexts: int
    n_scenarios: int
    problem: fw.Problem | None
    scenarios: fw.Scenarios | None
    program: fw.ScenarioProgram

    def leaves(self) -> dict[str, torch.Tensor]:
        """Fresh tensors that ask for gradients: the scenarios, or else the program's data."""
        if self.scenarios is not None:
            data = {"scenarios": self.scenarios.values}
        else:
            data = {name: getattr(self.program, name) for name in SCENARIO_DATA}
        return {name: tensor.clone().requires_grad_() for name, tensor in data.items()}

    def program_of(self, leaves: dict[str, torch.Tensor]) -> fw.ScenarioProgram:
        """The program as a differentiable function of its leaves."""
        if self.problem is not None:
            program = self.problem.program(fw.Scenarios(leaves["scenarios"]))
            assert isinstance(program, fw.ScenarioProgram)
            return program
        return self.program.map(lambda name, block: leaves.get(name, block))

    def direction(self) -> torch.Tensor:
        """Fixed random v ``(n_contexts, n_z)`` of the loss Σ v·decision that is differentiated."""
        generator = np.random.default_rng(self.n_contexts)
        return torch.as_tensor(generator.normal(size=(self.n_contexts, self.program.n_decisions)))


def nv(n_scenarios: int, n_contexts: int = 32, seed: int = 0) -> Instance:
    """The paper's newsvendor, with one item."""
    generator = np.random.default_rng(seed)
    mean = generator.uniform(7.0, 15.5, size=(n_contexts, 1, 1))
    demand = np.maximum(mean + 3.0 * generator.normal(size=(n_contexts, n_scenarios, 1)), 0.0)
    title = f"newsvendor, {n_contexts} contexts, 1 item"
    return _of_problem("nv", title, fw.Newsvendor(shortage=100.0, excess=900.0), demand)


def nvqp(n_scenarios: int, n_contexts: int = 32, seed: int = 0) -> Instance:
    """Quadratic newsvendor with six items whose budget binds in about half of the contexts."""
    generator = np.random.default_rng(seed)
    problem = fw.QuadraticNewsvendor(**NEWSVENDOR_COSTS, budget=NEWSVENDOR_BUDGET)
    # The context moves the demand's mean: below about 11 the budget is slack, above it binds.
    mean = generator.uniform(7.0, 15.5, size=(n_contexts, 1, 1))
    noise = generator.normal(size=(n_contexts, n_scenarios, problem.n_items))
    title = (
        f"quadratic newsvendor, {n_contexts} contexts, {problem.n_items} items, budget "
        f"{NEWSVENDOR_BUDGET:g} that binds in about half of the contexts"
    )
    return _of_problem("nvqp", title, problem, np.maximum(mean + 6.0 * noise, 0.0))


def pop(n_scenarios: int, n_contexts: int = 128, seed: int = 0) -> Instance:
    """Portfolio of fifteen assets whose least expected loss is well above zero."""
    generator = np.random.default_rng(seed)
    n_assets = 15
    expected_return = np.abs(generator.normal(0.3, 0.1, size=n_assets))
    problem = fw.Portfolio(expected_return=expected_return, minimum_return=1.0)
    returns = generator.normal(0.05, 1.0, size=(n_contexts, n_scenarios, n_assets))
    title = f"portfolio, {n_contexts} contexts, {n_assets} assets, required return 1"
    return _of_problem("pop", title, problem, returns)


def recourse(n_scenarios: int = 128, n_contexts: int = 32, seed: int = 0) -> Instance:
    """Program with dense scenario rows that differ by context and scenario.

    z = 0, u = 0 satisfies every row with room to spare, and P = D = I bounds the cost.
    """
    generator = np.random.default_rng(seed)
    n_z, n_u, n_rows = 20, 10, 20
    lead = (n_contexts, n_scenarios)
    program = fw.ScenarioProgram(
        weights=np.full(lead, 1 / n_scenarios),
        P=np.eye(n_z)[None],
        q=generator.normal(size=(n_contexts, n_z)),
        D=np.eye(n_u)[None, None],
        d=generator.normal(size=(*lead, n_u)),
        T=generator.normal(size=(*lead, n_rows, n_z)),
        W=generator.normal(size=(*lead, n_rows, n_u)),
        r=generator.uniform(0.1, 1.0, size=(*lead, n_rows)),
    )
    title = f"dense recourse, {n_contexts} contexts, n_z {n_z}, n_u {n_u}, {n_rows} rows a scenario"
    return Instance("recourse", title, n_contexts, n_scenarios, None, None, program)


def _of_problem(name: str, title: str, problem: fw.Problem, outcomes: np.ndarray) -> Instance:
    scenarios = fw.Scenarios(outcomes)
    n_contexts, n_scenarios = outcomes.shape[:2]
    program = problem.program(scenarios)
    assert isinstance(program, fw.ScenarioProgram)
    rows = with_bounds_as_rows(program)
    return Instance(name, title, n_contexts, n_scenarios, problem, scenarios, rows)


FAMILIES = {"nvqp": nvqp, "pop": pop, "recourse": recourse}
