"""What a step of training costs: combined against decoupled, and against plain torch.

May import: the public names, predictors, learners, datasets, and its siblings.
"""

from __future__ import annotations

import itertools
import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from rich import box
from rich.console import Console
from rich.table import Table

import forewise as fw
from forewise.predictors.networks.training import optimiser_of, step
from forewise_lab.bench.files import write_text
from forewise_lab.bench.machine import description
from forewise_lab.bench.threads import one_core

_BATCH, _SCENARIOS, _HIDDEN = 256, 16, (512, 128, 128)
_WARM_UP = 3


@dataclass(frozen=True)
class StepTimes:
    """Median milliseconds of a step."""

    plain: float
    decoupled: float
    combined: float


def run_training_bench(output: Path, repeats: int, console: Console) -> StepTimes:
    """Time the three kinds of step in turns, on one core; print and write what came out."""
    with one_core():
        steps = {
            "plain torch, decoupled": plain_step(),
            "forewise, decoupled": forewise_step(combined=False),
            "forewise, combined": forewise_step(combined=True),
        }
        times: dict[str, list[float]] = {name: [] for name in steps}
        with console.status("measuring"):
            for turn in range(_WARM_UP + repeats):
                for name, take in steps.items():
                    start = time.perf_counter()
                    take()
                    if turn >= _WARM_UP:
                        times[name].append(1e3 * (time.perf_counter() - start))
    found = StepTimes(*(statistics.median(values) for values in times.values()))
    console.print(_table(found))
    write_text(output / "training.md", _markdown(found))
    write_text(output / "training_machine.txt", description())
    return found


def forewise_step(*, combined: bool) -> Callable[[], object]:
    """One step of forewise's own loop, on the paper's NVQP."""
    data = fw.datasets.nvqp(_BATCH, random_state=0)
    settings = fw.Training(batch_size=_BATCH)
    predictor = fw.BayesianPredictor(
        _HIDDEN, n_scenarios=_SCENARIOS, training=settings, random_state=0
    )
    rows, _ = predictor.prepare(data.X, data.y, data.X[:2], data.y[:2])
    if combined:
        learner = fw.CombinedLearner(fw.datasets.nvqp_problem(), predictor, _SCENARIOS)
        job = predictor.job(learner.objective(predictor, rows, None), rows)
    else:
        job = predictor.job(predictor.likelihood(rows, None), rows)
    optimiser = optimiser_of(job.network, settings)
    generator = torch.Generator().manual_seed(0)
    everything = torch.arange(_BATCH)
    return lambda: step(job, settings, optimiser, everything, generator)


def plain_step() -> Callable[[], object]:
    """The same decoupled step as one would write it by hand: a bmm per layer, in plain torch."""
    data = fw.datasets.nvqp(_BATCH, random_state=0)
    x = torch.from_numpy((data.X - data.X.mean(0)) / data.X.std(0)).float()
    y = torch.from_numpy((data.y - data.y.mean(0)) / data.y.std(0)).float()
    n_outcomes = y.shape[1]
    sizes = (x.shape[1], *_HIDDEN, 2 * n_outcomes)
    generator = torch.Generator().manual_seed(0)
    means, rhos = [], []
    for inputs, outputs in itertools.pairwise(sizes):
        start = (torch.rand(inputs + 1, outputs, generator=generator) - 0.5) / math.sqrt(inputs)
        means.append(start.requires_grad_())
        rhos.append(torch.full((inputs + 1, outputs), -4.5).requires_grad_())
    optimiser = torch.optim.Adam([*means, *rhos], lr=1e-3)

    def take() -> None:
        optimiser.zero_grad()
        hidden = x.expand(_SCENARIOS, -1, -1)
        divergence = torch.zeros(())
        for index, (mean, rho) in enumerate(zip(means, rhos, strict=True)):
            std = torch.nn.functional.softplus(rho)
            noise = torch.randn(_SCENARIOS, *mean.shape, generator=generator)
            weight = mean + std * noise
            if index:
                hidden = hidden.relu()
            hidden = torch.bmm(hidden, weight[:, :-1]) + weight[:, -1:]
            divergence = divergence + (0.5 * (std**2 + mean**2) - std.log() - 0.5).sum()
        centre, log_variance = hidden.split(n_outcomes, dim=-1)
        loss = 0.5 * ((y - centre) ** 2 * torch.exp(-log_variance) + log_variance).mean()
        (loss + 1e-6 * divergence).backward()
        torch.nn.utils.clip_grad_norm_([*means, *rhos], 10.0)
        optimiser.step()

    return take


def bars(found: StepTimes) -> list[tuple[str, float, float]]:
    """What is asked for: name, bound, measured."""
    return [
        ("combined step / decoupled step", 2.0, found.combined / found.decoupled),
        ("decoupled step / the same in plain torch", 1.1, found.decoupled / found.plain),
    ]


def _table(found: StepTimes) -> Table:
    title = f"one step: NVQP, batch {_BATCH}, {_SCENARIOS} scenarios, network {_HIDDEN}"
    table = Table(title=title, title_style="bold", box=box.SIMPLE_HEAD)
    table.add_column("what")
    for name in ("wanted", "measured"):
        table.add_column(name, justify="right")
    for name, value in vars(found).items():
        table.add_row(f"{name} step", "", f"{value:.1f} ms")
    for name, bound, value in bars(found):
        colour = "green" if value <= bound else "red"
        table.add_row(name, f"≤ {bound:g}", f"[{colour}]{value:.2f}[/]")
    return table


def _markdown(found: StepTimes) -> str:
    lines = [
        f"One step of training: NVQP, batch {_BATCH}, {_SCENARIOS} scenarios, network "
        f"{'-'.join(map(str, _HIDDEN))}, one thread, medians of turns in one run.",
        "",
        "| what | wanted | measured |",
        "| :-- | --: | --: |",
        *(f"| {name} step | | {value:.1f} ms |" for name, value in vars(found).items()),
        *(f"| {name} | ≤ {bound:g} | {value:.2f} |" for name, bound, value in bars(found)),
    ]
    return "\n".join(lines) + "\n"
