"""`forewise-lab demo`: the paper's problems solved and differentiated, then learned from data."""

from __future__ import annotations

import time
import warnings
from pathlib import Path

import torch
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from sklearn.exceptions import ConvergenceWarning

import forewise as fw

_SCENARIOS = 512
_TRUE_SCENARIOS = 10_000
Case = tuple[str, fw.Problem, fw.Scenarios]


def cases(n_scenarios: int = 64) -> list[Case]:
    """The newsvendor, the quadratic newsvendor with a budget, and the portfolio; 128 contexts."""
    generator = torch.Generator().manual_seed(0)

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    level = 12 + 3 * draw(128, 1, 6)
    demand = (level + 4 * draw(128, n_scenarios, 6)).clamp_min(0)
    returns = 0.05 + draw(128, n_scenarios, 15)
    portfolio = fw.Portfolio(expected_return=(0.3 + 0.1 * draw(15)).abs(), minimum_return=1.0)
    return [
        ("NV", fw.datasets.nv_problem(), fw.Scenarios(demand[..., :1])),
        ("NVQP", fw.datasets.nvqp_problem(budget=5000.0), fw.Scenarios(demand)),
        ("POP", portfolio, fw.Scenarios(returns)),
    ]


def run_solving_demo(console: Console) -> None:
    """Solve every case, and show the residuals."""
    size = cases()[0][2]
    table = _table(
        f"{size.n_contexts} contexts × {size.n_scenarios} scenarios, one program per context",
        ["problem", "solver", "status"],
        ["cost", "residual", "solve", "gradient"],
    )
    _solve(*cases(2)[2][1:])  # what is loaded on first use shall not count
    for title, problem, scenarios in cases():
        solution, forward, backward = _solve(problem, scenarios)
        counts = {status: solution.status.count(status) for status in set(solution.status)}
        found = (solution.primal_residual, solution.dual_residual, solution.gap)
        table.add_row(
            title,
            type(fw.AutoSolver().choice(problem)).__name__,
            ", ".join(
                f"[{'green' if status == 'optimal' else 'red'}]{n} {status}[/]"
                for status, n in counts.items()
            ),
            f"{solution.objective.mean():,.4g}",
            f"{torch.stack(found).max():.0e}",
            f"{1e3 * forward:.1f} ms",
            f"{1e3 * backward:.1f} ms",
        )
    console.print(table)
    console.print(
        "[dim]NV: the classical newsvendor. NVQP: six items with quadratic costs that share a "
        "budget. POP: fifteen assets, least expected loss for a required return.\n"
        "Mean optimal cost; largest relative residual or gap, recomputed from the raw data; time "
        "to solve, and to differentiate the mean decision in every scenario.[/]"
    )


def learners() -> dict[tuple[str, str], fw.Learner]:
    """The paper's five methods and nearest neighbours, with small budgets; by name and kind."""
    problem = fw.datasets.nv_problem()
    long = fw.Training(epochs=120, batch_size=32, learning_rate=3e-3, progress=True)
    neighbors = fw.NeighborPredictor(n_neighbors=30, kernel="epanechnikov")
    process = fw.GaussianProcessPredictor(alpha=0.1, max_rows=1000)
    point = fw.PointPredictor(training=long, random_state=0)
    bayesian = fw.BayesianPredictor(training=fw.Training(progress=True), random_state=0)
    return {
        ("kNN-SAA", "nearest neighbours"): fw.DecoupledLearner(problem, neighbors),
        ("D-ANN", "point forecast"): fw.DecoupledLearner(problem, point),
        ("D-GP", "Gaussian process"): fw.DecoupledLearner(problem, process),
        ("D-BNN", "Bayesian network"): fw.DecoupledLearner(problem, bayesian),
        ("C-ANN", "point, through the solver"): fw.CombinedLearner(problem, point),
        ("C-BNN", "Bayesian, through the solver"): fw.CombinedLearner(problem, bayesian),
    }


def run_learning_demo(console: Console, picture: Path) -> None:
    """Train every method on NV1, show regrets side by side, and draw the decisions."""
    train, validation = fw.datasets.nv1(1800, 0), fw.datasets.nv1(1200, 100)
    test = fw.datasets.nv1(1200, 200)
    problem = fw.datasets.nv_problem()
    oracle = fw.metrics.oracle_decision(problem, test.true_scenarios(_TRUE_SCENARIOS))
    table = _table(
        "orders of a newsvendor, learned from 1,800 days (NV1)",
        ["method", ""],
        ["R", "FR", "trained in"],
    )
    policies = {}
    for (name, kind), learner in learners().items():
        start = time.perf_counter()
        with console.status(f"training {name}"), warnings.catch_warnings():
            # A search of the Gaussian process that ends early still gives a forecast.
            warnings.simplefilter("ignore", ConvergenceWarning)
            learner.fit(train.X, train.y, validation.X, validation.y)
        seconds = time.perf_counter() - start
        decision = learner.decide(test.X, n_scenarios=_SCENARIOS)
        table.add_row(
            name,
            f"[dim]{kind}[/]",
            f"{fw.regret(problem, decision, test.y):.0f}",
            f"[bold]{fw.fair_regret(problem, decision, test.y, oracle=oracle):.0f}[/]",
            f"{seconds:.0f} s",
        )
        policies[name] = learner.policy_
    console.print(table)
    console.print(
        "[dim]R: mean cost above that of knowing the demand. FR: above that of knowing its true "
        "distribution, the part that learning can remove.[/]"
    )
    panels = {name: policies[name] for name in ("D-ANN", "C-ANN", "D-BNN", "C-BNN")}
    fw.plots.decision_panels(test, panels, problem.level.item()).savefig(picture, dpi=150)
    console.print(f"Predictions and decisions: [bold]{escape(str(picture))}[/]")


def _table(title: str, left: list[str], right: list[str]) -> Table:
    table = Table(
        title=title, title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True
    )
    for name in left:
        table.add_column(name, no_wrap=True)
    for name in right:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _solve(problem: fw.Problem, scenarios: fw.Scenarios) -> tuple[fw.Solution, float, float]:
    """Solution, seconds to solve, and seconds to differentiate, after a warm-up."""
    for _ in range(2):
        values = scenarios.values.clone().requires_grad_()
        start = time.perf_counter()
        solution = fw.solve(problem, fw.Scenarios(values))
        solved = time.perf_counter()
        solution.decision.mean().backward()
        done = time.perf_counter()
    return solution, solved - start, done - solved
