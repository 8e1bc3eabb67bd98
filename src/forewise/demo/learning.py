"""Six ways to learn the newsvendor's order from data, side by side.

May import: the public names, plots.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from pathlib import Path

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from sklearn.exceptions import ConvergenceWarning

import forewise as fw
from forewise.plots import decision_panels

_SCENARIOS = 512
_TRUE_SCENARIOS = 10_000


@dataclass(frozen=True)
class Method:
    """A learner under the paper's name for it."""

    name: str
    told: str
    learner: fw.Learner


def methods() -> list[Method]:
    """The paper's five methods, and what a practitioner would try first; small budgets."""
    problem = fw.datasets.nv_problem()
    long = fw.Training(epochs=120, batch_size=32, learning_rate=3e-3, progress=True)
    brief = fw.Training(epochs=40, batch_size=32, progress=True)
    point = fw.PointPredictor(training=long, random_state=0)
    bayesian = fw.BayesianPredictor(n_scenarios=8, training=long, random_state=0)
    combined = fw.BayesianPredictor(n_scenarios=8, training=long, random_state=0)
    process = fw.GaussianProcessPredictor(alpha=0.1, max_rows=1000)
    return [
        Method("kNN-SAA", "nearest neighbours", fw.DecoupledLearner(problem, fw.NeighborPredictor(
            n_neighbors=30, kernel="epanechnikov"))),
        Method("D-ANN", "point forecast", fw.DecoupledLearner(problem, point)),
        Method("D-GP", "Gaussian process", fw.DecoupledLearner(problem, process)),
        Method("D-BNN", "Bayesian network", fw.DecoupledLearner(problem, bayesian)),
        Method("C-ANN", "point, through the solver", fw.CombinedLearner(problem, point)),
        Method("C-BNN", "Bayesian, through the solver", fw.CombinedLearner(
            problem, combined, pretraining=brief)),
    ]  # fmt: skip


def run_learning_demo(console: Console, picture: Path) -> None:
    """Train every method on NV1, show regrets side by side, and draw how they decide."""
    data = fw.datasets.paper_split("nv1", 0)
    problem = fw.datasets.nv_problem()
    true = data.test.true_scenarios(_TRUE_SCENARIOS)
    oracle = fw.metrics.oracle_decision(problem, true)
    table = Table(
        title="order what a newsvendor should, learned from 1,800 days (NV1)",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
    )
    for name in ("method", ""):
        table.add_column(name, no_wrap=True)
    for name in ("R", "FR", "trained in"):
        table.add_column(name, justify="right", no_wrap=True)
    fitted = {}
    for method in methods():
        start = time.perf_counter()
        with console.status(f"training {method.name}"), warnings.catch_warnings():
            # A search of the Gaussian process that ends early still gives a forecast.
            warnings.simplefilter("ignore", ConvergenceWarning)
            learner = method.learner.fit(
                data.train.X, data.train.y, data.validation.X, data.validation.y
            )
        seconds = time.perf_counter() - start
        decision = learner.decide(data.test.X, n_scenarios=_SCENARIOS)
        table.add_row(
            method.name,
            f"[dim]{method.told}[/]",
            f"{fw.regret(problem, decision, data.test.y):.0f}",
            f"[bold]{fw.fair_regret(problem, decision, data.test.y, oracle=oracle):.0f}[/]",
            f"{seconds:.0f} s",
        )
        fitted[method.name] = learner
    console.print(table)
    console.print(
        "[dim]R: mean cost above that of knowing the demand. FR: above that of knowing its true "
        "distribution, the part that learning can remove.[/]"
    )
    figure = decision_panels(
        data.test,
        {name: fitted[name].policy_ for name in ("D-ANN", "C-ANN", "D-BNN", "C-BNN")},
        level=problem.level.item(),
    )
    figure.savefig(picture, dpi=150)
    console.print(f"How they come to their decisions: [bold]{escape(str(picture))}[/]")
