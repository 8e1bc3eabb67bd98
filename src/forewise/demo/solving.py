"""The paper's three problems on synthetic scenarios, solved and differentiated.

May import: the public names.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import torch
from rich import box
from rich.console import Console
from rich.table import Table

import forewise as fw


@dataclass(frozen=True)
class Case:
    """One problem with scenarios for a batch of contexts."""

    title: str
    problem: fw.Problem
    scenarios: fw.Scenarios


def cases(n_scenarios: int = 64) -> list[Case]:
    """The newsvendor, the quadratic newsvendor with a budget, and the portfolio."""
    generator = torch.Generator().manual_seed(0)

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    level = 12 + 3 * draw(128, 1, 6)
    demand = (level + 4 * draw(128, n_scenarios, 6)).clamp_min(0)
    returns = 0.05 + draw(128, n_scenarios, 15)
    budgeted = fw.QuadraticNewsvendor(
        quadratic=[6, 4, 6, 6, 8, 8],
        linear=[37, 40, 32, 50, 56, 32],
        shortage_quadratic=[24, 28, 17, 15, 21, 24],
        shortage=[1644, 687, 1369, 1784, 1682, 1246],
        excess_quadratic=[17, 13, 14, 8, 15, 20],
        excess=[172, 186, 157, 127, 84, 90],
        price=[53, 109, 64, 50, 54, 73],
        budget=5000,
    )
    portfolio = fw.Portfolio(expected_return=(0.3 + 0.1 * draw(15)).abs(), minimum_return=1.0)
    return [
        Case("NV", fw.Newsvendor(100.0, 900.0), fw.Scenarios(demand[..., :1])),
        Case("NVQP", budgeted, fw.Scenarios(demand)),
        Case("POP", portfolio, fw.Scenarios(returns)),
    ]


def run_solving_demo(console: Console) -> None:
    """Solve every case, show what came out, and how far it is from exact."""
    size = cases()[0].scenarios
    table = Table(
        title=f"{size.n_contexts} contexts × {size.n_scenarios} scenarios, one program per context",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
    )
    for name in ("problem", "solver", "status"):
        table.add_column(name, no_wrap=True)
    for name in ("cost", "residual", "solve", "gradient"):
        table.add_column(name, justify="right", no_wrap=True)
    with console.status("compiling the solver's inner loops (a minute, the first time only)"):
        _solve(cases(2)[2])
    for case in cases():
        table.add_row(*_row(case))
    console.print(table)
    console.print(
        "[dim]NV: the classical newsvendor. NVQP: six items with quadratic costs that share a "
        "budget. POP: fifteen assets, least expected loss for a required return.\n"
        "Mean optimal cost; largest relative residual or gap, recomputed from the raw data; time "
        "to solve, and to differentiate the mean decision in every scenario.[/]"
    )


def _row(case: Case) -> list[str]:
    solution, forward, backward = _solve(case)
    counts = {status: solution.status.count(status) for status in set(solution.status)}
    found = (solution.primal_residual, solution.dual_residual, solution.gap)
    residual = torch.stack(found).max()
    return [
        case.title,
        type(fw.AutoSolver().choice(case.problem)).__name__,
        ", ".join(f"[green]{n} {s}[/]" if s == "optimal" else f"[red]{n} {s}[/]"
                  for s, n in counts.items()),
        f"{solution.objective.mean():,.4g}",
        f"{residual:.0e}",
        f"{1e3 * forward:.1f} ms",
        f"{1e3 * backward:.1f} ms",
    ]  # fmt: skip


def _solve(case: Case) -> tuple[fw.Solution, float, float]:
    """Solution, seconds to solve, and seconds to differentiate, after a warm-up."""
    for _ in range(2):
        values = case.scenarios.values.clone().requires_grad_()
        start = time.perf_counter()
        solution = fw.solve(case.problem, fw.Scenarios(values))
        solved = time.perf_counter()
        solution.decision.mean().backward()
        done = time.perf_counter()
    return solution, solved - start, done - solved
